"""Which files can matter at all, told from their bytes: parsing a file costs a hundred times more than reading it.

Files that name one another are one *component*: code can only reach what it imports, and an import names the module.
A component in which no file names a library that the linter knows holds nothing to find. Screening saves time and
never changes a finding, because nothing is looked up across components anyway.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spmdlint.knowledge.load import Knowledge

_WORD = re.compile(r"[^\W\d]\w*")
# A comment to the linter needs its file: a suppression that suppresses nothing is a finding.
_OWN_WORDS = frozenset(("spmdlint", "SPMD"))


def modules_of(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """The files of each module, by the last part of its name."""
    modules: dict[str, list[Path]] = {}
    for path in paths:
        modules.setdefault(path.parent.name if path.stem == "__init__" else path.stem, []).append(path)
    return modules


def named(text: str, modules: Collection[str]) -> list[str]:
    """Those of the modules that a text names."""
    return sorted(set(_WORD.findall(text)).intersection(modules))


def components(names: Mapping[Path, Iterable[str]]) -> dict[Path, int]:
    """The component of each file, by a number, from the modules that it names.

    Two files are in one if either names the other's module.
    """
    modules = modules_of(names)
    leader = {path: path for path in names}

    def find(path: Path) -> Path:
        while leader[path] != path:
            leader[path] = leader[leader[path]]
            path = leader[path]
        return path

    for path, words in names.items():
        # A package is one: its `__init__` runs before any of its modules.
        beside = path.parent / "__init__.py"
        if beside in leader:
            leader[find(path)] = find(beside)
        for word in words:
            for other in modules.get(word, ()):
                leader[find(path)] = find(other)
    numbers: dict[Path, int] = {}
    return {path: numbers.setdefault(find(path), len(numbers)) for path in sorted(names)}


def relevant(component: Mapping[Path, int], speaking: Iterable[Path]) -> set[Path]:
    """The files whose component holds one that speaks of something that the linter knows."""
    wanted = {component[path] for path in speaking}
    return {path for path, number in component.items() if number in wanted}


def triggers(knowledge: Knowledge) -> str:
    """A pattern for what a file speaks of that can matter."""
    # That reading a file can fail matters only where something else does.
    functions = (name for name, known in knowledge.functions.items() if not known.reads and known.raised is None)
    libraries = {name.split(".")[0] for name in (*functions, *knowledge.aliases)}
    words = (libraries - sys.stdlib_module_names - {"spmdlint"}) | knowledge.ranks | _OWN_WORDS
    return "|".join(map(re.escape, sorted(words)))
