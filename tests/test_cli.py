"""The command line around its subcommands."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import spmdlint
from spmdlint.timings import Timings


def test_version(project):
    outcome = project.run("--version")
    assert (outcome.status, outcome.out) == (0, f"spmdlint {spmdlint.__version__}\n")


def test_version_needs_none_of_the_slow_imports():
    code = (
        "import sys; from spmdlint.cli import main; main(['--version']); "
        "print(sorted({'libcst', 'pathspec', 'rich', 'jax', 'importlib.metadata'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version_is_quick(project):
    """In seconds of a processor: those of a clock depend on what else runs on the machine."""
    taken = []
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-m", "spmdlint", "--version"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        taken.append(usage.ru_utime + usage.ru_stime)
    assert min(taken) < 0.25


def test_linting_a_file_imports_nothing_that_it_does_not_need(project):
    project.write({"a.py": project.hazard})
    code = (
        "import sys; from spmdlint.cli import main; main(['check', 'a.py']); "
        "print(sorted({'rich', 'jax', 'numpy', 'argcomplete'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=project.root)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_lists_the_subcommands(project):
    outcome = project.run("--help")
    assert outcome.status == 0
    assert "check" in outcome.out
    assert "rule" in outcome.out


def test_help_lists_what_people_use_and_help_all_the_rest(project):
    short, full = (project.run("check", option) for option in ("--help", "--help-all"))
    assert (short.status, full.status) == (0, 0)
    listed, every = (set(re.findall(r"^  (?:-\w(?: \w+)?, )?(--[\w-]+)", each.out, re.M)) for each in (short, full))
    assert len(listed - {"--help", "--help-all"}) == 10
    assert listed < every
    assert {"--no-cache", "--jobs", "--stdin-filename"} <= every - listed
    assert "--no-cache" not in short.out


def test_help_is_a_word_too(project):
    assert project.run("help") == project.run("--help")
    assert project.run("help", "run") == project.run("run", "--help")
    assert project.run("-V") == project.run("--version")


def test_no_arguments_show_the_help_and_fail(project):
    outcome = project.run()
    assert outcome.status == 2
    assert "COMMAND" in outcome.err


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        ("chekc", "There is no command 'chekc'. Did you mean 'check'?"),
        ("spmdlint.toml", "There is no command 'spmdlint.toml'. 'spmdlint check spmdlint.toml' lints it."),
        ("--versoin", "spmdlint has no option --versoin. Did you mean --version?"),
        ("check --unknown", "spmdlint check has no option --unknown. 'spmdlint check --help-all' lists the options."),
        ("check --output-formt=json", "spmdlint check has no option --output-formt. Did you mean --output-format?"),
        ("check --output-format sarfi", "--output-format does not take 'sarfi'. Did you mean 'sarif'?"),
        ("check --output-format xml", "--output-format does not take 'xml'. It takes concise, full, github,"),
        ("check --baseline", "--baseline needs a value."),
        ("check -j none", "Argument -j/--jobs: 'none' is not an integer of at least 1."),
        ("rule SPMD101 --all", "Argument --all: not allowed with argument RULE."),
        ("rule SPMD101 SPMD102", "spmdlint rule has no use for the word 'SPMD102'."),
        ("ledger dif logs", "diff|html does not take 'dif'. Did you mean 'diff'?"),
        ("run", "spmdlint run needs -n/--processes: number of processes, such as 2. 'spmdlint run"),
        ("run --proceses 2 train.py", "spmdlint run has no option --proceses. Did you mean --processes?"),
        ("run train.py --steps 3", "spmdlint run needs -n/--processes: number of processes, such as 2. 'spmdlint run"),
        ("run -n 2 --timeot 3 train.py", "spmdlint run has no option --timeot. Did you mean --timeout?"),
        ("completion", "spmdlint completion needs SHELL: one of bash, zsh, fish."),
        ("ledger html", "spmdlint ledger html needs DIR: the folder of --ledger"),
        ("completion tcsh", "SHELL does not take 'tcsh'."),
    ],
)
def test_wrong_usage_is_answered_in_one_line(project, argv, answer):
    outcome = project.run(*argv.split())
    assert outcome.status == 2
    assert outcome.err.startswith(f"spmdlint: {answer}")
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""


def completions(project, line, shell="bash"):
    """What a shell is answered at Tab: its script calls us in this way, and reads file descriptor 8."""
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SHELL": shell,
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    command = f"{shlex.quote(sys.executable)} -m spmdlint 8>&1 9>&2 1>/dev/null 2>/dev/null"
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        cwd=project.root,
        env={**os.environ, **environment},
        check=True,
    )
    return {word.partition("\t")[0].strip() for word in done.stdout.splitlines()}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("spmdlint che", {"check"}),
        ("spmdlint check --no-c", {"--no-cache"}),
        ("spmdlint check --output-format sa", {"sarif"}),
        ("spmdlint check --select SPMD301,varying-c", {"SPMD301,varying-condition"}),
        ("spmdlint rule SPMD60", {f"SPMD60{number}" for number in (1, 2, 3, 4, 7)}),
        ("spmdlint ledger d", {"diff"}),
        ("spmdlint completion ", {"bash", "zsh", "fish"}),
        ("spmdlint check spmdl", {"spmdlint.toml"}),
    ],
)
def test_a_shell_completes(project, line, offered):
    assert completions(project, line) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_loads_the_script_of_completion(project, shell):
    outcome = project.run("completion", shell)
    assert outcome.status == 0
    if shutil.which(shell):
        (project.root / "script").write_text(outcome.out)
        start = ["-f"] if shell == "zsh" else []
        ready = "autoload -U compinit && compinit -D && " if shell == "zsh" else ""
        subprocess.run([shell, *start, "-c", f"{ready}. ./script"], cwd=project.root, check=True, capture_output=True)
    assert "spmdlint" in outcome.out
    assert "_ARGCOMPLETE" in outcome.out


def on_a_terminal(project, *argv):
    """What a terminal of 80 columns is shown."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, "-m", "spmdlint", *argv], stdout=child, cwd=project.root, env=environment
    )
    os.close(child)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal's output is an error
        while piece := os.read(parent, 100_000):
            shown += piece
    os.close(parent)
    assert process.wait() == 0
    return shown.decode()


def test_a_rule_is_laid_out_on_a_terminal_and_raw_in_a_pipe(project):
    piped = project.spawn("rule", "SPMD301").out
    assert piped.startswith("# SPMD301 varying-condition\n")
    assert "```python" in piped
    shown = on_a_terminal(project, "rule", "SPMD301")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "```" not in plain
    assert not re.search(r"^#", plain, re.MULTILINE)
    assert "jax.process_index()" in plain
    assert "\x1b[" in shown
    assert max(len(line) for line in plain.splitlines()) <= 80


SLEEPING = '''
import sys, time
from spmdlint.rule import Rule


class Sleeping(Rule):
    """A rule that never ends."""

    code = "ACME101"
    name = "sleeping-rule"

    def check(self, program):
        print("ready", file=sys.stderr, flush=True)
        time.sleep(100)
        yield
'''


def test_interrupt_leaves_no_traceback(project, plugin):
    project.write({"a.py": "import jax\n"})  # a project that names no library is not analysed
    # A shell that runs the tests behind itself has them ignore interrupts, and so would the process.
    code = (
        "import signal, sys, spmdlint.cli; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "sys.exit(spmdlint.cli.main(['check']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        cwd=project.root,
        env={**os.environ, **plugin(SLEEPING)},
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"spmdlint: Interrupted.\n"
        assert process.wait(10) == 130


def test_a_reader_that_goes_away_causes_no_traceback(project):
    project.write({"a.py": "".join(f"x = {n}  # spmdlint: ignore[SPMD301]\n" for n in range(3000))})
    with subprocess.Popen(
        [sys.executable, "-m", "spmdlint", "check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project.root,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(10) == 141


def test_output_that_the_terminal_cannot_show_is_escaped(project):
    project.write({"a.py": "x = 'ä→漢'  # spmdlint: ignore[SPMD301]\n"})
    outcome = project.spawn("check", env={"PYTHONIOENCODING": "ascii"})
    assert outcome.status == 1
    assert "\\xe4\\u2192" in outcome.out


def test_a_terminal_gets_colours_and_a_file_does_not(project):
    project.write({"a.py": project.hazard})
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "spmdlint", "check"]
    environment = {**os.environ, "TERM": "xterm"}
    subprocess.run(command, stdout=child, cwd=project.root, env=environment, check=False)
    os.close(child)
    assert b"\x1b[1;31mSPMD301\x1b[0m" in os.read(parent, 100_000)
    os.close(parent)
    assert "\x1b" not in project.spawn("check").out


@pytest.mark.parametrize(("patience", "shown"), [(0, True), (1000, False)])
def test_a_slow_run_shows_progress_on_a_terminal_only(project, patience, shown):
    project.write({f"m{n}.py": "import jax\n" for n in range(12)})
    parent, child = pty.openpty()
    code = (
        "import sys, spmdlint.cli, spmdlint.cli.progress as bar;"
        f"bar.PATIENCE = {patience}; sys.exit(spmdlint.cli.main(['check']))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=child,
        cwd=project.root,
        env={**os.environ, "TERM": "xterm"},
        check=False,
    )
    os.write(child, b".")
    os.close(child)
    assert (b"Linting" in os.read(parent, 100_000)) == shown
    os.close(parent)
    assert done.stdout == b"All checks passed!\n"
    done = subprocess.run(command, capture_output=True, cwd=project.root, check=False)
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("env", "colored"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_color_by_environment(project, monkeypatch, env, colored):
    project.write({"a.py": project.hazard})
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in project.run("check").out) == colored


def test_timings_say_where_the_time_goes(project):
    project.write({"train.py": project.hazard + "x = 1\n" * 2000})  # long enough to be worth a line
    plain = project.run("check", "--no-cache")
    timed = project.run("check", "--no-cache", "--timings")
    assert timed.out == plain.out
    phases = [line.split()[2] for line in timed.err.splitlines() if line.startswith("  ") and len(line.split()) > 2]
    assert {"start", "lower"} <= set(phases)
    assert f"  {project.root / 'train.py'}\n" in timed.err


def test_the_functions_that_take_long_are_named():
    timings = Timings()

    def busy(frame):
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            pass

    with timings.sampled(lambda looked_at: (Path("a.py"), "f") if "frame" in looked_at.f_locals else None):
        busy(frame=1)
    assert timings.functions[Path("a.py"), "f"] > 2
    assert any("a.py: f" in line for line in timings.lines())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("argv", [("check", "a.py"), ("rule", "--all")])
def test_output_that_nobody_can_write(project, argv):
    project.write({"a.py": project.hazard})
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "spmdlint", *argv]
        done = subprocess.run(command, cwd=project.root, stdout=full, stderr=subprocess.PIPE, check=False)
    said = "spmdlint: The findings cannot be written: there is no space left.\n"
    assert (done.returncode, done.stderr.decode()) == (2, said)
