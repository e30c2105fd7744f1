"""What a process publishes of its position from time to time: in which form, and when.

Most of the cost of a publication is waking the threads of the coordination service: many at a time cost less than half
of what they cost one by one. So processes publish together, in slots of the wall clock. If clocks differ or jump,
publications come at other times and cost more; nothing else changes.
"""

from __future__ import annotations

import time

import msgspec

from spmdlint.runtime_checks.records import Count, Hash, Place

SHORTEST = 0.25  # seconds between two publications, in a small job
PROCESSES_A_SECOND = 256  # publications per second for the coordination service
SLOT = 1.0  # seconds; the processes that are due in this time publish together
LOOKS_AN_INTERVAL = 8
LOOK_AFTER = 0.2  # fraction of the look interval after the start of a slot, when its publications have arrived
EARLY = 0.25  # fraction of an interval: a publication this early counts for the slot


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process's count in one group, and the digests of its calls there and of what they are given.

    ``call`` is its last call, if that was in this group; ``serial`` counts the calls of all groups. ``compiling`` is
    the program that the process has been compiling for some time.
    """

    count: Count
    prefix: Hash
    serial: Count = 0
    state: str = "running"
    call: Place | None = None
    compiling: str | None = None
    given: Hash = 0


class Cadence:
    """The schedule of one process: it publishes at ``publish_at`` and looks at ``look_at`` of the monotonic clock."""

    def __init__(self, me: int, count: int) -> None:
        self.interval = max(SHORTEST, count / PROCESSES_A_SECOND)
        slots = max(1, round(self.interval / SLOT))
        self._phase = self.interval * (me % slots) / slots
        between = min(SLOT, count / PROCESSES_A_SECOND / 2)
        self._between_looks = max(SHORTEST, between, self.interval / LOOKS_AN_INTERVAL)
        self.publish_at = self.look_at = 0.0

    def published(self, keys: int) -> None:
        """Keys were published now: the next publication is in the next slot, and later for each further key."""
        wait = _until(self._phase, self.interval)
        self.publish_at = time.monotonic() + wait + max(0, keys - 1) * self.interval

    def looked(self) -> None:
        """The publications of the others were read now."""
        self.look_at = time.monotonic() + _until(LOOK_AFTER * self._between_looks, self._between_looks)


def _until(phase: float, period: float) -> float:
    """Seconds until the wall clock reaches this phase of a period; of the next one if that is at once.

    It is bounded by the period, even if the clock jumps.
    """
    wait = (phase - time.time()) % period
    return wait if wait >= EARLY * period else wait + period
