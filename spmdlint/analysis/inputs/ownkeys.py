"""Keys that each process is meant to have for itself, or that the processes agree on after they are made."""

from __future__ import annotations

from collections.abc import Mapping

from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, certain
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

_DEPTH = 8
_NOISE = frozenset(("dropout", "droppath", "noise", "augment", "augmentation", "sample", "sampling"))
_DRAWS = ("jax.random.",)
_FETCHES = ("numpy.", "jax.device_get")
_FOLDS = "jax.random.fold_in"


class Meant:
    """Recognises such keys by what the function that makes a key does with it."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def is_own(self, frame: Frame, key: int, seed: int) -> bool:
        """Whether the process index is in the seed or folded into the key, or one process gives the key to all."""
        if self._names_process(frame, seed, _DEPTH) or self._is_noise(frame, key) or self._is_fetched(frame, key):
            return True
        for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            if not any(self._is(frame, argument.value, key) for argument in call.arguments):
                continue
            known = self._known(frame, call)
            if known is not None and known.parallel and known.agreement and number != key:
                return True
            if known is not None and known.name == _FOLDS:
                own = any(self._names_process(frame, argument.value, _DEPTH) for argument in call.arguments)
                # Folding in anything else makes a different key, which may become the process's own later.
                return own or (number != key and self.is_own(frame, number, seed))
            if self._folded_in_helper(frame, call, key):
                return True
        return False

    def _is_noise(self, frame: Frame, key: int) -> bool:
        """Whether the key is stored under a name that says noise, in a dictionary of keys by purpose."""
        for _, made in frame.code.of_kind(s.DictDisplay):
            for name, value in zip(made.keys, made.values, strict=True):
                known = frame.code.operations[name] if name is not None else None
                if isinstance(known, s.Const) and known.value in _NOISE and self._is(frame, value, key):
                    return True
        return False

    def _is_fetched(self, frame: Frame, key: int) -> bool:
        """Whether everything drawn with a key goes straight into NumPy arrays, as data of this process's own."""
        code = frame.code
        names = [each.name for _, each in code.of_kind(s.Store) if each.value == key]
        loads = [n for n, load in code.of_kind(s.Load) if names == [load.name] and code.function.binds(load.name)]
        taken = {argument.value: n for n, call in code.of_kind(s.Call) for argument in call.arguments}
        return bool(loads) and all(self._goes_to_numpy(frame, taken, load) for load in loads)

    def _goes_to_numpy(self, frame: Frame, taken: Mapping[int, int], key: int) -> bool:
        """Whether a key is given to a function that draws, and the result of that to one of NumPy's."""
        drawn = taken.get(key)
        return (
            drawn is not None and self._calls(frame, drawn, _DRAWS) and self._calls(frame, taken.get(drawn), _FETCHES)
        )

    def _calls(self, frame: Frame, number: int | None, names: tuple[str, ...]) -> bool:
        call = frame.code.operations[number] if number is not None else None
        callee = certain(self.ev.value(frame, call.function)) if isinstance(call, s.Call) else None
        return isinstance(callee, External) and callee.name.startswith(names)

    def _folded_in_helper(self, frame: Frame, call: s.Call, key: int) -> bool:
        """Whether a function of the project that gets the key folds the process index into it."""
        helper = certain(self.ev.value(frame, call.function))
        if not isinstance(helper, FunctionValue):
            return False
        function, inner = self.ev.project.function(helper.ref), self.ev.free_frame(helper.ref)
        bound = helper.receiver is not None
        passed = {f.name: passed_to(function, call, f.name, bound=bound) for f in function.formals}
        names = {name for name, value in passed.items() if value is not None and self._is(frame, value, key)}
        for _, folding in inner.code.calls_in(sorted(self.ev.live_blocks(inner))):
            known = self._known(inner, folding)
            if known is None or known.name != _FOLDS or not folding.arguments:
                continue
            folded = inner.code.operations[inner.code.root_of(folding.arguments[0].value)]
            if isinstance(folded, s.Parameter) and folded.name in names:
                return any(self._names_process(inner, argument.value, _DEPTH) for argument in folding.arguments)
        return False

    def _known(self, frame: Frame, call: s.Call) -> Known | None:
        for callee in ordered(self.ev.value(frame, call.function)):
            if isinstance(callee, External):
                return self.ev.knowledge.get(callee.name)
        return None

    def _is(self, frame: Frame, number: int, key: int) -> bool:
        """Whether a value is the key, or a name that it is stored to."""
        operation = frame.code.operations[number]
        if not isinstance(operation, s.Load) or number == key:
            return number == key
        stores = (frame.code.operations[n] for n in self.ev.reaching(frame, number, operation.name))
        return any(isinstance(store, s.Store) and store.value == key for store in stores)

    def _names_process(self, frame: Frame, number: int, depth: int) -> bool:
        """Whether a value is computed from, among others, the process index that a library gives."""
        operation = frame.code.operations[number]
        if depth == 0:
            return False
        if isinstance(operation, s.Call):
            known = self._known(frame, operation)
            if known is not None and known.source == "identity":
                return True
            return any(self._names_process(frame, argument.value, depth - 1) for argument in operation.arguments)
        if isinstance(operation, s.Load):
            stores = (frame.code.operations[n] for n in self.ev.reaching(frame, number, operation.name))
            return any(isinstance(o, s.Store) and self._names_process(frame, o.value, depth - 1) for o in stores)
        return any(self._names_process(frame, each, depth - 1) for each in operands(operation))
