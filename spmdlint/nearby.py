"""Which files of a project are near some of them: those that they import or that import them, and so on.

What the linter finds in a file, it mostly finds from the files near it, in a small part of the time. Where there is no
room for all, tests come last, and files that name processes before others, the nearest folders first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from spmdlint.files.screen import module_name
from spmdlint.program.survey import Survey
from spmdlint.program.testfiles import is_named_as_test

ROWS = 5_000
"""How many rows of files near one are looked at where somebody waits for the answer."""
FOR_COMMITS = 20_000
"""The same for the files of a commit, all together, unless that is less than :data:`ROWS` for each."""
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:from|import)\b(?:[^\n(\\#]|\\\r?\n)*(?:\((?:[^()#]|#[^\n]*){0,9999}\))?", re.MULTILINE
)
_WORD = re.compile(r"\w+")
_PROCESSES = re.compile("process|host|addressable|make_array_from|initialize|mpi4py")


def files_near(survey: Survey, paths: Collection[Path]) -> frozenset[Path] | None:
    """The files near those of some that can matter; None if these are most of the project."""
    neighbours, asked = Neighbours(survey), sorted(set(paths).intersection(survey.wanted))
    if not neighbours.are_few(asked):
        return None
    near = frozenset(neighbours.near(asked, (), max(FOR_COMMITS, ROWS * len(asked))))
    return near if neighbours.are_few(near) else None


class Neighbours:
    """The files of a project, by what they import."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._rows = {path: survey.texts[path].text.count("\n") for path in survey.wanted}
        self._modules: dict[str, list[Path]] = {}
        self._naming: dict[str, list[Path]] = {}
        self._imports: dict[Path, frozenset[str]] = {}
        for each in survey.wanted:
            self._modules.setdefault(module_name(each), []).append(each)
            for name in survey.facts[each].names or ():
                self._naming.setdefault(name, []).append(each)

    def are_few(self, files: Collection[Path]) -> bool:
        """Whether some files of the project are less than half of it."""
        return 2 * sum(self._rows[path] for path in files) <= sum(self._rows.values())

    def near(self, paths: Sequence[Path], told: Collection[Path], most: int) -> list[Path]:
        """Some files, those ``told`` with them, those that they import or that import them, and so on.

        The files besides ``paths`` have at most so many rows.
        """
        folders = {folder for path in paths for folder in path.parents}
        found, left = dict.fromkeys(path for path in paths if path in self._rows), most
        smallest = min(self._rows.values(), default=0)
        ranks: dict[Path, tuple[bool, bool, int, float, Path]] = {}

        def rank(file: Path) -> tuple[bool, bool, int, float, Path]:
            if file not in ranks:
                signs = len(_PROCESSES.findall(self._survey.texts[file].text))
                shared = sum(folder in folders for folder in file.parents)
                ranks[file] = is_named_as_test(file), not signs, -shared, -signs / (self._rows[file] + 50), file
            return ranks[file]

        def taken(files: Collection[Path]) -> list[Path]:
            """Those for which there is room."""
            nonlocal left
            new: list[Path] = []
            for file in sorted(self._rows.keys() & set(files) - found.keys(), key=rank):
                if self._rows[file] <= left:
                    left -= self._rows[file]
                    found[file] = None
                    new.append(file)
            return new

        ring = [*found, *taken(told)] if found else []
        while ring and left >= smallest:
            ring = taken({each for file in ring for each in self._beside(file)})
        return list(found)

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
