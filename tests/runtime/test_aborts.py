"""Jobs that their backend aborts, without a launcher: what made it abort is still reported."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from spmdlint.runtime_checks.ending.lastwords import LastWords
from tests.runtime.fakes import Behind
from tests.runtime.jobs import ROOT, alone, rehearse

pytestmark = pytest.mark.usefixtures("whole_ending")

BEGIN = """
import ctypes, faulthandler, threading
jax.distributed.initialize("127.0.0.1:{port}", 2, int(sys.argv[1]))
from spmdlint import runtime_checks
runtime_checks.enable("background")
me = jax.process_index()
mesh = Mesh(np.array(jax.devices()), ("data",))
def everywhere(local, *spec):
    place = NamedSharding(mesh, P("data", *spec))
    return jax.make_array_from_process_local_data(place, np.asarray(local, np.float32))
@jax.jit
def step(w, x):
    return w + jnp.sum(x)
@jax.jit
def evaluate(x):
    return jnp.sum(x * x, axis=0)
w, x = jax.device_put(np.float32(0), NamedSharding(mesh, P())), everywhere(np.ones(4))
"""

# What does not come is waited for as ever, but not as long.
SOONER = """
from spmdlint.runtime_checks.agreement import others
from spmdlint.runtime_checks.ending import lastwords
lastwords.WITHIN, others.ANSWERS_WITHIN = 2.0, 1.0
"""

# Both programs are known everywhere when one process evaluates alone: nothing is compiled or published before.
EVALUATION = (
    BEGIN
    + """
samples = everywhere(np.ones((2, 5000)), None)
try:
    for i in range(60):
        w = step(w, x)  # step
        if i == 3 or (i == 30 and me == {who}):
            evaluate(samples).block_until_ready()  # evaluation
        w.block_until_ready()
except Exception as error:  # what the process that was not aborted gets once the other has ended
    print("then", type(error).__name__, flush=True)
    os._exit(5)
"""
)


def line_of(source: str, word: str, folder: Path) -> str:
    script = (folder / "alone.py").read_text().splitlines()
    assert word in source
    return f"alone.py:{next(n for n, text in enumerate(script, 1) if text.endswith(f'# {word}'))}"


@pytest.mark.parametrize("who", [0, 1])
def test_an_evaluation_on_one_process_is_reported_though_the_backend_aborts(who: int, tmp_path: Path) -> None:
    ends = alone(tmp_path, EVALUATION.replace("{who}", str(who)))
    outputs = [output for _, output in ends]
    assert ends[1 - who][0] == -6, outputs  # the process that got more than it had room for
    text = next(output for output in outputs if "spmdlint: diverged (sequence)" in output)
    places = [line_of(EVALUATION, "evaluation", tmp_path), line_of(EVALUATION, "step", tmp_path)]
    sentence = next(line for line in text.splitlines() if "diverged (sequence)" in line)
    assert f"process {who} calls evaluate at {places[0]}" in sentence
    assert f"process {1 - who} calls step at {places[1]}" in sentence
    (named,) = [line for output in outputs for line in output.splitlines() if line.startswith('{"spmdlint"')]
    told = json.loads(named)
    assert (told["kind"], told["process"]) == ("sequence", outputs.index(next(one for one in outputs if named in one)))
    assert told["message"] in sentence


AGREEING = (
    BEGIN
    + SOONER
    + """
for i in range(5):
    w = step(w, x)  # step
    w.block_until_ready()
if me == 1:
    threading.Thread(target=ctypes.CDLL(None).abort).start()
try:
    while True:
        time.sleep(0.05)
        step(w, x).block_until_ready() if me == 0 else None
except Exception:
    os._exit(5)
"""
)


def test_an_abort_among_processes_that_agree_is_not_called_a_divergence(tmp_path: Path) -> None:
    ends = alone(tmp_path, AGREEING, environment={"TMPDIR": str(tmp_path), "PYTHONFAULTHANDLER": "1"})
    assert ends[1][0] == -6, ends
    assert "diverged" not in ends[0][1] + ends[1][1]
    told = [line for line in ends[1][1].splitlines() if "is being ended by SIGABRT" in line]
    assert len(told) == 1, ends
    assert re.search(r"after call \d+ of processes 0-1, step at alone.py:\d+", told[0])
    assert "no difference was found" in ends[1][1]
    assert "Fatal Python error: Aborted" in ends[1][1], "Python's own report of the crash is still there"


# Two threads, whose calls come in one order here; a backend may run them in another, and then aborts.
IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1, thread_name_prefix="evaluator")
for i in range(3):
    w = step(w, x)
    w.block_until_ready()
    pool.submit(lambda: evaluate(x).block_until_ready()).result()
time.sleep(2)
if me == 1:
    threading.Thread(target=ctypes.CDLL(None).abort).start()
    time.sleep(60)
step(w, x).block_until_ready()
"""
THREADS = "everal threads make parallel calls, whose order is determined only if each waits for the other: in process"
ADVICE = "Make all parallel calls of a process in one thread"


def test_the_last_words_of_a_process_with_parallel_calls_in_threads_name_these(tmp_path: Path) -> None:
    ends = alone(
        tmp_path, BEGIN + SOONER + IN_THREADS, environment={"TMPDIR": str(tmp_path), "SPMDLINT_ON_DIVERGENCE": "exit"}
    )
    assert [status for status, _ in ends] == [3, -6], ends
    (told,) = [line for line in ends[1][1].splitlines() if "no other difference was found" in line]
    assert told.startswith(f"spmdlint: S{THREADS} 1, MainThread, evaluator_0.")
    assert ADVICE in told
    assert "SPMD307" in told
    assert "network" not in ends[1][1]
    (verdict,) = [line for line in ends[0][1].splitlines() if line.startswith("spmdlint: diverged (missing)")]
    assert verdict.startswith(
        f"spmdlint: diverged (missing): s{THREADS}es 0-1, MainThread, evaluator_0. Then process 1"
    )
    assert "killed by SIGABRT" in verdict
    assert f"What to do: {ADVICE}" in ends[0][1]
    assert re.search(r"To ask the linter about a line: spmdlint explain \S+alone.py:\d+", ends[0][1])
    assert "Rules that may explain it: SPMD307" in ends[0][1]


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_an_abort_among_threads_names_these_in_a_rehearsal(mode: str, tmp_path: Path) -> None:
    program = "import ctypes, threading\n" + BEGIN.partition("me = ")[1] + BEGIN.partition("me = ")[2] + IN_THREADS
    run = rehearse(tmp_path, program, options=("--mode", mode))
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert run.report["message"].startswith(f"s{THREADS}"), run.output
    assert "process 1 was killed by signal 6" in run.report["message"]
    assert run.report["advice"].startswith(ADVICE)
    assert (
        run.report["explained_by"] == run.report["findings"] == []
    )  # a rehearsal asks the linter, which finds nothing


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_an_abort_of_all_processes_at_once_names_the_calls_of_threads(mode: str, tmp_path: Path) -> None:
    """Nobody is left to tell: the launcher reads what they have recorded."""
    program = "import ctypes, threading\n" + BEGIN.partition("me = ")[1] + BEGIN.partition("me = ")[2]
    program += IN_THREADS.replace("if me == 1:", "if True:").replace("time.sleep(2)", "")
    run = rehearse(tmp_path, program, options=("--mode", mode))
    assert (run.status, run.verdict) == (134, ("failed", None)), run.output
    assert run.report["message"].startswith(f"s{THREADS}es 0-1, the main thread calls step at program.py:"), run.output
    assert "and another thread calls evaluate at program.py:" in run.report["message"]
    assert run.report["message"].endswith("Then processes 0-1 killed by SIGABRT.")
    assert f"What to do: {ADVICE}" in run.output


# Process 0 goes once process 1 has made its call.
LEFT = (
    BEGIN
    + """
step(w, x).block_until_ready()  # step
if me == 1:
    open("called", "w").close()
else:
    while not os.path.exists("called"):
        time.sleep(0.05)
"""
)
KILLED = (
    LEFT
    + """
if me == 0:
    os.kill(os.getpid(), 9)
time.sleep(60)
"""
)
# Whoever asks the store of a process that stands still waits for the answer without an end: as long as it lives.
STOPPED = (
    LEFT
    + """
import subprocess
pipe = "called" + ".pipe"
if me == 0:
    os.mkfifo(pipe)
    words = ["/bin/sh", "-c", 'cat "$0"; kill -9 "$1"', pipe, str(os.getpid())]
    subprocess.Popen(words, stdout=-3, stderr=-3)
    os.kill(os.getpid(), 19)
while not os.path.exists(pipe):
    time.sleep(0.05)
alive = open(pipe, "w")
time.sleep(1)
threading.Thread(target=ctypes.CDLL(None).abort).start()
time.sleep(60)
"""
)


# These versions end a process that has lost process 0 by _exit, where nothing of it can run any more.
SPEECHLESS = (0, 7) <= jax.__version_info__ < (0, 9)


@pytest.mark.parametrize(
    ("source", "status"), [(KILLED, 1 if SPEECHLESS else -6), (STOPPED, -6)], ids=["killed", "stopped"]
)
def test_the_last_words_of_a_process_do_not_need_the_store(source: str, status: int, tmp_path: Path) -> None:
    """JAX aborts a process that has lost process 0, and the store with it."""
    source = source.replace('"called"', repr(str(tmp_path / "called")))
    ends = alone(tmp_path, source, environment={"TMPDIR": str(tmp_path)})
    assert [one for one, _ in ends] == [-9, status], ends
    if status == -6:
        told = ends[1][1]
        assert f"step at {line_of(source, 'step', tmp_path)}" in told, told
        assert "look at process 0 first" in told, told


HOLD = """
import ctypes, faulthandler, os, signal, sys, threading, time
from spmdlint.runtime_checks.ending.lastwords import AbortHold
"""


def ended(source: str) -> tuple[int, str]:
    words = [sys.executable, "-c", HOLD + textwrap.dedent(source)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    return done.returncode, done.stdout + done.stderr


def test_other_threads_run_while_a_thread_aborts() -> None:
    status, output = ended("""
        hold = AbortHold()
        threading.Thread(target=ctypes.CDLL(None).abort).start()
        while hold.begun() is None:
            time.sleep(0.05)
        print("last words", hold.begun(), flush=True)
        hold.finish()
        time.sleep(60)
    """)
    assert (status, output) == (-6, "last words 6\n")


def test_a_signal_from_outside_still_ends_the_process() -> None:
    """The main thread is in Python, so that no other thread runs before the handler has returned."""
    status, output = ended("""
        hold = AbortHold()
        os.kill(os.getpid(), signal.SIGABRT)
        print("survived", hold.begun(), flush=True)
        hold.finish()
        time.sleep(60)
    """)
    assert (status, output) == (-6, "survived 6\n")


@pytest.mark.parametrize(
    "source",
    [
        "hold = AbortHold(); hold.release()",
        "faulthandler.enable(); hold = AbortHold(); hold.release()",
        "hold = AbortHold(); signal.signal(signal.SIGABRT, lambda *_: print('mine')); hold.release()",
        "signal.signal(signal.SIGABRT, lambda *_: print('mine')); hold = AbortHold(); hold.release()",
        "hold = AbortHold(); signal.signal(signal.SIGABRT, signal.SIG_DFL); hold.release()",
    ],
)
def test_the_actions_of_signals_are_put_back_and_the_programs_are_left_alone(source: str) -> None:
    status, output = ended(f"""
        {source}
        assert hold.begun() is None
        os.kill(os.getpid(), signal.SIGABRT)
        for _ in range(100):
            time.sleep(0.01)
        print("alive", faulthandler.is_enabled())
    """)
    if "print('mine')" in source:
        assert (status, output) == (0, "mine\nalive False\n")
    else:
        assert status == -6
        assert ("Fatal Python error: Aborted" in output) == ("faulthandler.enable" in source)


def test_a_forked_child_has_no_hold() -> None:
    status, output = ended("""
        hold = AbortHold()
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGABRT)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), hold.begun())
    """)
    assert (status, output) == (0, "-6 None\n")


def test_an_abort_that_holds_the_journal_ends_the_process_all_the_same() -> None:
    job = Behind(2)
    try:
        background = job.sessions[1].background
        assert background is not None
        one, ended, left = job.sessions[1], threading.Event(), threading.Event()
        words = LastWords(one.parts, background)
        hold = SimpleNamespace(begun=lambda: signal.SIGABRT, finish=ended.set, release=lambda: None)
        words._hold = hold  # type: ignore[assignment]

        def abort() -> None:
            with background.journal._lock:
                left.wait(60)

        aborting = threading.Thread(target=abort, daemon=True)
        aborting.start()
        words.start()
        assert ended.wait(30)
        left.set()
        aborting.join(30)
        words.release()
    finally:
        job.stop()
