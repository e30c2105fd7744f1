"""What the tests share: a project in a temporary folder, and the command line run in it."""

from __future__ import annotations

import functools
import gc
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spmdlint import installed
from spmdlint.cli import main
from tests.runtime.forked import can_fork, run, serve_all

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Run in the background of a shell, interrupts are ignored, also in the processes of the tests that send them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each run of the linter looks at all of its own files, which the tests do not change: it is a part of each fixture.
installed.tool = functools.cache(installed.tool)

# Hundreds of tests start processes of Python, each of which would compile all that it imports anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

HAZARD = """\
import jax
from jax.experimental import multihost_utils


def main():
    if jax.process_index() == 0:
        multihost_utils.sync_global_devices("saved")


main()
"""

# Two conditions of one call: the inner one, about a thread, counts only with --preview.
TWO_CONDITIONS = """\
import threading

import jax
from jax.experimental import multihost_utils as mu

jax.distributed.initialize()


class Saver:
    def __init__(self):
        self.done = False
        threading.Thread(target=self.drain).start()

    def drain(self):
        self.done = True

    def loop(self, losses):
        for loss in losses.addressable_shards:
            if loss.data > 3:
                break
            if self.done:
                mu.sync_global_devices("a"){first}
                mu.sync_global_devices("b"){second}
"""


@dataclass(frozen=True)
class Outcome:
    """What one run of the command line did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output, which must be JSON."""
        return json.loads(self.out)

    @property
    def found(self) -> list[tuple[str, int, str]]:
        """The findings of JSON output: file name, row, code."""
        return [(Path(each["filename"]).name, each["location"]["row"], each["code"]) for each in self.json]


class Project:
    """A folder with files, and the linter run in it."""

    hazard = HAZARD
    two_conditions = TWO_CONDITIONS

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._capsys = capsys
        self._patch = patch

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def run(self, *argv: str, stdin: bytes = b"") -> Outcome:
        """Run the command line in this process, in the project's folder."""
        self._patch.chdir(self.root)
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capsys.readouterr()
        status = main(list(argv))
        said = self._capsys.readouterr()
        return Outcome(status, said.out, said.err)

    def check(self, *argv: str, stdin: bytes = b"") -> Outcome:
        """Lint and read the findings as JSON."""
        return self.run("check", "--output-format", "json", *argv, stdin=stdin)

    def spawn(
        self, *argv: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, bound: bool = False
    ) -> Outcome:
        """Run the command line as a process of its own; ``bound`` by permissions, even if the tests run as root.

        With an environment of its own it is a new Python; otherwise, one forked from a Python that has imported us.
        """
        if not bound and env is None and can_fork(os.environ):
            forked = run(["-m", "spmdlint", *argv], self.root, stdin, os.environ)
            return Outcome(forked.returncode, forked.stdout.decode(), forked.stderr.decode())
        # Not by a function between fork and exec: JAX warns of a fork, wherever a test before this one has imported it.
        before = [sys.executable, "-c", GIVE_UP_OVERRIDING] if bound and os.geteuid() == 0 else []
        done = subprocess.run(
            [*before, sys.executable, "-m", "spmdlint", *argv],
            cwd=self.root,
            input=stdin,
            capture_output=True,
            env={**os.environ, **(env or {})},
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


# What it starts is bound by the permissions of files, as root is not (Linux).
GIVE_UP_OVERRIDING = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    if ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) != 0:  # PR_CAPBSET_DROP
        sys.exit("This process may not give up its capabilities.")
os.execv(sys.argv[1], sys.argv[1:])
"""

REPOSITORY = Path(__file__).parent.parent
INSTALLING = 1200  # seconds until a test that installs or downloads counts as one that hangs


# Tests of jobs of JAX processes, which mostly wait: more of them run at a time than there are cores.
WAITING = ("runtime", "test_testing.py")
# Of these, files whose tests compute: among so many others each would take ten times as long, and hold them up.
COMPUTING = ("test_canary.py", "test_collectives.py", "test_ledgers.py", "test_quiet.py", "test_scale.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pool", choices=("waiting", "working"), help="only the tests that mostly wait, or the others")


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        for kind in ("jobs",) if config.getoption("--pool") == "waiting" else ("jobs", "linters"):
            serve_all(kind)  # one for all workers


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    pool, parts = config.getoption("--pool"), collection_path.relative_to(REPOSITORY).parts[1:]
    if pool is None or not parts or collection_path.is_dir():
        return None
    waits = parts[0] in WAITING and parts[-1] not in COMPUTING
    return True if waits != (pool == "waiting") else None


# Files whose tests share what is dear: a run of the linter, a browser, a package that is built.
TOGETHER = frozenset(
    f"tests/{name}"
    for name in (
        *("runtime/test_page.py", "test_ci.py", "test_guides.py", "test_layers.py"),
        *("test_packaging.py", "test_spellings.py", "test_spellings_are_true.py", "test_structure.py"),
    )
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker for all tests of such a file; the others one by one. Groups of xdist 3.8 do nothing in pytest 9."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file in TOGETHER else nodeid

    return Scheduling(config, log) if config.getvalue("dist") == "load" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("network") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(INSTALLING))


def pytest_sessionfinish() -> None:
    """Then pytest looks five times for garbage, and Python once more: not in what runs of the linter left."""
    gc.collect(1)  # what was made since a run, which moves all there is to the oldest generation
    gc.freeze()


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "GITHUB_WORKSPACE", "SPMDLINT_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project; its configuration file marks the root."""
    made = Project(tmp_path / "project", capsys, monkeypatch)
    made.write({"spmdlint.toml": ""})
    return made


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Make a package of rules from the text of a module; gives the environment that has it installed."""

    def make(text: str) -> dict[str, str]:
        site = tmp_path / "site"
        info = site / "acme-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[spmdlint.rules]\nacme = acme_rules\n")
        (site / "acme_rules.py").write_text(text)
        return {"PYTHONPATH": str(site)}

    return make
