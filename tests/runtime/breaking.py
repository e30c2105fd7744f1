"""The checks break, the job does not: a fault at every step, seam and request, and the end of a correct program.

    python tests/runtime/breaking.py --state breaking.json [--every 1] [--mode lockstep]

The places are not written down here: a job without a fault lists every step that the guard runs, every seam, layer and
request to the store, and a fault of each kind is put at each. A fresh pair of processes runs for each. It can be
interrupted and goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.launch.service import held_port

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.runtime.jobs import start

ROOT = Path(__file__).resolve().parents[2]
JOB = Path(__file__).with_name("breaking_job.py")
MODES = ("background", "lockstep")
LIMIT = 75.0  # seconds; the longest that breaks is two processes that wait for each other's silent checks
GARBAGE = ("empty", "text", "object", "list", "null", "number", "nan", "huge", "types", "deep", "long")
KINDS = {
    "step": ("raise",),
    "layer": ("raise",),
    "seam": ("raise", "none"),
    "journal": ("raise", "recursion"),
    "request": ("raise", "block"),
}
READS = ("key_value_try_get", "key_value_dir_get", "blocking_key_value_get")

Fault = dict[str, Any]


def run(mode: str, fault: Fault) -> tuple[str, str]:
    """Run a pair of processes; "right", or what is wrong, and their output."""
    with held_port() as port:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2"}
        began = time.monotonic()
        jobs = [start([str(JOB), str(number), str(port), mode, json.dumps(fault)], environment) for number in range(2)]
        outputs = []
        for job in jobs:
            try:
                outputs.append(job.communicate(timeout=max(0.1, LIMIT - (time.monotonic() - began)))[0])
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                outputs.append(job.communicate()[0] + "\nKILLED AT THE LIMIT")
        return judge([job.returncode for job in jobs], outputs), "\n".join(outputs)


def judge(statuses: list[int | None], outputs: list[str]) -> str:
    """What is wrong with the end of a correct program, or "right"."""
    if statuses != [0, 0]:
        return f"statuses {statuses}"
    for number, output in enumerate(outputs):
        if f"RESULT {number} 2 32.0 1.0" not in output:
            return f"process {number} without its result"
        if "diverged" in output:
            return f"process {number} tells of a divergence"
        if "\x1b" in output:
            return f"process {number} prints what it was sent"
    return "right"


def places(mode: str) -> list[tuple[str, str]]:
    """Where a fault can be put, as a job without one lists it."""
    with tempfile.TemporaryDirectory() as scratch:
        word, output = run(mode, {"list": f"{scratch}/places"})
        if word != "right":
            raise RuntimeError(f"{word}\n{output}")
        told = [json.loads(path.read_text()) for path in Path(scratch).iterdir()]
    return sorted({(place, name) for one in told for place, name in one})


def faults(listed: list[tuple[str, str]]) -> Iterator[Fault]:
    """Every fault at every place: of one process, and where all read the same also of all."""
    for place, name in listed:
        kinds = KINDS[place]
        if place == "request" and name.startswith(READS):
            kinds = (*kinds, *GARBAGE)
        for kind in kinds:
            yield {"at": place, "name": name, "what": kind, "process": 1}
            yield {"at": place, "name": name, "what": kind, "process": "all" if kind in GARBAGE else 0}


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--state", type=Path)
    ask.add_argument("--every", type=int, default=1, help="only one in so many")
    ask.add_argument("--mode", choices=MODES)
    given = ask.parse_args()
    done: dict[str, str] = {}
    if given.state is not None and given.state.exists():
        done = json.loads(given.state.read_text())
    for mode in [given.mode] if given.mode else MODES:
        for fault in list(faults(places(mode)))[:: given.every]:
            key = f"{mode} {json.dumps(fault)}"
            if key in done:
                continue
            done[key], output = run(mode, fault)
            if done[key] != "right":
                print(key, done[key], output[-1500:], sep="\n", flush=True)
            if given.state is not None:
                given.state.write_text(json.dumps(done, indent=0))
    wrong = {key: word for key, word in done.items() if word != "right"}
    print(f"{len(done)} faults, {len(wrong)} harmed the job", *wrong.items(), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
