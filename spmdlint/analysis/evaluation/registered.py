"""The calls that register: what runs a function when the files of the program are imported.

A table is often filled by a function of its own, as a decorator (``@register("mean")``) or directly
(``register("mean", mean)``). Who reads the table runs what these calls have put there, in whatever file they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import Arguments, Frame, FunctionValue, Values, certain, join
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator
_REGISTER = "register"


def frames_at_import(ev: Evaluator, ref: FunctionRef) -> Iterator[Frame]:
    """The frames in which a function runs for calls at the top of files and in the bodies of classes there."""
    name = _named_at_the_top(ev, ref)
    for top in tops(ev, ref, frozenset((name,))):
        for _, call in top.code.of_kind(s.Call):
            for callee in ev.in_order(ev.value(top, call.function)):
                if isinstance(callee, FunctionValue) and callee.ref == ref:
                    inner = ev.entered_frame(callee, ev.arguments(top, call), 1)
                    if inner is not None:
                        yield inner


def tops(ev: Evaluator, near: FunctionRef, words: frozenset[str]) -> Iterator[Frame]:
    """What runs at the import of a function's file, and of those files of its program that use all of these words."""
    component = ev.project.component
    for path, module in sorted(ev.project.modules.items()):
        if path == near.path or (component[path] == component[near.path] and words <= module.words):
            for function in module.summary.functions:
                if function.kind == "module" or (function.kind == "class" and function.parent == 0):
                    yield ev.free_frame(FunctionRef(path, function.index))


def _named_at_the_top(ev: Evaluator, ref: FunctionRef) -> str:
    """The name by which other files reach a function: that of the outermost function around it."""
    function = ev.project.function(ref)
    while function.parent:
        function = ev.project.function(FunctionRef(ref.path, function.parent))
    return function.name


def implementations(ev: Evaluator, frame: Frame, arguments: Arguments) -> Values | None:
    """What a call of a dispatched function may run: itself, and what is registered for it; None if it is not known."""
    given = arguments.positional[0] if arguments.positional else None
    function = certain(given) if given is not None else None
    if given is None or not isinstance(function, FunctionValue):
        return None
    name = ev.project.function(function.ref).name
    return join(given, *(ev.value(place, made) for place, made in _registered(ev, frame, name)))


def _registered(ev: Evaluator, frame: Frame, name: str) -> Iterator[tuple[Frame, int]]:
    """The functions that are registered under a name: in the same scope, or at the top of a file of the program."""
    near = tops(ev, frame.ref, frozenset((_REGISTER, name)))
    for place in dict.fromkeys((frame, *near)):
        for _, call in place.code.of_kind(s.Call):
            if call.decorator and call.arguments and _registers(place, call.function, name):
                yield place, call.arguments[0].value


def _registers(frame: Frame, decorator: int, name: str) -> bool:
    """Whether a decorator is ``total.register`` or ``total.register(Array)``."""
    operations = frame.code.operations
    operation = operations[decorator]
    if isinstance(operation, s.Call):
        operation = operations[operation.function]
    if not isinstance(operation, s.Attribute) or operation.name != _REGISTER:
        return False
    base = operations[operation.base]
    return isinstance(base, (s.Load, s.Attribute)) and base.name == name
