"""Which files are left out: the patterns of ``.gitignore`` files and of the configuration."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from spmdlint.errors import UsageError

Spec: TypeAlias = Callable[[str], "bool | None"]
"""The verdict of some patterns on a path, which ends with a slash if it is a folder."""

_NAME = re.compile(r"[\w.-]+/?")
_CLASS = re.compile(r"\[:(\w+):\]")
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \t", "digit": "0-9", "lower": "a-z", "punct": "!-/:-@[-`{-~",
    "space": " \t\r\v\f", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
"""The characters of the classes that git knows in brackets, as in ``[[:digit:]]``, and the library does not."""


class Patterns(Struct, frozen=True):
    """Patterns that apply to everything below ``folder``."""

    folder: Path
    spec: Spec

    def verdict(self, path: Path, is_folder: bool) -> bool | None:
        """Whether ``path`` is left out (True), explicitly included (False), or not matched (None)."""
        return self.verdict_of(str(path), is_folder)

    def verdict_of(self, name: str, is_folder: bool) -> bool | None:
        """The same for a path as a string: a walk checks thousands."""
        above = os.path.join(self.folder, "")  # noqa: PTH118  (with a separator behind it)
        if not name.startswith(above):
            return None
        relative = name[len(above) :].replace(os.sep, "/")
        return self.spec(f"{relative}/" if is_folder else relative)


class Ignores:
    """The patterns that apply in one folder: its own ``.gitignore``, those of the folders above, the configured ones.

    As in git, the nearest file decides, and everything in an ignored folder stays ignored. Configured patterns and
    ``.gitignore`` are two separate lists: a path that either of them matches is left out.
    """

    def __init__(self, configured: Patterns, git: Sequence[Patterns] = ()) -> None:
        self._configured = configured
        self._git = tuple(git)

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Whether an entry of this folder is left out."""
        if self._configured.verdict_of(path, is_folder):
            return True
        for patterns in reversed(self._git):
            verdict = patterns.verdict_of(path, is_folder)
            if verdict is not None:
                return verdict
        return False

    def below(self, folder: Path) -> Ignores:
        """The patterns that apply in ``folder``, a direct child of this one."""
        own = read_patterns(folder, folder / ".gitignore")
        return self if own is None else Ignores(self._configured, (*self._git, own))


def configured_patterns(root: Path, patterns: Iterable[str], where: str) -> Patterns:
    """The patterns of the configuration.

    Raises:
        UsageError: one of them is not a valid pattern; ``where`` names the setting to fix.

    """
    lines = tuple(patterns)
    try:
        return Patterns(root, _spec(lines))
    except ValueError as error:
        raise UsageError(f"{where} contains an invalid .gitignore pattern: {error}.") from None


def read_patterns(folder: Path, file: Path) -> Patterns | None:
    """The patterns in ``file`` for everything below ``folder``; None if there are none.

    A malformed pattern matches nothing, as in git.
    """
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    try:
        return Patterns(folder, _spec(text.splitlines()))
    except ValueError:
        return Patterns(folder, _spec([line for line in text.splitlines() if _is_pattern(line)]))


def git_root(folder: Path) -> Path | None:
    """The root of the git work tree that contains ``folder``."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def at(folder: Path, configured: Patterns) -> Ignores:
    """The patterns that apply in ``folder``, from the root of its git work tree or its project down."""
    top = _top(folder, configured)
    exclude = read_patterns(top, top / ".git" / "info" / "exclude")
    ignores = Ignores(configured, () if exclude is None else (exclude,))
    for parent in reversed((folder, *folder.parents)):
        if parent == top or top in parent.parents:
            ignores = ignores.below(parent)
    return ignores


def ignored(path: Path, configured: Patterns, *, is_folder: bool = False) -> bool:
    """Whether ``path``, or a folder on the way to it, is left out."""
    top = _top(path.parent, configured)
    ways = [path, *(parent for parent in path.parents if top in parent.parents)]
    return any(at(way.parent, configured).ignores(str(way), is_folder or way != path) for way in reversed(ways))


def _top(folder: Path, configured: Patterns) -> Path:
    """The highest folder whose patterns apply to ``folder``."""
    tops = [top for top in (git_root(folder), configured.folder) if top == folder or top in folder.parents]
    return min((top for top in tops if top is not None), key=lambda top: len(top.parts), default=folder)


def _spec(lines: Sequence[str]) -> Spec:
    """The verdict function of patterns.

    Raises:
        ValueError: one of them is not a valid pattern.

    """
    names = [line for line in lines if line and not line.startswith("#")]
    if all(_NAME.fullmatch(name) for name in names):
        return _spec_of_names(names)
    from pathspec import GitIgnoreSpec  # a hundredth of a second, and most projects only use plain names

    lines = [_CLASS.sub(lambda found: _CLASSES.get(found[1], found[0]), line) for line in lines]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of Python, about a bracket within brackets
        try:
            spec = GitIgnoreSpec.from_lines(lines)
        except re.error as error:
            raise ValueError(error.msg) from None  # whose pattern is that of a regular expression
    return lambda path: spec.check_file(path).include


def _spec_of_names(names: Iterable[str]) -> Spec:
    folders = frozenset(name.rstrip("/") for name in names)
    anything = folders.intersection(names)

    def verdict(path: str) -> bool | None:
        *above, last = path.split("/")
        return True if last in anything or not folders.isdisjoint(above) else None

    return verdict


def _is_pattern(line: str) -> bool:
    try:
        _spec([line])
    except ValueError:
        return False
    return True
