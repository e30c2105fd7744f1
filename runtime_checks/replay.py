"""From a sequence of events with the counts at its end, or at its beginning, to numbered rows of a history."""

from __future__ import annotations

import base64
import zlib
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from spmdlint.runtime_checks.prefixes import after, before

MAX_CALLS = 1 << 17


class Replay:
    """Counts and prefixes by group, moved along a sequence of events.

    An event has "group", "digest", "function", "filename", "line" and perhaps "callers" and "aside". A row is what
    ``history.row_data`` gives.
    """

    def __init__(self, members: Mapping[str, Sequence[int]], groups: Mapping[str, tuple[int, int]]) -> None:
        self._members = members
        self._groups = dict(groups)

    def back(self, events: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
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

    def on(self, event: Mapping[str, Any]) -> list[Any]:
        """The row of the next event."""
        key = event["group"]
        count, prefix = self._groups.get(key, (0, 0))
        self._groups[key] = (count + 1, after(prefix, count, int(event["digest"], 16)))
        return self._row(event, self._groups)

    def _row(self, event: Mapping[str, Any], groups: Mapping[str, tuple[int, int]]) -> list[Any]:
        key = event["group"]
        count, prefix = groups[key]
        others = {name: made for name, (made, _) in groups.items() if name != key}
        place = [event.get("function"), event.get("filename"), event.get("line")]
        counted = [key, list(self._members.get(key, ())), count, f"{prefix:016x}", event["digest"]]
        return [*counted, *place, others, event.get("callers") or [], bool(event.get("aside"))]


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
