"""Names in a user's own knowledge that the project itself would have to define, and certainly does not.

Only names in a module of the project are looked at: nothing is known of what other libraries define. A word that is
nowhere in a module is not defined there, except by code that fills a module in other ways, which is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spmdlint.files.read import Source
from spmdlint.selection import nearest

_WORD = re.compile(r"\w+")
_FILLED = re.compile(r"\bimport\s*\*|\b__getattr__\b|\bglobals\b|\bsetattr\b|\bvars\b|\b__dict__\b|\bmodules\b")


def undefined(
    tables: Mapping[str, Any], roots: Sequence[Path], texts: Mapping[Path, Source]
) -> Iterator[tuple[str, Path, str, str | None]]:
    """Each such name, the module that lacks a part of it, that part, and the word there that is probably meant."""
    for name in sorted({*tables.get("functions", {}), *tables.get("methods", {})}):
        parts = name.split(".")
        home, rest = _module(parts, roots, texts)
        if home is None or not rest or _has_other(home.parent, rest[0]):
            continue
        words = set(_WORD.findall(texts[home].text))
        if not any(_may_define(file, rest[0], texts) for file in _named_alike(parts[: -len(rest)], texts)):
            yield name, home, rest[0], nearest(rest[0], sorted(words))


def _module(
    parts: Sequence[str], roots: Sequence[Path], texts: Mapping[Path, Source]
) -> tuple[Path | None, Sequence[str]]:
    """The innermost module of a dotted name that the project has, and the parts of the name after it."""
    for end in range(len(parts), 0, -1):
        for root in roots:
            base = root.joinpath(*parts[:end])
            for file in (base / "__init__.py", base.parent / f"{base.name}.py"):
                if file in texts:
                    return file, parts[end:]
    return None, ()


def _named_alike(parts: Sequence[str], texts: Mapping[Path, Source]) -> Iterator[Path]:
    """The modules that some file may import by a dotted name: in its own folder, there may be another one."""
    for file in texts:
        module = file.parent.parts if file.name == "__init__.py" else file.with_suffix("").parts
        if module[-len(parts) :] == tuple(parts):
            yield file


def _may_define(file: Path, word: str, texts: Mapping[Path, Source]) -> bool:
    text = texts[file].text
    return word in _WORD.findall(text) or _FILLED.search(text) is not None


def _has_other(folder: Path, name: str) -> bool:
    """Whether a folder has anything of this name: a folder, a compiled module, or a file that is left out."""
    return any(each.name.partition(".")[0] == name for each in folder.iterdir())
