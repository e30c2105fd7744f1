"""Exceptions that a process's own data causes: raised under a condition on it, or by an iterator that it exhausts.

A handler that catches one is entered on some processes only, or in a different iteration on each.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import handles
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import NOTHING, External, Frame, FunctionValue, Site
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.origins import Origins, OtherFacets, Reason
from spmdlint.analysis.variance.raised import OwnRaise, Raised, flat, tried_by
from spmdlint.analysis.variance.texts import WHOLE_FILES
from spmdlint.knowledge.files import names
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s

_ENDS = frozenset(names("end_errors"))
_OWN = ("data", "ragged")
_DEPTH = 3
"""The depth to which calls of the project's own functions are searched for what takes the next element."""


class Caught:
    """Explains such handlers. One per run."""

    def __init__(self, facets: OtherFacets, raised: Raised, control: Control) -> None:
        self.facets = facets
        self.raised = raised
        self.control = control

    def of_own_data(self, content: Origins, frame: Frame, number: int) -> Reason | None:
        """Why the exception that a clause catches varies: it is raised for own data, or on one process only."""
        for own in self.raised.raises(frame, number):
            found = self._decides(content, frame, own, 0)
            if found is not None and found.kind in ("data", "named", "identity", "group"):
                return content.step(frame, own.way[0].at, "whether this raises depends on it", found)
        return self._ran_out(content, frame, number) or self._reads_own(content, frame, number)

    def _reads_own(self, content: Origins, frame: Frame, number: int) -> Reason | None:
        """Why a clause catches what reading fails with on one process alone: the file is this process's own."""
        clause = frame.code.operations[number]
        kind = clause.kind if isinstance(clause, s.Caught) else None
        if kind is not None and not self.raised.happens_to_one(content.ev.value(frame, kind)):
            return None
        found: list[Reason] = []

        def reads(inside: Frame, at: int, call: s.Call) -> bool:
            own = reads_own_file(self.raised, content, inside, at, call)
            if own is not None:
                found.append(Reason(Site(inside.ref, at), "a file of this process's own is read here", "data", own))
            return own is not None

        return found[0] if self.raised.may_fail(frame, frame.code.function.block_of[number], reads) else None

    def _decides(self, content: Origins, frame: Frame, own: OwnRaise, called: int) -> Reason | None:
        """Why something is raised or not; ``called`` is the number of calls on the way there that have been entered."""
        if called == len(own.way):
            branches = self.control.choosing(frame, (own.number,), None)
            return content.any_of(frame, (branch.test for branch in branches))
        step = own.way[called]
        around = self.control.choosing(frame, (step.at,), None) if called else ()
        alone = content.any_of(frame, (branch.test for branch in around))
        if alone is not None and alone.kind == "identity":
            return alone
        ask = partial(self._decides, content, own=own, called=called + 1)
        return content.in_call(frame, step.at, step.call, step.callee, ask)

    def _ran_out(self, content: Origins, frame: Frame, number: int) -> Reason | None:
        """Why a clause for the end of an iterator is entered earlier on some processes: the iterator is shorter there.

        The iterator is asked in the `try` itself, or in a function of the project that is called there.
        """
        function = frame.code.function
        clause = function.operations[number]
        if not isinstance(clause, s.Caught) or not catches_end(content.ev, frame, clause):
            return None
        return self._of_blocks(content, frame, tried_by(frame.code.flow, function.block_of[number]), _DEPTH)

    def _of_blocks(self, content: Origins, frame: Frame, blocks: Iterable[int], depth: int) -> Reason | None:
        for at, call in frame.code.calls_in(blocks):
            for callee in ordered(content.ev.value(frame, call.function)):
                if isinstance(callee, External) and callee.name == reading().next and len(call.arguments) == 1:
                    found = self.facets.of_loop(frame, call.arguments[0].value)
                    if found is not None and found.kind in _OWN:
                        text = "this is at its end earlier on some processes"
                        return Reason(Site(frame.ref, at), text, "data", found)
                elif isinstance(callee, FunctionValue) and depth:
                    ask = partial(self._inside, content, depth=depth - 1)
                    found = content.in_call(frame, at, call, callee, ask)
                    if found is not None:
                        return found
        return None

    def _inside(self, content: Origins, frame: Frame, depth: int) -> Reason | None:
        """The same for a function of the project, which lets the exception pass."""
        open_blocks = [block for block in sorted(content.ev.live_blocks(frame)) if _lets_pass(content.ev, frame, block)]
        return self._of_blocks(content, frame, open_blocks, depth)


def reads_own_file(raised: Raised, content: Origins, frame: Frame, number: int, call: s.Call) -> Reason | None:
    """Why a call reads a file of this process's own, so that no other process meets the same failure."""
    method = frame.code.operations[call.function]
    if isinstance(method, s.Attribute) and method.name in WHOLE_FILES:
        found = content.why(frame, method.base)
    elif raised.reads(frame, number, call):
        found = content.any_of(frame, [argument.value for argument in call.arguments[:1]])
    else:
        return None
    return found if found is not None and found.source.kind == "identity" else None


def catches_end(ev: Evaluator, frame: Frame, clause: s.Caught) -> bool:
    """Whether a clause is for the end of an iterator."""
    kinds = ev.value(frame, clause.kind) if clause.kind is not None else NOTHING
    return any(isinstance(kind, External) and kind.name in _ENDS for kind in flat(kinds))


def _lets_pass(ev: Evaluator, frame: Frame, block: int) -> bool:
    """Whether the end of an iterator that is reached in a block leaves the function."""
    operations = frame.code.function.blocks[block].operations
    return bool(operations) and not handles(ev, frame, operations[0], "StopIteration")
