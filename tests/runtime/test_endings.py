"""How jobs end: deaths, interrupts, swallowed exceptions, time-outs; never with a process left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from spmdlint.runtime_checks.recording.reading import read
from spmdlint.runtime_checks.recording.writing import jobs_in
from tests.runtime.jobs import PROMPT, alone, rehearse

pytestmark = pytest.mark.usefixtures("whole_ending")

STEPS = """
import signal
step = jax.jit(lambda w, x: w + jnp.mean(x))
w = jnp.zeros(())
"""


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_is_named(victim: int, tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        STEPS
        + f"""
for i in range(100):
    if i == 5 and me == {victim}:
        os.kill(os.getpid(), signal.SIGKILL)
    w = step(w, everywhere([i, i]))
    w.block_until_ready()
""",
        options=("--ledger", str(tmp_path / "ledger")),
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert run.report["processes"][str(victim)]["state"] == "died"
    last = read(jobs_in(tmp_path / "ledger")[0] / f"{victim}.ledger")[-1]
    assert (last.members, last.index, last.function) == ((0, 1), 5, "<lambda>")
    assert run.seconds < PROMPT


LAST = """
if me == 1:
    %s
elif me == 2:
    time.sleep(4)  # still computes when the others have ended
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
@pytest.mark.parametrize(
    ("end", "how", "state", "processes"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "died: process 1 was killed by signal 9", "died", 2),
        ("os._exit(0)", "ended without Python's exit, as by os._exit(0)", "exited", 2),
        ("os._exit(0)", "ended without Python's exit, as by os._exit(0)", "exited", 3),
    ],
)
def test_a_death_after_the_last_call_is_told_by_those_who_wait_in_the_shutdown(
    end: str, how: str, state: str, processes: int, mode: str, tmp_path: Path
) -> None:
    program = STEPS + f"step(w, everywhere([1, 1])).block_until_ready()  # last\n{LAST % end}"
    run = rehearse(tmp_path, program, processes=processes, options=("--mode", mode))
    waiting = "process 0 waits" if processes == 2 else "processes 0, 2 wait"
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    told = f"process 1 {how}; {waiting} in JAX's shutdown."
    assert run.report["message"] == told
    assert run.report["processes"]["1"]["state"] == state
    assert run.line(1) == run.marked("last")
    assert run.seconds < PROMPT


@pytest.mark.parametrize("mode", ["lockstep", "background"])
@pytest.mark.parametrize("status", [0, 7])
def test_an_exit_without_python_in_the_middle_is_told_as_such(status: int, mode: str, tmp_path: Path) -> None:
    """No matter whether the status says that all is well."""
    run = rehearse(
        tmp_path,
        STEPS
        + f"""
for i in range(9):
    if i == 5 and me == 1:
        os._exit({status})
    w = step(w, everywhere([i, i]))  # step
    w.block_until_ready()
""",
        options=("--mode", mode),
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    how = f"ended without Python's exit, as by os._exit({status})"
    assert run.report["message"].startswith(f"process 1 {how}, after 5 parallel calls of processes 0-1, and process 0 ")
    assert run.report["message"].endswith(f"call 6, <lambda> at program.py:{run.marked('step')}.")
    assert (run.report["processes"]["1"]["state"], run.report["processes"]["1"]["detail"]) == ("exited", how)
    assert run.report["explained_by"] == [], "no line is known that did it"
    assert "os._exit()" in run.report["advice"]


def test_a_killed_process_is_told_with_its_last_call_where_its_calls_are_recorded_for_later(tmp_path: Path) -> None:
    program = STEPS + "w = step(w, everywhere([1, 2]))  # last\nvalue(w)\nif me == 1:\n    time.sleep(0.5)\n"
    program += "    os.kill(os.getpid(), signal.SIGKILL)\nvalue(step(w, everywhere([1, 2])))  # waits\n"
    for options in ((), ("--ledger", str(tmp_path / "ledger"))):
        run = rehearse(tmp_path, program, options=("--mode", "background", *options))
        assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
        assert (run.line(0), run.line(1)) == (run.marked("waits"), run.marked("last")), run.report["message"]


def test_what_the_launcher_kills_is_not_told_as_killed(tmp_path: Path) -> None:
    """Without checks, nobody sees that the other process waits in JAX's shutdown, until the launcher loses patience."""
    program = STEPS + "if me == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    run = rehearse(tmp_path, program, options=("--mode", "off"), environment={"SPMDLINT_END_WITHIN": "3"})
    assert (run.status, run.report["verdict"]) == (137, "failed"), run.output
    words = "process 1 killed by SIGKILL; process 0 still ran long after that, and was ended by the launcher."
    assert run.report["message"] == words
    assert run.report["processes"]["0"]["detail"] == "ended by the launcher"


def test_swallowed_exceptions_do_not_hide_a_divergence(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        STEPS
        + """
other = jax.jit(lambda w, x: w + jnp.max(x))
for i in range(6):
    try:
        w = (other if i == 3 and me == 1 else step)(w, everywhere([i, i]))  # calls
    except Exception as error:
        print("swallowed", error)
print("wrong value", value(w))
""",
    )
    assert (run.status, run.verdict) == (3, ("diverged", "sequence")), run.output
    assert run.line(0) == run.line(1) == run.marked("calls")
    assert "wrong value" not in run.output


def test_who_ends_before_the_job_begins_is_named(tmp_path: Path) -> None:
    script = tmp_path / "early.py"
    script.write_text(
        "import os, jax\n"
        "if os.environ['SPMDLINT_PROCESS'] == '1':\n"
        "    raise FileNotFoundError('no data here')\n"
        "jax.distributed.initialize()\n"
    )
    run = rehearse(tmp_path, script)
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert (run.line(0), run.line(1)) == (4, 3)
    assert "runner.py" not in run.output


def test_one_process_is_left_alone(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        from jax._src.interpreters import pxla
        from spmdlint import runtime_checks
        assert runtime_checks.status().reason == "the job has one process"
        assert pxla.ExecuteReplicated.__call__.__module__ != "spmdlint.runtime_checks.intercept.execution"
        print(value(jax.jit(lambda x: jnp.sum(x))(everywhere([1, 2]))))
        """,
        processes=1,
    )
    assert (run.status, run.report["verdict"]) == (0, "unchecked"), run.output


def test_an_interrupt_is_no_divergence(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        STEPS
        + """
for i in range(100000):
    w = step(w, everywhere([i, i]))
    if i == 20 and me == 0:
        print("interrupt me", flush=True)
""",
        interrupt_at="interrupt me",
    )
    assert run.status == 130, run.output
    assert run.report["verdict"] == "failed"
    assert run.seconds < PROMPT


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_an_interrupt_of_a_run_that_hangs_says_where_each_process_was(mode: str, tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        STEPS
        + """
w = step(w, everywhere([1, 1]))
w.block_until_ready()
def load():
    import threading
    threading.Timer(2, print, ("interrupt me",)).start()  # when the other waits
    time.sleep(1000)  # loads
if me == 1:
    load()
w = step(w, everywhere([2, 2]))
w.block_until_ready()  # waits
""",
        options=("--mode", mode),
        interrupt_at="interrupt me",
    )
    assert (run.status, run.report["verdict"]) == (130, "failed"), run.output
    said = run.report["message"]
    waits, loads = run.marked("waits"), run.marked("loads")
    assert f"process 1 was in load at program.py:{loads}, 1 call begun" in said
    # In the call itself, or where its result is needed.
    assert any(f"at program.py:{line}, 2 calls begun" in said for line in (waits - 1, waits)), said
    assert "terminate called" not in run.output, "a thread of ours was in a request when Python ended"
    assert "exception not rethrown" not in run.output
    assert "KeyboardInterrupt" not in run.output, "only the launcher is interrupted"
    assert "runtime_checks" not in run.output, "frames of ours"
    assert run.seconds < PROMPT


def test_a_termination_is_an_interrupt(tmp_path: Path) -> None:
    """JAX's notifier of preemptions would take SIGTERM for itself."""
    run = rehearse(
        tmp_path,
        STEPS
        + """
for i in range(1000000):
    w = step(w, everywhere([i, i]))
    if i == 20 and me == 0:
        print("end me", flush=True)
""",
        interrupt_at="end me",
        interrupt_by=signal.SIGTERM,
    )
    assert (run.status, run.report["verdict"]) == (130, "failed"), run.output
    assert "the run was interrupted: process" in run.output


def test_an_interrupt_before_all_have_initialized_is_no_divergence(tmp_path: Path) -> None:
    program = tmp_path / "starts.py"
    program.write_text(
        """
import os, threading, time
import jax
if os.environ["SPMDLINT_PROCESS"] == "1":
    time.sleep(100)
threading.Timer(2, print, ("interrupt me",)).start()  # while this process waits for the other
jax.distributed.initialize()
"""
    )
    run = rehearse(tmp_path, program, interrupt_at="interrupt me")
    assert (run.status, run.report["verdict"]) == (130, "failed"), run.output
    assert "the run was interrupted" in run.output


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_an_interrupt_of_one_process_of_a_rehearsal_is_an_exception(mode: str, tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        STEPS
        + """
for i in range(5):
    if i == 3 and me == 1:
        raise KeyboardInterrupt  # stops
    w = step(w, everywhere([i, i]))
    w.block_until_ready()
""",
        options=("--mode", mode),
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert run.line(1) == run.marked("stops")
    raised = f"process 1 raised an exception at program.py:{run.marked('stops')} (KeyboardInterrupt)"
    assert run.report["message"].startswith(f"{raised} after 3 parallel calls"), run.output


def test_a_time_out_tells_where_the_processes_are(tmp_path: Path) -> None:
    for limit in ("6", "60"):  # a busy machine may need more time to come that far
        run = rehearse(
            tmp_path,
            STEPS
            + """
if me == 1:
    time.sleep(100)  # sleeps
w = step(w, everywhere([1, 1]))  # waits
""",
            options=("--timeout", limit),
        )
        if (run.line(0), run.line(1)) == (run.marked("waits"), run.marked("sleeps")):
            break
    assert (run.status, run.report["verdict"]) == (124, "late"), run.output
    assert (run.line(0), run.line(1)) == (run.marked("waits"), run.marked("sleeps"))
    assert {number: side["state"] for number, side in run.report["processes"].items()} == {"0": "waiting", "1": "late"}
    assert f"process 1 is behind (after 0 calls, in <module> at program.py:{run.marked('sleeps')})" in run.output
    assert f"process 0 waits in call 1, <lambda> at program.py:{run.marked('waits')}." in run.output
    way = [f"{tmp_path / 'program.py'}:{run.marked('waits')} in <module>"]
    assert run.report["processes"]["0"]["stack"] == way, "without how the checks wait"


def test_a_time_out_names_the_line_of_the_call_and_where_its_result_is_awaited(tmp_path: Path) -> None:
    """In background mode, a call returns before it is done."""
    for limit in ("6", "60"):  # a busy machine may need more time to come that far
        run = rehearse(
            tmp_path,
            STEPS
            + """
x = everywhere(np.ones(1 << 16))  # small programs are run within the call
w = step(w, x)
w.block_until_ready()
if me == 1:
    time.sleep(100)  # sleeps
w = step(w, x)  # calls
w.block_until_ready()  # waits
""",
            options=("--mode", "background", "--timeout", limit),
        )
        calls, waits = run.marked("calls"), run.marked("waits")
        told = f"process 0 waits in call 2, <lambda> at program.py:{calls} (now at program.py:{waits})."
        if told in run.output:
            break
    assert (run.status, run.report["verdict"]) == (124, "late"), run.output
    assert told in run.output
    first = run.report["processes"]["0"]
    assert (first["state"], first["line"], first["detail"]) == ("waiting", calls, f"now at program.py:{waits}")


def test_a_time_out_without_checks_does_not_read_like_a_hang(tmp_path: Path) -> None:
    run = rehearse(tmp_path, "time.sleep(100)\n", options=("--mode", "off", "--timeout", "6"))
    assert (run.status, run.report["verdict"]) == (124, "late"), run.output
    told = "out of time: processes 0-1 still ran; with --mode off, nothing records where they are."
    assert run.report["message"] == told
    assert "did not answer" not in run.output


def test_a_script_that_fails_alike_everywhere_keeps_its_status(tmp_path: Path) -> None:
    run = rehearse(tmp_path, STEPS + "w = step(w, everywhere([1, 1]))\nsys.exit(7)\n", processes=2)
    assert (run.status, run.report["verdict"]) == (7, "failed"), run.output


RAISING = """
from jax import jit
from spmdlint import runtime_checks

jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
me, mesh = jax.process_index(), Mesh(np.array(jax.devices()), ("data",))
rows = NamedSharding(mesh, P("data"))
x = jax.make_array_from_process_local_data(rows, np.ones(2, np.float32))
before = jit(lambda v: jnp.sum(v))
assert float(before(x)) == 4
ahead = before.lower(x).compile()
runtime_checks.enable(on_divergence="raise")
assert runtime_checks.status().watching
made = sum(runtime_checks.status().calls.values())  # the runner has switched the checks on before
runtime_checks.assert_equal({"rate": 0.1, "seed": 3}, name="settings")
tracked = runtime_checks.track(lambda v: v, name="exchange")
tracked(np.ones(3))
assert float(before(x)) == float(ahead(x)) == 4
assert sum(runtime_checks.status().calls.values()) == made + 4
try:
    (before if me else jax.jit(lambda v: jnp.max(v)))(x)
except runtime_checks.DivergenceError as error:
    print("caught", error.report.kind, error.report.index - made, flush=True)
    assert "Process 0: calling" in str(error)
"""


@pytest.mark.parametrize("runner", [(), ("-m", "spmdlint.runtime_checks")])
def test_in_a_program_of_its_own_the_error_is_raised_everywhere(runner: tuple[str, ...], tmp_path: Path) -> None:
    """Without the launcher: explicit addresses, the service in process 0; enable() after much was compiled."""
    ended = alone(tmp_path, RAISING, runner)
    assert all("caught sequence 5" in output for _, output in ended), ended
    assert [status for status, _ in ended] == [3, 3], ended


def test_the_launcher_refuses_what_it_cannot_run(tmp_path: Path) -> None:
    def status_of(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "spmdlint", "run", "-n", "2", *words],
            capture_output=True,
            text=True,
            timeout=90,
        )
        return done.returncode, done.stderr

    status, words = status_of(str(tmp_path))
    assert status == 2
    assert "spmdlint check" in words
    assert status_of(str(tmp_path / "absent.py"))[0] == 2
    assert status_of()[0] == 2
    script = tmp_path / "many.py"
    script.write_text("")
    status, words = status_of("-n", "17", str(script))
    assert status == 2
    assert "Lockstep compares up to 16 processes, and this job has 17: use --mode background." in words


LEAVING = """
def load(i):
    if me == 1 and i == 2:
        sys.exit({code})  # leaves
    return everywhere([i, i])

for i in range(4):
    w = step(w, load(i))  # waits
"""


@pytest.mark.parametrize(("code", "words"), [('"no shard 2"', "no shard 2"), ("0", "exit status 0")])
def test_who_leaves_by_sys_exit_is_placed_where_it_did(tmp_path: Path, code: str, words: str) -> None:
    run = rehearse(tmp_path, STEPS + LEAVING.format(code=code))
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert (run.line(0), run.line(1)) == (run.marked("waits"), run.marked("leaves"))
    assert f"process 1 exited by sys.exit at program.py:{run.marked('leaves')} ({words}) after" in run.report["message"]


def test_the_last_line_of_a_script_says_nothing_of_where_it_ended(tmp_path: Path) -> None:
    """``sys.exit(main())``: the last call of the process does."""
    ending = """
def main():
    global w
    for i in range(4 - me):
        w = step(w, everywhere([i, i]))  # steps
    return 0

sys.exit(main())
"""
    run = rehearse(tmp_path, STEPS + ending)
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert (run.line(0), run.line(1)) == (run.marked("steps"), run.marked("steps"))
    assert "process 1 finished after" in run.report["message"]


def test_tracebacks_hold_no_frames_of_the_checks(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        STEPS
        + """
@jax.jit
def refuses(x):
    raise NotImplementedError("no kernel for this size")

if me == 1:
    refuses(w)
w = step(w, everywhere([1, 1]))
""",
    )
    assert run.status == 3, run.output
    assert "NotImplementedError: no kernel for this size" in run.output
    assert "runtime_checks" not in run.output


@pytest.mark.parametrize("whole", [False, True])
def test_the_traceback_of_an_exception_that_is_caught_shows_the_way_to_the_call(tmp_path: Path, whole: bool) -> None:
    """The frames of the checks are there only for who asks JAX for whole tracebacks."""
    program = """
    import traceback
    from spmdlint import runtime_checks
    runtime_checks.enable(mode="lockstep")
    step = jax.jit(jnp.sum)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
    def save(x):
        return jax.jit(jnp.mean)(x)  # saves
    try:
        step(x) if jax.process_index() else save(x)
    except runtime_checks.DivergenceError:
        print("BEGIN", traceback.format_exc().partition("DivergenceError")[0], "END")
    """
    begin = 'jax.distributed.initialize("127.0.0.1:{port}", 2, int(sys.argv[1]))\n'
    environment = {"JAX_TRACEBACK_FILTERING": "off"} if whole else {}
    (status, output), _ = alone(tmp_path, begin + textwrap.dedent(program), environment=environment)
    assert status == 3, output
    shown = output.partition("BEGIN")[2].partition("spmdlint.runtime_checks.errors. END")[0]
    assert "in save\n    return jax.jit(jnp.mean)(x)  # saves\n" in shown, output
    assert ("runtime_checks/agreement/lockstep.py" in shown) == whole
    assert ("runtime_checks" in shown) == whole


def test_the_way_to_the_call_in_which_a_process_waits_is_told(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        STEPS
        + """
def epoch(w):
    for i in range(4 - me):
        w = step(w, everywhere([i, i]))  # step
    return w

w = epoch(w)  # epoch
""",
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    script = tmp_path / "program.py"
    way = [f"{script}:{run.marked('epoch')} in <module>", f"{script}:{run.marked('step')} in epoch"]
    assert run.report["processes"]["0"]["stack"] == way
    assert "stack, innermost last:\n      " + "\n      ".join(way) in run.output


IN_FLIGHT = """
from concurrent.futures import ThreadPoolExecutor
from jax._src import distributed
from spmdlint import runtime_checks
from spmdlint.runtime_checks.watching import watcher
watcher.ENDS_WITHIN, watcher.GRACE["raise"] = 1.0, 3.0  # the other process may be in a call
jax.distributed.initialize("127.0.0.1:{port}", 2, int(sys.argv[1]))
runtime_checks.enable("MODE", on_divergence="raise")
me = jax.process_index()
rows = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
x = jax.make_array_from_process_local_data(rows, np.ones(1, np.float32))
# As a checkpoint's thread does that waits for that of another process; the interpreter waits for it when it exits.
ThreadPoolExecutor(1).submit(distributed.global_state.client.wait_at_barrier, f"saved by {me}", 600_000)
steps = [jax.jit(lambda v: v.sum()), jax.jit(lambda v: v.max())]
for _ in range(1000):
    float(steps[me](x))
    time.sleep(0.01)
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_a_save_in_flight_does_not_hold_a_program_that_a_divergence_has_ended(mode: str, tmp_path: Path) -> None:
    ended = alone(tmp_path, IN_FLIGHT.replace("MODE", mode))
    assert [status for status, _ in ended] == [3, 3], ended
    assert any("was ended by a DivergenceError" in output for _, output in ended), ended


EARLY = """import os, time
def download():
    time.sleep(600)  # downloads
if os.environ["SPMDLINT_PROCESS"] == "1":
    download()  # first
import jax
jax.distributed.initialize()
"""


def test_a_process_that_never_joins_its_job_is_told_with_its_stack(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text(EARLY)
    for limit in ("6", "60"):  # a busy machine may need more time to come that far
        run = rehearse(tmp_path, tmp_path / "early.py", options=("--timeout", limit))
        if run.line(1) == run.marked("downloads"):
            break
    assert (run.status, run.verdict) == (124, ("late", None)), run.output
    assert run.line(1) == run.marked("downloads")
    stack = run.report["processes"]["1"]["stack"]
    assert stack[-1].endswith(f"early.py:{run.marked('downloads')} in download"), stack
    assert stack[-2].endswith(f"early.py:{run.marked('first')} in <module>"), stack


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_an_interrupt_of_a_job_is_no_divergence(mode: str, tmp_path: Path) -> None:
    """Without the launcher, and of one process: the other one goes on without checks."""
    ended = alone(
        tmp_path,
        f"""
        from spmdlint import runtime_checks
        jax.distributed.initialize("localhost:{{port}}", 2, int(sys.argv[1]))
        runtime_checks.enable(mode="{mode}")
        me, mesh = jax.process_index(), Mesh(np.array(jax.devices()), ("data",))
        x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(1, np.float32))
        jax.jit(lambda v: jnp.sum(v))(x).block_until_ready()
        if me == 1:
            raise KeyboardInterrupt
        limit = time.monotonic() + 30
        while runtime_checks.status().watching and time.monotonic() < limit:
            time.sleep(0.1)
            runtime_checks.assert_equal(1, "one")  # for which it would wait in lockstep
        print("went on:", runtime_checks.status().reason, flush=True)
        """,
    )
    assert (ended[0][0], ended[1][0] in (130, -2, 1)) == (0, True), ended
    assert "went on: the runtime checks are off in all processes: process 1 was interrupted at alone.py:" in ended[0][1]
    assert all("diverged" not in output and "What to do" not in output for _, output in ended), ended
