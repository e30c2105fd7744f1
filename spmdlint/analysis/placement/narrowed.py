"""What a test says about where a value lives: ``x.is_fully_addressable``, ``isinstance(x, np.ndarray)``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, External, Frame, Value, certain
from spmdlint.analysis.variance.control import Control
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_ALL_HERE = "is_fully_addressable"


class Said(Struct, frozen=True):
    """What a condition says of a name where code runs: that it is here, or elsewhere too; or that it is on the host."""

    test: int
    name: str
    value: int
    here: bool
    host: bool = False


class Narrowed:
    """Finds such conditions around code. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._known: dict[FunctionRef, bool] = {}

    @cached_property
    def _control(self) -> Control:
        return self.ev.once(Control)

    def around(self, frame: Frame, number: int) -> Iterator[Said]:
        """What the conditions say under which alone an operation runs."""
        if not self._asks(frame):
            return
        block = frame.code.function.block_of[number]
        for branch in self._control.branches(frame.ref):
            way = True if block in branch.yes else False if block in branch.no else None
            if way is not None:
                yield from self._said(frame, branch.test, branch.test, way)
        for _, choice in frame.code.of_kind(s.IfExp):
            for chosen, way in ((choice.body, True), (choice.orelse, False)):
                if frame.code.function.holds(chosen, number):
                    yield from self._said(frame, choice.test, choice.test, way)

    def of_value(self, frame: Frame, number: int) -> Iterator[Said]:
        """What the conditions around a use of a name say of the very value that it has there."""
        load = frame.code.operations[number]
        for said in self.around(frame, number) if isinstance(load, s.Load) else ():
            reaching = self.ev.reaching(frame, number, said.name)
            if said.name == getattr(load, "name", None) and reaching == self.ev.reaching(frame, said.value, said.name):
                yield said

    def _asks(self, frame: Frame) -> bool:
        """Whether a function has any such test."""
        if frame.ref not in self._known:
            code = frame.code
            asked = any(each.name == _ALL_HERE for _, each in code.of_kind(s.Attribute))
            asked = asked or any(each.value == _ALL_HERE for _, each in code.of_kind(s.Const))
            self._known[frame.ref] = asked or bool(code.calls_named(frozenset(("isinstance",))))
        return self._known[frame.ref]

    def _said(self, frame: Frame, test: int, number: int, way: bool) -> Iterator[Said]:
        """What a condition says if it has the given outcome."""
        number = frame.code.root_of(number)
        operation = frame.code.operations[number]
        if isinstance(operation, s.Unary) and operation.operator == "not":
            yield from self._said(frame, test, operation.operand, not way)
        elif isinstance(operation, s.BoolOp):
            each = [list(self._said(frame, test, operand, way)) for operand in operation.operands]
            if (operation.operator == "and") == way:
                yield from chain.from_iterable(each)
            elif all(each) and len({(said.name, said.here) for said in chain.from_iterable(each)}) == 1:
                # One of them is true, and all say the same of one value.
                weakest = each[0][0]
                yield Said(test, weakest.name, weakest.value, weakest.here, all(one[0].host for one in each))
        elif isinstance(operation, s.Attribute) and operation.name == _ALL_HERE:
            yield from self._on_array(frame, test, operation.base, here=way)
        elif isinstance(operation, s.Call) and len(operation.arguments) > 1:
            value, asked = (argument.value for argument in operation.arguments[:2])
            callee, kind = self.ev.callee(frame, operation), self.ev.value(frame, asked)
            if callee == External("builtins.getattr") and kind == {Constant(_ALL_HERE)}:
                yield from self._on_array(frame, test, value, here=way)
            elif callee == External("builtins.isinstance"):
                yield from self._of_kind(frame, test, value, certain(kind), way)

    def _of_kind(self, frame: Frame, test: int, value: int, kind: Value | None, way: bool) -> Iterator[Said]:
        host = reading().classes.get(kind.name) if isinstance(kind, External) else None
        if host is not None:
            yield from self._on_array(frame, test, value, here=host == way, host=True)

    @staticmethod
    def _on_array(frame: Frame, test: int, value: int, *, here: bool, host: bool = False) -> Iterator[Said]:
        load = frame.code.operations[value]
        if isinstance(load, s.Load):
            yield Said(test, load.name, value, here, host)
