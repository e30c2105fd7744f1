"""Objects passed to a library, which may call their methods: an evaluator that is given a model to call."""

from __future__ import annotations

import sys

from spmdlint.analysis.callgraph.constructed import method_frames
from spmdlint.analysis.callgraph.effects import Effects
from spmdlint.analysis.evaluation.values import External, Frame, Instance, Unknown, Value, Values
from spmdlint.program import summary as s


class HandedOver:
    """Knows which objects make parallel calls in their methods. One per run."""

    def __init__(self, effects: Effects) -> None:
        self.ev = effects.ev
        self.effects = effects
        self._speaking: dict[Instance, bool] = {}

    def may_call(self, frame: Frame, operation: s.Call, callees: Values) -> bool:
        """Whether a call of unknown code is given an object with methods that make parallel calls."""
        if not any(map(self._is_foreign, callees)):
            return False
        given = (value for argument in operation.arguments for value in self.ev.value(frame, argument.value))
        return any(isinstance(value, Instance) and self._speaks(value) for value in given)

    def _is_foreign(self, callee: Value) -> bool:
        if isinstance(callee, External):
            top = callee.name.partition(".")[0]
            return (
                top not in sys.stdlib_module_names and top != "builtins" and self.ev.knowledge.get(callee.name) is None
            )
        return isinstance(callee, Unknown)

    def _speaks(self, instance: Instance) -> bool:
        found = self._speaking.get(instance)
        if found is None:
            methods = method_frames(self.ev, instance)
            found = self._speaking[instance] = any(self.effects.of_function(method) for method in methods)
        return found
