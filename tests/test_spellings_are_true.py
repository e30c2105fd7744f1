"""The fixtures under ``fixtures/spellings`` are what they claim: run, the bad ones go wrong, and the others do not.

How this shows is in the head of each file, after ``# verified:``.

- ``calls``: three simulated processes do not make the same parallel calls, with the same shapes and programs.
- ``files``: a process reads a file before it is there.
- ``values``: three simulated processes get different results where they should get the same.
- ``shares``: the results of the processes are not the parts of one list.
- ``raises``: JAX raises. ``fresh``: so it does in a new process, of a job with one process.
- ``replicas``: the devices' results are not the same. ``distinct``: they are, and should not be.
- ``reference``: the result is not that of the right programs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "spellings"))

from groups import Group, Spelling, all_groups
from one_process import SIZES
from several_processes import Alone, Processes, Run

GROUPS = {group.name: group for group in all_groups()}
pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    running = Processes()
    yield running
    running.close()


@pytest.fixture(scope="module")
def alone() -> Iterator[Alone]:
    running = Alone()
    yield running
    running.close()


@pytest.fixture(scope="module")
def fresh() -> Iterator[Alone]:
    running = Alone(fresh=True)
    yield running
    running.close()


def those(*kinds: str) -> Any:
    """The spellings that are verified in one of these ways."""
    return pytest.mark.parametrize(
        "spelling",
        [
            pytest.param(spelling, id=spelling.label)
            for group in GROUPS.values()
            if group.verified in kinds
            for spelling in group.spellings
            if not spelling.not_run
        ],
    )


def in_turn(processes: Processes, spelling: Spelling, *, one_disk: bool = False) -> list[Run]:
    """Runs with different arguments and random numbers; of a bad one, up to the first that goes wrong."""
    group = GROUPS[spelling.group]
    runs: list[Run] = []
    for turn in range(len(SIZES)):
        runs.append(processes.run(group.path, spelling.name, turn, one_disk=one_disk))
        if spelling.bad and wrong(group, runs[-1], SIZES[turn]):
            break
    return runs


def wrong(group: Group, run: Run, size: int) -> str:
    """How one run as several processes went wrong; empty if it did not."""
    if group.verified == "files":
        return run.raised
    if run.diverged or group.verified == "calls" or run.raised:
        return run.diverged
    if group.verified == "values":
        return "" if all(same(run.results[0], result) for result in run.results) else "the values differ"
    parts = [Path(str(each)).name for result in run.results for each in result]
    return "" if len(parts) == len(set(parts)) == size else f"{len(set(parts))} of {size} in {len(parts)}"


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return np.shape(one) == np.shape(other) and bool(np.array_equal(one, other))


def judge(spelling: Spelling, ways: list[str], runs: list[Run]) -> None:
    if spelling.bad:
        assert any(ways), f"three processes do not go wrong: {runs}"
        return
    assert not any(ways), [way for way in ways if way]
    assert all(run.raised for run in runs) == spelling.stops, runs


@those("calls", "files", "values", "shares")
def test_three_processes(spelling, processes):
    group = GROUPS[spelling.group]
    runs = in_turn(processes, spelling, one_disk=group.verified == "files")
    judge(spelling, [wrong(group, run, size) for run, size in zip(runs, SIZES, strict=False)], runs)
    if group.verified == "calls" and not spelling.bad:
        assert any(run.calls or run.raised for run in runs), "no parallel call is made"


@those("raises")
def test_jax_raises(spelling, alone):
    raises_if_bad(spelling, alone)


@those("fresh")
def test_a_new_process_raises(spelling, fresh):
    raises_if_bad(spelling, fresh)


def raises_if_bad(spelling: Spelling, worker: Alone) -> None:
    group = GROUPS[spelling.group]
    raised = worker.run(group.path, spelling.name).raised
    if spelling.bad:
        assert re.search(group.raises, raised), raised
    else:
        assert not raised


@those("replicas", "distinct")
def test_devices(spelling, alone):
    group = GROUPS[spelling.group]
    run = alone.run(group.path, spelling.name)
    assert not run.raised
    rows = np.asarray(run.results[0]).reshape(8, -1)
    equal = [bool(np.allclose(rows[one], rows[other])) for one in range(8) for other in range(one)]
    if group.verified == "distinct":
        assert all(equal) if spelling.bad else not any(equal)
    else:
        assert not any(equal) if spelling.bad else all(equal)


@those("reference")
def test_results(spelling, alone):
    group = GROUPS[spelling.group]
    run = alone.run(group.path, spelling.name)
    assert not run.raised
    right = next(each for each in group.spellings if not each.bad)
    reference = alone.run(group.path, right.name).results[0]
    assert bool(np.allclose(run.results[0], reference, rtol=1e-4)) != spelling.bad, (run.results[0], reference)


def test_every_group_is_verified_in_some_way():
    kinds = {"calls", "files", "values", "shares", "raises", "fresh", "replicas", "distinct", "reference"}
    assert {group.verified for group in GROUPS.values()} <= kinds
    for group in GROUPS.values():
        bad = sum(spelling.bad for spelling in group.spellings)
        assert bad >= 4, group.name
        assert len(group.spellings) - bad >= 3, group.name
