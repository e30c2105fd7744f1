"""Which files can matter at all, judging by their text: parsing a file costs a hundred times more than reading it.

Files that name one another form a *component*: code can only reach what it imports, and an import names the module. A
component in which no file names a library that the linter knows has nothing to find. Screening saves time and never
changes a finding, because nothing is looked up across components anyway.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spmdlint.files.read import is_notebook

if TYPE_CHECKING:
    from spmdlint.knowledge.load import Knowledge

_WORD = re.compile(r"[^\W\d]\w*")
_ALL = re.compile(r"\bimport\s*\\?\s*\*")
# A file with a comment to the linter is needed: a suppression without effect is a finding.
_OWN_WORDS = frozenset(("spmdlint", "SPMD"))


def modules_of(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """The files of each module, by the last part of its name."""
    modules: dict[str, list[Path]] = {}
    for path in paths:
        modules.setdefault(module_name(path), []).append(path)
    return modules


def module_name(path: Path) -> str:
    """The last part of the name of the module in a file; that of a notebook is none that code can name."""
    if is_notebook(path):
        return path.name
    return path.parent.name if path.stem == "__init__" else path.stem


def named(text: str, modules: Collection[str]) -> list[str]:
    """The modules among the given ones that a text names."""
    return sorted(set(_WORD.findall(text)).intersection(modules))


def holds(text: str, word: str, start: int = 0, end: int | None = None) -> bool:
    """Whether a text, or a part of it, contains a word."""
    at = text.find(word, start, end)
    while at >= 0:
        if not _goes_on(text[at - 1 : at]) and not _goes_on(text[at + len(word) : at + len(word) + 1]):
            return True
        at = text.find(word, at + 1, end)
    return False


def imports_all(text: str) -> bool:
    """Whether a file imports all names of a different one."""
    return "*" in text and _ALL.search(text) is not None


def renames(text: str, module: str) -> bool:
    """Whether a file may bind a module to a different name: ``import a as b``."""
    return re.search(rf"\b{re.escape(module)}\s*\\?\s+as\b", text) is not None


def builds(text: str, name: str) -> bool:
    """Whether a file may read an attribute by a name that it assembles: all parts of the name are words there."""
    return (
        ("getattr" in text or "attrgetter" in text)
        and "_" in name
        and all(part in text for part in name.split("_") if part)
    )


def _goes_on(character: str) -> bool:
    return character == "_" or character.isalnum()


def components(names: Mapping[Path, Iterable[str]]) -> dict[Path, int]:
    """The component of each file, as a number, from the modules that it names.

    Two files are in one component if either names the other's module.
    """
    number = {path: place for place, path in enumerate(names)}
    numbers: dict[str, int] = {}
    # Numbers represent files and, after them, modules: a file is joined to a module that it names once, and not to each
    # of the many files that share an ordinary name like `utils`.
    leader = list(range(len(number)))

    def find(place: int) -> int:
        while leader[place] != place:
            leader[place] = place = leader[leader[place]]
        return place

    beside: dict[Path, int | None] = {}
    for path, place in number.items():
        # A package is one component: its `__init__` runs before any of its modules.
        folder = path.parent
        if folder not in beside:
            beside[folder] = number.get(folder / "__init__.py")
        package = beside[folder]
        if package is not None:
            leader[find(place)] = find(package)
    members: dict[str, list[int]] = {}
    for path, place in number.items():
        members.setdefault(module_name(path), []).append(place)
    for place, words in enumerate(names.values()):
        own = find(place)
        for word in words:
            named_as = numbers.get(word)
            if named_as is None:
                if word not in members:
                    continue
                named_as = numbers[word] = len(leader)
                leader.append(named_as)
                for member in members[word]:
                    leader[find(member)] = named_as
                own = find(own)
            root = find(named_as)
            if root != own:
                leader[root] = own
    order: dict[int, int] = {}
    return {path: order.setdefault(find(place), len(order)) for path, place in number.items()}


def relevant(component: Mapping[Path, int], speaking: Iterable[Path]) -> set[Path]:
    """The files in components with a file that names something the linter knows."""
    wanted = {component[path] for path in speaking}
    return {path for path, number in component.items() if number in wanted}


def triggers(knowledge: Knowledge) -> str:
    """A pattern for the words in a file that can matter."""
    # That reading a file can fail matters only together with something else.
    functions = (name for name, known in knowledge.functions.items() if not known.reads and known.raised is None)
    libraries = {name.split(".")[0] for name in (*functions, *knowledge.aliases)}
    words = (libraries - sys.stdlib_module_names - {"spmdlint"}) | knowledge.variables.keys() | _OWN_WORDS
    return "|".join(map(re.escape, sorted(words)))
