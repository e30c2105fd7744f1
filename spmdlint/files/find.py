"""Which files make up the project, and for which of them findings were asked."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from spmdlint.config import Config
from spmdlint.errors import UsageError
from spmdlint.files.ignore import Ignores, Patterns, at, configured_patterns, ignored
from spmdlint.files.reach import GONE, reason, refuse_closed, refuse_unlike_files, unreadable
from spmdlint.files.read import NOTEBOOK

SUFFIXES = (".py", NOTEBOOK)


class Found(Struct, frozen=True):
    """The files of the whole program, those whose findings are shown, and a sentence for each that is left out."""

    project: tuple[Path, ...]
    asked: frozenset[Path]
    notes: tuple[str, ...] = ()


def find(config: Config, paths: Sequence[Path], typed: Collection[Path] = ()) -> Found:
    """Find the project's files and mark those at or below ``paths``, which are absolute.

    A file given by name is linted even if it is excluded, unless the configuration forces exclusion; so are the files
    of an excluded folder given by name. ``typed`` are files that need not exist: their text comes from elsewhere.

    Raises:
        UsageError: a path does not exist, or may not be read, or is neither a file nor a folder.

    """
    configured = configured_patterns(
        config.root, config.exclusions(), config.origins.get("exclude", "The option exclude")
    )
    closed: dict[Path, str] = {}
    walked = walk(config.root, at(config.root, configured), closed, descend=not config.flat, linked_from=config.root)
    project = set(walked)
    asked: set[Path] = set()
    notes: list[str] = []
    for path in paths:
        refuse_closed(path)
        if path not in typed:
            refuse_unlike_files(path)
    for path in (*paths, *typed):
        if path.is_dir():
            asked.update(_in_folder(path, config, configured, project, closed))
        elif path not in typed and not path.exists():
            raise UsageError(f"There is no file or folder {path}; fix the path, or leave it out.")
        elif path not in typed and path.suffix not in (*SUFFIXES, ""):
            notes.append(f"{path} is not linted: it is neither a .py file nor a notebook.")
        else:
            path = _own_name(path, project)
            if path in project or not (config.force_exclude and ignored(path, configured)):
                asked.add(path)
    for path in paths:
        if path in closed:
            raise unreadable(path, closed[path])
    missed = {each: why for each, why in closed.items() if any(path in each.parents for path in paths)}
    return Found(tuple(sorted(project | asked)), frozenset(asked), (*notes, *_not_listed(missed)))


def walk(
    folder: Path,
    ignores: Ignores,
    closed: dict[Path, str],
    *,
    descend: bool = True,
    linked_from: Path | None = None,
) -> Iterator[Path]:
    """The Python files and notebooks in a folder and those below; without ``descend``, only in those that are packages.

    ``ignores`` are the patterns of the folders above; they may include those of this folder. Links to folders are not
    followed: a link upwards would never end. A link to a file below ``linked_from`` is left out, because the file is
    found at its real path. Folders that cannot be listed are added to ``closed``, with the reason.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        if error.errno not in GONE:
            closed[folder] = reason(error)
        return
    ignores = ignores.below(folder) if any(entry.name == ".gitignore" for entry in entries) else ignores
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            wanted = descend or os.path.isfile(os.path.join(entry.path, "__init__.py"))  # noqa: PTH113, PTH118
            if wanted and not ignores.ignores(entry.path, is_folder=True):
                yield from walk(folder / entry.name, ignores, closed, descend=descend, linked_from=linked_from)
        elif entry.name.endswith(SUFFIXES) and _is_file(entry) and not ignores.ignores(entry.path, is_folder=False):
            linked = entry.is_symlink() and linked_from in Path(os.path.realpath(entry.path)).parents
            if not linked:
                yield folder / entry.name


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself
        return False


def _own_name(path: Path, project: set[Path]) -> Path:
    """The name under which the project has a file that was reached by a link."""
    real = Path(os.path.realpath(path))
    return real if real in project else path


def _not_listed(closed: Mapping[Path, str]) -> Iterator[str]:
    """A sentence about the folders that were passed over, if there are any."""
    if closed:
        first, more = min(closed), len(closed) - 1
        others = f" and {more} more folder{'' if more == 1 else 's'}" if more else ""
        which, verb = ("them", "are") if more else ("it", "is")
        yield f"{first}{others} {verb} not linted: {closed[first]}. Make {which} readable, or exclude {which}."


def _in_folder(
    folder: Path, config: Config, configured: Patterns, project: set[Path], closed: dict[Path, str]
) -> set[Path]:
    inside = folder == config.root or config.root in folder.parents
    if inside and not ignored(folder, configured, is_folder=True):
        return project if folder == config.root else {path for path in project if folder in path.parents}
    if config.force_exclude:
        return set()
    own = configured_patterns(folder, config.exclusions(), "exclude")
    return set(walk(folder, Ignores(own), closed))
