"""When processes publish and look: by a clock of the test's own."""

from __future__ import annotations

from itertools import pairwise

import pytest

from spmdlint.runtime_checks.background import publishing
from spmdlint.runtime_checks.background.publishing import Cadence


class Clock:
    """Both of Python's clocks, set by hand: what ``now`` is to one process another may see as ``now + ahead``."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.ahead = 0.0

    def time(self) -> float:
        return self.now + self.ahead

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(publishing, "time", made)
    return made


def publications(one: Cadence, clock: Clock, until: float, keys: int = 1) -> list[float]:
    """When a process publishes that always does so when it is due."""
    start, found = clock.now, []
    while True:
        clock.now = max(clock.now, one.publish_at)
        if clock.now >= start + until:
            clock.now = start
            return found
        found.append(clock.now - start)
        one.published(keys)


def test_a_thousand_processes_publish_together_once_in_four_seconds(clock: Clock) -> None:
    times: dict[float, int] = {}
    for me in range(1024):
        one = Cadence(me, 1024)
        first, *later = publications(one, clock, 20)
        assert first == 0.0
        assert [round(b - a, 6) for a, b in pairwise(later)] == [4.0] * (len(later) - 1)
        for moment in later:
            if 8 <= moment < 16:
                times[round(moment % 4, 6)] = times.get(round(moment % 4, 6), 0) + 1
    assert len(times) == 4, "in so many slots"
    assert set(times.values()) == {512}, "each process twice in eight seconds, and as many in each slot"


@pytest.mark.parametrize("count", [2, 64, 300, 5000])
def test_nobody_waits_longer_than_five_quarters_of_an_interval(count: int, clock: Clock) -> None:
    one = Cadence(1, count)
    for jump in (0.0, 1e6, -3.3, 0.1, -1e5, 7.7):
        clock.ahead += jump
        one.published(1)
        assert 0.25 * one.interval <= one.publish_at - clock.now <= 1.25 * one.interval
        one.looked()
        assert 0 < one.look_at - clock.now <= 1.25 * max(1.0, one.interval / 8)


def test_who_publishes_several_keys_does_so_less_often(clock: Clock) -> None:
    one = Cadence(0, 1024)
    several = publications(one, clock, 60, keys=3)
    assert round(several[-1] - several[-2], 6) == 12.0


def test_in_a_small_job_the_interval_is_a_quarter_of_a_second(clock: Clock) -> None:
    assert Cadence(0, 2).interval == Cadence(63, 64).interval == 0.25
    assert Cadence(0, 10_000).interval == pytest.approx(39.06, abs=0.01)
