"""From a line of a lowered module back to the user's source, by the locations that MLIR prints with it."""

from __future__ import annotations

import re

from spmdlint.runtime_checks.frames import owner_of

_REFERENCE = re.compile(r"#loc\d*")
_DEFINITION = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.M)
_FILE = re.compile(r'"([^"]+)":(\d+)(?::\d+)?')
MAX_STEPS = 200


def source_of(located: str, number: int) -> str | None:
    """The user's innermost "file:line" of a line of a module, or None if the module does not have it.

    ``located`` is the module's text with locations; ``number`` counts the lines, from 1, of its text without: the
    same lines, but for the definitions of locations.
    """
    lines = [line for line in located.splitlines() if not line.startswith("#loc")]
    if not 0 < number <= len(lines):
        return None
    definitions = {found[1]: found[2] for found in _DEFINITION.finditer(located)}
    _, there, own = lines[number - 1].rpartition(" loc(")
    waiting = [own] if there else []
    for _ in range(MAX_STEPS):
        if not waiting:
            return None
        words = waiting.pop(0)
        found = _FILE.search(words)
        if found is not None and owner_of(found[1]) == "user":
            return f"{found[1]}:{found[2]}"
        # The callee of a call site is named first: go there before going out to the caller.
        waiting = [definitions[name] for name in _REFERENCE.findall(words) if name in definitions] + waiting
    return None
