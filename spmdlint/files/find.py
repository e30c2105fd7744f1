"""Which files make up the project, and for which of them findings were asked."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from spmdlint.config import Config
from spmdlint.errors import UsageError
from spmdlint.files.ignore import Ignores, Patterns, at, configured_patterns, ignored
from spmdlint.files.read import NOTEBOOK

SUFFIXES = (".py", NOTEBOOK)


class Found(Struct, frozen=True):
    """The files of the whole program, those whose findings are shown, and a sentence for each file that is left out."""

    project: tuple[Path, ...]
    asked: frozenset[Path]
    notes: tuple[str, ...] = ()


def find(config: Config, paths: Sequence[Path], typed: Collection[Path] = ()) -> Found:
    """Find the project's files and mark those at or below ``paths``, which are absolute.

    A file given by name is linted even if it is excluded, unless the configuration forces exclusion; so are the files
    of an excluded folder given by name. ``typed`` are files that need not exist: their text comes from elsewhere.

    Raises:
        UsageError: a path does not exist.

    """
    configured = configured_patterns(
        config.root, config.exclusions(), config.origins.get("exclude", "The option exclude")
    )
    project = set(walk(config.root, at(config.root, configured), descend=not config.flat, linked_from=config.root))
    asked: set[Path] = set()
    notes: list[str] = []
    for path in (*paths, *typed):
        if path.is_dir():
            asked.update(_in_folder(path, config, configured, project))
        elif path not in typed and not path.exists():
            raise UsageError(f"There is no file or folder {path}; fix the path, or leave it out.")
        elif path not in typed and path.suffix not in (*SUFFIXES, ""):
            notes.append(f"{path} is not linted: it is neither a .py file nor a notebook.")
        else:
            path = _own_name(path, project)
            if path in project or not (config.force_exclude and ignored(path, configured)):
                asked.add(path)
    return Found(tuple(sorted(project | asked)), frozenset(asked), tuple(notes))


def walk(folder: Path, ignores: Ignores, *, descend: bool = True, linked_from: Path | None = None) -> Iterator[Path]:
    """The Python files and notebooks in a folder and those below; without ``descend``, only in those that are packages.

    ``ignores`` are the patterns of the folders above; they may include those of this folder. Links to folders are not
    followed: a link upwards would never end. A link to a file below ``linked_from`` is left out, because the file is
    found at its real path.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return  # A folder that may not be listed contains nothing that could be read.
    ignores = ignores.below(folder) if any(entry.name == ".gitignore" for entry in entries) else ignores
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            wanted = descend or os.path.isfile(os.path.join(entry.path, "__init__.py"))  # noqa: PTH113, PTH118
            if wanted and not ignores.ignores(entry.path, is_folder=True):
                yield from walk(folder / entry.name, ignores, descend=descend, linked_from=linked_from)
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


def _in_folder(folder: Path, config: Config, configured: Patterns, project: set[Path]) -> set[Path]:
    inside = folder == config.root or config.root in folder.parents
    if inside and not ignored(folder, configured, is_folder=True):
        return project if folder == config.root else {path for path in project if folder in path.parents}
    if config.force_exclude:
        return set()
    own = configured_patterns(folder, config.exclusions(), "exclude")
    return set(walk(folder, Ignores(own)))
