"""Lowered modules as text: a canonical form, and where two forms differ."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

# Parts of a module that come from one process's memory: unnamed pmap axes, addresses of Python callbacks.
_ADDRESS = re.compile(r"<axis 0x[0-9a-f]+>|0x7f[0-9a-f]{10}\b")
_CALLBACK_LINE = re.compile(r"^.*custom_call.*callback.*$", re.M)
_CALLBACK_NUMBER = re.compile(r'(backend_config = (?:"|\{[^}]*?index = ))\d+')
_POINTER_CONSTANT = re.compile(r"(stablehlo\.constant dense<)\d{13,}(> : tensor<(?:ui|i)64>)")

_MODULE_NAME = re.compile(r"\Amodule @\S+ ")
_VALUE = re.compile(r"%\w+(?::\d+)?(?:#\d+)?")


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


@dataclass(frozen=True, slots=True)
class LineDifference:
    """The first line at which two modules differ: its number from 1 and both lines; "" if one has ended."""

    number: int
    first: str
    second: str


def first_difference(first: str, second: str) -> LineDifference | None:
    """The first line in which two module texts differ apart from their names, or None if they are equal.

    The names of values are numbers that an operation further down can change: they count only if nothing else differs.
    """
    left, right = (_MODULE_NAME.sub("module ", text).splitlines() for text in (first, second))
    unnamed = [[_VALUE.sub("%", line) for line in lines] for lines in (left, right)]
    for one, other in (unnamed, (left, right)):
        number = next((n for n, pair in enumerate(zip(one, other, strict=False), 1) if pair[0] != pair[1]), None)
        if number is not None:
            return LineDifference(number, left[number - 1].strip(), right[number - 1].strip())
        if len(left) != len(right):
            break
    if len(left) == len(right):
        return None
    number = min(len(left), len(right)) + 1
    return LineDifference(
        number,
        left[number - 1].strip() if number <= len(left) else "",
        right[number - 1].strip() if number <= len(right) else "",
    )
