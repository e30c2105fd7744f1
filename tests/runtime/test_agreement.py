"""Agreement over a faked store: processes are threads, so that many cases take no time."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import numpy as np
import pytest

from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.calls.provenance import UNKNOWN, tag
from spmdlint.runtime_checks.errors import DivergenceError
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.reporting.report import Report
from spmdlint.runtime_checks.session import Session
from tests.runtime.fakes import Job, call

ALL = (0, 1, 2)


def verdict(errors: dict[int, BaseException], expected: set[int]) -> Report:
    """The one report that all of these processes raised."""
    assert set(errors) == expected, errors
    reports = [error.report for error in errors.values() if isinstance(error, DivergenceError)]
    assert len(reports) == len(expected), errors
    assert len({report.message for report in reports}) == 1
    return reports[0]


def test_equal_calls_agree() -> None:
    job = Job(3)

    def body(session: Session) -> None:
        for step in range(200):
            call(session, "step", ALL, line=step)

    assert job.run(body) == {}
    assert [session.own.ledger.counts() for session in job.sessions][1:] == [job.sessions[0].own.ledger.counts()] * 2
    assert len(job.client.values) < 400, "keys behind the window are dropped"


@pytest.mark.parametrize("count", [3, 7])
def test_one_process_that_calls_something_else_is_named(count: int) -> None:
    everyone = tuple(range(count))

    def body(session: Session) -> None:
        call(session, "step", everyone, line=10)
        odd = session.me == count - 1
        call(session, "evaluate" if odd else "step", everyone, line=12 if odd else 11)

    report = verdict(Job(count).run(body), set(everyone))
    assert (report.kind, report.index) == ("sequence", 2)
    assert {p.line for number, p in report.processes.items() if number != str(count - 1)} == {11}
    assert report.processes[str(count - 1)].function == "evaluate"


def test_many_processes_agree() -> None:
    everyone = tuple(range(9))

    def body(session: Session) -> None:
        for _ in range(70):
            call(session, "step", everyone)

    assert Job(9).run(body) == {}


def test_a_process_that_finishes_early_is_missing() -> None:
    def body(session: Session) -> None:
        for step in range(5 if session.me != 1 else 4):
            call(session, "step", ALL, line=step + 1)

    report = verdict(Job(3).run(body), {0, 2})
    assert (report.kind, report.index) == ("missing", 5)
    assert report.processes["1"].state == "finished"
    assert report.processes["1"].index == 4


def test_a_process_that_raises_is_missing_and_the_others_are_told() -> None:
    def body(session: Session) -> None:
        call(session, "step", ALL)
        if session.me == 2:
            raise ValueError("corrupt record")
        call(session, "step", ALL)

    errors = Job(3).run(body)
    assert isinstance(errors.pop(2), ValueError)
    assert verdict(errors, {0, 1}).kind == "missing"


def test_two_groups_in_another_order_are_a_circle_of_waits() -> None:
    """Group by group the sequences agree; each process waits for the other all the same."""

    def body(session: Session) -> None:
        first, second = ((0, 1), ALL) if session.me == 0 else (ALL, (0, 1))
        if session.me == 2:
            call(session, "norm", ALL)
            return
        call(session, "norm" if first == ALL else "sum", first, line=1)
        call(session, "norm" if second == ALL else "sum", second, line=2)

    report = verdict(Job(3).run(body), {0, 1, 2})
    assert report.kind == "sequence"
    assert "in a cycle" in report.message


def test_groups_that_share_one_process_may_come_in_any_order() -> None:
    def body(session: Session) -> None:
        for _ in range(5):
            order = ((0, 1), (1, 2)) if session.me != 1 else ((1, 2), (0, 1))
            for group in order:
                if session.me in group:
                    call(session, "sum", group)

    job = Job(3)
    assert job.run(body) == {}
    assert [session.checks.active for session in job.sessions] == [True] * 3
    assert [sorted(session.own.ledger.counts().values()) for session in job.sessions] == [[5], [5, 5], [5]]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"module": "another"}, "program"),
        ({"devices": (1, 0, 2)}, "arguments"),
        ({"environment": {"jax_enable_x64": "True"}}, "setup"),
        ({"name": "another barrier"}, "arguments"),
        ({"value": "4"}, "value"),
        ({"defined_at": "train.py:9"}, "sequence"),
    ],
)
def test_what_decides(fields: dict[str, object], kind: str) -> None:
    same = {
        "devices": (0, 1, 2),
        "environment": {"jax_enable_x64": "False"},
        "name": "barrier",
        "value": "3",
        "defined_at": "train.py:3",
    }

    def body(session: Session) -> None:
        call(session, "step", ALL, **{**same, **(fields if session.me == 1 else {})})

    assert verdict(Job(3).run(body), {0, 1, 2}).kind == kind


def test_what_is_unknown_agrees_with_anything() -> None:
    def body(session: Session) -> None:
        unknown = {"module": None, "environment": {}, "identified": False} if session.me == 1 else {}
        call(session, "step", ALL, **{"environment": {"jax_enable_x64": "False"}, **unknown})

    assert Job(3).run(body) == {}


def test_arguments_that_come_from_other_outputs() -> None:
    def body(session: Session) -> None:
        origin = call(session, "init", ALL)
        call(session, "norm", ALL, tags=UNKNOWN + tag(f"{origin}:{1 if session.me == 1 else 0}"))

    report = verdict(Job(3).run(body), {0, 1, 2})
    assert (report.kind, report.index) == ("arguments", 2)


@pytest.mark.parametrize("unknown", [UNKNOWN, ""])
def test_an_unknown_origin_is_no_conflict(unknown: str) -> None:
    def body(session: Session) -> None:
        origin = call(session, "init", ALL)
        for _ in range(3):
            call(session, "norm", ALL, tags=unknown if session.me == 1 else tag(f"{origin}:0"))

    assert Job(3).run(body) == {}


def test_calls_that_do_not_communicate_are_not_compared() -> None:
    def body(session: Session) -> None:
        for _ in range(session.me):
            call(session, "scale", ALL, communicates=False)
        call(session, "step", ALL)

    job = Job(3)
    assert job.run(body) == {}
    assert job.sessions[2].own.ledger.quiet == {"scale": 2}


def test_report_policy_goes_on_without_checks() -> None:
    def body(session: Session) -> None:
        call(session, "a" if session.me else "b", ALL)
        call(session, "c", ALL)

    job = Job(3, Options(on_divergence="report", late_after=60))
    assert job.run(body) == {}
    assert all(session.ending.verdict is not None and not session.checks.active for session in job.sessions)


def alone(session: Session, function: str, line: int, **fields: Any) -> None:
    """A program of both processes in which they have nothing to exchange."""
    call(session, function, (0, 1), line=line, module="nothing to exchange", communicates=False, **fields)


def both(session: Session, function: str = "norm", line: int = 7, **fields: Any) -> None:
    call(session, function, (0, 1), line=line, **fields)


def test_who_ran_the_awaited_call_without_a_collective_is_placed_there() -> None:
    def body(session: Session) -> None:
        both(session, "step", 1)
        if session.me == 0:
            both(session)
        else:
            alone(session, "norm", 7)

    report = verdict(Job(2).run(body), {0})
    assert (report.kind, report.index) == ("program", 2)
    assert {one.line for one in report.processes.values()} == {7}
    assert "Process 1 ran it as a program without a collective" in report.message
    assert str(report.processes["1"].detail).endswith("then finished")


def test_the_same_among_several_if_others_go_on() -> None:
    everyone = tuple(range(4))

    def body(session: Session) -> None:
        if session.me == 2:
            call(session, "norm", everyone, line=7, module="nothing to exchange", communicates=False)
        else:
            call(session, "norm", everyone, line=7)
        call(session, "step", everyone, line=9)

    report = verdict(Job(4).run(body), set(everyone))
    assert (report.kind, report.index) == ("program", 1)
    assert {number: one.line for number, one in report.processes.items()} == dict.fromkeys("0123", 7)
    assert "then it calls step at train.py:9" in str(report.processes["2"].detail)


@pytest.mark.parametrize("through", [(), ("/home/me/main.py:3",)])
def test_a_call_without_a_collective_from_another_line_is_another_call(through: tuple[str, ...]) -> None:
    def body(session: Session) -> None:
        both(session, "step", 1)
        if session.me == 0:
            both(session, callers=("/home/me/main.py:4",))
        else:
            alone(session, "norm", 7 if through else 6, callers=through)

    report = verdict(Job(2).run(body), {0})
    assert (report.kind, report.notes) == ("missing", [])
    assert report.processes["1"].state == "finished"


def test_a_call_without_a_collective_that_explains_nothing_is_not_named() -> None:
    def as_the_other_did(session: Session) -> None:
        alone(session, "norm", 7)
        if session.me == 0:
            both(session)

    def earlier(session: Session) -> None:
        if session.me == 1:
            alone(session, "norm", 7)
        both(session, "step", 1)
        if session.me == 0:
            both(session)

    def of_another_function(session: Session) -> None:
        if session.me == 0:
            both(session, defined_at="train.py:3")
        else:
            alone(session, "norm", 8, defined_at="logs.py:3")

    def of_another_shape(session: Session) -> None:
        if session.me == 0:
            both(session, values=[np.ones(3)])
        else:
            alone(session, "norm", 8, values=[np.ones(4)])

    for body in (as_the_other_did, earlier, of_another_function, of_another_shape):
        report = verdict(Job(2).run(body), {0})
        assert (report.kind, report.notes) == ("missing", []), body


def test_a_program_that_may_communicate_explains_nothing() -> None:
    def body(session: Session) -> None:
        if session.me == 0:
            both(session)
        else:
            alone(session, "norm", 7, undecided=True)

    assert verdict(Job(2).run(body), {0}).kind == "missing"


def test_who_raises_after_it_is_told_of() -> None:
    def body(session: Session) -> None:
        if session.me == 0:
            both(session)
            return
        alone(session, "norm", 7)
        session.own.publish_quiet(session.job)
        session.job.put_state(session.own.end_state("raised", Site("/home/me/train.py", 9, "main"), "ValueError"))
        session.checks.active = False  # it has ended

    report = verdict(Job(2).run(body, steps_aside=True), {0})
    assert report.kind == "program"
    assert str(report.processes["1"].detail).endswith("then it raised an exception at train.py:9 (ValueError)")


def test_more_calls_without_a_collective_than_the_other_made_are_named() -> None:
    def body(session: Session) -> None:
        for _ in range(1 + session.me):
            alone(session, "norm", 7)
        if session.me == 0:
            both(session)

    report = verdict(Job(2).run(body), {0})
    assert (report.kind, report.index) == ("program", 1)


def test_threads_that_race_are_named() -> None:
    order = {0: ("step", "evaluate"), 1: ("evaluate", "step")}
    blocked = threading.Event()

    def later(session: Session, function: str) -> None:
        while not session.own.ledger.group((0, 1)).count:
            time.sleep(0.01)
        with contextlib.suppress(DivergenceError):
            both(session, function, 2)

    def body(session: Session) -> None:
        first, second = order[session.me]
        other = threading.Thread(target=later, args=(session, second), name="prefetch", daemon=True)
        other.start()
        if session.me == 1:
            assert blocked.wait(30)
        else:
            threading.Thread(target=tell, args=(session,), daemon=True).start()
        both(session, first, 1)

    def tell(session: Session) -> None:
        while len(session.own.ledger.group((0, 1)).threads) < 2:
            time.sleep(0.01)
        blocked.set()

    report = verdict(Job(2).run(body), {0, 1})
    assert report.kind == "sequence"
    assert any("Several threads make parallel calls" in note and "prefetch" in note for note in report.notes), report
    assert "in one thread" in str(report.advice)


@pytest.mark.parametrize(
    ("sources", "words"),
    [((0, 4), "processes 0, 4 pass is_source=True"), ((), "no process passes is_source=True"), ((4,), "")],
)
def test_a_broadcast_has_one_source(sources: tuple[int, ...], words: str) -> None:
    everyone = tuple(range(5))

    def body(session: Session) -> None:
        call(session, "broadcast_one_to_all", everyone, line=3, source=session.me in sources)
        call(session, "broadcast_one_to_all", everyone, line=4)

    errors = Job(5).run(body)
    if not words:
        assert errors == {}
        return
    report = verdict(errors, set(everyone))
    assert (report.kind, report.index) == ("arguments", 1)
    assert words in report.message
    assert {one.detail for one in report.processes.values()} == {
        f"is_source={number in sources}" for number in everyone
    }
