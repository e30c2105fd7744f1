"""Imports of what lies outside of a project whose root was guessed: a sign that the guess was too narrow."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path


def import_outside(root: Path, files: Iterable[tuple[Path, str]], project: Collection[Path]) -> str | None:
    """A sentence about the first import, in these files with their texts, of a file that the project does not have.

    It is one by which the project would be larger: of a name that begins with that of the root, of a folder above or of
    a folder in the root, or by dots that lead out of the root.
    """
    tops = {folder.name: folder for folder in (root, *root.parents) if folder.name}
    inside = {name for name in _folders(root) if name not in tops}
    some = "|".join(re.escape(name) for name in (*tops, *inside))
    importing = re.compile(rf"^[ \t]*(?:from[ \t]+\.\.|(?:from|import)\b.*\b(?:{some})\b)", re.MULTILINE)
    for path, text in files:
        if root not in path.parents or not importing.search(text):
            continue
        for level, name in _imports(text):
            first = name.partition(".")[0]
            if level:
                top = base = path.parents[min(level, len(path.parents)) - 1]
            elif first in tops:
                top, base = tops[first], tops[first].parent
            else:
                top = base = root
            above = base == root or base in root.parents
            places = _files(base, name)
            if above and not any(file in project for file in places) and any(file.is_file() for file in places):
                module = f"{'.' * level}{name}"
                return (
                    f"{path} imports {module}, which is outside of the project: nothing says where that begins, so it "
                    f"is taken to be {root}. Findings may be missing; an empty spmdlint.toml in {top} makes that the "
                    "project."
                )
    return None


def _folders(root: Path) -> list[str]:
    try:
        return [path.name for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []


def _imports(text: str) -> Iterator[tuple[int, str]]:
    """The imports anywhere in a text: the level, and a module that may be meant, the longest name first."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = f"{node.module}." if node.module else ""
            yield from ((node.level, f"{above}{each.name}") for each in node.names)
            yield from [(node.level, node.module)] if node.module else []


def _files(base: Path, name: str) -> tuple[Path, Path]:
    """The files that a module may be in."""
    place = base.joinpath(*name.split("."))
    return place / "__init__.py", place.with_name(f"{place.name}.py")
