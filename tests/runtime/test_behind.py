"""Background mode over a faked store: who compares, what is proven, what is told; no process is started."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spmdlint.runtime_checks.background import member as background
from spmdlint.runtime_checks.calls.modules import pack_texts
from spmdlint.runtime_checks.ending import closing
from spmdlint.runtime_checks.ending.closing import Outcome
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.session import Session
from spmdlint.runtime_checks.transport.store import Store, StoreLostError
from spmdlint.runtime_checks.watching import watcher as watch
from spmdlint.runtime_checks.watching.demand import Demand
from spmdlint.runtime_checks.watching.watcher import Watcher
from tests.runtime.fakes import Behind, FakeClient, joining, program

Start = Callable[..., Behind]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(background, "URGENT_WITHIN", 0.0)
    started = []

    def make(count: int, **options: object) -> Behind:
        started.append(Behind(count, **options))
        return started[-1]

    yield make
    for job in started:
        job.stop()


def test_equal_calls_are_no_verdict_however_far_each_is(start: Start) -> None:
    job = start(3)
    for me, times in ((0, 9000), (1, 7000), (2, 8000)):
        job.make(me, "step", times=times)
        job.make(me, "evaluate", line=2, processes=(0, 1))
    assert job.report() is None
    keys = len(job.client.values)
    for me in range(3):
        job.make(me, "step", times=5000)
        assert job.report() is None
    assert len(job.client.values) == keys, "the store does not grow"


@pytest.mark.parametrize("odd", [0, 2])
def test_one_other_call_among_many_is_found_and_placed(odd: int, start: Start) -> None:
    job = start(3)
    for me in range(3):
        job.make(me, "step", times=700)
        if me == odd:
            job.make(me, "save", line=7)
        job.make(me, "step", line=3, times=600 - 100 * me)
    report = job.report()
    assert report is not None
    assert (report.kind, report.index) == ("sequence", 701)
    assert {number: one.line for number, one in report.processes.items()} == {
        str(me): 7 if me == odd else 3 for me in range(3)
    }


def test_the_lowered_modules_explain_a_program_that_differs(start: Start) -> None:
    class Module:
        def __init__(self, constant: int) -> None:
            self.constant = constant

        def texts(self) -> dict[str, str]:
            return pack_texts({"canonical": f"module @f {{\n  one\n  constant {self.constant}\n}}"})

    job = start(3)
    held = [Module(7 if me == 1 else 5) for me in range(3)]  # as an executable holds its own
    for me in range(3):
        job.make(me, "step", module=f"module {held[me].constant}", texts=held[me].texts)
    report = job.report()
    assert report is not None
    assert report.kind == "program"
    assert report.module is not None
    assert [side["text"] for side in report.module["sides"]] == ["constant 5", "constant 7"]


def test_who_is_ahead_is_compared_once_the_first_process_comes_there(start: Start) -> None:
    job = start(2)
    job.make(1, "step", times=5)
    job.make(1, "save")
    assert job.report() is None
    job.make(0, "step", times=5)
    assert job.report() is None
    job.make(0, "step")
    report = job.report()
    assert report is not None
    assert report.index == 6


def test_what_is_unknown_on_one_side_is_no_verdict(start: Start) -> None:
    job = start(2)
    for me in range(2):
        job.make(me, "step", **({"module": None, "identified": False} if me else {}))
        job.make(me, "step", line=2, times=50)
    assert job.report() is None
    job.make(1, "step", times=50)
    assert job.report() is None


def test_who_ends_early_is_missing_and_who_is_only_late_is_not(start: Start) -> None:
    job = start(2)
    job.make(0, "step", times=9)
    job.make(1, "step", times=7)
    assert job.report() is None
    session = job.sessions[1]
    assert session.background is not None
    session.background.finish(session.own.end_state("finished", None, None))
    report = job.report()
    assert report is not None
    assert (report.kind, report.index) == ("missing", 8)


def test_the_verdict_is_told_in_full_once(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    job = start(3)
    for me in range(3):
        job.make(me, "save" if me == 1 else "step")
    assert job.report() is not None
    for session in job.sessions:
        session.ending.look()
        session.ending.tell()
    job.stop()
    told = capfd.readouterr().err
    assert told.count("What to do") == 1
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert sorted(line["process"] for line in lines) == [1, 2]
    assert {line["kind"] for line in lines} == {"sequence"}


def test_a_hang_is_explained(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    job = start(3, late_after=0.0)
    for me in range(3):
        job.make(me, "step", times=5 - (me == 2))
    job.tick()
    time.sleep(0.01)
    job.tick()
    told = capfd.readouterr().err
    assert "late: processes 0-1 reached call 5 of processes 0-2 (step, /home/me/train.py:1)" in told
    assert "process 2 is 1 call behind, at " in told
    job.make(2, "step")
    job.tick()
    time.sleep(0.01)
    job.tick()
    assert "all processes are at call 5 of processes 0-2" in capfd.readouterr().err


def test_a_hang_in_the_first_call_of_a_group_is_explained(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    job = start(3, late_after=0.0)
    job.make(0, "swap", processes=(0, 2))
    job.tick()
    time.sleep(0.01)
    job.tick()
    told = capfd.readouterr().err
    assert "late: process 0 reached call 1 of processes 0, 2 (swap, " in told
    assert "process 2 made no call yet" in told
    assert "process 2 is at " in told


def test_who_is_asked_is_as_far_behind_as_it_says(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    job = start(3)
    for me in range(3):
        job.make(me, "step", times=(9, 5, 5)[me])
    job.tick()
    for me, more in ((1, 3), (2, 4)):
        job.make(me, "step", times=more)
        job.sessions[me].background.journal.drain()
    member = job.sessions[0].background
    assert member is not None
    member.leader.report_on_demand()
    told = capfd.readouterr().err
    assert "process 1 is 1 call behind, at " in told
    assert "process 2 has arrived since, at " in told


def test_a_restarted_process_ends_the_checks_for_all(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    job = start(3)
    for me in range(3):
        job.make(me, "step", times=50)
    again = Session(Store(job.client, "job"), 1, 3, Options(mode="background", on_divergence="report"))
    assert not joining(again, token="another").register()
    again.checks.stand_down("process 1 was restarted within the job, so its calls cannot be compared.")
    limit = time.monotonic() + 30
    others = [job.sessions[0], job.sessions[2]]
    while any(session.checks.active for session in others) and time.monotonic() < limit:
        time.sleep(0.01)
    assert not any(session.checks.active for session in others)
    job.stop()
    assert capfd.readouterr().err.count("process 1 was restarted") == 3
    assert job.report() is None


def test_two_threads_over_one_group_are_warned_of(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    job = start(2)
    job.make(0, "step")
    other = threading.Thread(target=lambda: job.make(0, "step"))
    other.start()
    other.join()
    job.tick()
    job.tick()
    assert capfd.readouterr().err.count("everal threads make parallel calls, whose order") == 1


def test_a_store_that_is_gone_for_long_ends_the_checks(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    session = Session(Store(FakeClient(), "job"), 0, 2, Options(mode="background", on_divergence="report"))
    watcher = Watcher(session.parts, session.background, session.health, Demand("off"))

    def look() -> None:
        raise StoreLostError("no answer")

    monkeypatch.setattr(watcher, "look", look)
    session.guard.run(watcher._step)
    assert session.checks.active, "it may come back"
    monkeypatch.setattr(watch, "PATIENCE", 0.0)
    session.guard.run(watcher._step)
    assert not session.checks.active
    assert capfd.readouterr().err.count("off from now on") == 1
    watcher.stop()


def test_who_ends_while_the_store_refuses_tells_later(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    job = start(2)
    job.make(0, "step", times=9)
    job.make(1, "step", times=7)
    refused = iter(range(4))
    put = FakeClient.key_value_set

    def refusing(self: FakeClient, key: str, value: str, allow_overwrite: bool = False) -> None:
        if next(refused, None) is not None:
            raise RuntimeError("UNAVAILABLE: not now")
        put(self, key, value, allow_overwrite)

    monkeypatch.setattr(FakeClient, "key_value_set", refusing)
    monkeypatch.setattr(closing, "SLOWEST_TICK", 0.01)
    ending = threading.Thread(target=job.sessions[1].closing.close, args=(Outcome("raised", None, "ValueError: no"),))
    ending.start()
    limit = time.monotonic() + 30
    while job.sessions[1].job.states.get(1) is None and time.monotonic() < limit:
        time.sleep(0.01)
    report = job.report()
    job.sessions[1].background.over = True  # type: ignore[union-attr]
    ending.join(30)
    assert not ending.is_alive()
    assert report is not None
    assert (report.kind, report.index) == ("missing", 8)
    assert "(ValueError: no) after 7 parallel calls" in report.message


def test_a_full_disk_costs_the_record_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    session = Session(Store(FakeClient(), "job"), 0, 2, Options(mode="background", ledger=tmp_path))
    assert "No space left on device" in capfd.readouterr().err
    assert session.background.journal.note == session.background.journal.pending.append


def test_calls_that_can_not_be_counted_end_the_checks(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    job = start(2)
    job.make(0, "step")
    journal: Journal = job.sessions[0].background.journal
    event = journal.event_of(program("step", (0, 1)), None)
    journal.pending.extend([event] * journal.pending.maxlen)  # type: ignore[operator]
    job.tick()
    assert not job.sessions[0].checks.active
    job.stop()  # what is written while pytest reads is lost
    assert "faster than they can be counted" in capfd.readouterr().err


def test_a_signal_asks_for_a_report() -> None:
    demand = Demand("USR2")
    try:
        assert not demand.asked()
        os.kill(os.getpid(), signal.SIGUSR2)
        limit = time.monotonic() + 30  # another thread may be given the signal, and a moment later
        while not (asked := demand.asked()) and time.monotonic() < limit:
            time.sleep(0.01)
        assert asked
        assert not demand.asked()
    finally:
        demand.stop()
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    assert not Demand("off").asked()


def test_values_are_compared_every_so_many_steps(start: Start) -> None:
    session = start(2).sessions[0]
    assert [step for step in range(10) if session.is_due("loss", 4)] == [0, 4, 8]
    assert session.is_due("another", 4)
