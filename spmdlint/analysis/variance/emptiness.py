"""Whether a list of what a process owns is empty: some processes may own nothing.

The author of a filter knows how many items a process owns, and the number is most likely the same everywhere; but where
code tests whether there are any, the answer is no on some processes.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.transfers import through, through_method
from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.variance.guarded import tells_who
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.analysis.variance.windows import cut_by
from spmdlint.program import summary as s

_FOLLOWED = (s.Load, s.Store, s.Attribute, s.Parameter, s.Await)


class Emptiness(Property):
    """The value is empty on some processes only, because it was filtered by process."""

    def __init__(self, facets: OtherFacets) -> None:
        self.facets = facets

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Collected):
            found = self.facets.content.any_of(frame, filters(origins, frame, operation))
            if found is not None and tells_who(found):
                return Reason(Site(frame.ref, number), "it is empty on some processes", "group", found)
            loops = [origins.ev.function(frame).operations[loop] for loop in operation.loops]
            return origins.any_of(frame, [loop.iterable for loop in loops if isinstance(loop, s.Next)])
        if isinstance(operation, s.Call):
            return self._call(origins, frame, operation)
        if isinstance(operation, s.Subscript):
            return self._cut(frame, number, operation)
        return CONTINUE if isinstance(operation, _FOLLOWED) else None

    def _cut(self, frame: Frame, number: int, operation: s.Subscript) -> Reason | None:
        """A window or a stride by the process index, where the author tests whether anything is left for it."""
        cut = cut_by(self.facets.content.ev, frame, operation.index)
        start = cut.lower if cut is not None else None
        found = self.facets.content.why(frame, start) if start is not None else None
        if found is None or not tells_who(found):
            return None
        return Reason(Site(frame.ref, number), "nothing is left in it on some processes", "group", found)

    @staticmethod
    def _call(origins: Origins, frame: Frame, operation: s.Call) -> Answer:
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if isinstance(callee, External):
                return origins.any_of(frame, through(origins.ev.knowledge, callee.name, operation, "size"))
        kept = through_method(origins.ev, frame, operation, "size")
        return origins.any_of(frame, kept) if kept else CONTINUE


def of_question(empty: Origins, frame: Frame, test: int) -> Reason | None:
    """Why a condition that tests whether a list is empty has a different answer on some processes."""
    operation = empty.ev.function(frame).operations[test]
    if isinstance(operation, s.Unary) and operation.operator == "not":
        return of_question(empty, frame, operation.operand)
    if isinstance(operation, s.BoolOp):
        return next((r for n in operation.operands if (r := of_question(empty, frame, n)) is not None), None)
    if isinstance(operation, s.Compare) and len(operation.operands) == 2:
        zero = empty.ev.function(frame).operations[operation.operands[1]]
        asks = isinstance(zero, s.Const) and zero.value in (0, 1)
        return _of_count(empty, frame, operation.operands[0]) if asks else None
    if isinstance(operation, (s.Load, s.Attribute)):
        return empty.why(frame, test)
    return _of_count(empty, frame, test)


def _of_count(empty: Origins, frame: Frame, number: int) -> Reason | None:
    call = empty.ev.function(frame).operations[number]
    if not isinstance(call, s.Call) or len(call.arguments) != 1:
        return None
    return empty.why(frame, call.arguments[0].value) if empty.ev.may_do(frame, call, "length") else None


def filters(origins: Origins, frame: Frame, collected: s.Collected) -> list[int]:
    """The conditions of a comprehension."""
    function, flow = frame.code.function, origins.ev.flow(frame.ref)
    headers = {function.block_of[loop] for loop in collected.loops}
    body = flow.loop_body(function.block_of[collected.loops[0]]) - headers
    return [test for block in sorted(body) if (test := function.blocks[block].test) is not None]
