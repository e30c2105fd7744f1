"""From a line of a lowered module back to the user's source, by the locations that MLIR prints with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from spmdlint.runtime_checks.frames import owner_of

_REFERENCE = re.compile(r"#loc\d*")
_DEFINITION = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.M)
_FILE = re.compile(r'"([^"]+)":(\d+)(?::\d+)?')
_CONSTANT = re.compile(r"^\s*(%\w+) = stablehlo\.constant\b")
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
    own = next((told for line in _places(lines, number - 1) if (told := _location(line)) is not None), None)
    waiting = [own] if own is not None else []
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


def _places(lines: Sequence[str], at: int) -> Iterator[str]:
    """The lines that may say where a line comes from, the best first.

    JAX moves constants away from where they are used, and the location of an operation with a region follows that.
    """
    line = lines[at]
    constant = _CONSTANT.match(line)
    if constant is not None:
        used = re.compile(re.escape(constant[1]) + r"(?!\w)")
        yield from (later for later in lines[at + 1 :] if used.search(later))
    yield line
    if line.endswith("({"):
        indent = line[: len(line) - len(line.lstrip())]
        yield from (later for later in lines[at + 1 :] if later.startswith(f"{indent}}})"))


def _location(line: str) -> str | None:
    _, there, own = line.rpartition(" loc(")
    return own if there else None
