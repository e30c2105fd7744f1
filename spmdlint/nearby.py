"""What an edit changes in a file, judged from the files near it: an answer for an editor while the whole takes longer.

The findings of the whole program are known for the text before the edit. A program of the files near the edited one is
checked with that text and with the new one: the findings that only one of them has are those that the edit has removed
or added, as far as the files near it tell. Both programs lack the same files, so what these would say cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic, Place
from spmdlint.engine import Checked, check, look
from spmdlint.files.screen import module_name
from spmdlint.known import without_known
from spmdlint.program.survey import Survey

ROWS = 5_000
"""How many rows of files near the edited one are looked at."""


class Changed(Struct, frozen=True):
    """What an edit changes: the findings that are gone, at places of the text before, and those it adds."""

    gone: Sequence[Diagnostic]
    added: Checked


def changed_nearby(
    config: Config,
    path: Path,
    before: str,
    told: Collection[Path],
    edited: Mapping[Path, str],
    cache: Path | None,
    kept: Callable[[Place], Place | None],
) -> Changed | None:
    """What an edit of a file changes, by the files near it. None if the whole project is not much more than these.

    ``edited`` are the texts that are not those on disk, with the new one of the file, as for
    :func:`spmdlint.engine.check`. ``kept`` gives the place in the new text that a place in the text ``before`` has, and
    ``told`` are the files that the findings in the file before lead through.
    """
    survey = look(config, [config.root], edited=edited, cache=cache)
    near = files_near(survey, path, told, ROWS)
    if not are_few(survey, near):
        return None
    earlier, checked = (
        without_known(config.baseline, run, config.root)
        for text in (before, edited[path])
        for run in [check(config, [path], edited={**edited, path: text}, cache=cache, jobs=1, among=near)]
    )
    moved = {(each.code, kept(each.place)): each for each in earlier.diagnostics}
    now = {(each.code, each.place): each for each in checked.diagnostics}
    added = tuple(each for spot, each in now.items() if spot not in moved)
    return Changed([each for spot, each in moved.items() if spot not in now], replace(checked, diagnostics=added))


def are_few(survey: Survey, near: Collection[Path]) -> bool:
    """Whether some files of a project are less than half of it."""
    return 2 * rows(survey, near) <= rows(survey, survey.wanted)


def rows(survey: Survey, files: Collection[Path]) -> int:
    """How many rows some files have together."""
    return sum(survey.texts[path].text.count("\n") for path in files)


def files_near(survey: Survey, path: Path, told: Collection[Path], most: int) -> list[Path]:
    """A file, those ``told`` with it, those that it names or that name it, and so on, of so many rows."""
    wanted = set(survey.wanted)
    by_name: dict[str, list[Path]] = {}
    naming: dict[str, list[Path]] = {}
    for each in survey.wanted:
        by_name.setdefault(module_name(each), []).append(each)
        for name in survey.facts[each].names or ():
            naming.setdefault(name, []).append(each)

    def beside(file: Path) -> Iterator[Path]:
        for name in survey.facts[file].names or ():
            yield from by_name.get(name, ())
        yield from naming.get(module_name(file), ())

    def distance(file: Path) -> tuple[int, Path]:
        return -len(set(file.parents) & set(path.parents)), file

    found, left = [path], most

    def taken(files: Collection[Path]) -> Iterator[Path]:
        """Those for which there is room."""
        nonlocal left
        for file in sorted(set(files) & wanted - set(found), key=distance):
            if rows(survey, [file]) <= left:
                left -= rows(survey, [file])
                found.append(file)
                yield file

    ring = [path, *taken(told)] if path in wanted else []
    while ring:
        ring = list(taken({each for file in ring for each in beside(file)}))
    return found
