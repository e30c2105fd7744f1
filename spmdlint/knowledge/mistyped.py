"""Aliases of a user's own knowledge that lead to a name which nobody knows, but which is one letter from a known one.

No table has all names of a library, so that is a guess, and such an alias is not refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from spmdlint.knowledge.changes import additions, removals
from spmdlint.knowledge.files import file_names, read_file
from spmdlint.knowledge.load import built_in
from spmdlint.selection import nearest

_DOTTED = re.compile(r"\w+(\.\w+)+")


def mistyped(tables: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each such alias, the name that it leads to, and the one that is probably meant."""
    aliases = tables.get("aliases", {})
    base = built_in()
    unknown = {name: home for name, home in aliases.items() if base.canonical(home) not in base.functions}
    if not unknown:
        return
    known = {*additions().names, *removals().names, *base.functions, *base.aliases, *tables.get("functions", {})}
    for file in file_names():
        known.update(_names(read_file(file)))
    known |= {name[: dot.start()] for name in known for dot in re.finditer(r"\.", name)}
    for name, home in unknown.items():
        above = home.rpartition(".")[0]
        if home not in known and above in known and not base.gives_array(home):
            beside = [each for each in known if each.rpartition(".")[0] == above and _one_letter(each, home)]
            near = nearest(home, sorted(beside))
            if near is not None:
                yield name, home, near


def _names(table: object) -> Iterator[str]:
    """All dotted names in a table, at whatever depth."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from (str(key), *_names(value))
    elif isinstance(table, (list, tuple)):
        for each in table:
            yield from _names(each)
    elif isinstance(table, str) and _DOTTED.fullmatch(table):
        yield table


def _one_letter(one: str, other: str) -> bool:
    """Whether two names differ by one letter: another one, one more or less, or two that are exchanged."""
    short, long = sorted((one, other), key=len)
    start = next((at for at, (mine, theirs) in enumerate(zip(short, long, strict=False)) if mine != theirs), len(short))
    if len(long) == len(short) + 1:
        return short[start:] == long[start + 1 :]
    exchanged = short[start : start + 2][::-1] == long[start : start + 2]
    return len(long) == len(short) and short[start + 1 + exchanged :] == long[start + 1 + exchanged :]
