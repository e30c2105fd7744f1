"""A chaos campaign: random schedules of parallel calls over random groups, with one fault or none in each.

    python tests/runtime/chaos.py --schedules 300 --seed 0 --state chaos.json [--mode background] [--harm]

In background mode each schedule is a job of its own, as a divergence may end in any way, and every other one has
trouble with the machinery itself: a store that is slow or refuses, a process that is stopped for a while, a clock that
jumps. It can be interrupted and goes on where it was. Each schedule is held against what a model of it says: whether
there is a divergence, of which kind, and at which call of which group.

With ``--harm``, the calls are right and it is the checks that are harmed (``harm.py``): such a job has to end as it
would without them, and is never called diverged.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.runtime import harm
from tests.runtime.jobs import start

JOB = Path(__file__).with_name("chaos_job.py")
FAULTS = (
    "none",
    "none",
    "swap",
    "drop",
    "duplicate",
    "shape",
    "dtype",
    "spec",
    "static",
    "program",
    "name",
    "raise",
    "kill",
)
CHANGES = {
    "shape": {"size": 3},
    "dtype": {"dtype": "int32"},
    "spec": {"spec": 1},
    "static": {"op": "scaled", "k": 5},
    "program": {"op": "summed", "bias": 1.0},
    "name": {"name": "another"},
}
ENDING = ("raise", "kill")
"""The faults that end a process."""
BATCH = 25
LIMIT = 240

Step = dict[str, Any]


@dataclass
class Expected:
    """What the model says: the kind, and the possible places as (group, index from 1). ``kind`` None: no divergence."""

    kind: str | None
    places: list[tuple[tuple[int, ...], int]]


@dataclass
class Schedule:
    seed: int
    processes: int
    fault: str
    victim: int
    steps: list[list[Step]]
    expected: Expected


def generate(seed: int) -> Schedule:
    """The schedule of a seed, and what the model says of it."""
    rng = random.Random(seed)
    processes = rng.choice([2, 2, 3, 3, 4])
    everyone = tuple(range(processes))
    groups = [everyone]
    for _ in range(rng.randrange(3) if processes > 2 else 0):
        groups.append(tuple(sorted(rng.sample(everyone, rng.randrange(2, processes + 1)))))
    common = [_step(rng, rng.choice(groups), everyone) for _ in range(rng.randrange(5, 12))]
    fault = rng.choice(FAULTS)
    place = rng.randrange(len(common))
    if fault in CHANGES:
        _prepare(common[place], fault, everyone)
    victim = rng.choice(common[place]["group"])
    mine = [dict(step) for step in common]
    if fault == "swap":
        later = [n for n in range(place + 1, len(common)) if victim in common[n]["group"]]
        # Only with the victim's very next call: what lies between does not concern it.
        if later:
            mine[place], mine[later[0]] = mine[later[0]], mine[place]
    elif fault == "drop":
        del mine[place]
    elif fault == "duplicate":
        mine.insert(place, dict(mine[place]))
    elif fault in CHANGES:
        mine[place].update(CHANGES[fault])
    elif fault in ENDING:
        mine = [*mine[:place], {"op": fault, "group": [victim]}]
    steps = [
        [step for step in (mine if process == victim else common) if process in step["group"]] for process in everyone
    ]
    return Schedule(seed, processes, fault, victim, steps, _expect(fault, victim, steps, mine, common))


def draw(rng: random.Random) -> list[list[Step]]:
    """Right calls over random groups, by process."""
    processes = rng.choice([2, 2, 3, 4])
    everyone = tuple(range(processes))
    groups = [everyone, *(tuple(sorted(rng.sample(everyone, 2))) for _ in range(processes - 2))]
    common = [_step(rng, rng.choice(groups), everyone) for _ in range(rng.randrange(5, 12))]
    return [[step for step in common if process in step["group"]] for process in everyone]


def _step(rng: random.Random, group: tuple[int, ...], everyone: tuple[int, ...]) -> Step:
    ops = ["summed", "greatest", "scaled", "mapped"] + (["barrier"] if group == everyone else [])
    step = {"op": rng.choice(ops), "group": list(group), "size": rng.choice([1, 2]), "dtype": "float32", "spec": 0}
    return {**step, "bias": 0.0, "k": rng.choice([2, 4]), "name": f"barrier {rng.randrange(3)}"}


def _prepare(step: Step, fault: str, everyone: tuple[int, ...]) -> None:
    """Make a step one in which the fault shows."""
    if fault == "name":
        step.update(op="barrier", group=list(everyone))
    elif fault == "static":
        step.update(op="scaled")
    elif fault == "program":
        step.update(op="summed")
    elif step["op"] == "barrier":
        step.update(op="greatest")


def entries(steps: list[Step], group: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """What a process's ledger for a group holds after these steps: function, then what decides and explains."""
    made: list[tuple[Any, ...]] = []
    for step in steps:
        if tuple(step["group"]) != group or step["op"] in ENDING:
            continue
        if step["op"] == "barrier":
            made.append(("barrier", "name", step["name"]))
            continue
        op, k, bias = (
            step["op"],
            step["k"] if step["op"] == "scaled" else 0,
            step["bias"] if step["op"] == "summed" else 0,
        )
        made.append((op, "call", (k, step["size"], step["dtype"], step["spec"]), bias))
    return made


def _expect(fault: str, victim: int, steps: list[list[Step]], mine: list[Step], common: list[Step]) -> Expected:
    groups = {tuple(step["group"]) for step in common if victim in step["group"]}
    if fault in ENDING:
        return Expected("missing", [(g, len(entries(steps[victim], g)) + 1) for g in groups])
    for group in sorted(groups):
        theirs, own = entries(common, group), entries(mine, group)
        if theirs != own:
            return _first(group, theirs, own)
    # Group by group all is equal: only the order between groups was changed, and that is a circle of waits where
    # the victim shares both groups with somebody.
    order = [tuple(step["group"]) for step in common if victim in step["group"]]
    changed = [tuple(step["group"]) for step in mine if victim in step["group"]]
    for first, second in zip(order, changed, strict=True):
        if first != second:
            return Expected("circle" if (set(first) & set(second)) - {victim} else None, [])
    return Expected(None, [])


def _first(group: tuple[int, ...], theirs: list[tuple[Any, ...]], own: list[tuple[Any, ...]]) -> Expected:
    for number, (one, other) in enumerate(zip(theirs, own, strict=False), 1):
        if one != other:
            if one[0] != other[0]:
                kind = "sequence"
            elif one[:3] != other[:3]:
                kind = "arguments"
            else:
                kind = "program"
            return Expected(kind, [(group, number)])
    number = min(len(theirs), len(own)) + 1
    return Expected("missing", [(group, number)])


def judge(schedule: Schedule, results: list[dict[str, Any]]) -> str:
    """ "right", or what is wrong: "false alarm", "missed", "kind ...", "place ..."."""
    reports = [result for result in results if result.get("verdict") == "diverged"]
    errors = [result for result in results if result.get("verdict") == "error"]
    if errors:
        return f"error {errors[0].get('message')}"
    expected = schedule.expected
    if expected.kind is None:
        return "right" if not reports else f"false alarm: {reports[0]['message']}"
    if not reports:
        return "missed"
    report = reports[0]
    circle = report["kind"] == "sequence" and "in a cycle" in report["message"]
    if expected.kind == "circle":
        return "right" if circle else f"kind {report['kind']}, due a circle"
    indices = {index for _, index in expected.places}
    if circle:
        # What one process leaves out may show first as a circle over another group.
        named = {process["index"] for process in report["processes"].values()}
        return "right" if str(schedule.victim) in report["processes"] and named & indices else "place of the circle"
    if report["kind"] != expected.kind:
        return f"kind {report['kind']}, due {expected.kind}"
    return "right" if report["index"] in indices else f"place {report['index']}, due {sorted(indices)}"


def run_batch(schedules: list[Schedule]) -> dict[int, str]:
    """Run schedules of one number of processes in one job; those in which a call is missing run alone."""
    if _needs_an_end(schedules[0]):
        return {schedules[0].seed: run_alone(schedules[0], "lockstep")}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        plan = [{"seed": one.seed, "steps": one.steps} for one in schedules]
        (folder / "plan.json").write_text(json.dumps(plan))
        words = ["-m", "spmdlint", "run", "-n", str(schedules[0].processes)]
        words += ["--mode", "off", "--", str(JOB), str(folder / "plan.json"), scratch]
        output = _bounded(words)
        results: dict[int, list[dict[str, Any]]] = {one.seed: [] for one in schedules}
        for path in folder.glob("*.jsonl"):
            for line in path.read_text().splitlines():
                result = json.loads(line)
                results[result["seed"]].append(result)
        return {
            one.seed: judge(one, results[one.seed])
            if len(results[one.seed]) == one.processes
            else f"no end: {output[-600:]}"
            for one in schedules
        }


def _needs_an_end(schedule: Schedule) -> bool:
    """Whether only the end of a process proves the fault: one that goes on may still make the call that is missing."""
    return schedule.expected.kind == "missing"


TROUBLES = (None, "slow", None, "refusing", None, "stopped", None, "clock")


def run_alone(schedule: Schedule, mode: str, trouble: str | None = None) -> str:
    """Run one schedule as a job of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "plan.json").write_text(json.dumps([{"seed": schedule.seed, "steps": schedule.steps}]))
        report = folder / "report.json"
        words = ["-m", "spmdlint", "run", "-n", str(schedule.processes)]
        words += ["--mode", mode, "--timeout", "60", "--report", str(report), "--"]
        job = folder / JOB.name  # a copy, so that the linter that the launcher runs has a small project
        job.write_text(JOB.read_text())
        words += [str(job), str(folder / "plan.json"), "--alone"]
        output = _bounded(words + ([trouble] if trouble else []))
        told = json.loads(report.read_text()) if report.exists() else {"verdict": "no report"}
        if schedule.expected.kind is None and told["verdict"] not in ("clean", "diverged"):
            return f"harmed ({trouble}): {told.get('message')} {output[-600:]}"
        word = judge(schedule, [told])
        return word if word == "right" or trouble is None else f"{word} ({trouble})"


def run_behind(schedule: Schedule) -> dict[int, str]:
    """Run one schedule in background mode, with the trouble that is due."""
    return {schedule.seed: run_alone(schedule, "background", TROUBLES[schedule.seed % len(TROUBLES)])}


def _bounded(words: list[str]) -> str:
    job = start(words, os.environ)
    try:
        return job.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        return job.communicate()[0]


def batches(schedules: list[Schedule]) -> list[list[Schedule]]:
    """Schedules that can share a job: of one number of processes, if no process has to end."""
    found: list[list[Schedule]] = [[one] for one in schedules if _needs_an_end(one)]
    for processes in (2, 3, 4):
        alike = [one for one in schedules if one.processes == processes and not _needs_an_end(one)]
        found += [alike[start : start + BATCH] for start in range(0, len(alike), BATCH)]
    return found


def summary(schedules: list[Schedule], outcomes: dict[int, str]) -> str:
    done = [one for one in schedules if one.seed in outcomes]
    due = [one for one in done if one.expected.kind is not None]
    detected = [one for one in due if not outcomes[one.seed].startswith(("missed", "no end", "harmed"))]
    right = [one for one in due if outcomes[one.seed] == "right"]
    alarms = [one for one in done if outcomes[one.seed].startswith("false alarm")]
    found = f"{len(due)} with a divergence: {len(detected)} detected, {len(right)} named rightly"
    lines = [f"{len(done)} schedules, {found}; {len(done) - len(due)} without: {len(alarms)} false alarms"]
    lines += [f"  seed {one.seed} ({one.fault}): {outcomes[one.seed]}" for one in done if outcomes[one.seed] != "right"]
    return "\n".join(lines)


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--schedules", type=int, default=300)
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--state", type=Path)
    ask.add_argument("--mode", choices=["lockstep", "background"], default="lockstep")
    ask.add_argument("--harm", action="store_true", help="right calls, harmed checks")
    given = ask.parse_args()
    if given.harm:
        return harm.campaign(range(given.seed, given.seed + given.schedules), given.mode, given.state, draw)
    schedules = [generate(given.seed + n) for n in range(given.schedules)]
    outcomes: dict[int, str] = {}
    if given.state is not None and given.state.exists():
        outcomes = {int(seed): word for seed, word in json.loads(given.state.read_text()).items()}
    left = [one for one in schedules if one.seed not in outcomes]
    for batch in batches(left) if given.mode == "lockstep" else [[one] for one in left]:
        outcomes.update(run_batch(batch) if given.mode == "lockstep" else run_behind(batch[0]))
        if given.state is not None:
            given.state.write_text(json.dumps(outcomes))
        print(summary(schedules, outcomes).splitlines()[0], flush=True)
    print(summary(schedules, outcomes))
    return 0 if all(word == "right" for word in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
