"""Which files of a project are near some of them: those that they import or that import them, and so on.

What the linter finds in a file, it mostly finds from the files near it, in a small part of the time. Where there is no
room for all, tests come last, and files that name processes before others, the nearest folders first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from spmdlint.files.screen import module_name
from spmdlint.program.survey import Survey
from spmdlint.program.testfiles import is_named_as_test

ROWS = 5_000
"""How many rows of files near one are looked at where somebody waits for the answer."""
FOR_COMMITS = 20_000
"""The same for the files of a commit, unless these are so many that each would have less than :data:`ROWS`."""
_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b(?:[^\n(]*\([^)]*\)|[^\n]*)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_PROCESSES = re.compile("process|host|addressable|make_array_from|initialize|mpi4py")


def near_each(survey: Survey, paths: Collection[Path]) -> set[Path] | None:
    """The files near each of some files; None if these are most of the project."""
    near = set(paths).intersection(survey.wanted)
    neighbours, most = Neighbours(survey), max(ROWS, FOR_COMMITS // max(1, len(near)))
    for path in sorted(near) if are_few(survey, near) else ():
        near.update(neighbours.near(path, (), most))
        if not are_few(survey, near):
            return None
    return near if are_few(survey, near) else None


def are_few(survey: Survey, near: Collection[Path]) -> bool:
    """Whether some files of a project are less than half of it."""
    return 2 * rows(survey, near) <= rows(survey, survey.wanted)


def rows(survey: Survey, files: Collection[Path]) -> int:
    """How many rows some files have together."""
    return sum(survey.texts[path].text.count("\n") for path in files)


class Neighbours:
    """The files of a project, by what they import."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._rows = {path: rows(survey, [path]) for path in survey.wanted}
        self._modules: dict[str, list[Path]] = {}
        self._naming: dict[str, list[Path]] = {}
        self._imports: dict[Path, frozenset[str]] = {}
        self._signs: dict[Path, int] = {}
        for each in survey.wanted:
            self._modules.setdefault(module_name(each), []).append(each)
            for name in survey.facts[each].names or ():
                self._naming.setdefault(name, []).append(each)

    def near(self, path: Path, told: Collection[Path], most: int) -> list[Path]:
        """A file, those ``told`` with it, those that it imports or that import it, and so on, of so many rows."""
        found, left = [path], most

        def priority(file: Path) -> tuple[bool, bool, int, float, Path]:
            signs, shared = self._signs_in(file), len(set(file.parents) & set(path.parents))
            return is_named_as_test(file), not signs, -shared, -signs / (self._rows[file] + 50), file

        def taken(files: Collection[Path]) -> Iterator[Path]:
            """Those for which there is room."""
            nonlocal left
            for file in sorted(self._rows.keys() & set(files) - set(found), key=priority):
                if self._rows[file] <= left:
                    left -= self._rows[file]
                    found.append(file)
                    yield file

        ring = [path, *taken(told)] if path in self._rows else []
        while ring:
            ring = list(taken({each for file in ring for each in self._beside(file)}))
        return found

    def _beside(self, file: Path) -> Iterator[Path]:
        for name in self._imported(file):
            yield from self._modules.get(name, ())
        own = module_name(file)
        yield from (other for other in self._naming.get(own, ()) if own in self._imported(other))

    def _imported(self, file: Path) -> frozenset[str]:
        """The modules of the project that a file may import, by the last part of their names."""
        if file not in self._imports:
            words = _WORD.findall(" ".join(_IMPORT.findall(self._survey.texts[file].text)))
            self._imports[file] = frozenset(words).intersection(self._survey.facts[file].names or ())
        return self._imports[file]

    def _signs_in(self, file: Path) -> int:
        if file not in self._signs:
            self._signs[file] = len(_PROCESSES.findall(self._survey.texts[file].text))
        return self._signs[file]
