"""What is asked about where values live. An answer is sure: the value cannot be anywhere else, as far as is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import CallEdge, Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Applied, Called, External, Frame, Free, Member, Site, Unknown, text
from spmdlint.analysis.placement.kinds import (
    ALL_DEVICES,
    COMPUTED,
    HOST,
    OWN,
    OWN_DEVICES,
    QUESTIONS,
    ROWS,
    SPANS,
    SPEC,
    SPLIT,
    Lives,
    Question,
)
from spmdlint.analysis.placement.narrowed import Narrowed
from spmdlint.analysis.variance.arguments import argument_for
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.walk import Walk
from spmdlint.knowledge.reading import reading
from spmdlint.knowledge.typing import typing_table
from spmdlint.program import summary as s

_ARRAYS = (Unknown, Free, Applied, Called, Member)
"""What a value may be that is an array."""

_WORDS = (
    (SPLIT, "over the devices of all processes, split between them"),
    (SPANS, "over the devices of all processes"),
    (ROWS, "on this process's devices, a row on each"),
    (HOST, ""),
    (OWN, "on this process's devices"),
    (ALL_DEVICES, "over the devices of all processes, as a list or mesh"),
    (OWN_DEVICES, "on this process's devices, as a list or mesh"),
)
"""The questions, the most telling first, and the answers in words; what is on the host goes without saying."""


class Placement:
    """The walks of all questions. One per run."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach) -> None:
        self.ev = evaluator
        self.table = reading()
        self.reach = reach
        self._walk = walk = Walk()
        self.narrowed = Narrowed(evaluator)
        kinds = {
            (asked, other): Lives(asked, other=other, calls=calls, walk=walk, table=self.table, narrowed=self.narrowed)
            for asked in QUESTIONS
            for other in (False, True)
        }
        self._walks = {key: Origins(evaluator, calls, reach, kind, walk) for key, kind in kinds.items()}
        for kind in kinds.values():
            kind.walks = self._walks
        self._split = kinds[SPLIT, False]
        combining = self.table.reductions | self.table.together | {self.table.transfer}
        self._last = frozenset(name.rpartition(".")[2] for name in combining)

    def likely(self, asked: Question, frame: Frame, number: int) -> Reason | None:
        """Why a value may live in one of some places; a spec, which says where arrays live, is none."""
        found = self._walks[asked, False].why(frame, number)
        return found if found is None or found.kind != SPEC else None

    def surely(self, asked: Question, frame: Frame, number: int) -> Reason | None:
        """Why a value certainly lives in one of some places."""
        found, other = self.likely(asked, frame, number), self._walks[asked, True]
        return found if found is not None and other.why(frame, number) is None and not other.cut else None

    def passing(self, asked: Question, frame: Frame, number: int) -> Iterator[tuple[tuple[CallEdge, ...], Reason]]:
        """The calls, outermost first, as seen from which a value in a function surely lives in one of some places."""
        block = frame.code.function.block_of[number]
        for edge in self.reach.callers.get(frame.ref, ()):
            if block not in self.ev.live_blocks(edge.target.frame):
                continue
            with self._entered(edge):
                found = self.surely(asked, edge.target.frame, number)
                likely = found or self.likely(asked, edge.target.frame, number)
            if found is not None:
                yield (edge,), found
            elif likely is not None:
                for outer in self.reach.callers.get(edge.caller.ref, ()):
                    if outer.target.frame == edge.caller:
                        with self._entered(outer), self._entered(edge):
                            found = self.surely(asked, edge.target.frame, number)
                        if found is not None:
                            yield (outer, edge), found

    def _entered(self, edge: CallEdge) -> AbstractContextManager[None]:
        return self._walk.inside(self._walk.made(edge.target.frame, edge.caller, edge.number))

    def where(self, frame: Frame, number: int) -> tuple[str, bool, Reason] | None:
        """Where a value lives, in words; whether that is sure, or only probable; and why."""
        for asks in (self.surely, self.likely):
            for asked, words in _WORDS:
                found = asks(asked, frame, number)
                if found is not None:
                    return (words, asks == self.surely, found) if words else None
        return None

    def spans(self, frame: Frame, number: int) -> bool:
        """Whether a value is an array over the devices of all processes, or a tree of them."""
        return self.surely(SPANS, frame, number) is not None

    def may_span(self, frame: Frame, number: int) -> bool:
        """Whether a value may be such an array, or an iterator over such."""
        return self.likely(SPANS, frame, number) is not None

    def is_for_all(self, frame: Frame, number: int) -> bool:
        """Whether a value is such an array, or one with a row for each device of this process."""
        return self.spans(frame, number) or self.surely(ROWS, frame, number) is not None

    def split(self, frame: Frame, number: int) -> bool:
        """Whether each process has only a part of an array."""
        return self.surely(SPLIT, frame, number) is not None

    def own(self, frame: Frame, number: int) -> bool:
        """Whether a value is on the host, or on devices of this process."""
        return self.surely(OWN, frame, number) is not None

    def made(self, found: Reason) -> Site:
        """Where the array of a reason is made, or otherwise what places it."""
        chain = found.chain()
        return next((step.site for step in chain if step.kind == "array"), chain[0].site)

    def indexes_everywhere(self, frame: Frame, taken: s.Subscript) -> bool:
        """Whether a part is taken of an array over all devices: all processes run that, above all if it is split."""
        if not any(isinstance(value, _ARRAYS) for value in self.ev.value(frame, taken.base)):
            return False
        if text(self.ev.value(frame, taken.index)) is not None or not self.may_span(frame, taken.base):
            return False
        if self.split(frame, taken.base):
            return True
        found = self.surely(SPANS, frame, taken.base)
        index = frame.code.operations[taken.index]
        return found is not None and (found.kind == COMPUTED or isinstance(index, s.Slice))

    def only_for(self, frame: Frame, number: int) -> tuple[tuple[str, bool], ...]:
        """The parameters that must not be here, or not on the host, for an operation to run."""
        operations = frame.code.operations
        found = []
        for said in self.narrowed.around(frame, number):
            root = operations[frame.code.root_of(said.value)]
            if isinstance(root, s.Parameter) and root.name == said.name and not said.here:
                found.append((said.name, said.host))
        return tuple(found)

    def is_here(self, frame: Frame, number: int, *, host: bool) -> bool:
        """Whether a value is on this process, or on its host."""
        return self.surely(HOST if host else OWN, frame, number) is not None

    def passed_for(self, entered: Frame, name: str, call: s.Call, caller: Frame) -> tuple[Frame, int] | None:
        """What a call passes for a parameter of a function."""
        return argument_for(self.ev, entered, name, call, caller)

    def computes_everywhere(self, frame: Frame, number: int, call: s.Call) -> str | None:
        """The function that a call runs, if it is one outside compiled code that needs the processes of all devices.

        A transfer to devices of several does, and what combines the parts of an array; most other operations are
        harmless on one process, and do not count. A method of an array goes by the name of the function that it is.
        """
        method = frame.code.operations[call.function]
        if isinstance(method, s.Attribute) and method.name not in self._last:
            return None
        names = [v.name for v in ordered(self.ev.value(frame, call.function)) if isinstance(v, External)]
        module = typing_table().methods.module
        if not names and isinstance(method, s.Attribute):
            name, array = module + method.name, method.base
        elif names and call.arguments and not call.arguments[0].star:
            name, array = names[0], call.arguments[0].value
        else:
            return None
        if name == self.table.transfer:
            place = passed(call, *self._device(name))
            return name if place is not None and self.spans(frame, place) else None
        function = name.removeprefix(module)
        if not name.startswith(module) or function not in self.table.reductions | self.table.together:
            return None
        if function in self.table.reductions and self._split.keeps(self.ev, frame, call, name):
            return None
        return name if self._has_split(frame, array) else None

    def _device(self, name: str) -> tuple[str, tuple[str, ...]]:
        known = self.ev.knowledge.get(name)
        return self.table.makers[name][0], known.positional if known is not None else ()

    def _has_split(self, frame: Frame, number: int) -> bool:
        """Whether an array is split, or one of a list that is written out."""
        display = frame.code.operations[frame.code.root_of(number)]
        parts: Iterable[int] = display.elements if isinstance(display, s.Display) else (number,)
        return any(self.split(frame, part) for part in parts)
