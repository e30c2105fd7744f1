"""Cells: where facts are kept, who wrote them, and who has to look again when they change.

A cell has one contribution for each writer, so that one can be replaced or taken back. Its content is their join. A
reader of a cell is visited again when the content changes, also if there was nothing in the cell when it was read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Content = TypeVar("Content")
Unit = TypeVar("Unit", bound=Hashable)


class Cells(Generic[Unit, Content]):
    """The cells of one stratum, and the units of work that are still to be visited.

    ``bottom`` is what an empty cell holds, ``join`` puts two contents together; it is commutative and associative.
    ``bounded`` is applied to the join of all contributions, so that the order in which they came does not matter. A
    cell that has changed ``keeps_after`` times loses nothing any more, so that the solver comes to an end; one that
    would then hold too much holds ``top`` for good. ``settled`` says what a cell holds that is no join of what its
    writers contribute; None for all others.
    """

    def __init__(
        self,
        bottom: Content,
        join: Callable[[Content, Content], Content],
        bounded: Callable[[Content], Content],
        settled: Callable[[Hashable, Iterable[Content]], Content | None] = lambda key, contents: None,
        keeps_after: int | None = None,
        top: Content | None = None,
    ) -> None:
        self._bottom = bottom
        self._join = join
        self._bounded = bounded
        self._settled = settled
        self._keeps_after = keeps_after
        self._top = top
        self._contents: dict[Hashable, Content] = {}
        self._written: dict[Hashable, dict[Unit, Content]] = {}
        self._readers: dict[Hashable, dict[Unit, None]] = {}
        self._pending: deque[Unit] = deque()
        self._waiting: set[Unit] = set()
        self._unit: Unit | None = None
        self._writes: dict[Hashable, Content] = {}
        self._written_by: dict[Unit, tuple[Hashable, ...]] = {}
        self._changes: dict[Hashable, int] = {}
        self.visited: set[Unit] = set()
        self.visits = 0

    def read(self, key: Hashable) -> Content:
        """What a cell holds; the unit that is being visited becomes one of its readers."""
        if self._unit is not None:
            self._readers.setdefault(key, {})[self._unit] = None
        return self._contents.get(key, self._bottom)

    def touch(self, key: Hashable) -> None:
        """Visit the readers of a cell again."""
        self.schedule(self._readers.get(key, ()))

    def contents(self) -> Iterable[tuple[Hashable, Content]]:
        """Every cell that holds something."""
        return self._contents.items()

    def writers(self, key: Hashable) -> Iterable[Unit]:
        """The units that contribute to a cell."""
        return self._written.get(key, ())

    def write(self, key: Hashable, content: Content) -> None:
        """Add to the contribution of the unit that is being visited."""
        held = self._writes.get(key)
        self._writes[key] = content if held is None else self._join(held, content)

    def demand(self, units: Iterable[Unit]) -> None:
        """Visit these units if they have never been visited."""
        self.schedule([unit for unit in units if unit not in self.visited])

    def schedule(self, units: Iterable[Unit]) -> None:
        """Visit these units, if they are not waiting for it already."""
        for unit in units:
            if unit not in self._waiting:
                self._waiting.add(unit)
                self._pending.append(unit)

    def solve(self, visit: Callable[[Unit], None]) -> None:
        """Visit units until nothing changes any more."""
        while self._pending:
            unit = self._pending.popleft()
            self._waiting.discard(unit)
            self.visits += 1
            self.visited.add(unit)
            self._unit, self._writes = unit, {}
            visit(unit)
            self._unit = None
            self._publish(unit)

    def _publish(self, unit: Unit) -> None:
        writes = self._writes
        for key in self._written_by.get(unit, ()):
            if key not in writes:
                del self._written[key][unit]
                self._settle(key)
        self._written_by[unit] = tuple(writes)
        for key, content in writes.items():
            contributions = self._written.setdefault(key, {})
            if contributions.get(unit, self._bottom) != content or unit not in contributions:
                contributions[unit] = content
                self._settle(key)

    def _settle(self, key: Hashable) -> None:
        content = self._settled(key, self._written[key].values())
        if content is None:
            content = self._bottom
            for each in self._written[key].values():
                content = self._join(content, each)
        changes = self._changes.get(key, 0)
        if self._keeps_after is not None and changes >= self._keeps_after:
            held = self._contents.get(key, self._bottom)
            content = self._join(held, content)
            if self._top is not None and (held == self._top or self._bounded(content) != content):
                content = self._top
        else:
            content = self._bounded(content)
        if content != self._contents.get(key, self._bottom):
            self._contents[key] = content
            self._changes[key] = changes + 1
            self.schedule(self._readers.get(key, ()))
