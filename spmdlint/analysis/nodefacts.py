"""The facts about one node of a syntax tree, for rules of one's own.

A node is found by its span. A summary keeps the span of every operation, without the parentheses around it, and LibCST
gives its nodes the same spans: `program/newer.py` lowers from them. A node whose span no operation has, such as a
statement, stands for the operations inside it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Literal

from spmdlint.analysis.answers import Answers, joined
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.diagnostics import Location, Place
from spmdlint.facts import Axes, Callees, Difference, Facts, Guards, Parallel, Way, any_of
from spmdlint.interpreter import deep
from spmdlint.program import summary as s
from spmdlint.program.layout import Span
from spmdlint.program.link import FunctionRef
from spmdlint.program.positions import line_starts

MAX_WAYS = 64
"""The most ways to one node that are listed."""
# Operations that share their span with what they store, bind or leave.
_BESIDE = (s.Parameter, s.Next, s.Item, s.Enter, s.Leave, s.Captured, s.Declare, s.Delete)


NodeKind = Literal["call", "definition", "other"]


class FileFacts:
    """The facts about the nodes of one file.

    ``answers`` makes what answers, when it is first asked; None if nothing is known.
    """

    def __init__(self, path: Path, text: str, answers: Callable[[], Answers | None]) -> None:
        self.path = path
        self._answers = answers
        self._starts = line_starts(text)
        self.asked = False
        """Whether anything was asked that depends on more than the text of the file."""

    def facts(self, span: Span, kind: NodeKind = "other") -> Facts:
        """The facts about the node with this span: a call (and not what is called), a definition, or neither."""
        return NodeFacts(self, span, kind)

    def place(self, span: Span) -> Place:
        """The place of a span."""
        return Place(self.path, *map(self._location, span))

    def _location(self, offset: int) -> Location:
        row = bisect_right(self._starts, offset)
        return Location(row, offset - self._starts[row - 1] + 1)

    @property
    def answers(self) -> Answers | None:
        """What answers; from now on, what is asked depends on the whole program."""
        self.asked = True
        return self._answers()

    @cached_property
    def spans(self) -> dict[Span, list[Site]]:
        """The operations of the file by their spans."""
        found: dict[Span, list[Site]] = {}
        answers = self.answers
        module = None if answers is None else answers.ev.project.modules.get(self.path)
        for function in module.summary.functions if module is not None else ():
            for number, span in enumerate(function.spans):
                found.setdefault(span, []).append(Site(FunctionRef(self.path, function.index), number))
        return found


class NodeFacts:
    """The facts about one node."""

    def __init__(self, file: FileFacts, span: Span, kind: NodeKind) -> None:
        self._file = file
        self._span = span
        self._is_call = kind == "call"
        self._is_definition = kind == "definition"

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def place(self) -> Place:
        return self._file.place(self._span)

    @cached_property
    def difference(self) -> Difference:
        answers, frames = self._asked()
        if answers is None or not frames:
            return Difference()
        with deep():
            parts = [(frame, part) for frame, number in frames for part in _parts(frame, number)]
            found = [answers.words.difference(f, answers.explainer.variation(f, n)) for f, n in parts]
        aspects = tuple(dict.fromkeys(aspect for each in found for aspect in each.aspects))
        return Difference(any_of(each.answer for each in found), aspects)

    @cached_property
    def axes(self) -> Axes:
        answers, _ = self._asked()
        sites = self._exact or self._inside
        if answers is None or not sites:
            return Axes()
        with deep():
            return answers.axes(sites[0].ref)

    @cached_property
    def parallel(self) -> Parallel:
        answers, frames = self._asked()
        if answers is None or not (frames or self._inside):
            return Parallel()
        sites = self._exact if self._is_call else self._body or self._inside
        if not sites:
            return Parallel()
        with deep():
            return answers.parallel(answers.ev.free_frame(sites[0].ref), [site.number for site in sites])

    @cached_property
    def callees(self) -> Callees:
        answers, frames = self._asked()
        if answers is None or not frames:
            return Callees()
        found: list[Callees] = []
        with deep():
            for frame, number in frames:
                operation = frame.code.operations[number]
                asked = operation.function if self._is_call and isinstance(operation, s.Call) else number
                found.append(answers.callees(frame, asked))
        return joined(found)

    @cached_property
    def guards(self) -> Guards:
        answers, _ = self._asked()
        sites = self._exact or self._inside[:1]
        if answers is None or not sites:
            return Guards()
        ways: list[Way] = []
        complete = True
        with deep():
            for site in sites:
                for way in answers.ways.to(site.ref, site.number):
                    if way is None or len(ways) == MAX_WAYS:
                        complete = False
                    else:
                        ways.append(way)
                    if len(ways) == MAX_WAYS and not complete:
                        break
        return Guards(tuple(dict.fromkeys(ways)), complete)

    def _asked(self) -> tuple[Answers | None, list[tuple[Frame, int]]]:
        """What answers, and the operations of the node."""
        answers = self._file.answers
        if answers is None:
            return None, []
        return answers, [(answers.ev.free_frame(site.ref), self._value_of(site)) for site in self._exact]

    def _value_of(self, site: Site) -> int:
        """The operation that makes the value: of a field or an element that is assigned, what is stored there."""
        operation = self._operation(site)
        return operation.value if isinstance(operation, (s.StoreAttribute, s.StoreSubscript)) else site.number

    @cached_property
    def _exact(self) -> list[Site]:
        """The operations that make the node's value: several, if the code is run on several ways out of a `try`."""
        sites = self._file.spans.get(self._span, [])
        operations = [(site, self._operation(site)) for site in sites]
        if self._is_call:
            return [site for site, each in operations if isinstance(each, s.Call) and not each.decorator]
        plain = [
            site
            for site, each in operations
            if not isinstance(each, _BESIDE) and not (isinstance(each, s.Call) and each.decorator)
        ]
        return plain or sites

    @cached_property
    def _body(self) -> list[Site]:
        """The operations of the function that the node defines, if it is a definition."""
        answers = self._file.answers
        inside = map(self._operation, self._inside if self._is_definition else ())
        made = [each for each in inside if isinstance(each, s.MakeFunction)]
        if answers is None or not made:
            return []
        ref = FunctionRef(self._file.path, made[-1].function)
        return [Site(ref, number) for number in range(len(answers.ev.project.function(ref).operations))]

    @cached_property
    def _inside(self) -> list[Site]:
        """The operations inside the node, of the outermost function that has any there, in the order of the code."""
        start, end = self._span
        inside = [site for (s_, e), sites in self._file.spans.items() if start <= s_ and e <= end for site in sites]
        outermost = min((site.ref for site in inside), default=None)
        return sorted(site for site in inside if site.ref == outermost)

    def _operation(self, site: Site) -> s.Operation:
        answers = self._file.answers
        assert answers is not None  # without it there are no sites
        return answers.ev.project.function(site.ref).operations[site.number]


def _parts(frame: Frame, number: int) -> list[int]:
    """What a value is made of, if it is a dictionary that is written out: it differs if one of them does."""
    operation = frame.code.operations[number]
    if not isinstance(operation, s.DictDisplay) or not operation.values:
        return [number]
    return [part for value in operation.values for part in _parts(frame, value)]
