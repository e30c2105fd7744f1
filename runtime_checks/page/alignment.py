"""The recorded calls of all processes as one table: a row for each call by its number, a lane for each process.

Each set of processes numbers its calls, so a call of a set is one row for all of its members. The rows are in an order
that agrees with the order of every process; where there is none, because processes wait for each other, a row comes as
early as it can.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spmdlint.runtime_checks.recording.reading import Row

Key = tuple[str, int]
"""A call: the name of a set of processes, and the number of the call there, from 1."""

Call = tuple[str, str | None, str | None, int | None]
"""What is called from where: the digest of the program, the function, the file and the line."""


@dataclass(slots=True)
class Lane:
    """The calls of one process; ``spans`` are the first and the last recorded number in each of its sets."""

    calls: dict[Key, Call] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Aligned:
    """The table: ``members`` of each set, the rows in order, and a lane for each process, by its number."""

    members: dict[str, tuple[int, ...]]
    rows: list[Key]
    lanes: dict[int, Lane]

    def usual(self, row: Key) -> Call:
        """What most processes call there; of several, what the lowest process calls."""
        made = [lane.calls[row] for lane in self.lanes.values() if row in lane.calls]
        return Counter(made).most_common(1)[0][0]


def align(recorded: Mapping[int, Sequence[Row]]) -> Aligned:
    """The table of the recorded rows of each process."""
    members: dict[str, tuple[int, ...]] = {}
    lanes: dict[int, Lane] = {}
    when: dict[Key, int] = {}
    same: dict[Any, Any] = {}  # a table has millions of cells and few calls: each is kept once
    for process, rows in sorted(recorded.items()):
        lane = lanes[process] = Lane()
        for row in rows:
            key = (row.group, row.index)
            key = same.setdefault(key, key)
            members[key[0]] = row.members
            call = (row.digest, row.function, row.filename, row.line)
            lane.calls[key] = same.setdefault(call, call)
            first, _ = lane.spans.get(key[0], (key[1], key[1]))
            lane.spans[key[0]] = (first, key[1])
            when.setdefault(key, key[1] + sum(row.others.values()))  # the number among all calls of the process
    # Most processes make the same calls, so that few orders have to be merged.
    orders = {tuple(lane.calls) for lane in lanes.values()}
    return Aligned(members, list(_merged(orders, when)), lanes)


def _merged(orders: Collection[Sequence[Key]], when: Mapping[Key, int]) -> Iterator[Key]:
    """All keys, each after those before it in every order, the smallest ``when`` first.

    ``graphlib`` has neither: an order among what is ready, and a way on from a cycle.
    """
    after: dict[Key, set[Key]] = {key: set() for key in when}
    waits = dict.fromkeys(when, 0)
    for order in orders:
        for one, other in itertools.pairwise(order):
            if other not in after[one]:
                after[one].add(other)
                waits[other] += 1
    ready = [(when[key], key) for key, many in waits.items() if not many]
    heapq.heapify(ready)
    left = dict.fromkeys(sorted(when, key=lambda key: (when[key], key)))
    while left:
        if ready:
            key = heapq.heappop(ready)[1]
        else:
            key = next(iter(left))  # a cycle: its earliest call goes first
        if key not in left:
            continue
        del left[key]
        yield key
        for other in after[key]:
            waits[other] -= 1
            if not waits[other] and other in left:
                heapq.heappush(ready, (when[other], other))
