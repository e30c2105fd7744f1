"""Defaults of command-line options: what ``add_argument("--seed", default=...)`` says of ``args.seed``."""

from __future__ import annotations

from functools import cached_property

from spmdlint.analysis.evaluation.bindings import by_position
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import ClassValue, Frame, Instance, ModuleValue, constant
from spmdlint.analysis.variance.outside import NAMESPACES
from spmdlint.program import summary as s

_ARGPARSE = frozenset(("add_argument",))
_ABSL = frozenset(("DEFINE_integer", "DEFINE_float", "DEFINE_string"))


class Options:
    """Knows where each option is declared. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def default(self, frame: Frame, load: s.Attribute) -> tuple[Frame, int] | None:
        """The place of the default of the option that a settings field holds, if only one option has that name."""
        base = frame.code.operations[load.base]
        if not isinstance(base, (s.Load, s.Attribute)) or base.name not in NAMESPACES:
            return None
        if any(isinstance(v, (Instance, ClassValue, ModuleValue)) for v in self.ev.value(frame, load.base)):
            return None
        found = self._declared.get(load.name, ())
        return found[0] if len(found) == 1 else None

    @cached_property
    def _declared(self) -> dict[str, list[tuple[Frame, int]]]:
        """The defaults, by the names of their options."""
        found: dict[str, list[tuple[Frame, int]]] = {}
        for ref in self.ev.project.functions():
            code = self.ev.code(ref)
            frame = self.ev.free_frame(ref)
            for call in code.calls_named(_ARGPARSE).values():
                for argument in call.arguments:
                    if argument.keyword == "default" and call.arguments[0].keyword is None:
                        self._keep(found, frame, call.arguments[0].value, argument.value)
            for call in code.calls_named(_ABSL).values():
                given = by_position(call)
                if len(given) > 1:
                    self._keep(found, frame, given[0], given[1])
        return found

    def _keep(self, found: dict[str, list[tuple[Frame, int]]], frame: Frame, name: int, default: int) -> None:
        spelled = constant(self.ev.value(frame, name))
        if spelled is not None and isinstance(spelled.value, str):
            found.setdefault(spelled.value.lstrip("-").replace("-", "_"), []).append((frame, default))
