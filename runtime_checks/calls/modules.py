"""Modules as text: a canonical form, where two lowered ones differ, and from which line of the source that comes.

After a difference is proven, processes exchange such texts, packed. Of programs that were loaded, no lowered module is
known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from spmdlint.runtime_checks.owners import owner_of
from spmdlint.runtime_checks.records import ModuleDifference, ModuleSide
from spmdlint.runtime_checks.transport.packing import pack, unpack

# Parts of a module that come from one process's memory: unnamed pmap axes, addresses of Python callbacks.
_ADDRESS = re.compile(r"<axis 0x[0-9a-f]+>|0x7f[0-9a-f]{10}\b")
_CALLBACK_LINE = re.compile(r"^.*custom_call.*callback.*$", re.M)
_CALLBACK_NUMBER = re.compile(r'(backend_config = (?:"|\{[^}]*?index = ))\d+')
_POINTER_CONSTANT = re.compile(r"(stablehlo\.constant dense<)\d{13,}(> : tensor<(?:ui|i)64>)")

_MODULE_NAME = re.compile(r"\Amodule @\S+ ")
_VALUE = re.compile(r"%\w+(?::\d+)?(?:#\d+)?")

# The locations that MLIR prints with a module.
_REFERENCE = re.compile(r"#loc\d*")
_DEFINITION = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.M)
_FILE = re.compile(r'"([^"]+)":(\d+)(?::\d+)?')
_CONSTANT = re.compile(r"^\s*(%\w+) = stablehlo\.constant\b")
MAX_STEPS = 200  # from a line to its source
MAX_MODULE = 4 << 20


def canonical(text: str) -> str:
    """The lowered module without the parts that differ between two processes that lowered the same program.

    Addresses become numbers in order of appearance. The text must come without locations.
    """
    names: dict[str, str] = {}
    text = _ADDRESS.sub(lambda found: names.setdefault(found[0], f"<address {len(names)}>"), text)
    if "callback" in text:
        text = _CALLBACK_LINE.sub(lambda line: _CALLBACK_NUMBER.sub(r"\g<1>0", line[0]), text)
        text = _POINTER_CONSTANT.sub(r"\g<1>0\g<2>", text)
    return text


def digest(text: str) -> str:
    """A short name for a text that is the same on every process."""
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def first_difference(first: str, second: str) -> tuple[int, str, str] | None:
    """The first line in which two module texts differ apart from their names, or None if they are equal.

    It is told as its number from 1 and both lines, "" if one text has ended. The names of values are numbers that an
    operation further down can change: they count only if nothing else differs.
    """
    left, right = (_MODULE_NAME.sub("module ", text).splitlines() for text in (first, second))
    unnamed = [[_VALUE.sub("%", line) for line in lines] for lines in (left, right)]
    for one, other in (unnamed, (left, right)):
        pairs = enumerate(zip_longest(one, other))
        number = next((n for n, pair in pairs if pair[0] != pair[1]), None)
        if number is not None:
            here, there = ("".join(lines[number : number + 1]).strip() for lines in (left, right))
            return number + 1, here, there
    return None


def source_of(located: str, number: int) -> str | None:
    """The user's innermost "file:line" of a line of a module, or None if the module does not have it.

    ``located`` is the module's text with locations; ``number`` counts the lines, from 1, of its text without: the
    same lines, but for the definitions of locations.
    """
    lines = [line for line in located.splitlines() if not line.startswith("#loc")]
    if not 0 < number <= len(lines):
        return None
    definitions = {found[1]: found[2] for found in _DEFINITION.finditer(located)}
    located_lines = (line.rpartition(" loc(") for line in _places(lines, number - 1))
    waiting = [own for _, there, own in located_lines if there][:1]
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


def pack_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts of a module by name, short enough for the store; longer ones are left out."""
    packed = {name: pack(text.encode()) for name, text in texts.items()}
    return {name: text for name, text in packed.items() if len(text) < MAX_MODULE}


def module_difference(packed: Mapping[int, Mapping[str, str]]) -> ModuleDifference | None:
    """The first line at which the lowered modules of two processes differ, and its source line."""
    texts = {number: _unpacked(side.get("canonical")) for number, side in sorted(packed.items())}
    numbers = [number for number, text in texts.items() if text]
    for other in numbers[1:]:
        found = first_difference(texts[numbers[0]], texts[other])
        if found is not None:
            sides: list[ModuleSide] = [
                {
                    "processes": [number for number in numbers if texts[number] == texts[one]],
                    "text": words,
                    "source": source_of(_unpacked(packed[one].get("located")), found[0]),
                }
                for one, words in ((numbers[0], found[1]), (other, found[2]))
            ]
            return {"line": found[0], "sides": sides}
    return None


def _unpacked(packed: str | None) -> str:
    return unpack(packed or "", MAX_MODULE * 8).decode(errors="replace")
