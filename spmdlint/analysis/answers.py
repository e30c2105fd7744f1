"""Answers questions about single operations, for rules of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.explanation import Explainer
from spmdlint.analysis.uniformity import GLOBAL, PURE_MODULES
from spmdlint.analysis.ways import Ways
from spmdlint.analysis.words import Words
from spmdlint.facts import Answer, Axes, Callees, Parallel, any_of
from spmdlint.files.read import Source
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


def joined(callees: Sequence[Callees]) -> Callees:
    """What is one of several."""
    names = frozenset[str]().union(*(each.names for each in callees))
    return Callees(names, all(each.complete for each in callees))


class Answers:
    """What is asked for the nodes of all files. One per run."""

    def __init__(self, explainer: Explainer, calls: Calls, texts: Mapping[Path, Source]) -> None:
        self.explainer = explainer
        self.ev = explainer.ev
        self.reach = explainer.reach
        self.words = Words(explainer, calls)
        self.ways = Ways(explainer, self.words, texts)

    def callees(self, frame: Frame, number: int) -> Callees:
        """The names of what a value may be; where a parameter decides, by what the known callers pass."""
        found = self.words.names(self.ev.value(frame, number))
        if found.complete:
            return found
        callers = self.reach.callers.get(frame.ref, ())
        entered = dict.fromkeys(edge.target.frame for edge in callers)
        if not entered or frame in entered or self.ways.escapes(frame.ref):
            return found
        return joined([self.words.names(self.ev.value(each, number)) for each in entered])

    def axes(self, ref: FunctionRef) -> Axes:
        """The axes that may be bound around a function."""
        around = self.reach.around_of(ref)
        known = self.ev.project.function(ref).kind == "module" or bool(self.reach.callers.get(ref))
        return Axes(around.names, known and not around.open and not self.ways.escapes(ref))

    def parallel(self, frame: Frame, numbers: Sequence[int]) -> Parallel:
        """The parallel calls that some calls make."""
        answers: list[Answer] = []
        names: list[str] = []
        for number in numbers:
            operation = frame.code.operations[number]
            if isinstance(operation, s.Call):
                note = self.explainer.call(frame, number, operation)
                names += (each.name for each in note.effect)
                strong = any(each.strength == "strong" for each in note.effect)
                quiet = all(each.name in GLOBAL or each.name.startswith(PURE_MODULES) for each in note.callees)
                unknown = bool(note.effect) or (note.unknown and not (note.callees and quiet))
                answers.append("yes" if strong else "unknown" if unknown else "no")
        return Parallel(any_of(answers), tuple(dict.fromkeys(names)))
