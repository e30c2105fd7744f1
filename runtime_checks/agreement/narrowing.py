"""Finds the first value at which an asserted array differs, once the digests of the arrays are known to differ.

Two processes publish digests of at most 256 parts of their arrays, take the first part that differs, and go on within
it, until a part is one value; then each publishes that value. So at most 4 kB are exchanged for each factor of 256 in
the size of the array, whatever the array holds, and only by two processes. It is given up after some seconds: the
difference is proven without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from spmdlint.runtime_checks.agreement.verdicts import Verdicts
from spmdlint.runtime_checks.calls.named import SHOWN, digest_of, on_host
from spmdlint.runtime_checks.records import FirstValue, Pair, Parts
from spmdlint.runtime_checks.transport.job import Job

T = TypeVar("T")
PARTS = 256
DIGITS = 12  # of the digest of a part
WITHIN = 10.0  # seconds


class Narrowing:
    """The search at one call of one group. ``held`` has the leaves of the value that this process asserts."""

    def __init__(self, job: Job, verdicts: Verdicts, group: str, index: int, held: Any) -> None:
        self._exchange = job.exchange
        self._me = job.me
        self._verdicts = verdicts
        self._group = group
        self._index = index
        self._held = held
        self._limit = time.monotonic() + WITHIN

    def lead(self, pair: Pair) -> dict[int, FirstValue]:
        """As the root of a tree: tell two processes to search, and return what they have found."""
        self._exchange.put_pair(self._group, self._index, pair)
        return self.among(pair)

    def follow(self, root: int) -> None:
        """As another process of a tree: search if the root says so."""
        pair = self._wait(lambda: self._exchange.pair(self._group, self._index, root))
        if pair and self._me in pair["processes"]:
            self._search(pair)

    def among(self, pair: Pair) -> dict[int, FirstValue]:
        """The first value that differs on each of the two processes; {} if it was not found."""
        if not pair:
            return {}
        found = {self._me: self._search(pair)} if self._me in pair["processes"] else {}
        for process in pair["processes"]:
            if process not in found:
                told = self._wait(lambda process=process: self._exchange.first(self._group, self._index, process))  # type: ignore[misc]
                found[process] = told or FirstValue()
        one, other = found.values()
        return found if one and other and one["index"] == other["index"] else {}

    def _search(self, pair: Pair) -> FirstValue:
        try:
            first = self._first(pair)
        except (TypeError, ValueError):  # what cannot be taken apart
            first = FirstValue()
        self._exchange.put_first(self._group, self._index, first)
        return first

    def _first(self, pair: Pair) -> FirstValue:
        import numpy as np

        (other,) = (process for process in pair["processes"] if process != self._me)
        held = on_host(self._held[pair["leaf"]])
        values = held.reshape(-1)
        start, length, step = 0, values.size, 0
        while length > 1:
            size = -(-length // PARTS)
            places = range(start, start + length, size)
            digests = [digest_of(values[at : min(at + size, start + length)])[:DIGITS] for at in places]
            mine = Parts(leaf=pair["leaf"], start=start, length=length, digests=digests)
            self._exchange.put_parts(self._group, self._index, step, mine)
            number = step
            theirs = self._wait(lambda: self._exchange.parts(self._group, self._index, number, other))  # noqa: B023
            if theirs is None or {**theirs, "digests": []} != {**mine, "digests": []}:
                return FirstValue()
            part = _first_unequal(digests, theirs["digests"])
            if part is None:
                return FirstValue()
            length = min(size, start + length - places[part])
            start, step = places[part], step + 1
        index = [int(place) for place in np.unravel_index(start, held.shape)]
        return FirstValue(index=index, value=str(values[start])[:SHOWN])

    def _wait(self, read: Callable[[], T | None]) -> T | None:
        """Read until there is a value, or the time is over; a verdict of another process ends it."""
        while time.monotonic() < self._limit:
            self._verdicts.heed()
            value = read()
            if value is not None:
                return value
        return None


def _first_unequal(ours: Iterable[str], theirs: Iterable[str]) -> int | None:
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((number for number, (one, other) in pairs if one != other), None)
