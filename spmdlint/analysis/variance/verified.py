"""Names that a program has checked to be the same on all processes, going on only if they are.

After ``if not np.all(process_allgather(x) == x): raise``, or ``multihost_utils.assert_equal(x)``, the value that ``x``
had there is uniform. That holds even if the check is skipped in a single-process job. A buffer is uniform after a call
that fills it with the same on all processes, as MPI's ``Allreduce(x, buffer)`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.analysis.variance.agreed import parts
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.control import Branch, Control
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

_RAISE = (s.Raise,)

_GATHERS = frozenset(names("gathers"))
_ASSERTS = frozenset(names("equality_checks"))
_DEPTH = 8
_Check: TypeAlias = tuple[int, int, str, frozenset[int]]
"""The block of a check or of the branch around it, the check's last operation there, a name, and the stores checked."""


class Verified:
    """Knows the stores that a check before an operation has shown to agree. One per walk."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self.control = evaluator.once(Control)
        self.conditions = evaluator.once(Conditions)
        self._fills = {name: known.fills for name, known in evaluator.knowledge.functions.items() if known.fills}
        self._names = frozenset(name.rpartition(".")[2] for name in (*_GATHERS, *_ASSERTS, *self._fills))
        self._known: dict[Code, tuple[_Check, ...]] = {}

    def stores(self, frame: Frame, number: int, name: str) -> frozenset[int]:
        """The stores to a name that are known to agree where an operation reads it."""
        if not frame.code.mentions(self._names):
            return frozenset()  # few functions mention one, and this check is the cheapest
        checks = self._known.get(frame.code)
        if checks is None:
            checks = self._known[frame.code] = tuple(self._checks(frame))
        flow, block = frame.code.flow, frame.code.function.block_of[number]
        agreed: set[int] = set()
        for at, last, checked, kept in checks:
            if checked == name and (flow.dominates(at, block) if at != block else last < number):
                agreed |= kept
        return frozenset(agreed)

    def _checks(self, frame: Frame) -> Iterator[_Check]:
        code = frame.code
        for number, call in code.of_kind(s.Call):
            names = {v.name for v in self.ev.value(frame, call.function) if isinstance(v, External)}
            for name in names & self._fills.keys():
                yield from self._filled(frame, number, call, name)
            if not names & (_GATHERS | _ASSERTS):
                continue
            block, last = code.function.block_of[number], number
            if names & _GATHERS:
                failing = next(self._failing(frame, number), None)
                if failing is None:
                    continue
                block, last = failing.block, len(code.operations)
            block = self._where_several(frame, block)
            for argument in call.arguments:
                yield from self._named(frame, argument.value, block, last)

    def _named(self, frame: Frame, value: int, block: int, last: int) -> Iterator[_Check]:
        """The checks of the names that make up a value, which hold from a place on."""
        for read in _reads(frame.code, value, _DEPTH):
            load = frame.code.operations[read]
            if isinstance(load, s.Load):
                yield block, last, load.name, self.ev.reaching(frame, read, load.name)

    def _filled(self, frame: Frame, number: int, call: s.Call, name: str) -> Iterator[_Check]:
        """The check of the buffer that a call fills with the same on every process."""
        known = self.ev.knowledge.functions[name]
        buffer = passed(call, self._fills[name], known.positional)
        if buffer is not None:
            yield from self._named(
                frame, buffer, self._where_several(frame, frame.code.function.block_of[number]), number
            )

    def _failing(self, frame: Frame, gathered: int) -> Iterator[Branch]:
        """The branches on the gathered value of which one arm raises."""
        raising = {block for block, _, _ in frame.code.each(_RAISE)}
        for branch in self.control.branches(frame.ref):
            raises = not raising.isdisjoint(branch.yes | branch.no)
            if raises and gathered in parts(self.ev, frame, branch.test, _DEPTH):
                yield branch

    def _where_several(self, frame: Frame, block: int) -> int:
        """The block of the branch around a check that skips it only in single-process jobs, or else the given block."""
        for branch in self.control.branches(frame.ref):
            if block in branch.yes | branch.no:
                left_out = self.conditions.facts(frame, branch.test, block in branch.no)
                if self.conditions.one_process(left_out):
                    return branch.block
        return block


def _reads(code: Code, number: int, depth: int) -> Iterator[int]:
    """The names of the function that make up an expression, including those in arrays of them."""
    operation = code.operations[number]
    if depth == 0:
        return
    if isinstance(operation, s.Load):
        if code.function.binds(operation.name):
            yield number
        return
    inside = operands(operation) if isinstance(operation, (s.Display, s.Attribute, s.Subscript)) else ()
    if isinstance(operation, s.Call):
        inside = tuple(argument.value for argument in operation.arguments)
    for part in inside:
        yield from _reads(code, part, depth - 1)
