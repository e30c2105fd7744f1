"""Right jobs whose checks are harmed: they end as without the checks, and are never called diverged.

A process has no checks, gets them late, or in another mode; records in the store are not what they should be; layers,
seams and steps of the checks raise at the start or at the end; a layer stops reporting in the middle. What befalls
which process, and when, is drawn from a seed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.launch.service import held_port
from tests.runtime.jobs import start

ROOT = Path(__file__).resolve().parents[2]
JOB = Path(__file__).with_name("harm_job.py")
LIMIT = 120.0  # seconds; silent checks are waited for up to 20 s, at the start, at a call and at the end
KINDS = ("absent", "late", "mode", "policy", "record", "layer", "seam", "end", "silent")
GARBAGE = ("", "not json", "{}", "[]", "null", "1e400", '{"index": NaN}', '{"count": -1, "verdict": 5, "state": []}')
HOW = ("overwrite", "delete", "beside", "all")

Draw = Callable[[random.Random], list[list[dict[str, Any]]]]


def plan(seed: int, draw: Draw) -> dict[str, Any]:
    """The calls and the harm of a seed."""
    rng = random.Random(seed)
    steps = draw(rng)
    victim = rng.choice([process for process, own in enumerate(steps) if own])
    after = rng.randrange(len(steps[victim]) + 1)
    harm = {"kind": rng.choice(KINDS), "process": victim, "after": after, "number": rng.randrange(1000)}
    harm.update(pause=round(rng.random() * 8, 1), what=rng.choice(GARBAGE), how=rng.choice(HOW))
    return {"seed": seed, "steps": steps, "harm": harm}


def values(steps: Iterable[dict[str, Any]]) -> list[float | None]:
    """What the calls of a process give: its arrays hold ones."""
    found: list[float | None] = []
    for step in steps:
        total = float((step["size"] * len(step["group"])) ** 2)
        results = {"barrier": None, "greatest": 1.0, "scaled": total * step["k"]}
        found.append(results.get(step["op"], total))
    return found


def run(chosen: dict[str, Any], mode: str) -> tuple[str, str]:
    """Run a job; "right", or what is wrong with it, and its output."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2"}
    began, count = time.monotonic(), len(chosen["steps"])
    with held_port() as port:
        jobs = [
            start([str(JOB), str(number), str(port), mode, json.dumps(chosen)], environment) for number in range(count)
        ]
        outputs = []
        statuses: list[int | None] = []
        for job in jobs:
            try:
                outputs.append(job.communicate(timeout=max(0.1, LIMIT - (time.monotonic() - began)))[0])
                statuses.append(job.returncode)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                outputs.append(job.communicate()[0])
                statuses.append(None)
    return judge(chosen, statuses, outputs), "\n".join(outputs)


def judge(chosen: dict[str, Any], statuses: list[int | None], outputs: list[str]) -> str:
    """What is wrong with the end of a right job, or "right"."""
    if any("diverged" in output for output in outputs):
        return "called diverged"
    if any(status != 0 for status in statuses):
        return f"statuses {statuses}"
    for number, output in enumerate(outputs):
        if f"RESULT {json.dumps(values(chosen['steps'][number]))}" not in output:
            return f"process {number} without its result"
    return "right"


def campaign(seeds: Iterable[int], mode: str, state: Path | None, draw: Draw) -> int:
    """Run the jobs of these seeds, go on where an earlier campaign was, and tell what went wrong."""
    done: dict[str, str] = json.loads(state.read_text()) if state is not None and state.exists() else {}
    kinds: Counter[str] = Counter()
    for seed in seeds:
        chosen = plan(seed, draw)
        key = f"{mode} {seed} {chosen['harm']['kind']}"
        kinds[chosen["harm"]["kind"]] += 1
        if key not in done:
            done[key], output = run(chosen, mode)
            if done[key] != "right":
                print(key, done[key], json.dumps(chosen["harm"]), output[-3000:], sep="\n", flush=True)
            if state is not None:
                state.write_text(json.dumps(done, indent=0))
    wrong = {key: word for key, word in done.items() if word != "right"}
    print(f"{len(done)} harmed jobs, {len(wrong)} of which did not end as they should; {dict(sorted(kinds.items()))}")
    print(*(f"  {key}: {word}" for key, word in wrong.items()), sep="\n")
    return 1 if wrong else 0
