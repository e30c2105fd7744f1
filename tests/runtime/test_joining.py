"""Either all processes of a job are checked, or none is."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from spmdlint.runtime_checks.agreement import joining as joins
from spmdlint.runtime_checks.agreement.joining import Decision, Joining, Member, close_door, decide
from spmdlint.runtime_checks.ending import closing
from spmdlint.runtime_checks.options import JOIN_WITHIN_REHEARSAL, Options
from spmdlint.runtime_checks.session import Session
from spmdlint.runtime_checks.transport.store import Store
from tests.runtime.fakes import FakeClient, Job, call, joining
from tests.runtime.jobs import PRELUDE, alone, rehearse

SAME = Member(token="t", version="1", mode="lockstep", policy="raise")


def member(**fields: Any) -> Member:
    return Member(**{"version": "1", "mode": "lockstep", "policy": "raise", **fields})


def test_it_is_decided_for_the_checks_when_all_are_there_and_alike() -> None:
    assert decide({0: SAME, 1: SAME}, 3, None) is None
    assert decide({0: SAME, 1: SAME, 2: SAME}, 3, None) == Decision(True)
    assert decide({0: SAME, 1: SAME, 2: SAME}, 3, 20.0) == Decision(True), "however late"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (member(mode="background"), "the modes differ: process 0: lockstep; process 1: background"),
        (member(version="2"), "releases of spmdlint differ: process 0: 1; process 1: 2"),
        (member(policy="exit"), "on_divergence differs"),
        (member(values="all:1"), "SPMDLINT_VALUES differs"),
        (member(off=("every-call",)), "process 1: without the layers every-call"),
        (member(past=("jit_step",), site="train.py:9"), "process 1: at train.py:9, after jit_step had run"),
        (None, "registration of process 1 cannot be read"),
        (Member(), "process 1: unknown"),
    ],
)
def test_two_that_differ_decide_at_once_against_them(other: Member | None, words: str) -> None:
    found = decide({0: SAME, 1: other}, 9, None)
    assert found is not None
    assert not found.checked
    assert words in found.reason
    assert found.advice


def test_a_past_that_is_the_same_at_the_same_line_is_none() -> None:
    warm = member(past=("jit_step",), site="train.py:9")
    assert decide({0: warm, 1: warm}, 2, None) == Decision(True)
    assert decide({0: warm, 1: member(past=("jit_step",), site="train.py:10")}, 2, None) != Decision(True)


def test_a_difference_is_found_among_any_number_of_programs_and_lines() -> None:
    """All that ran counts, and the lines through which a helper was called that calls enable()."""
    names = tuple(f"jit_{number}" for number in range(20))
    there = member(past=(*names, "jit_last"), site="setup.py:9 from train.py:3")
    found = decide({0: member(past=names, site="setup.py:9 from train.py:3"), 1: there}, 9, None)
    assert found is not None
    assert not found.checked
    assert "process 1: at setup.py:9 from train.py:3, after jit_last had run" in found.reason
    found = decide({0: member(past=names, site="setup.py:9 from train.py:8"), 1: member(past=names)}, 9, None)
    assert found is not None
    assert not found.checked


def test_who_is_absent_is_named() -> None:
    found = decide({0: SAME, 3: SAME}, 6, 20.4)
    assert found is not None
    assert found.reason == "processes 1-2, 4-5 have not called enable() within 20 s"


class Counted(FakeClient):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.listed = self.read = 0

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        self.listed += 1
        return super().key_value_dir_get(key)

    def key_value_try_get(self, key: str) -> str:
        self.read += 1
        return super().key_value_try_get(key)


def crowd(client: FakeClient, count: int, present: range, within: float) -> list[Joining]:
    found = []
    for me in present:
        session = Session(Store(client, "job"), me, count, Options())
        found.append(joining(session, within))
        assert found[-1].register()
    return found


@pytest.mark.parametrize("present", [range(64), range(1, 64), range(63)])
def test_all_agree_though_nobody_reads_all_but_one(present: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where process 0 never comes: then who lost patience first has decided."""
    monkeypatch.setattr(joins, "CLOSINGS_A_SECOND", 16)
    client = Counted()
    members = crowd(client, 64, present, 0.5)
    threads = [threading.Thread(target=one.wait) for one in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    decisions = {one.decision for one in members}
    assert len(decisions) == 1
    (decision,) = decisions
    assert decision is not None
    assert decision.checked == (len(present) == 64)
    assert client.listed < 64, "not all read all"
    late = [me for me in range(64) if me not in present]
    for one in crowd(client, 64, range(late[0], late[0] + 1), 0.5) if late else []:
        assert one.look() == decision, "a process that comes later follows"


def test_one_record_decides_whoever_writes_it() -> None:
    client = FakeClient()
    first, second = crowd(client, 2, range(2), 60)
    close_door(Store(client, "job"), "process 1 cannot start")
    assert first.wait() == second.wait() == Decision(False, "process 1 cannot start", "See the output of that process.")


def test_a_number_registers_once_but_may_ask_again() -> None:
    client = FakeClient()
    (one,) = crowd(client, 2, range(1), 60)
    assert one.register(), "the first answer may have been lost"
    session = Session(Store(client, "job"), 0, 2, Options())
    assert not joining(session, token="another").register()


def test_a_call_in_lockstep_waits_for_the_others_to_join(capfd: pytest.CaptureFixture[str]) -> None:
    job = Job(3)
    went: dict[int, float] = {}
    came = threading.Event()

    def body(session: Session) -> None:
        if session.me == 2:
            time.sleep(1.0)
            came.set()
        session.checks.joining = joining(session, 60.0)
        session.checks.joining.register()
        call(session, "step", (0, 1, 2))
        assert came.is_set()
        went[session.me] = time.monotonic()

    assert job.run(body) == {}
    assert len(went) == 3
    assert all(session.checks.active for session in job.sessions)
    assert "off" not in capfd.readouterr().err


def test_a_call_in_lockstep_waits_no_longer_than_patience(capfd: pytest.CaptureFixture[str]) -> None:
    def body(session: Session) -> None:
        if session.me == 0:
            return
        session.checks.joining = joining(session, 0.5)
        session.checks.joining.register()
        for _ in range(3):
            call(session, "step", (0, 1, 2))

    job = Job(3)
    assert job.run(body, steps_aside=True) == {}
    told = [line for line in capfd.readouterr().err.splitlines() if "off in all processes" in line]
    assert len(told) == 2
    assert all("process 0 has not called enable()" in line for line in told)


PROGRAM = """
from spmdlint import runtime_checks
number = int(sys.argv[1])
jax.distributed.initialize("localhost:{port}", 2, number)
enabled = time.monotonic()
if MODES[number]:
    time.sleep(DELAYS[number])
    runtime_checks.enable(MODES[number], join_within=3)
mesh = Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
step = jax.jit(lambda v: jnp.sum(v))
for _ in range(5):
    total = step(x)
print("result", float(total), "fast path", step._cache_size(), flush=True)
for _ in range(80):
    status = runtime_checks.status()
    if status.joined or not status.watching:
        break
    time.sleep(0.1)
print("status", status.joined, flush=True)
"""


def run(tmp_path: Path, modes: tuple[str, str], delays: tuple[float, float] = (0, 0)) -> list[str]:
    ended = alone(tmp_path, f"MODES, DELAYS = {json.dumps(modes)}, {json.dumps(delays)}\n" + PROGRAM)
    assert [status for status, _ in ended] == [0, 0], ended
    outputs = [output for _, output in ended]
    assert all("result 4.0" in output for output in outputs), outputs
    return outputs


@pytest.mark.parametrize("modes", [("lockstep", ""), ("", "lockstep"), ("background", ""), ("", "background")])
def test_one_without_the_checks_is_not_waited_for(tmp_path: Path, modes: tuple[str, str]) -> None:
    for mode, output in zip(modes, run(tmp_path, modes), strict=True):
        assert output.count("off in all processes") == (1 if mode else 0), output


def test_two_modes_are_none(tmp_path: Path) -> None:
    outputs = run(tmp_path, ("lockstep", "background"))
    assert all("the modes differ: process 0: lockstep; process 1: background." in output for output in outputs)
    assert all("status False" in output for output in outputs)


@pytest.mark.parametrize(
    ("mode", "delays", "checked"),
    [
        ("lockstep", (1, 0), True),
        ("background", (0, 1), True),
        ("background", (6, 0), False),
        ("lockstep", (0, 6), False),
        pytest.param("background", (1, 0), True, marks=pytest.mark.long),
        pytest.param("lockstep", (0, 1), True, marks=pytest.mark.long),
        pytest.param("lockstep", (6, 0), False, marks=pytest.mark.long),
        pytest.param("background", (0, 6), False, marks=pytest.mark.long),
    ],
)
def test_a_late_one_joins_or_follows(tmp_path: Path, mode: str, delays: tuple[float, float], checked: bool) -> None:
    for output in run(tmp_path, (mode, mode), delays):
        assert f"status {checked}" in output, output
        assert output.count("off in all processes") == (0 if checked else 1), output


# What a process runs before it enables the checks, in a job whose other process has recorded it: a function that is
# still there, and one that was made for the call, of which nothing is left.
EARLY = {"kept": "step(x)", "dropped": "jax.jit(lambda a: a.sum() * 2)(x)"}


@pytest.mark.parametrize(
    ("mode", "early"),
    [
        ("lockstep", EARLY["kept"]),
        ("background", EARLY["dropped"]),
        pytest.param("lockstep", EARLY["dropped"], marks=pytest.mark.long),
        pytest.param("background", EARLY["kept"], marks=pytest.mark.long),
    ],
)
def test_who_enables_later_in_the_program_is_not_compared(tmp_path: Path, mode: str, early: str) -> None:
    """Process 1 has made calls that process 0 has recorded, and it has not."""
    program = PROGRAM.partition("for _ in range(5)")[0]
    late = f"""
def begin():
    runtime_checks.enable("{mode}", join_within=6)

if not number:
    begin()
total = {early}
if number:
    begin()
for _ in range(3):
    total = step(x)
    float(total)
"""
    ended = alone(tmp_path, 'MODES, DELAYS = ["", ""], [0, 0]\n' + program + late)
    assert [status for status, _ in ended] == [0, 0], ended
    for _, output in ended:
        assert "diverged" not in output
        assert output.count("off in all processes") == 1, output
        if mode == "background":
            told = (
                r"not enabled at the same place: .*process 1: at alone\.py:\d+ from alone\.py:\d+, after [^;]+ had run"
            )
            assert re.search(told, output), output
        # In lockstep, process 0 waits in its first call for process 1, which may wait for it in an earlier one.


def test_lockstep_of_too_many_is_refused(tmp_path: Path) -> None:
    few = "from spmdlint.runtime_checks import options; options.LOCKSTEP_UP_TO = 1\n"
    for status, output in alone(tmp_path, few + "MODES, DELAYS = ['lockstep', 'lockstep'], [0, 0]\n" + PROGRAM):
        assert status == 0, output
        assert "result 4.0" in output
        assert output.count("Lockstep compares up to 1 processes, and this job has 2: use mode=") == 1


def test_a_store_that_refuses_at_the_end_is_borne(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program may have ended before all are known to have joined."""
    monkeypatch.setattr(closing, "SLOWEST_TICK", 0.01)
    job = Job(2)
    refused = iter(range(6))
    read = FakeClient.key_value_try_get

    def refusing(self: FakeClient, key: str) -> str:
        if next(refused, None) is not None:
            raise RuntimeError("UNAVAILABLE: not now")
        return read(self, key)

    monkeypatch.setattr(FakeClient, "key_value_try_get", refusing)

    def body(session: Session) -> None:
        session.checks.joining = joining(session, 60.0)
        session.checks.joining.register()
        session.closing.close(closing.Outcome())

    assert job.run(body) == {}
    assert next(refused, None) is None
    assert all(session.checks.active and session.checks.joining is None for session in job.sessions)


# Process 0 is killed before process 1 has registered, so that it can not decide.
KILLED = """
from spmdlint import runtime_checks
from spmdlint.runtime_checks.agreement import joining
register = joining.Joining.register
def after_the_death(self):
    while self._job.me == 1 and self._job.gone(0) is None:
        time.sleep(0.05)
    return register(self)
joining.Joining.register = after_the_death
jax.distributed.initialize()
if os.environ["SPMDLINT_PROCESS"] == "0":
    os.kill(os.getpid(), 9)
runtime_checks.assert_equal(1, "one")  # call
"""


def test_who_is_killed_before_it_decides_is_not_waited_for(tmp_path: Path) -> None:
    program = tmp_path / "killed.py"
    program.write_text(PRELUDE.partition("jax.distributed.initialize()\n")[0] + KILLED)
    run = rehearse(tmp_path, program)
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert run.line(1) == run.marked("call")
    assert run.seconds < JOIN_WITHIN_REHEARSAL / 2, run.output
