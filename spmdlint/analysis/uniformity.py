"""Which values are proven to be the same on all processes, for rules of one's own.

The rules of the linter need no such proof: what is not known to differ is not reported. A rule of one's own may ask for
the contrary, and then *not known to differ* is not enough. A value is proven uniform if everything that it is made of
is: constants, results of agreement points, what the author declares, the number of processes, and what pure functions
make of these.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    ClassValue,
    Constant,
    External,
    Frame,
    FunctionValue,
    ModuleValue,
    Namespace,
    Value,
    certain,
)
from spmdlint.analysis.variance.agreed import is_agreed
from spmdlint.analysis.variance.control import Control
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import inputs
from spmdlint.program.uniform import Uniform

_CODE = (Constant, FunctionValue, ClassValue, ModuleValue, Namespace)
GLOBAL = frozenset(names("job_facts"))
"""Functions of a library without a source in them, which depend on the job alone, and do nothing."""
_PURE = frozenset(names("pure"))
PURE_MODULES = names("pure_modules")
# Operations that make the same of the same operands.
_MAKING = (
    s.Subscript, s.Slice, s.Unary, s.Binary, s.Compare, s.BoolOp, s.IfExp, s.Display, s.DictDisplay, s.FString,
    s.Next, s.Item, s.Store,
)  # fmt: skip
_DEPTH = 12


class Uniformity:
    """Proves values uniform, if no analysis of variance finds that they differ. One per run."""

    def __init__(self, evaluator: Evaluator, control: Control) -> None:
        self.ev = evaluator
        self.control = control
        self.declared = Uniform(evaluator.project)
        self._known: dict[tuple[Frame, int], bool] = {}

    def proven(self, frame: Frame, number: int, depth: int = _DEPTH) -> bool:
        """Whether everything that a value is made of is the same on all processes."""
        if depth == 0:
            return False
        key = (frame, number)
        if key not in self._known:
            self._known[key] = False  # the answer for a value that is made of itself
            self._known[key] = self._is_proven(frame, number, depth)
        return self._known[key]

    def _is_proven(self, frame: Frame, number: int, depth: int) -> bool:
        operation = frame.code.operations[number]
        value = certain(self.ev.value(frame, number))
        if isinstance(value, _CODE) or isinstance(operation, s.Const) or self.declared.stored(frame.ref, number):
            return True
        if isinstance(value, External):
            known = self.ev.knowledge.get(value.name)
            return value.name.startswith("builtins.") or (known is not None and not known.attribute)
        if isinstance(operation, s.Call):
            return self._called(frame, number, operation, depth)
        if isinstance(operation, s.Load):
            return self._loaded(frame, number, operation, depth)
        return isinstance(operation, _MAKING) and self._all(frame, _parts(operation), depth)

    def _all(self, frame: Frame, numbers: tuple[int, ...], depth: int) -> bool:
        return all(self.proven(frame, each, depth - 1) for each in numbers)

    def _loaded(self, frame: Frame, number: int, operation: s.Load, depth: int) -> bool:
        """Whether all stores that may be read are uniform, and what chooses between them."""
        function = frame.code.function
        if operation.name in frame.code.mutated_names or operation.name in frame.code.set_inside:
            return False
        if function.binds(operation.name):
            stores = tuple(sorted(self.ev.reaching(frame, number, operation.name)))
            chosen = self.control.choosing(frame, stores, function.block_of[number])
            tests = tuple(branch.test for branch in chosen)
            if any(self._left_behind(frame, store, number) for store in stores):
                return False
            return bool(stores) and self._all(frame, stores, depth) and self._all(frame, tests, depth)
        if frame.code.scope_of(operation.name) is not None:
            return False  # a variable of an enclosing function, which may be stored at any time
        module = self.ev.project.modules[frame.ref.path]
        kept = module.top.stores.get(operation.name, ())
        if len(kept) != 1 or operation.name in self.ev.names.setters(module):
            return False
        return self.proven(self.ev.free_frame(FunctionRef(frame.ref.path, 0)), kept[0], depth - 1)

    @staticmethod
    def _left_behind(frame: Frame, store: int, use: int) -> bool:
        """Whether a store is in a loop that the use is not in: which iteration was the last one is not proven."""
        block_of = frame.code.function.block_of
        flow = frame.code.flow
        bodies = (flow.loop_body(header) for header in flow.loops)
        return any(block_of[store] in body and block_of[use] not in body for body in bodies)

    def _called(self, frame: Frame, number: int, call: s.Call, depth: int) -> bool:
        if is_agreed(self.ev, frame, number):
            return True
        callees = ordered(self.ev.value(frame, call.function))
        uniform = bool(callees) and all(self._makes_the_same(callee, depth) for callee in callees)
        return uniform and self._all(frame, inputs(call), depth)

    def _makes_the_same(self, callee: Value, depth: int) -> bool:
        """Whether a function returns the same for the same arguments."""
        if isinstance(callee, External):
            name = callee.name
            return name in GLOBAL or name in _PURE or name.startswith(PURE_MODULES)
        return isinstance(callee, FunctionValue) and self._returns(callee, depth)

    def _returns(self, callee: FunctionValue, depth: int) -> bool:
        """Whether a function of the project returns a uniform value, whatever it is passed."""
        if self.declared.returned(callee.ref):
            return True
        inner = self.ev.free_frame(callee.ref)
        returned = tuple(given.value for _, given in inner.code.returns if given.value is not None)
        tests = tuple(branch.test for branch in self.control.branches(callee.ref)) if len(returned) > 1 else ()
        return bool(returned) and self._all(inner, returned, depth) and self._all(inner, tests, depth)


def _parts(operation: s.Operation) -> tuple[int, ...]:
    if isinstance(operation, s.Slice):
        return tuple(end for end in (operation.lower, operation.upper, operation.step) if end is not None)
    return inputs(operation)
