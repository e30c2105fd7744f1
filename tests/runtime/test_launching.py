"""What the launcher takes, what it refuses before it starts anything, and what it says of a run that went well."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spmdlint import runtime_checks
from spmdlint.cli import run
from tests.runtime.forked import can_fork
from tests.runtime.forked import run as forked
from tests.runtime.jobs import rehearse, strays

ALONE = "import jax\nimport jax.numpy as jnp\nprint(jax.process_count(), float(jnp.ones(2).sum()))\n"


def launched(folder: Path, *words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Forked, but with an environment of its own, which may be about what Python does when it starts."""
    if environment is None and can_fork(os.environ):
        done = forked(["-m", "spmdlint", "run", *words], folder, b"", os.environ, "jobs")
        return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())
    return subprocess.run(
        [sys.executable, "-m", "spmdlint", "run", *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_processes_that_never_join_a_job_are_not_called_clean(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ALONE)
    run = rehearse(tmp_path, tmp_path / "alone.py")
    assert (run.status, run.report["verdict"]) == (0, "unchecked"), run.output
    assert "none of them called jax.distributed.initialize()" in run.report["message"]
    assert f"spmdlint: unchecked: {run.report['message']}" in run.output
    strict = rehearse(tmp_path, tmp_path / "alone.py", options=("--fail-on-unchecked",))
    assert (strict.status, strict.report["verdict"]) == (2, "unchecked"), strict.output
    assert "nothing was compared, so the status is 2" in strict.output


def test_what_is_no_record_in_the_folder_of_a_run_counts_as_not_there(tmp_path: Path) -> None:
    program = """
    import os, pathlib
    folder = pathlib.Path(os.environ["SPMDLINT_RUN_FOLDER"])
    for name in ("report.json", "joining.0", "gone.0", "gone.1"):
        for text in ('{"verdict": 3, "status": "killed"}', "[" * 100_000):
            folder.joinpath(f"{name}.new{jax.process_index()}").write_text(text)
            folder.joinpath(f"{name}.new{jax.process_index()}").replace(folder / name)
    value(jax.jit(jnp.sum)(everywhere([1, 2])))
    """
    run = rehearse(tmp_path, program)
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert run.report["message"] == "processes 0-1 made the same 1 parallel call."


def test_how_much_was_compared_is_said(tmp_path: Path) -> None:
    program = "step = jax.jit(jnp.sum)\nfor _ in range(int(sys.argv[1])):\n    value(step(everywhere([1, 2])))\n"
    (tmp_path / "none").mkdir()
    without = rehearse(tmp_path / "none", "print('joined')", options=("--fail-on-unchecked",))
    assert (without.status, without.report["verdict"]) == (2, "unchecked"), without.output
    assert without.report["message"] == "processes 0-1 ended; they made no parallel calls, so nothing was compared."
    (tmp_path / "one").mkdir()
    one = rehearse(tmp_path / "one", program.replace("int(sys.argv[1])", "3"), 1, options=("--fail-on-unchecked",))
    assert (one.status, one.report["verdict"]) == (2, "unchecked"), one.output
    assert "there was only one, so nothing was compared" in one.report["message"]
    run = rehearse(tmp_path, program.replace("int(sys.argv[1])", "3"))
    assert run.report["message"] == "processes 0-1 made the same 3 parallel calls.", run.output


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_a_clean_run_says_that_several_threads_made_calls(mode: str, tmp_path: Path) -> None:
    program = """
    import threading
    step = jax.jit(jnp.sum)
    value(step(everywhere([1, 2])))
    loader = threading.Thread(target=lambda: value(step(everywhere([3, 4]))) and time.sleep(1), name="loader")
    loader.start()
    loader.join()
    value(step(everywhere([5, 6])))
    """
    run = rehearse(tmp_path, program, options=("--mode", mode))
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    order = "whose order is determined only if each waits for the other"
    told = f"Several threads make parallel calls, {order}: in processes 0-1, "
    assert run.report["notes"] == [f"{told}MainThread, loader."], run.output
    assert f"  Note: {run.report['notes'][0]}" in run.output


def test_a_thread_that_makes_the_last_call_is_told_as_well(tmp_path: Path) -> None:
    program = """
    import threading
    step = jax.jit(jnp.sum)
    for _ in range(3):
        value(step(everywhere([1, 2])))
    last = threading.Thread(target=lambda: value(step(everywhere([3, 4]))))
    last.start()
    last.join()
    """
    run = rehearse(tmp_path, program, options=("--mode", "background"))
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    order = "whose order is determined only if each waits for the other"
    told = f"Several threads make parallel calls, {order}: in processes 0-1, "
    assert [note.startswith(told) for note in run.report["notes"]] == [True], run.output


def test_a_library_may_ask_for_jax_before_it_is_imported(tmp_path: Path) -> None:
    """As datasets and transformers do when they are imported: they look for its spec, and import nothing."""
    asks = "import importlib.util\nassert importlib.util.find_spec('jax') is not None\n"
    joins = "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import multihost_utils\n"
    calls = "jax.distributed.initialize()\nmultihost_utils.process_allgather(jnp.ones(()))\n"
    (tmp_path / "asks.py").write_text(asks + joins + calls)
    run = rehearse(tmp_path, tmp_path / "asks.py")
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert "made the same 1 parallel call" in run.report["message"], run.output


def test_processes_that_end_without_a_word_are_not_said_to_have_made_no_calls(tmp_path: Path) -> None:
    program = "step = jax.jit(jnp.sum)\nvalue(step(everywhere([1, 2])))\nsys.stdout.flush()\nos._exit(0)\n"
    run = rehearse(tmp_path, "import os\n" + program)
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert run.report["message"].startswith("processes 0-1 ended without Python's exit, as by os._exit()"), run.output


EXPLICIT = """import jax
jax.distributed.initialize("10.1.2.3:1234", num_processes=4, process_id=1)
print("process", jax.process_index(), "of", jax.process_count())
"""


def test_the_launchers_numbers_take_the_place_of_the_programs(tmp_path: Path) -> None:
    (tmp_path / "explicit.py").write_text(EXPLICIT)
    run = rehearse(tmp_path, tmp_path / "explicit.py")
    assert (run.status, run.report["verdict"]) == (0, "unchecked"), run.output
    for process in (0, 1):
        assert f"[{process}] process {process} of 2" in run.output
        told = f"was called for process 1 of 4; in this rehearsal it is process {process} of 2."
        assert f"[{process}] spmdlint: jax.distributed.initialize() {told}" in run.output


def test_a_module_needs_no_double_dash(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text("import sys\nprint('module', sys.argv[1:])\n")
    done = launched(tmp_path, "-n", "1", "-m", "shown", "--steps", "3", "-m", "x")
    assert done.returncode == 0, done.stderr
    assert "[0] module ['--steps', '3', '-m', 'x']" in done.stdout
    script = launched(tmp_path, "-n", "1", "shown.py", "-m", "x")
    assert "[0] module ['-m', 'x']" in script.stdout, script.stderr


SHADOWS = ("inspect", "types", "functools", "socket", "json", "random")
"""Names of modules that the service, the checks and JAX import."""


def shadowed(folder: Path) -> str:
    """A folder with files that have names of the standard library, and below it a program; the program's name."""
    for name in SHADOWS:
        (folder / f"{name}.py").write_text("raise RuntimeError('the current folder')\n")
    (folder / "src").mkdir()
    (folder / "src" / "beside.py").write_text("WORD = 'beside'\n")
    (folder / "src" / "step.py").write_text(
        "import sys\nimport jax\nimport beside\njax.distributed.initialize()\n"
        "from jax.experimental import multihost_utils\nmultihost_utils.sync_global_devices('a')\n"
        "print(beside.WORD, *sys.path[:1], sys.argv[1:])\n"
    )
    return "src/step.py"


def test_a_file_in_the_current_folder_does_not_take_the_place_of_a_module_of_python(tmp_path: Path) -> None:
    """As with ``python src/step.py``, which sees the folder of the script only."""
    script = shadowed(tmp_path)
    words = [str(Path(sys.executable).with_name("spmdlint")), "run", "-n", "2", script, "-m", "x"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    for process in (0, 1):
        assert f"[{process}] beside {tmp_path / 'src'} ['-m', 'x']" in done.stdout
    assert "spmdlint: clean: processes 0-1 made the same 1 parallel call." in done.stderr


def test_the_runner_does_not_show_the_current_folder_to_a_script(tmp_path: Path) -> None:
    shadowed(tmp_path)
    (tmp_path / "functools.py").unlink()  # Python itself imports these before the first line of ours
    (tmp_path / "types.py").unlink()
    (tmp_path / "src" / "alone.py").write_text("import beside, inspect, sys\nprint(beside.WORD, sys.path[0])\n")
    done = subprocess.run(
        [sys.executable, "-m", "spmdlint.runtime_checks", "src/alone.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"beside {tmp_path / 'src'}\n"), done.stderr


def test_the_end_of_a_service_that_fails_is_told_in_whole_lines(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("import time\ntime.sleep(60)\n")
    (tmp_path / "jaxlib").mkdir()
    lines = [f"line {number} of a long message" for number in range(200)]
    (tmp_path / "jaxlib" / "__init__.py").write_text(f"import sys\nsys.exit({chr(10).join(lines)!r})\n")
    done = launched(tmp_path, "-n", "1", "alone.py", environment={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2
    told = done.stderr.partition("spmdlint: The coordination service ended with status 1:\n")[2].rstrip().splitlines()
    assert told[0] == "..."
    assert told[-1] == lines[-1]
    assert set(told[1:]) <= set(lines)


ENDS_THE_SERVICE = """
import os, pathlib, signal, time
launcher = os.getppid()
tasks = pathlib.Path(f"/proc/{launcher}/task").iterdir()
[service] = {int(each) for task in tasks for each in (task / "children").read_text().split()} - {os.getpid()}
if os.fork() == 0:
    time.sleep(0.5)
    os.kill(launcher, signal.SIGCONT)
    os._exit(0)
os.kill(launcher, signal.SIGSTOP)  # it sees both ends at once
os.kill(service, signal.SIGKILL)
os._exit(5)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_service_that_ends_after_all_processes_takes_nothing_from_the_report(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ENDS_THE_SERVICE)
    run = rehearse(tmp_path, tmp_path / "alone.py", processes=1)
    assert (run.status, run.report["verdict"]) == (5, "failed"), run.output


def test_a_module_sees_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    (tmp_path / "shown.py").write_text("import beside, sys\nprint(beside.WORD, sys.path[0])\n")
    done = launched(tmp_path, "-n", "1", "-m", "shown")
    assert f"[0] beside {tmp_path}" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--report", "missing/report.json"), "missing/report.json cannot be written"),
        (("--sarif", "missing/report.sarif"), "missing/report.sarif cannot be written"),
        (("--log-dir", "file.txt/logs"), "file.txt/logs cannot be created"),
        (("--ledger", "file.txt/ledger"), "file.txt/ledger cannot be created"),
        (("--timeout", "0"), "'0' is not a number of seconds above 0"),
        (("--timeout", "soon"), "'soon' is not a number of seconds above 0"),
        (("--devices-per-process", "0"), "'0' is not an integer of at least 1"),
        (("--devices-per-process", "1025"), "1025 is more than 1,024, the most on one machine"),
        (("-n", "100000"), "100000 is more than 1,024, the most on one machine"),
        (("--", "-m"), "spmdlint: -m needs the name of a module: spmdlint run -n 2 -m train\n"),
    ],
)
def test_what_cannot_work_is_said_before_anything_starts(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    (tmp_path / "alone.py").write_text("print('started')\n")
    (tmp_path / "file.txt").touch()
    done = launched(tmp_path, "-n", "2", *words, *([] if words[-1] == "-m" else ["alone.py"]))
    assert done.returncode == 2
    assert told in done.stderr
    assert "started" not in done.stdout
    assert "Internal error" not in done.stderr


def test_many_processes_on_few_cores_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    run._warn_of_many(8)
    assert capsys.readouterr().err == ""
    run._warn_of_many(9)
    assert capsys.readouterr().err.startswith("spmdlint: 9 processes share 2 cores here")


def test_a_signal_while_processes_are_started_ends_the_run(tmp_path: Path) -> None:
    many, logs = 300, tmp_path / "logs"
    (tmp_path / "waits.py").write_text("import time\ntime.sleep(1000)\n")
    words = f"run -n {many} --mode background --log-dir logs waits.py".split()
    launcher = subprocess.Popen(
        [sys.executable, "-m", "spmdlint", *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (logs / "3.out").exists() and launcher.poll() is None:
        time.sleep(0.05)
    launcher.terminate()
    said = launcher.communicate(timeout=150)[1]
    assert launcher.returncode == 130, said
    assert "the run was interrupted" in said
    assert len(list(logs.glob("*.out"))) < many
    assert not strays("waits.py")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            'os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"',
            "(default: 1); XLA_FLAGS=--xla_force_host_platform_device_count=3 has no effect on that.",
        ),
        (
            'import jax; jax.config.update("jax_num_cpu_devices", 3)',
            "has 3 CPU devices, as the program's jax_num_cpu_devices says; --devices-per-process (2) has no",
        ),
        ('os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"', ""),
    ],
)
def test_which_number_of_devices_counts_is_said(tmp_path: Path, line: str, told: str) -> None:
    program = tmp_path / "devices.py"
    program.write_text(
        f"import os\n{line}\nimport jax\njax.distributed.initialize()\nprint('has', jax.local_device_count())\n"
    )
    run = rehearse(tmp_path, program, devices=2)
    assert run.status == 0, run.output
    assert run.output.count(told or "CPU devices") == (1 if told else 0), run.output
    assert f"has {3 if 'config' in line else 2}" in run.output


@pytest.mark.parametrize(
    ("words", "warned"),
    [
        (("shown.py", "--mode", "off"), ["--mode"]),
        (("shown.py", "--timeout=3", "--steps", "2", "--html", "a.html", "--html", "b.html"), ["--timeout", "--html"]),
        (("shown.py", "--steps", "2"), []),
        (("shown.py", "--ledger", "books"), []),
        (("--", "shown.py", "--mode", "off"), []),
        (("-m", "shown", "--mode", "off"), []),
    ],
)
def test_an_option_after_the_script_is_told_unless_it_is_the_scripts(
    tmp_path: Path, words: tuple[str, ...], warned: list[str]
) -> None:
    (tmp_path / "shown.py").write_text("import sys\nmodel = '--ledger' in sys.argv\nprint(sys.argv[1:])\n")
    done = launched(tmp_path, "-n", "1", *words)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "comes after the script" in line]
    assert [line.split()[1] for line in lines] == warned
    assert all(f"spmdlint run {word} ... shown.py" in line for word, line in zip(warned, lines, strict=True))


def test_the_options_that_are_told_after_the_script_are_those_of_the_command() -> None:
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    known = {name for action in parser._actions for name in action.option_strings if name.startswith("--")}
    assert known - {"--help", "--processes"} == set(run.OPTIONS)


def test_a_page_without_calls_is_not_said_to_show_them(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("print('started')\n")
    done = launched(tmp_path, "-n", "1", "--mode", "off", "--html", "page.html", "alone.py")
    assert done.returncode == 0, done.stderr
    assert "page.html shows the verdict, and no calls, as none were recorded" in done.stderr
    assert "shows the calls" not in done.stderr


def test_a_time_out_counts_the_start(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("import time\ntime.sleep(60)\n")
    done = launched(tmp_path, "-n", "999", "--mode", "background", "--timeout", "1", "alone.py")
    assert done.returncode == 2
    assert "of 999 processes were started" in done.stderr


def test_a_mode_that_does_not_exist_is_said_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("print('started')\n")
    done = subprocess.run(
        [sys.executable, "-m", "spmdlint.runtime_checks", "alone.py"],
        cwd=tmp_path,
        env={**os.environ, "SPMDLINT_RUNTIME_CHECKS": "lockstpe"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "spmdlint: SPMDLINT_RUNTIME_CHECKS is 'lockstpe': use one of lockstep, background, off.\n"


NUMBERS = ["LATE_AFTER", "JOIN_WITHIN"]
NO_NUMBERS = ["soon", "-1", "nan", "1e999"]
# Each value, and every variable.
TRIED = [*(("LATE_AFTER", value) for value in NO_NUMBERS), ("JOIN_WITHIN", "-1")]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        pytest.param(name, value, marks=() if (name, value) in TRIED else pytest.mark.long)
        for name in NUMBERS
        for value in NO_NUMBERS
    ],
)
def test_a_number_that_is_none_is_said_without_a_traceback(variable: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("print('started')\n")
    done = subprocess.run(
        [sys.executable, "-m", "spmdlint.runtime_checks", "alone.py"],
        cwd=tmp_path,
        env={**os.environ, f"SPMDLINT_{variable}": value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"spmdlint: SPMDLINT_{variable} is '{value}': give a number"), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("given", ["x", "5", float("nan"), 0, -1, [3]])
def test_a_bound_that_is_no_number_is_told_as_other_arguments_are(given: object) -> None:
    with pytest.raises(ValueError, match=r"join_within is .*: give a number of seconds above 0"):
        runtime_checks.enable(join_within=given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--help",), 0, ""),
        (("nothere.py",), 2, "nothere.py: give a Python file, or -m and a module."),
        (
            ("--mode", "background", "alone.py"),
            2,
            "set the environment variable SPMDLINT_RUNTIME_CHECKS=background instead",
        ),
        (("--mode=off", "alone.py"), 2, "set the environment variable SPMDLINT_RUNTIME_CHECKS=off instead"),
        (("--report", "x", "alone.py"), 2, "There is no option --report: settings are environment variables"),
        ((), 2, "usage: python -m spmdlint.runtime_checks"),
    ],
)
def test_what_the_runner_does_not_take(words: tuple[str, ...], status: int, told: str, tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("print('started')\n")
    done = subprocess.run(
        [sys.executable, "-m", "spmdlint.runtime_checks", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert told in done.stderr
    assert "started" not in done.stdout
    assert ("SPMDLINT_RUNTIME_CHECKS is the mode" in done.stdout) == (status == 0)


@pytest.mark.parametrize(
    ("program", "shown", "told"),
    [
        (
            "import os\n\nimport nosuchmodule\n",
            ["Traceback (most recent call last):", 'File "{script}", line 3, in <module>', "import nosuchmodule"],
            "raised an exception at alone.py:3 (ModuleNotFoundError: No module named 'nosuchmodule').",
        ),
        (
            "x = 1\ndef f(:\n",
            ['File "{script}", line 2', "def f(:", "^", "SyntaxError: invalid syntax"],
            "raised an exception at alone.py:2 (SyntaxError: invalid syntax).",
        ),
    ],
)
def test_what_ends_a_program_before_it_imports_jax_is_shown_from_its_own_line(
    tmp_path: Path, program: str, shown: list[str], told: str
) -> None:
    script = tmp_path / "alone.py"
    script.write_text(program)
    done = launched(tmp_path, "-n", "2", "alone.py")
    assert done.returncode == 1
    first = [line.removeprefix("[0]").strip() for line in done.stderr.splitlines() if line.startswith("[0]")]
    assert first[: len(shown)] == [line.format(script=script) for line in shown]
    assert f"spmdlint: failed: processes 0-1 {told}\n" in done.stderr
    assert "runpy" not in done.stderr


@pytest.mark.parametrize("module", ["nosuch", "json"])
def test_a_module_that_cannot_be_run_is_told_in_one_sentence(tmp_path: Path, module: str) -> None:
    done = launched(tmp_path, "-n", "1", "-m", module)
    assert done.returncode == 1
    said, verdict = done.stderr.splitlines()
    assert said.startswith(f"[0] spmdlint: No module named {module}")
    assert said.endswith("-m takes a module that Python can import from this folder.")
    assert verdict == "spmdlint: failed: process 0 ended with exit status 1."


def test_a_script_that_fails_alike_everywhere_is_told_by_its_exception(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        jax.jit(jnp.sum)(everywhere([1.0])).block_until_ready()
        def load(path):
            raise FileNotFoundError("no \\x1b[31mdata in " + path)  # raised
        load("/data")
        """,
    )
    assert (run.status, run.verdict) == (1, ("failed", None)), run.output
    line = run.marked("raised")
    told = "FileNotFoundError: no \N{REPLACEMENT CHARACTER}[31mdata in /data"
    words = f"processes 0-1 raised an exception at program.py:{line} ({told})."
    assert run.report["message"] == words
    assert f"spmdlint: failed: {words}" in run.output
    assert run.line(0) == run.line(1) == line


def test_a_script_that_fails_in_two_ways_is_told_by_both(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        jax.jit(jnp.sum)(everywhere([1.0])).block_until_ready()
        from jax.experimental import multihost_utils
        multihost_utils.sync_global_devices("end")
        if me:
            sys.exit(4)
        raise KeyError("loss")
        """,
    )
    assert run.report["verdict"] == "failed", run.output
    assert "process 0 raised an exception at program.py:" in run.report["message"]
    assert "process 1 ended with exit status 4" in run.report["message"]


def test_a_wrong_number_of_seconds_is_told_before_anything_runs(tmp_path: Path) -> None:
    run = rehearse(tmp_path, "print('it ran')\n", environment={"SPMDLINT_END_WITHIN": "soon"})
    assert run.status == 2
    assert "SPMDLINT_END_WITHIN is 'soon': give a number of at least 0" in run.output
    assert "it ran" not in run.output
