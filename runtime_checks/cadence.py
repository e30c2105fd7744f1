"""When a process publishes, and when those who compare look.

What a publication costs the coordination service is mostly that its threads are woken: taken many at a time they cost
less than half of what they cost one by one. So processes publish together, in slots by the clock on the wall. Where
clocks are apart, or jump, publications come at other times and cost more, and nothing else happens.
"""

from __future__ import annotations

import time

SHORTEST = 0.25  # seconds between two publications, in a small job
PROCESSES_A_SECOND = 256  # publications that the coordination service is asked to take
SLOT = 1.0  # seconds; as many processes as are due in that time publish together
LOOKS_AN_INTERVAL = 8
LOOK_AFTER = 0.2  # of the time between two looks, after the beginning of a slot: what was published then is there
EARLY = 0.25  # of an interval: who comes so little before its slot has published in it


class Cadence:
    """The clock of one process: at ``publish_at`` and ``look_at`` of the monotonic clock something is due."""

    def __init__(self, me: int, count: int) -> None:
        self.interval = max(SHORTEST, count / PROCESSES_A_SECOND)
        slots = max(1, round(self.interval / SLOT))
        self._phase = self.interval * (me % slots) / slots
        between = min(SLOT, count / PROCESSES_A_SECOND / 2)
        self._between_looks = max(SHORTEST, between, self.interval / LOOKS_AN_INTERVAL)
        self.publish_at = self.look_at = 0.0

    def published(self, keys: int) -> None:
        """Something is published just now: after one key one interval is waited, after several as many."""
        wait = _until(self._phase, self.interval)
        if wait < EARLY * self.interval:
            wait += self.interval
        self.publish_at = time.monotonic() + wait + max(0, keys - 1) * self.interval

    def looked(self) -> None:
        """The others' publications were read just now."""
        wait = _until(LOOK_AFTER * self._between_looks, self._between_looks)
        if wait < EARLY * self._between_looks:
            wait += self._between_looks
        self.look_at = time.monotonic() + wait


def _until(phase: float, period: float) -> float:
    """Seconds until the clock on the wall is at this phase of a period again: less than a period, wherever it jumps."""
    return (phase - time.time()) % period
