"""Which files can matter at all, told from their bytes: parsing a file costs a hundred times more than reading it.

Files that name one another are one *component*: code can only reach what it imports, and an import names the module.
A component in which no file names a library that the linter knows holds nothing to find. Screening saves time and
never changes a finding, because nothing is looked up across components anyway.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from spmdlint.knowledge.load import Knowledge

_WORD = re.compile(r"[^\W\d]\w*")
# A comment to the linter needs its file: a suppression that suppresses nothing is a finding.
_OWN_WORDS = frozenset(("spmdlint", "SPMD"))


def components(texts: Mapping[Path, str]) -> dict[Path, int]:
    """The component of each file, by a number. Two files are in one if either names the other's module."""
    modules: dict[str, list[Path]] = {}
    for path in texts:
        modules.setdefault(path.parent.name if path.stem == "__init__" else path.stem, []).append(path)
    leader = {path: path for path in texts}

    def find(path: Path) -> Path:
        while leader[path] != path:
            leader[path] = leader[leader[path]]
            path = leader[path]
        return path

    for path, text in texts.items():
        # A package is one: its `__init__` runs before any of its modules.
        beside = path.parent / "__init__.py"
        if beside in leader:
            leader[find(path)] = find(beside)
        for word in set(_WORD.findall(text)) & modules.keys():
            for other in modules[word]:
                leader[find(path)] = find(other)
    numbers: dict[Path, int] = {}
    return {path: numbers.setdefault(find(path), len(numbers)) for path in sorted(texts)}


def relevant(texts: Mapping[Path, str], component: Mapping[Path, int], knowledge: Knowledge) -> set[Path]:
    """The files whose component names something that the linter knows."""
    triggers = re.compile("|".join(map(re.escape, sorted(_triggers(knowledge)))))
    wanted = {component[path] for path, text in texts.items() if triggers.search(text)}
    return {path for path in texts if component[path] in wanted}


def _triggers(knowledge: Knowledge) -> Iterable[str]:
    # That reading a file can fail matters only where something else does.
    functions = (name for name, known in knowledge.functions.items() if not known.reads and known.raised is None)
    libraries = {name.split(".")[0] for name in (*functions, *knowledge.aliases)}
    return (libraries - sys.stdlib_module_names - {"spmdlint"}) | knowledge.ranks | _OWN_WORDS
