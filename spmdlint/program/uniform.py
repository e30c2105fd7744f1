"""What the author declares to be the same on all processes: ``# spmdlint: uniform`` on an assignment or a ``def``.

The comment is at the end of the statement's first or last line, or alone on the line above it. On a ``def`` it applies
to what the function returns.
"""

from __future__ import annotations

from pathlib import Path

from spmdlint.files.declaring import DECLARES
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Project


class Uniform:
    """The declarations of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._rows: dict[Path, tuple[frozenset[int], frozenset[int]]] = {}
        self._values: dict[FunctionRef, frozenset[int]] = {}

    def values(self, ref: FunctionRef) -> frozenset[int]:
        """The operations of a function whose values are declared uniform, because a declared store takes them."""
        found = self._values.get(ref)
        if found is None:
            stores = enumerate(self.project.function(ref).operations) if any(self._comments(ref.path)) else ()
            found = self._values[ref] = frozenset(
                operation.value
                for number, operation in stores
                if isinstance(operation, (s.Store, s.StoreAttribute)) and self.stored(ref, number)
            )
        return found

    def stored(self, ref: FunctionRef, number: int) -> bool:
        """Whether the value of a store is declared uniform."""
        ends, above = self._comments(ref.path)
        if not ends and not above:
            return False
        function = self.project.function(ref)
        operation = function.operations[number]
        if not isinstance(operation, (s.Store, s.StoreAttribute)):
            return False
        first = self._row(ref, function.spans[number][0])
        last = self._row(ref, function.spans[operation.value][1])
        return first in ends or last in ends or first - 1 in above

    def returned(self, ref: FunctionRef) -> bool:
        """Whether the return value of a function is declared uniform."""
        ends, above = self._comments(ref.path)
        if not ends and not above:
            return False
        function = self.project.function(ref)
        first = self._row(ref, function.start)
        inside = [
            self._row(ref, span[0])
            for operation, span in zip(function.operations, function.spans, strict=True)
            if not isinstance(operation, s.Parameter)
        ]
        body = max(min(inside, default=first), first + 1)
        return first - 1 in above or any(first <= row < body for row in ends)

    def _row(self, ref: FunctionRef, offset: int) -> int:
        return self.project.modules[ref.path].summary.position(offset)[0]

    def _comments(self, path: Path) -> tuple[frozenset[int], frozenset[int]]:
        if path not in self._rows:
            found = [c for c in self.project.modules[path].summary.comments if DECLARES.search(c.text)]
            ends = frozenset(c.row for c in found if not c.own_line)
            self._rows[path] = ends, frozenset(c.row for c in found if c.own_line)
        return self._rows[path]
