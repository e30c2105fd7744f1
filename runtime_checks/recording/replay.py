"""From a sequence of events with the counts at its end, or at its beginning, to numbered rows of a history."""

from __future__ import annotations

import base64
import zlib
from array import array
from collections.abc import Mapping, Sequence

import msgspec

from spmdlint.runtime_checks.calls.prefixes import after, before
from spmdlint.runtime_checks.records import EventRecord, Place

MAX_CALLS = 1 << 17


class Row(msgspec.Struct, frozen=True):
    """One call of a group: ``prefix`` is a digest of all its calls so far, ``others`` the counts of other groups.

    ``aside`` is whether another thread than the main one made it, and ``given`` a digest of what it is given.
    """

    group: str
    members: tuple[int, ...]
    index: int
    prefix: str
    digest: str
    function: str | None
    filename: str | None
    line: int | None
    others: Mapping[str, int]
    callers: tuple[str, ...] = ()
    aside: bool = False
    given: int = 0

    def place(self) -> Place:
        """The call and its lines, as reports name them."""
        place: Place = {"function": self.function, "filename": self.filename, "line": self.line}
        return {"index": self.index, **place, "callers": list(self.callers)}


class Replay:
    """Counts and prefixes by group, moved along a sequence of events.

    ``groups`` has the count and the prefix of each group.
    """

    def __init__(self, members: Mapping[str, Sequence[int]], groups: Mapping[str, tuple[int, int]]) -> None:
        self._members = {group: tuple(inside) for group, inside in members.items()}
        self._groups = dict(groups)

    def back(self, events: Sequence[EventRecord]) -> list[Row]:
        """Rows of the events that lead up to the current position, which does not change."""
        groups, rows = dict(self._groups), []
        for event in reversed(events):
            key = event["group"]
            count, prefix = groups.get(key, (0, 0))
            if count < 1:
                break
            rows.append(self._row(event, groups))
            groups[key] = (count - 1, before(prefix, count, int(event["digest"], 16)))
        return rows[::-1]

    def on(self, event: EventRecord) -> Row:
        """The row of the next event."""
        key = event["group"]
        count, prefix = self._groups.get(key, (0, 0))
        self._groups[key] = (count + 1, after(prefix, count, int(event["digest"], 16)))
        return self._row(event, self._groups)

    def _row(self, event: EventRecord, groups: Mapping[str, tuple[int, int]]) -> Row:
        key = event["group"]
        count, prefix = groups[key]
        others = {name: made for name, (made, _) in groups.items() if name != key}
        return Row(
            group=key,
            members=self._members.get(key, ()),
            index=count,
            prefix=f"{prefix:016x}",
            digest=event["digest"],
            function=event.get("function"),
            filename=event.get("filename"),
            line=event.get("line"),
            others=others,
            callers=tuple(event.get("callers") or ()),
            aside=event.get("aside", False),
        )


def pack(numbers: Sequence[int]) -> str:
    """Places in a table as short text: loops pack well."""
    return base64.b64encode(zlib.compress(array("H", numbers).tobytes(), 6)).decode()


def unpack(text: str) -> list[int]:
    """The places that :func:`pack` packed; [] for any other text."""
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(text), MAX_CALLS * 2)
        return array("H", data[: len(data) // 2 * 2]).tolist()
    except (ValueError, zlib.error):
        return []
