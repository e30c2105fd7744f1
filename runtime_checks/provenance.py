"""Where arrays came from.

One function called on other parameters of the same shape has the same fingerprint everywhere; the sums are wrong all
the same. So every output of a watched call carries a tag that says which output of which call it is, and the tags of
the arguments have to agree between processes.
"""

from __future__ import annotations

import base64
import hashlib
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

WIDTH = 8
REMEMBERED = 8192
UNKNOWN = "-" * WIDTH


class Provenance:
    """Tags of arrays that are alive: kept by identity, dropped with the array, never touching its buffers."""

    def __init__(self) -> None:
        self._tags: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._words: OrderedDict[str, str] = OrderedDict()

    def describe(self, known: str) -> str | None:
        """In words, the output that a tag stands for; None for an unknown or forgotten one."""
        return self._words.get(known)

    def tag_of(self, value: Any) -> str:
        """The tag of an array, or :data:`UNKNOWN` where it did not come from a watched call."""
        value = getattr(value, "_base_array", value)
        held = self._tags.get(id(value))
        return held[1] if held is not None and held[0]() is value else UNKNOWN

    def tags_of(self, values: Iterable[Any]) -> str:
        """The tags of many arguments as one string, :data:`WIDTH` characters each; "" where none has one."""
        joined = "".join(map(self.tag_of, values))
        return joined if joined.strip("-") else ""

    def mark(self, values: Sequence[Any], origin: str, words: str) -> None:
        """Tag the outputs of one call; ``origin`` names the call and has to be equal on all processes.

        ``words`` tell a person which call it was.
        """
        for number, value in enumerate(values):
            value = getattr(value, "_base_array", value)
            key = id(value)
            try:
                reference = weakref.ref(value, lambda dead, key=key: self._drop(key, dead))  # type: ignore[misc]
            except TypeError:
                continue
            name = tag(f"{origin}:{number}")
            self._tags[key] = (reference, name)
            self._words[name] = f"output {number} of {words}"
        while len(self._words) > REMEMBERED:
            self._words.popitem(last=False)

    def _drop(self, key: int, dead: weakref.ref[Any]) -> None:
        held = self._tags.get(key)
        if held is not None and held[0] is dead:
            del self._tags[key]

    def __len__(self) -> int:
        return len(self._tags)


def tag(origin: str) -> str:
    """A tag of :data:`WIDTH` characters for one output."""
    return base64.urlsafe_b64encode(hashlib.blake2b(origin.encode(), digest_size=6).digest()).decode()


def conflicts(first: str, second: str) -> list[int]:
    """The positions, counted from the last argument (0 is the last), at which two processes know different origins.

    Counted from the end because one process may hand constants in front of the arguments where another does not. An
    unknown origin agrees with anything.
    """
    positions = []
    for back in range(min(len(first), len(second)) // WIDTH):
        one = first[len(first) - (back + 1) * WIDTH : len(first) - back * WIDTH]
        other = second[len(second) - (back + 1) * WIDTH : len(second) - back * WIDTH]
        if one != other and UNKNOWN not in (one, other):
            positions.append(back)
    return positions
