"""Finds the root of the project that some paths belong to, and the configuration that applies to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from spmdlint.config import OWN_FILE, SHARED_FILE, Config, read_config, settings
from spmdlint.errors import UsageError
from spmdlint.files.ignore import configured_patterns, git_root, ignored
from spmdlint.files.reach import refuse_closed


def configure(paths: Sequence[Path], file: Path | None = None, *, force_exclude: bool | None = None) -> Config:
    """The configuration of the project that ``paths`` (absolute, at least one) belong to.

    The root is, of the folders at or above all paths, the nearest with an spmdlint configuration; else the root of the
    git work tree; else the nearest with a pyproject.toml; else the common folder, or the outermost package around it.
    So the same file belongs to the same project whether it is passed alone or with its folder. A root whose own
    patterns exclude the paths (an environment inside a work tree) is not theirs, unless exclusion is forced: then
    nothing is linted.

    Raises:
        UsageError: a configuration cannot be read or is wrong, or a path may not be looked at.

    """
    for path in paths:
        refuse_closed(path)
    common = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in paths]))
    for root, found in _candidates(common):
        config = read_config(root, file or found)
        patterns = configured_patterns(root, config.exclusions(), f"'exclude' in {config.file}")
        forced = config.force_exclude if force_exclude is None else force_exclude
        if common == root or forced or not ignored(common, patterns, is_folder=True):
            return config
    if common == common.parent and any(path.is_dir() and path != common for path in paths):
        raise UsageError(
            f"The paths have only {common} in common, so everything on this machine would be their project. Lint them "
            f"one at a time, or add a configuration (an {OWN_FILE}) to the folder that holds their project."
        )
    # Nothing says where the project ends. Files given by name then include only their neighbours and packages: the
    # common folder may well be a home directory. A package ends where its folders do.
    flat = not any(path.is_dir() for path in paths)
    config = replace(read_config(_outermost(common), file), flat=flat, marked=False)
    patterns = configured_patterns(config.root, config.exclusions(), f"'exclude' in {config.file}")
    if config.root != common and ignored(common, patterns, is_folder=True):
        return replace(read_config(common, file), flat=flat, marked=False)
    return config


def configure_named(
    words: Sequence[str | Path], here: Path, file: Path | None = None, *, force_exclude: bool | None = None
) -> Config:
    """The configuration of the project of paths as the user wrote them, in the folder ``here``.

    Files below that folder belong to the project that a check without paths has there, also if nothing marks it: they
    are told the same alone, with their folder, and in an explanation of what such a check printed. A folder that holds
    all sorts of things is not taken for a project.

    Raises:
        UsageError: a configuration cannot be read or is wrong, or a path may not be looked at.

    """
    paths = list(map(absolute, words))
    config = configure(paths, file, force_exclude=force_exclude)
    below = all(not Path(word).is_absolute() and here in path.parents for word, path in zip(words, paths, strict=True))
    if config.marked or not config.flat or not below or _holds_all_sorts(here):
        return config
    wide = configure([here, *paths], file, force_exclude=force_exclude)
    patterns = configured_patterns(wide.root, wide.exclusions(), f"'exclude' in {wide.file}")
    left_out = any(ignored(path.parent, patterns, is_folder=True) for path in paths if path.parent != wide.root)
    return config if left_out else wide


def _holds_all_sorts(folder: Path) -> bool:
    """Whether a folder is a home, or above one, or is for the temporary files of everybody."""
    shared = stat.S_ISVTX | stat.S_IWOTH
    return folder in (Path.home(), *Path.home().parents, Path("/")) or folder.stat().st_mode & shared == shared


def _outermost(folder: Path) -> Path:
    """The outermost package that a folder is a part of; the folder itself if it is no package."""
    while (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def absolute(path: str | Path) -> Path:
    """The path with links in its folders resolved; a file that is itself a link keeps its name."""
    if os.path.isdir(path):  # noqa: PTH112  (Path.is_dir raises for names that are too long)
        return Path(os.path.realpath(path))
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100  (resolve also follows the last link)
    return Path(os.path.realpath(folder), name)


def _candidates(common: Path) -> Iterator[tuple[Path, Path | None]]:
    """Folders that may be the root, the best first, each with its configuration."""
    top = git_root(common)
    nearest: Path | None = None
    for folder in (common, *common.parents):
        own, shared = folder / OWN_FILE, folder / SHARED_FILE
        if own.is_file():
            yield folder, own
        elif shared.is_file():
            nearest = nearest or folder
            if settings(shared) is not None:
                yield folder, shared
        if folder == top:
            break
    if top is not None and top != Path.home():
        yield top, None
    if nearest is not None:
        yield nearest, None
