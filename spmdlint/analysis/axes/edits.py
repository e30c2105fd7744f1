"""What fixes findings about axis names, if the source shows that it is possible."""

from __future__ import annotations

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Site
from spmdlint.changes import AddKeyword, Change
from spmdlint.diagnostics import Edit, Location
from spmdlint.program import summary as s


class Edits:
    """Finds the spans to replace. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def renamed_axis(self, site: Site, old: str, new: str) -> tuple[Edit, ...]:
        """Edits that rename an axis spelled in the call of a collective itself; none if it is spelled elsewhere."""
        call = self._call(site)
        frame = self.ev.free_frame(site.ref)
        callee = self.ev.callee(frame, call)
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        if call is None or known is None or known.axes is None:
            return ()
        given = passed(call, known.axes, known.positional)
        return tuple(self._renamed(site, n, old, new) for n in self._spelled(site, given, old))

    def renamed_in_spec(self, site: Site, old: str, new: str) -> tuple[Edit, ...]:
        """Edits that rename an axis spelled in a spec itself; none if it is spelled elsewhere."""
        call = self._call(site)
        callee = self.ev.callee(self.ev.free_frame(site.ref), call)
        if call is None or self.ev.kind(callee) != "spec":
            return ()
        spelled = (n for argument in call.arguments for n in self._spelled(site, argument.value, old))
        return tuple(self._renamed(site, number, old, new) for number in spelled)

    def added_keyword(self, site: Site, name: str, value: str) -> Change | None:
        """The change that passes one more keyword in a call; None if starred arguments may pass it already."""
        call = self._call(site)
        if call is None or call.decorator or not call.arguments or any(a.star for a in call.arguments):
            return None
        return AddKeyword(*self._ends(site), name, value)

    def _spelled(self, site: Site, given: int | None, name: str) -> list[int]:
        """The literals that spell a name in an argument: the argument itself, or elements of a tuple."""
        operations = self._function(site).operations
        operation = operations[given] if given is not None else None
        if given is not None and isinstance(operation, s.Const):
            return [given] if operation.value == name else []
        if isinstance(operation, s.Display):
            return [n for element in operation.elements for n in self._spelled(site, element, name)]
        return []

    def _call(self, site: Site) -> s.Call | None:
        operation = self._function(site).operations[site.number]
        return operation if isinstance(operation, s.Call) else None

    def _function(self, site: Site) -> s.Function:
        return self.ev.project.function(site.ref)

    def _renamed(self, site: Site, number: int, old: str, new: str) -> Edit:
        """The new name in a literal that spells the old one, with its quotes if it is nothing but them and the name."""
        start, end = self._function(site).spans[number]
        if end - start == len(old) + 2 and new.isidentifier():
            return Edit(self._location(site, start + 1), self._location(site, end - 1), new)
        written = '"' + new.replace("\\", "\\\\").replace('"', '\\"') + '"'  # most code uses double quotes
        return Edit(self._location(site, start), self._location(site, end), written)

    def _ends(self, site: Site) -> tuple[tuple[int, int], tuple[int, int]]:
        summary = self.ev.project.modules[site.ref.path].summary
        start, end = self._function(site).spans[site.number]
        return summary.position(start), summary.position(end)

    def _location(self, site: Site, offset: int) -> Location:
        return Location(*self.ev.project.modules[site.ref.path].summary.position(offset))
