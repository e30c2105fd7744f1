"""The origin of arrays.

A function called with different parameters of the same shape has the same fingerprint everywhere, but gives wrong sums.
So every output of a watched call carries a tag that says which output of which call it is, and the tags of the
arguments have to agree between processes.

A tag on one process and none on another proves nothing, because it happens in correct programs. One process may take a
batch from a cache in its memory that another normalizes on its devices (an elementwise program, which need not run
equally often), or bring back from its host an array that it had moved there for lack of memory. Neither can be
distinguished from a wrong array.
"""

from __future__ import annotations

import base64
import hashlib
import weakref
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from spmdlint.runtime_checks.calls.recent import Recent

if TYPE_CHECKING:
    from spmdlint.runtime_checks.calls.call import Call

WIDTH = 8
REMEMBERED = 8192
UNKNOWN = "-" * WIDTH


class Provenance:
    """Tags of live arrays: kept by identity, dropped with the array, without touching its buffers."""

    def __init__(self) -> None:
        self._tags: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._words: Recent[str, str] = Recent(REMEMBERED)

    def describe(self, known: str) -> str | None:
        """The output that a tag stands for, in words; None for an unknown or forgotten tag."""
        return self._words.get(known)

    def tag_of(self, value: Any) -> str:
        """The tag of an array, or :data:`UNKNOWN` if it did not come from a watched call."""
        value = getattr(value, "_base_array", value)
        held = self._tags.get(id(value))
        return held[1] if held is not None and held[0]() is value else UNKNOWN

    def tags_of(self, values: Iterable[Any]) -> str:
        """The tags of many arguments as one string, :data:`WIDTH` characters each; "" if none has one."""
        if not self._tags:
            return ""
        joined = "".join(map(self.tag_of, values))
        return joined if joined.strip("-") else ""

    def hand_on(self, values: Sequence[Any], outputs: Sequence[Any]) -> frozenset[int]:
        """Give outputs of a call without collectives the tag of the array they stand for; returns their numbers.

        One process may copy an array, or remove its NaNs, where another passes it unchanged: such calls do not count.
        So an output gets the tag of the one tagged argument of its shape and dtype, or in a tree that passes through as
        a whole, of the argument at its position. Two outputs for one argument stand for themselves.
        """
        found: dict[int, str] = {}
        for number, output in enumerate(outputs):
            alike = {known for value in values if _alike(value, output) and (known := self.tag_of(value)) != UNKNOWN}
            if len(alike) > 1 and len(values) == len(outputs) and _alike(values[number], output):
                alike = {self.tag_of(values[number])} - {UNKNOWN}
            if len(alike) == 1:
                found[number] = alike.pop()
        claims = Counter(found.values())
        return frozenset(n for n, known in found.items() if claims[known] == 1 and self.keep(outputs[n], known))

    def mark(self, values: Sequence[Any], origin: str, words: str, tagged: Container[int] = ()) -> None:
        """Tag the outputs of one call; ``origin`` names the call and has to be equal on all processes.

        ``words`` describe the call to a person; outputs whose number is in ``tagged`` already have a tag.
        """
        for number, value in enumerate(values):
            name = tag(f"{origin}:{number}")
            if number not in tagged and self.keep(value, name):
                self._words[name] = f"output {number} of {words}"

    def keep(self, value: Any, name: str) -> bool:
        """Tag one array; returns False for a value that cannot be distinguished from others."""
        value = getattr(value, "_base_array", value)
        key = id(value)
        try:
            reference = weakref.ref(value, lambda dead: self._drop(key, dead))
        except TypeError:
            return False
        self._tags[key] = (reference, name)
        return True

    def _drop(self, key: int, dead: weakref.ref[Any]) -> None:
        held = self._tags.get(key)
        if held is not None and held[0] is dead:
            del self._tags[key]

    def __len__(self) -> int:
        return len(self._tags)


def _alike(one: Any, other: Any) -> bool:
    """Whether two arrays have the same shape and dtype."""
    first, second = ((getattr(value, "shape", None), getattr(value, "dtype", None)) for value in (one, other))
    return first == second and first[0] is not None


def tag(origin: str) -> str:
    """A tag of :data:`WIDTH` characters for one output."""
    return base64.urlsafe_b64encode(hashlib.blake2b(origin.encode(), digest_size=6).digest()).decode()


def conflicts(first: str, second: str) -> list[int]:
    """The positions, counted from the last argument (0 is the last), at which two processes know different origins.

    They are counted from the end because one process may pass constants before the arguments where another does not.
    An unknown origin agrees with anything.
    """
    starts = range(WIDTH, min(len(first), len(second)) + 1, WIDTH)
    pairs = [(first[len(first) - n :][:WIDTH], second[len(second) - n :][:WIDTH]) for n in starts]
    return [back for back, (one, other) in enumerate(pairs) if one != other and UNKNOWN not in (one, other)]


class Unplaced:
    """Functions that were called with one, then with another array of the same tag at the same position.

    The processes may have passed them in different orders: nothing tells. Most such arrays are of unknown origin, and
    others are what calls without a collective made of these. Only arrays that the program holds at the same time count:
    of batches, each takes the place of the one before.
    """

    MOST = 64  # names, and programs that are looked at
    TAGS = 8  # of arrays that were passed at one position

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._seen: dict[str, dict[int, weakref.WeakValueDictionary[str, Any]]] = {}

    def look(self, call: Call) -> None:
        program = call.program
        if call.words:
            return  # the values themselves are compared
        if program.function in self.names or len(self.names) == self.MOST:
            return
        if program.digest not in self._seen and len(self._seen) == self.MOST:
            return
        seen = self._seen.setdefault(program.digest, {})
        for number, value in enumerate(call.values):
            if not getattr(value, "ndim", 0):
                continue
            known = call.tags[number * WIDTH : (number + 1) * WIDTH] or UNKNOWN
            alike = seen.setdefault(number, weakref.WeakValueDictionary())
            held = alike.get(known)
            if held is None and len(alike) < self.TAGS:
                with suppress(TypeError):  # a value that cannot be referenced weakly
                    alike[known] = value
            elif held is not None and held is not value:
                self.names.add(program.function)
                return
