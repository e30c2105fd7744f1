"""The launcher joins what the linter itself says about the lines of a divergence: no stand-in for it here."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.runtime.jobs import HANGS, PRELUDE, rehearse, start, strays


def test_a_barrier_on_one_process_only_is_explained_by_the_linter(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        from jax.experimental import multihost_utils
        if jax.process_index() == 0:
            multihost_utils.sync_global_devices("checkpoint written")  # guarded
        print("went on")
        """,
    )
    assert run.status == 3, run.output
    assert run.verdict == ("diverged", "missing"), run.output
    place = f"{tmp_path / 'program.py'}:{run.marked('guarded')}"
    assert [(one["code"], one["place"]) for one in run.report["findings"]] == [("SPMD301", place)]
    told = f"The linter reports SPMD301: {place}: sync_global_devices is a parallel call"
    assert told in run.output.partition("What to do: ")[2], "the verdict is printed before the linter is asked"
    named = next(line for line in run.output.splitlines() if "Rules that may explain it" in line)
    assert "SPMD301" in named
    assert "SPMD301" in run.report["explained_by"]


def test_a_finding_where_a_helper_is_called_explains_two_barriers(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        from jax.experimental import multihost_utils
        def reached(name):
            multihost_utils.sync_global_devices(name)  # in the helper
        if jax.process_index() == 0:
            reached("written")  # guarded
        reached("done")  # for all
        """,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "sequence")), run.output
    assert (run.line(0), run.line(1)) == (run.marked("in the helper"), run.marked("in the helper"))
    own = f"called from program.py:{run.marked('guarded')}; process 1"
    assert own in run.report["message"]
    assert run.report["findings"][0]["place"] == f"{tmp_path / 'program.py'}:{run.marked('guarded')}"
    assert run.report["explained_by"] == ["SPMD301"]


def test_findings_of_other_cases_in_the_script_are_left_out(tmp_path: Path) -> None:
    program = """
    from jax.experimental import multihost_utils
    def shapes():
        multihost_utils.sync_global_devices(f"shapes {me}")  # differs
    def order():
        for name in {"loss", "norm"}:
            multihost_utils.sync_global_devices(name)
    def leave():
        if me == 0:
            sys.exit(0)
        multihost_utils.sync_global_devices("after")
    {"shapes": shapes, "order": order, "leave": leave}[os.environ["CASE"]]()
    """
    run = rehearse(tmp_path, program, environment={"CASE": "shapes"})
    assert run.verdict == ("diverged", "arguments"), run.output
    assert run.line(0) == run.marked("differs")
    place = f"{tmp_path / 'program.py'}:{run.marked('differs')}"
    assert [(one["code"], one["place"]) for one in run.report["findings"]] == [("SPMD308", place)]
    assert run.report["explained_by"] == ["SPMD308"]
    run = rehearse(tmp_path, program, environment={"CASE": "leave"})
    assert run.verdict == ("diverged", "missing"), run.output
    assert [one["code"] for one in run.report["findings"]] == ["SPMD301"]
    assert run.report["explained_by"] == ["SPMD301"]


def test_a_function_that_nobody_called_explains_nothing(tmp_path: Path) -> None:
    program = """
    from jax.experimental import multihost_utils
    def gather():
        multihost_utils.process_allgather(np.array([1]))  # in the helper
    def unused():
        if jax.process_index() == 0:
            gather()
    def main():
        gather()
        if os.environ.get("NEVER"):
            unused()
        if mine.isdigit():
            END
        gather()
    mine = os.environ["SPMDLINT_PROCESS"].replace("0", "-")
    main()
    """
    returned = rehearse(tmp_path, program.replace("END", "return"))
    assert returned.verdict == ("diverged", "missing"), returned.output
    assert returned.line(0) == returned.marked("in the helper")
    assert returned.report["findings"] == [], returned.output
    died = rehearse(tmp_path, program.replace("END", "os._exit(9)"))
    assert died.verdict == ("diverged", "missing"), died.output
    assert died.report["findings"] == died.report["explained_by"] == [], died.output


def test_rules_without_a_finding_are_not_named(tmp_path: Path) -> None:
    program = """
    losses = [jax.jit(lambda v: v.sum()), jax.jit(lambda v: v.max())]
    losses[me](everywhere([1.0, 2.0]))
    """
    run = rehearse(tmp_path, program)
    assert run.verdict[0] == "diverged", run.output
    assert (run.report["findings"], run.report["explained_by"]) == ([], []), run.output
    assert "Rules that may explain it" not in run.output
    assert "What to do: " in run.output


@pytest.mark.parametrize(("by", "status"), [(signal.SIGINT, 3), (signal.SIGKILL, -9)])
def test_the_verdict_comes_before_the_linter_which_ends_with_the_launcher(by: int, status: int, tmp_path: Path) -> None:
    """Nothing is left behind, whatever ends the launcher: `rehearse` looks for that."""
    program = """
    from jax.experimental import multihost_utils
    if me == 0:
        multihost_utils.sync_global_devices("checkpoint written")
    """
    steps = (f"def step_{n}(x):\n    return jax.lax.psum(x, 'i') + {n}\n" for n in range(3000))
    (tmp_path / "large.py").write_text("import jax\n" + "".join(steps))  # which the linter does not do in no time
    run = rehearse(tmp_path, program, interrupt_at="What to do: ", interrupt_by=by)
    assert run.status == status, run.output
    assert "spmdlint: diverged (missing): " in run.output
    assert "The linter reports" not in run.output
    if by == signal.SIGINT:
        assert "Note: The linter was interrupted, so its findings are not among these lines. Ask it" in run.output
        assert run.verdict == ("diverged", "missing")


KILLED_AS_IT_STARTS_THE_LINTER = """
import os, signal, subprocess, sys, types
from spmdlint.cli import main
from spmdlint.runtime_checks.launch import findings
def start(words, **how):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", words[-1]], **how)
    os.kill(os.getpid(), signal.SIGKILL)
findings.subprocess = types.SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL, PIPE=subprocess.PIPE)
sys.exit(main(sys.argv[1:]))
"""


def test_a_linter_that_has_just_been_started_ends_with_the_launcher(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        PRELUDE + "from jax.experimental import multihost_utils\nme or multihost_utils.sync_global_devices('written')\n"
    )
    words = ["-c", KILLED_AS_IT_STARTS_THE_LINTER, "run", "-n", "2", str(script)]
    job = start(words, os.environ, cold=True)
    output = job.communicate(timeout=HANGS)[0]
    assert (job.returncode, "spmdlint: diverged (missing): " in output) == (-signal.SIGKILL, True), output
    assert strays(str(script)) == [], output
