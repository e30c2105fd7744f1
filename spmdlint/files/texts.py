"""The texts of a project's files, each read on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from spmdlint.files.read import Source, Unreadable, read


class Texts(Mapping[Path, Source]):
    """The readable files among some, by path. ``given`` replaces the contents of those files on disk."""

    def __init__(self, given: Mapping[Path, Source | Unreadable]) -> None:
        self._given = given
        self._outcomes: dict[Path, Source | Unreadable | None] = {}

    def add(self, path: Path, *, readable: bool) -> None:
        """Add a file whose readability is known without reading it."""
        self._outcomes.setdefault(path, None if readable else Unreadable(path, 1, 1, ""))

    def outcome(self, path: Path) -> Source | Unreadable:
        """The result of reading a file."""
        known = self._outcomes.get(path)
        if known is None:
            known = self._outcomes[path] = self._given[path] if path in self._given else read(path)
        return known

    def __getitem__(self, path: Path) -> Source:
        if path not in self:
            raise KeyError(path)
        outcome = self.outcome(path)
        # It was readable when the run began.
        return outcome if isinstance(outcome, Source) else Source(path, "")

    def __contains__(self, path: object) -> bool:
        return path in self._outcomes and not isinstance(self._outcomes[path], Unreadable)

    def __iter__(self) -> Iterator[Path]:
        return (path for path in self._outcomes if path in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
