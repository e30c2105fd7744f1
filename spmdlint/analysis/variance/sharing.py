"""Whether a program gives its processes data of their own.

It does not if nothing in it tells the processes apart where data is chosen: wherever a process asks which one it is,
the answer is compared with a constant, told, or makes a random key, and no library is asked to share data out. All
processes then read the same examples.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import ClassValue, External, Frame, FunctionValue, Instance
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.origins import CARRIES, CONTINUE, Answer, Origins, Property
from spmdlint.analysis.variance.sources import Sources
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s

_OWN = "identity"
_KEEPS = "builtins.int"
_SLICE = re.compile(r"\[\?[:%]")  # a slice of a data set in words, with a question mark for each number: train[?:?]


class Number(Property):
    """The value is the number of this process, or one that was computed from it; keys and texts are not."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, (s.Attribute, s.Subscript)):
            found = self.sources.of_name(frame, number)
            return found if found is not None and found.kind == _OWN else CONTINUE
        if isinstance(operation, s.Item):
            element = of_element(origins, frame, operation)
            return element if element != CONTINUE else None
        if isinstance(operation, s.Binary):
            return origins.any_of(frame, (operation.left, operation.right))
        if not isinstance(operation, s.Call):
            return CONTINUE if isinstance(operation, CARRIES) else None
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if isinstance(callee, External):
                if callee.name == _KEEPS:
                    return origins.any_of(frame, [argument.value for argument in operation.arguments])
                found = self.sources.of_call(frame, number, operation, callee)
                return found if found is not None and found.kind == _OWN else None
        return CONTINUE


class Sharing:
    """Asks so of whole programs: the files that name one another."""

    def __init__(self, content: Origins, sources: Sources) -> None:
        self.ev = content.ev
        self.table = units()
        self._number = Origins(self.ev, content.calls, content.reach, Number(sources))
        self._shared: dict[int, bool] = {}

    def gives_shares(self, path: Path, *, likely: bool = True) -> bool:
        """Whether anything in a program may give each process its own data, or is ``likely`` to, judging by a name."""
        component = self.ev.project.component
        at = component[path]
        if at not in self._shared:
            here = (ref for ref in self.ev.project.functions() if component[ref.path] == at)
            frames = map(self.ev.free_frame, here)
            chooses = (self._may_choose(frame, each) for frame in frames for each in frame.code.operations)
            self._shared[at] = self._names(path, self.table.dealers["surely"]) or any(chooses)
        return self._shared[at] or (likely and self._names(path, self.table.dealers["likely"]))

    def has_own(self, path: Path) -> bool:
        """Whether processes may have data of their own, as where a library never asks which process it is."""
        asks = self._names(path, frozenset(name.rpartition(".")[2] for name in self.table.places))
        return not asks or self.gives_shares(path, likely=False)

    def picks(self, path: Path) -> bool:
        """Whether anything in a file's program picks from data that all have what belongs on a process's devices."""
        return self._names(path, self.table.pickers)

    def _names(self, path: Path, words: frozenset[str]) -> bool:
        return not words.isdisjoint(self._words[self.ev.project.component[path]])

    @cached_property
    def _words(self) -> dict[int, set[str]]:
        """What the files of each program name, together, and the keywords among the names that speak of shares."""
        found: dict[int, set[str]] = {}
        for path, module in self.ev.project.modules.items():
            calls = (o for each in module.summary.functions for o in each.operations if isinstance(o, s.Call))
            keywords = self.table.dealers["likely"].intersection(a.keyword for call in calls for a in call.arguments)
            found.setdefault(self.ev.project.component[path], set()).update(module.words, keywords)
        return found

    def _may_choose(self, frame: Frame, operation: s.Operation) -> bool:
        """Whether an operation uses the number of the process in a way that may choose data."""
        operations = frame.code.operations
        if isinstance(operation, s.Compare):
            if any(isinstance(operations[frame.code.root_of(each)], s.Const) for each in operation.operands):
                return False
            return self._tells(frame, operation.operands)
        if isinstance(operation, s.Subscript):
            return self._tells(frame, [operation.index])
        if isinstance(operation, s.Slice):
            return self._tells(frame, [e for e in (operation.lower, operation.upper, operation.step) if e is not None])
        if isinstance(operation, s.FString):
            parts = [operations[part] for part in operation.parts]
            text = "".join(str(each.value) if isinstance(each, s.Const) else "?" for each in parts)
            return _SLICE.search(text) is not None and self._tells(frame, operation.parts)
        if not isinstance(operation, s.Call) or not operation.arguments:
            return False
        method = operations[operation.function]
        callee = self.ev.callee(frame, operation)
        if isinstance(callee, (FunctionValue, ClassValue, Instance)):
            return False  # what it does with it is asked there
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        if known is not None and known.own:
            return True
        if isinstance(callee, External) and callee.name.startswith(self.table.tellers):
            return False
        told = method if isinstance(method, s.Attribute) and method.name in self.table.told else None
        if told and not _SLICE.search(str(getattr(operations[told.base], "value", "")).replace("{}", "?")):
            return False
        return self._tells(frame, [argument.value for argument in operation.arguments])

    def _tells(self, frame: Frame, numbers: list[int] | tuple[int, ...]) -> bool:
        return self._number.any_of(frame, numbers) is not None
