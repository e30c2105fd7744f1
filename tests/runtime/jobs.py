"""Running small multi-process programs in tests: hard limits, and no process left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.launch.service import held_port
from tests.runtime.forked import Forked, can_fork

HANGS = 150.0  # seconds after which a job counts as one that hangs, however busy the machine
PROMPT = 90.0  # seconds within which a job ends where the checks end it: JAX would take 100 s to see a death, or 300 s
ROOT = Path(__file__).resolve().parents[2]
DIVERGENT = ROOT / "fixtures" / "divergent"
Job = subprocess.Popen[str] | Forked

PRELUDE = """
import os, sys, time
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.distributed.initialize()
me, count = jax.process_index(), jax.process_count()
mesh = Mesh(np.array(jax.devices()), ("data",))
rows = NamedSharding(mesh, P("data"))
def everywhere(local):
    return jax.make_array_from_process_local_data(rows, np.asarray(local, np.float32))
def value(x):
    return float(x.addressable_data(0))
"""


@dataclass
class Run:
    """What a run left: ``status`` is None where it went over the limit."""

    status: int | None
    output: str
    seconds: float
    report: dict[str, Any] = field(default_factory=dict)
    source: str = ""

    @property
    def verdict(self) -> tuple[str | None, str | None]:
        return self.report.get("verdict"), self.report.get("kind")

    @property
    def remarks(self) -> list[str]:
        """Whatever the checks and the launcher wrote, by lines."""
        return [line for line in self.output.splitlines() if "spmdlint" in line]

    def line(self, process: int) -> int | None:
        return self.report["processes"][str(process)]["line"]

    def marked(self, word: str) -> int:
        """The number of the source line that ends with a comment of this word."""
        return next(n for n, text in enumerate(self.source.splitlines(), 1) if text.endswith(f"# {word}"))


def rehearse(
    folder: Path,
    program: str | Path,
    processes: int = 2,
    devices: int = 1,
    limit: float = HANGS,
    options: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
    interrupt_at: str | None = None,
    interrupt_by: int = signal.SIGINT,
    cold: bool = False,
) -> Run:
    """Run a program under ``spmdlint run``; ``interrupt_at`` sends Ctrl-C when that text is printed, or a signal.

    With a ``cold`` start, each process is a new Python; otherwise, it is forked from one that has imported JAX.
    """
    if isinstance(program, str):
        script = folder / "program.py"
        source = PRELUDE + textwrap.dedent(program)
        script.write_text(source)
    else:
        # A copy: the linter's findings are joined in, and this whole repository would be its project.
        script, source = folder / program.name, program.read_text()
        if script != program:
            script.write_text(source)
    report = folder / "report.json"
    words = ["-m", "spmdlint", "run", "-n", str(processes)]
    words += ["--devices-per-process", str(devices), "--report", str(report), *options, "--", str(script)]
    began = time.monotonic()
    job = start(words, {**os.environ, **(environment or {})}, cold)
    output, status = _follow(job, limit, interrupt_at, interrupt_by)
    seconds = time.monotonic() - began
    leftovers = job.orphans if isinstance(job, Forked) else strays(str(script))
    assert not leftovers, f"left behind: {leftovers}\n{output}"
    told = json.loads(report.read_text()) if report.exists() and report.stat().st_size else {}
    return Run(status, output, seconds, told, source)


def start(words: Sequence[str], environment: Mapping[str, str], cold: bool = False) -> Job:
    """Start Python with these arguments and this environment, in a session of its own."""
    if not cold and can_fork(environment):
        return Forked(words, environment)
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=environment,
    )


def alone(
    folder: Path,
    source: str,
    runner: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
    cold: bool = False,
) -> list[tuple[int | None, str]]:
    """Run a program on two processes without the launcher: ``{port}`` in it is free; statuses and outputs."""
    with held_port() as port:
        script = folder / "alone.py"
        script.write_text(
            PRELUDE.partition("jax.distributed")[0] + textwrap.dedent(source).replace("{port}", str(port))
        )
        given = {"JAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)}
        given |= {name: os.environ[name] for name in ("WHOLE_ENDING",) if name in os.environ}
        jobs = [
            start([*runner, str(script), str(number)], {**given, **(environment or {})}, cold) for number in range(2)
        ]
        try:
            outputs = [job.communicate(timeout=HANGS)[0] for job in jobs]
        finally:
            for job in jobs:
                job.kill()
        return [(job.returncode, output) for job, output in zip(jobs, outputs, strict=True)]


def _follow(job: Job, limit: float, interrupt_at: str | None, interrupt_by: int) -> tuple[str, int | None]:
    if interrupt_at is not None:
        assert job.stdout is not None
        seen = []
        for line in job.stdout:
            seen.append(line)
            if interrupt_at in line:
                os.kill(job.pid, interrupt_by)
                interrupt_at = "\0"
        job.stdout.close()
        return "".join(seen), job.wait(limit)
    try:
        return job.communicate(timeout=limit)[0], job.returncode
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        return job.communicate()[0], None


def strays(script: str) -> list[str]:
    """Processes that still run this script, given a moment to be reaped."""
    for _ in range(20):
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and entry.name != str(os.getpid()):
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                if script in words:
                    found.append(" ".join(words))
        if not found:
            return []
        time.sleep(0.1)
    return found
