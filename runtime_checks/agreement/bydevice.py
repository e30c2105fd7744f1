"""The calls of several threads over one set of processes, as each device sees them.

Threads are numbered as they arrive, so two calls on different devices come in another order on each process, and
neither waits for the other. Calls that share a device have one order there, which must be the same everywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import TypeVar

from spmdlint.runtime_checks.records import ProgramRecord

T = TypeVar("T")
Rows = Mapping[int, Mapping[int, T]]


def by_device(rows: Rows[T], record: Callable[[int, T], ProgramRecord]) -> list[Rows[T]]:
    """The calls of processes on each device, numbered anew; devices that see the same programs count once.

    A call without devices, such as a barrier, is one on all. If all calls share devices, they stay as they are. Nothing
    is returned if the devices of a program, or calls on different devices from the first on, are not known any more:
    then no position can be compared.
    """
    sets: dict[tuple[int, int], frozenset[int] | None] = {}
    for process, calls in rows.items():
        for index, call in calls.items():
            known = record(process, call)
            if "devices" not in known:
                return []
            sets[process, index] = frozenset(known["devices"]) if known["devices"] else None
    distinct = {one for one in sets.values() if one is not None}
    if not any(one.isdisjoint(other) for one, other in itertools.combinations(distinct, 2)):
        return [rows]
    if any(calls and min(calls) > 1 for calls in rows.values()):
        return []
    classes = {frozenset(one for one in distinct if device in one) for one in distinct for device in one}
    return [
        {
            process: dict(enumerate((calls[n] for n in sorted(calls) if _is_in(sets[process, n], seen)), 1))
            for process, calls in rows.items()
        }
        for seen in sorted(classes, key=lambda seen: sorted(map(sorted, seen)))
    ]


def _is_in(devices: frozenset[int] | None, seen: frozenset[frozenset[int]]) -> bool:
    return devices is None or devices in seen
