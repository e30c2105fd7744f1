"""Signals, hooks and functions that the checks replace: put back at the end, unless the program has its own by then."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.runtime.jobs import ROOT, alone

DEMAND = """
import faulthandler, os, signal, sys, time
from spmdlint.runtime_checks.watching.demand import Demand
got = []
demand = Demand("USR2")
{between}
demand.stop()
os.kill(os.getpid(), signal.SIGUSR2)
for _ in range(20):
    time.sleep(0.01)
print("alive", got)
"""


@pytest.mark.parametrize(
    ("between", "status", "output"),
    [
        ("", 0, "alive []\n"),
        ("signal.signal(signal.SIGUSR2, lambda *_: got.append(1))", 0, "alive [1]\n"),
        ("signal.signal(signal.SIGUSR2, signal.SIG_IGN)", 0, "alive []\n"),
        ("signal.signal(signal.SIGUSR2, signal.SIG_DFL)", -12, ""),
        ("own = open(os.devnull, 'w'); faulthandler.register(signal.SIGUSR2, file=own)", 0, "alive []\n"),
    ],
)
def test_a_handler_that_the_program_sets_later_stays(between: str, status: int, output: str) -> None:
    words = [sys.executable, "-c", DEMAND.format(between=between)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (status, output), done.stderr
    assert "spmdlint" not in done.stderr, "nobody answers any more"


ON_TOP = """
import signal
jax.distributed.initialize("127.0.0.1:{port}", 2, int(sys.argv[1]))
from spmdlint import runtime_checks
runtime_checks.enable(os.environ["MODE"])
me = jax.process_index()
from jax._src import compiler, distributed, pjit
from jax._src.interpreters import pxla
from jax.experimental import multihost_utils
def on_top(owner, name):
    ours = getattr(owner, name)
    def wrapped(*args, **named):
        return ours(*args, **named)
    setattr(owner, name, wrapped)
for owner, name in (
    (pxla.ExecuteReplicated, "__call__"),
    (pxla, "MeshExecutableFastpathData"),
    (pxla, "shard_args"),
    (compiler, "compile_or_get_cached"),
    (pjit, "_pjit_call_impl_python"),
    (multihost_utils, "assert_equal"),
    (distributed.State, "shutdown"),
):
    on_top(owner, name)
ours = sys.excepthook
def hook(*of):
    print("program's hook", of[0].__name__, flush=True)
    ours(*of)
sys.excepthook = hook
signal.signal(signal.SIGUSR2, lambda *_: print("program's signal", flush=True))
mesh = Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
@jax.jit
def first(v):
    return jnp.sum(v)
@jax.jit
def second(v):
    return jnp.sum(v) * 2
same = first(x).block_until_ready()
runtime_checks.disable()
# Compared, these two would be a divergence; for Gloo they are sums of one size.
for _ in range(3):
    print("not compared", float((first if me else second)(x)))
multihost_utils.assert_equal(np.float32(1))
os.kill(os.getpid(), signal.SIGUSR2)
jax.distributed.shutdown()
print(runtime_checks.status().watching)
raise ValueError("the end")
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_what_the_program_has_wrapped_around_a_hook_works_without_the_checks(mode: str, tmp_path: Path) -> None:
    ends = alone(tmp_path, textwrap.dedent(ON_TOP), environment={"MODE": mode})
    for me, (status, output) in enumerate(ends):
        assert status == 1, output
        assert output.count(f"not compared {4.0 if me else 8.0}") == 3, output
        assert "program's signal" in output
        assert output.count("program's hook ValueError") == 1
        assert output.count("ValueError: the end") == 1
        assert "False" in output
        assert "spmdlint: diverged" not in output


UNTOLD = """
import sys
from types import SimpleNamespace
from spmdlint.runtime_checks.errors import DivergenceError
from spmdlint.runtime_checks.hook import Hook
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.reporting.report import Report
hook = Hook(Options(mode="lockstep"), 1)
hook.start()
def tell():
    raise OSError("no space left")
hook.session = SimpleNamespace(ending=SimpleNamespace(tell=tell), stand_down=lambda *_, **__: None, failed=print)
raise DivergenceError(Report("diverged", "told in vain"))
"""


def test_a_report_that_cannot_be_written_is_no_error_of_the_hook() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNTOLD], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
    )
    assert done.returncode == 1
    assert "Error in sys.excepthook" not in done.stderr
