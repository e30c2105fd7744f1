"""The ways to an operation, through the callers of its function, and what guards it on each, for rules of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from spmdlint.analysis.callgraph.reach import CallEdge
from spmdlint.analysis.callgraph.wrapped import escapes
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Instance, Site, certain
from spmdlint.analysis.explanation import Explainer
from spmdlint.analysis.explanation import Guard as Found
from spmdlint.analysis.variance.conditions import IS_FIRST, Conditions
from spmdlint.analysis.variance.origins import Origins
from spmdlint.analysis.words import Words
from spmdlint.diagnostics import Place
from spmdlint.facts import Answer, Difference, Guard, Way, all_of, any_of
from spmdlint.files.read import Source
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_DEPTH = 8


class FirstProcess:
    """Recognises such conditions. One per run."""

    def __init__(self, evaluator: Evaluator, content: Origins) -> None:
        self.ev = evaluator
        self.content = content
        self.conditions = evaluator.once(Conditions)

    def chosen(self, frame: Frame, test: int, *, holds: bool, depth: int = _DEPTH) -> Answer:
        """Whether a condition that holds, or does not, says that this is process 0; *no*: that it is another one."""
        known = self.conditions.facts(frame, test, holds).get(IS_FIRST)
        if known is not None:
            return "yes" if known else "no"
        operation = frame.code.operations[frame.code.root_of(test)]
        if depth == 0:
            return "unknown"
        if isinstance(operation, s.Unary) and operation.operator == "not":
            return self.chosen(frame, operation.operand, holds=not holds, depth=depth - 1)
        if isinstance(operation, s.BoolOp):
            parts = [self.chosen(frame, each, holds=holds, depth=depth - 1) for each in operation.operands]
            return any_of(parts) if holds == (operation.operator == "and") else all_of(parts)
        made = list(self._made(frame, operation))
        return all_of(self.chosen(*each, holds=holds, depth=depth - 1) for each in made) if made else "unknown"

    def _made(self, frame: Frame, operation: s.Operation) -> Iterator[tuple[Frame, int]]:
        """Where the value of a call, a property or an imported name is made, if there is only one such place."""
        if isinstance(operation, s.Import):
            target = self.content.import_target(frame, operation)
            if target is not None and len(target[1]) == 1:
                yield target[0], next(iter(target[1]))
        if isinstance(operation, s.Load) and frame.code.scope_of(operation.name) is None:
            top = self.ev.free_frame(self.ev.project.ref(frame.ref.path, 0))
            kept = top.code.function.stores.get(operation.name, ())
            if len(kept) == 1:
                yield top, kept[0]
        function = None
        if isinstance(operation, s.Call):
            function = self.ev.callee(frame, operation)
        elif isinstance(operation, s.Attribute):
            owner = certain(self.ev.value(frame, operation.base))
            function = self.ev.objects.getter(owner, operation.name) if isinstance(owner, Instance) else None
        if isinstance(function, FunctionValue):
            inner = self.ev.free_frame(function.ref)
            returned = [given.value for _, given in inner.code.returns]
            if len(returned) == 1 and returned[0] is not None:
                yield inner, returned[0]


MAX_CALLERS = 12
"""The most calls on one way."""
MAX_STEPS = 1_000
"""The most calls that are followed for one operation: functions that call one another have many ways."""


class Ways:
    """Lists the ways. One per run."""

    def __init__(self, explainer: Explainer, words: Words, texts: Mapping[Path, Source]) -> None:
        self.explainer = explainer
        self.ev = explainer.ev
        self.reach = explainer.reach
        self.words = words
        self.texts = texts
        self.first = FirstProcess(self.ev, explainer.facets.content)
        self._escaping: dict[FunctionRef, bool] = {}
        self._guarding: dict[tuple[FunctionRef, int], tuple[Guard, ...]] = {}
        self._made = {use.site for use in self.reach.uses}

    def to(self, ref: FunctionRef, number: int) -> Iterator[Way | None]:
        """The ways to an operation; None stands for those that are not known."""
        return self._to(ref, number, (), iter(range(MAX_STEPS)))

    def _to(
        self, ref: FunctionRef, number: int, above: tuple[FunctionRef, ...], steps: Iterator[int]
    ) -> Iterator[Way | None]:
        if next(steps, None) is None:
            yield None
            return
        frame = self.ev.free_frame(ref)
        function = frame.code.function
        block = function.block_of[number]
        if block not in self.ev.live_blocks(frame):
            return
        own = self._guards(frame, block)
        if function.kind == "module":
            yield Way(own, (), "module")
            return
        before = list(self._before(ref))
        if not before:
            yield Way(own, (), "function")
        if len(above) >= MAX_CALLERS or (function.kind != "class" and self.escapes(ref)):
            yield None
        if len(above) >= MAX_CALLERS:
            return
        for caller, call in before:
            if caller in (ref, *above):
                continue
            called = () if function.kind == "class" else (self.words.place(Site(caller, call)),)
            for way in self._to(caller, call, (*above, ref), steps):
                yield None if way is None else Way((*own, *way.guards), (*way.calls, *called), way.begins)

    def escapes(self, ref: FunctionRef) -> bool:
        """Whether a function is passed on as a value, so that it has callers that nobody knows."""
        if ref not in self._escaping:
            self._escaping[ref] = escapes(self.ev, ref)
        return self._escaping[ref]

    def _before(self, ref: FunctionRef) -> Iterator[tuple[FunctionRef, int]]:
        """Where a function is called, or where the class is defined whose body it is."""
        function = self.ev.project.function(ref)
        if function.kind == "class" and function.parent is not None:
            parent = self.ev.project.ref(ref.path, function.parent)
            for number, operation in enumerate(self.ev.project.function(parent).operations):
                if isinstance(operation, s.MakeClass) and operation.body == ref.index:
                    yield parent, number
            return
        edges: Sequence[CallEdge] = self.reach.callers.get(ref, ())
        # Where a map is made, its function does not run yet.
        yield from dict.fromkeys((e.caller.ref, e.number) for e in edges if e.site not in self._made)

    # -- guards

    def _guards(self, frame: Frame, block: int) -> tuple[Guard, ...]:
        """What decides whether a block of a function runs, the innermost first."""
        key = (frame.ref, block)
        if key not in self._guarding:
            found = {each.site: each for each in self.explainer.guards(frame, block)}
            for test, answer in self._passed(frame, block):
                site = Site(frame.ref, test)
                if site not in found:
                    found[site] = Found(site, answer, self.explainer.variation(frame, test))
            guards = [self._guard(frame, each) for each in found.values()]
            self._guarding[key] = tuple(sorted(guards, key=lambda guard: guard.place.start, reverse=True))
        return self._guarding[key]

    def _passed(self, frame: Frame, block: int) -> Iterator[tuple[int, bool]]:
        """The conditions, with their outcomes, that every path to a block passes: early exits are among them."""
        blocks = frame.code.function.blocks
        targets = [
            () if self._ends(frame, number) else tuple((edge.kind, edge.target) for edge in each.edges)
            for number, each in enumerate(blocks)
        ]
        for number, each in enumerate(blocks):
            if each.test is None or {kind for kind, _ in targets[number]} != {"true", "false"}:
                continue
            for kind in ("true", "false"):
                if not _reaches(targets, block, without=(number, kind)):
                    yield each.test, kind == "true"

    def _ends(self, frame: Frame, block: int) -> bool:
        """Whether a block ends the process, whatever the graph says."""
        for _, call in frame.code.calls_in((block,)):
            for callee in ordered(self.ev.value(frame, call.function)):
                known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
                if known is not None and known.ends:
                    return True
        return False

    def _guard(self, frame: Frame, found: Found) -> Guard:
        difference = self.words.difference(frame, found.variation)
        place = self.words.place(found.site)
        return Guard(place, self._code(place), found.answer, difference, self._first(frame, found, difference))

    def _first(self, frame: Frame, found: Found, difference: Difference) -> Answer:
        """Whether code that a guard lets through runs on process 0 only."""
        test = found.site.number
        if found.answer is None or isinstance(frame.code.operations[test], s.Caught):
            # A loop repeats its body, and a handler handles: neither is written to choose a process. Without an
            # exception, code goes on as usual.
            return "unknown" if difference.answer == "yes" and found.answer is not False else "no"
        return "no" if difference.answer == "no" else self.first.chosen(frame, test, holds=found.answer)

    def _code(self, place: Place) -> str:
        """The first row of a piece of code, without what follows it."""
        source = self.texts.get(place.path)
        if source is None:
            return ""
        row = source.lines()[place.start.row - 1]
        end = place.end.column - 1 if place.end.row == place.start.row else len(row)
        return row[place.start.column - 1 : end].rstrip()


def _reaches(targets: Sequence[Sequence[tuple[str, int]]], block: int, without: tuple[int, str]) -> bool:
    """Whether control can reach a block if one arm of a branch is never taken."""
    seen, pending = {s.ENTRY}, [s.ENTRY]
    while pending:
        number = pending.pop()
        if number == block:
            return True
        for kind, target in targets[number]:
            if target not in seen and (number, kind) != without:
                seen.add(target)
                pending.append(target)
    return False
