"""Recordings read after the job: the first difference, and a trace."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from spmdlint.cli import main
from spmdlint.runtime_checks.fingerprint import Program
from spmdlint.runtime_checks.frames import Site
from spmdlint.runtime_checks.journal import Journal
from spmdlint.runtime_checks.ledger import Ledger
from spmdlint.runtime_checks.recording import CALLS, Recording
from spmdlint.runtime_checks.timing import times_of
from tests.runtime.fakes import program

STEP, SAVE = program("step", (0, 1)), program("save", (0, 1))


class Process:
    """One that records."""

    def __init__(self, folder: Path, number: int) -> None:
        self.journal = Journal(Ledger(), Recording(folder / f"{number}.ledger"), lambda: None)

    def make(self, called: Program, line: int, times: int = 1) -> None:
        event = self.journal.event_of(called, Site("/home/me/train.py", line, "main"))
        for _ in range(times):
            self.journal.note(event)
        self.journal.drain()


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Process, Process]:
    return Process(tmp_path, 0), Process(tmp_path, 1)


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["ledger", *argv])
    said = capsys.readouterr()
    return status, said.out, said.err


def diff(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    status, out, _ = told(capsys, "diff", str(folder), "--output-format", "json")
    return status, json.loads(out)


def test_the_first_difference_is_named(tmp_path, pair, capsys):
    for process in pair:
        process.make(STEP, 3, 10)
    pair[0].make(SAVE, 7)
    pair[1].make(STEP, 3)
    for process in pair:
        process.make(SAVE, 9, 5)
    status, out, _ = told(capsys, "diff", str(tmp_path))
    assert status == 3
    assert "call 11 of processes 0-1 differs: process 0 calls save at train.py:7; process 1 calls step" in out
    status, data = diff(tmp_path, capsys)
    assert (status, data["report"]["index"], data["report"]["kind"]) == (3, 11, "sequence")


def test_processes_that_agree_and_end_apart(tmp_path, pair, capsys):
    pair[0].make(STEP, 3, 10)
    pair[1].make(STEP, 3, 12)
    status, out, _ = told(capsys, "diff", str(tmp_path))
    assert status == 0
    assert "end at different calls: process 0 after call 10; process 1 after call 12." in out
    assert "agree as far as they are recorded" in out


def test_a_ring_that_went_round_is_aligned_by_number(tmp_path, pair, capsys):
    """Process 0 has lost its first calls, process 1 has not: both are at the same numbers all the same."""
    pair[0].make(STEP, 3, 1000)
    pair[0].make(STEP, 4, CALLS - 10)
    pair[1].make(STEP, 3, 1200)
    status, data = diff(tmp_path, capsys)
    assert (status, data["differs"], data["earlier"]) == (0, False, [])
    assert any("before number 991 are no longer recorded by all" in note for note in data["notes"])
    assert any("process 1 after call 1200" in note for note in data["notes"])


def test_a_difference_that_is_lost_is_noticed_by_what_comes_after(tmp_path, pair, capsys):
    pair[0].make(STEP, 3)
    pair[1].make(SAVE, 3)
    for process in pair:
        process.make(STEP, 3, CALLS + 50)
    status, data = diff(tmp_path, capsys)
    assert (status, data["report"]) == (3, None)
    (earlier,) = data["earlier"]
    assert "process 0 and process 1 made different calls before number" in earlier


def test_records_that_share_no_call_are_not_compared(tmp_path, pair, capsys):
    pair[0].make(STEP, 3, CALLS + 5000)
    pair[1].make(STEP, 3, 100)
    status, data = diff(tmp_path, capsys)
    assert status == 0
    assert any("No call of processes 0-1 is recorded by all of them" in note for note in data["notes"])


def test_a_process_without_a_record_is_named(tmp_path, capsys):
    Process(tmp_path, 0).make(STEP, 3)
    status, data = diff(tmp_path, capsys)
    assert (status, data["notes"]) == (2, ["There is no recording of process 1."])
    assert told(capsys, "diff", str(tmp_path))[0] == 2


@pytest.mark.parametrize("argv", [("diff",), ("diff", "--output-format", "json"), ("trace",)])
def test_folders_without_records(tmp_path, capsys, argv):
    status, out, err = told(capsys, *argv, str(tmp_path))
    assert (status, out) == (2, "")
    assert "no recordings of calls" in err
    assert told(capsys, *argv, str(tmp_path / "nowhere"))[0] == 2


def test_a_trace_has_a_track_for_each_process(tmp_path, pair, capsys):
    began = time.time()
    for process in pair:
        process.make(STEP, 3, 3)
    time.sleep(0.05)
    pair[0].make(SAVE, 7)
    status, out, err = told(capsys, "trace", str(tmp_path), "-o", str(tmp_path / "trace.json"))
    assert (status, out) == (0, "")
    assert "holds 7 calls" in err
    data = json.loads((tmp_path / "trace.json").read_text())
    assert began - 2 < data["otherData"]["began"] < time.time()
    events = data["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {0: "process 0", 1: "process 1"}
    slices = [event for event in events if event["ph"] == "X"]
    mine = [event for event in slices if event["tid"] == 0]
    assert [event["name"] for event in mine] == ["step", "step", "step", "save"]
    assert mine[-1]["args"] == {"call": 4, "of": "processes 0-1", "line": "/home/me/train.py:7"}
    assert mine[-1]["ts"] - mine[-2]["ts"] >= 40_000
    assert [event["ts"] for event in mine] == sorted(event["ts"] for event in mine)
    assert all(event["dur"] > 0 for event in slices)


def test_a_trace_of_a_record_without_times(tmp_path, capsys):
    """What an earlier version wrote: the order is all that is known."""
    Process(tmp_path, 0).make(STEP, 3, 5)
    path = tmp_path / "0.ledger"
    path.write_bytes(path.read_bytes()[: -(1 << 18)])
    status, out, _ = told(capsys, "trace", str(tmp_path))
    assert status == 0
    assert [event["ts"] for event in json.loads(out)["traceEvents"] if event["ph"] == "X"] == [
        0,
        1000,
        2000,
        3000,
        4000,
    ]


def test_times_lie_between_the_moments_that_are_known():
    samples = [(10, 100.0), (20, 100.2), (30, 160.0)]
    found = times_of(range(9, 33), samples)
    assert found[:3] == [None, pytest.approx(100.0), pytest.approx(100.02)]
    assert found[12] == pytest.approx(159.1), "a call is made within the second before it is numbered"
    assert found[-1] == 160.0
    assert times_of(range(1, 3), []) == [None, None]
