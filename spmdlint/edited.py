"""What an edit changes in a file, judged from the files near it: an answer for an editor while the whole takes longer.

The findings of the whole program are known for the text before the edit. A program of the files near the edited one is
checked with that text and with the new one: the findings that only one of them has are those that the edit has removed
or added, as far as the files near it tell. Both programs lack the same files, so what these would say cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic, Place
from spmdlint.engine import Checked, check, look
from spmdlint.known import without_known
from spmdlint.nearby import ROWS, Neighbours


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
    neighbours = Neighbours(survey)
    near = neighbours.near([path], told, ROWS)
    if not neighbours.are_few(near):
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
