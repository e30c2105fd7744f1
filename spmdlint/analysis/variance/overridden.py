"""Methods that do not run for an object because its class overrides them."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import ClassValue, Frame, Instance, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

# ``super().setup()``; ``Base.setup(self)`` names the method itself.
_ABOVE = frozenset(("super",))


def overridden(ev: Evaluator, cls: ClassValue, method: FunctionRef) -> bool:
    """Whether a class overrides an inherited method and never calls it."""
    name = ev.project.function(method).name
    own = [methods[name] for each in ev.objects.lineage(cls) if name in (methods := ev.project.methods(each.ref))]
    return method in own[1:] and not ev.code(own[0]).mentions(_ABOVE | {name})


def receiver(ev: Evaluator, frame: Frame) -> ClassValue | None:
    """The class of the object whose method a frame belongs to, as far as the call shows."""
    operations = frame.code.operations
    if ev.project.enclosing_class(frame.ref) is None or not operations or not isinstance(operations[0], s.Parameter):
        return None
    value = certain(ev.value(frame, 0))
    return value.cls if isinstance(value, Instance) else None
