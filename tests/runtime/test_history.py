"""The verdict over published histories."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from spmdlint.runtime_checks.agreement.history import History, judge, read_history
from spmdlint.runtime_checks.agreement.judging import Evidence
from spmdlint.runtime_checks.calls.given import SOURCE, UNUSUAL, USUAL
from spmdlint.runtime_checks.recording.reading import Row
from spmdlint.runtime_checks.records import GivenRecord, ProgramRecord, State
from spmdlint.runtime_checks.reporting.report import ADVICE, ADVICE_ON

ALL = (0, 1, 2)
Call = tuple[str, tuple[int, ...]]


def history(calls: list[Call], state: str = "running", forget: int = 0) -> History:
    """A process that made these calls; the digest of a call is its function's name."""
    prefixes: dict[tuple[int, ...], str] = {}
    counts: dict[str, int] = {}
    rows = []
    for line, (function, group) in enumerate(calls, 1):
        key = str(group)
        counts[key] = counts.get(key, 0) + 1
        prefixes[group] = f"{prefixes.get(group, '')}/{function}"
        others = {name: count for name, count in counts.items() if name != key}
        rows.append(Row(key, group, counts[key], prefixes[group], function, function, "train.py", line, others))
    made = read_history(rows[forget:], State(state=state))
    made.counts.update(counts)
    return made


class Known(Evidence):
    """The program of a call from its digest, and what a call was given."""

    def __init__(self, program: Callable[[str], ProgramRecord], sources: Callable[[int], str] = str) -> None:
        super().__init__()
        self._program = program
        self._sources = sources

    def program(self, _process: int, digest: str) -> ProgramRecord:
        return self._program(digest)

    def given(self, process: int, _group: str, _index: int) -> Mapping[str, GivenRecord]:
        return {SOURCE: {"tag": self._sources(process)}}


def one_program(digest: str) -> ProgramRecord:
    return {"function": digest, "module": digest}


PROGRAMS = Known(one_program)


def test_equal_histories_are_no_verdict_however_far_each_is() -> None:
    calls: list[Call] = [("step", ALL)] * 9
    assert judge({0: history(calls), 1: history(calls[:4]), 2: history([])}, PROGRAMS) is None
    assert judge({p: history(calls, "finished") for p in ALL}, PROGRAMS) is None


def test_the_first_difference_is_named() -> None:
    there: list[Call] = [("step", ALL), ("step", ALL), ("evaluate", ALL), ("step", ALL)]
    here: list[Call] = [("step", ALL), ("step", ALL), ("step", ALL), ("evaluate", ALL)]
    report = judge({0: history(here), 1: history(there), 2: history(here)}, PROGRAMS)
    assert report is not None
    assert (report.kind, report.index) == ("sequence", 3)
    assert [report.processes[p].function for p in "012"] == ["step", "evaluate", "step"]
    assert report.processes["1"].line == 3


def test_who_ended_with_fewer_calls_is_missing() -> None:
    calls: list[Call] = [("step", ALL)] * 5
    report = judge({0: history(calls), 1: history(calls[:3], "finished"), 2: history(calls)}, PROGRAMS)
    assert report is not None
    assert (report.kind, report.index) == ("missing", 4)
    assert report.processes["1"].state == "finished"
    assert report.processes["0"].line == 4


def test_who_called_disable_or_was_interrupted_after_fewer_calls_is_not_missing() -> None:
    calls: list[Call] = [("step", ALL)] * 5
    for state in ("disabled", "interrupted"):
        assert judge({0: history(calls), 1: history(calls[:3], state), 2: history(calls)}, PROGRAMS) is None


def test_who_still_runs_with_fewer_calls_is_late() -> None:
    calls: list[Call] = [("step", ALL)] * 5
    assert judge({0: history(calls, "finished"), 1: history(calls[:3]), 2: history(calls)}, PROGRAMS) is None


def test_a_difference_comes_before_who_is_missing() -> None:
    report = judge(
        {0: history([("a", ALL), ("b", ALL)]), 1: history([("b", ALL)], "raised"), 2: history([])},
        PROGRAMS,
    )
    assert report is not None
    assert (report.kind, report.index) == ("sequence", 1)


def test_what_fell_out_of_the_window_is_no_difference() -> None:
    calls: list[Call] = [("step", ALL)] * 40
    assert (
        judge({0: history(calls, forget=30), 1: history(calls[:20]), 2: history(calls[:25], forget=20)}, PROGRAMS)
        is None
    )


def test_two_groups_in_another_order() -> None:
    pair = (0, 1)
    report = judge(
        {0: history([("sum", pair)]), 1: history([("norm", ALL)]), 2: history([("norm", ALL)])},
        PROGRAMS,
    )
    assert report is not None
    assert report.kind == "sequence"
    assert "in a cycle" in report.message
    assert judge({0: history([("sum", pair)]), 1: history([]), 2: history([("norm", ALL)])}, PROGRAMS) is None
    done: list[Call] = [("sum", pair), ("norm", ALL)]
    assert judge({0: history(done), 1: history(done[:1]), 2: history([("norm", ALL)])}, PROGRAMS) is None


DEVICES = {"train": [0, 1, 2], "evaluate": [3, 4, 5], "gather": [0, 1, 2, 3, 4, 5]}


ON_DEVICES = Known(lambda digest: {"function": digest, "devices": DEVICES[digest]})


def threaded(*functions: str, forget: int = 0) -> History:
    made = history([(function, ALL) for function in functions], forget=forget)
    rows = made.rows[str(ALL)]
    made.rows[str(ALL)] = {index: replace(row, aside=row.function == "evaluate") for index, row in rows.items()}
    return made


def test_calls_of_threads_are_compared_on_each_device() -> None:
    here = threaded("train", "evaluate", "train", "gather", "evaluate")
    there = threaded("evaluate", "train", "train", "gather", "evaluate")
    assert judge({0: here, 1: there}, ON_DEVICES) is None
    report = judge({0: here, 1: threaded("evaluate", "train", "gather", "train", "evaluate")}, ON_DEVICES)
    assert report is not None
    assert (report.kind, report.index) == ("sequence", 2)
    assert [report.processes[p].function for p in "01"] == ["train", "gather"]
    assert [report.processes[p].line for p in "01"] == [3, 3]
    assert report.advice == ADVICE["sequence"], "the other thread makes no call on these devices"


def test_calls_of_threads_that_share_devices_have_one_order() -> None:
    here, there = threaded("gather", "evaluate", forget=1), threaded("evaluate", "gather", forget=1)
    report = judge({0: here, 1: there}, ON_DEVICES)
    assert report is not None
    assert (report.kind, report.index) == ("sequence", 2)
    assert report.advice == ADVICE_ON["threads"]


def test_calls_of_threads_whose_beginning_is_forgotten_prove_nothing() -> None:
    here = threaded("train", "train", "evaluate", forget=1)
    assert judge({0: here, 1: threaded("evaluate", "evaluate", "train")}, ON_DEVICES) is None


def test_one_thread_that_calls_on_other_devices_in_another_order_differs() -> None:
    one, other = history([("train", ALL), ("evaluate", ALL)]), history([("evaluate", ALL), ("train", ALL)])
    report = judge({0: one, 1: other}, ON_DEVICES)
    assert report is not None
    assert report.kind == "sequence"


RING: dict[int, list[Call]] = {me: [("swap", tuple(sorted(((me - 1) % 4, me))))] for me in range(4)}


def test_a_ring_of_processes_that_still_run_may_be_on_its_way() -> None:
    assert judge({me: history(calls) for me, calls in RING.items()}, PROGRAMS) is None


@pytest.mark.parametrize(
    ("known", "sources", "words"),
    [
        (ALL, (0, 1), "processes 0-1 pass is_source=True"),
        (ALL, (), "no process passes is_source=True"),
        (ALL, (2,), None),
        ((0, 1), (0, 1), "processes 0-1 pass is_source=True"),
        ((0, 1), (), None),  # it may be process 2
    ],
)
def test_the_sources_of_a_broadcast(known: tuple[int, ...], sources: tuple[int, ...], words: str | None) -> None:
    def usual(process: int) -> bool:
        return (process in sources) is (process == 0)

    histories = {process: history([("broadcast_one_to_all", ALL)]) for process in known}
    for process, made in histories.items():
        (rows,) = made.rows.values()
        rows[1] = replace(rows[1], given=1 + usual(process))
    report = judge(histories, Known(one_program, lambda process: USUAL if usual(process) else UNUSUAL))
    assert (report is None) is (words is None)
    assert report is None or (report.kind == "arguments" and str(words) in report.message)
