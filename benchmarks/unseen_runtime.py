"""Runs programs whose author had not seen the runtime checks under them, and judges what is reported.

    python benchmarks/unseen_runtime.py                        all programs, in three ways
    python benchmarks/unseen_runtime.py --way job 02_ 17_      some of them, in one way
    python benchmarks/unseen_runtime.py --way plain            without the checks: are the programs what they claim?
    python benchmarks/unseen_runtime.py --reports FOLDER       keep the reports and outputs there

The programs are in fixtures/unseen/runtime, with what is true of each in cases.toml; the README there has the rules of
judging. A job is started as Slurm starts it. Every process of a run carries a mark in its environment and is killed
at the end of the run, whatever became of it (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.launch.service import held_port

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "fixtures" / "unseen" / "runtime"
WAYS = ("lockstep", "background", "job")
SECONDS = 60
GRACE = 30  # for a launcher to write its report after the time-out, and for a job to end after its verdict
MARK = "SPMDLINT_UNSEEN_RUN"
DIVERGED = 3
PLACE = re.compile(r"([\w.-]+\.py):(\d+)")
ASIDE = re.compile(r"unchecked|step(s|ped)? aside|not compared")
OUTCOMES = ("found", "other kind", "other lines", "missed", "clean", "changed", "not compared", "false alarm")

Place = tuple[str, int]


@dataclass(frozen=True)
class Case:
    program: Path
    processes: int
    devices: int
    kinds: tuple[str, ...] = ()
    says: str = ""
    sides: dict[str, list[int]] = field(default_factory=dict)
    ended: dict[str, list[int]] = field(default_factory=dict)
    status: int = 0
    results: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.program.stem

    @property
    def diverges(self) -> bool:
        return bool(self.kinds)

    def lines(self, side: str) -> set[Place]:
        found = set()
        for number, line in enumerate(self.program.read_text(encoding="utf-8").splitlines(), 1):
            _, mark, names = line.partition("# side:")
            if mark and side in names.replace(" ", "").split(","):
                found.add((self.program.name, number))
        return found


@dataclass
class Run:
    """What became of one run of a program."""

    statuses: list[int | None]  # of the launcher, or of each process; None if it had to be killed
    outputs: list[str]
    errors: list[str]
    report: dict[str, Any] | None
    seconds: float

    @property
    def results(self) -> list[str]:
        return [line for text in self.outputs for line in text.splitlines() if line.startswith("result")]


def read_cases(folder: Path, names: list[str]) -> Iterator[Case]:
    with (folder / "cases.toml").open("rb") as file:
        table = tomllib.load(file)
    for name, data in table.items():
        if not names or name.startswith(tuple(names)):
            yield Case(
                folder / f"{name}.py",
                data["processes"],
                data["devices"],
                tuple(data.get("kinds", ())),
                data.get("says", ""),
                data.get("sides", {}),
                data.get("ended", {}),
                data.get("status", 0),
                tuple(data.get("results", ())),
            )


def kill_marked(mark: str) -> None:
    """Kills what is left of a run: a process that hangs in a collective ignores every other signal."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or is not ours


def environment(folder: Path, mark: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPMDLINT_", "JAX_", "XLA_"))}
    return {**kept, "JOB_DIR": str(folder), "JAX_PLATFORMS": "cpu", MARK: mark, "PYTHONUNBUFFERED": "1"}


def texts(folder: Path, count: int, ending: str) -> list[str]:
    paths = [folder / f"{number}.{ending}" for number in range(count)]
    return [path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in paths]


def read_report(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def launch(case: Case, mode: str, folder: Path, mark: str) -> Run:
    """A rehearsal under ``spmdlint run``."""
    logs, report = folder / "logs", folder / "report.json"
    command = [str(Path(sys.executable).with_name("spmdlint")), "run", "-n", str(case.processes)]
    command += ["--devices-per-process", str(case.devices), "--mode", mode, "--timeout", str(SECONDS)]
    command += ["--report", str(report), "--log-dir", str(logs), "--", str(case.program)]
    begin = time.monotonic()
    with (folder / "launcher.err").open("w") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(folder, mark), stdout=errors, stderr=errors, start_new_session=True
        )
        try:
            status: int | None = process.wait(SECONDS + GRACE)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            kill_marked(mark)
            process.wait()
    seconds = time.monotonic() - begin
    said = (folder / "launcher.err").read_text(encoding="utf-8", errors="replace")
    return Run([status], texts(logs, case.processes, "out"), [said], read_report(report), seconds)


def start_job(case: Case, checks: bool, folder: Path, mark: str, port: int) -> list[subprocess.Popen[bytes]]:
    command = [sys.executable, *(["-m", "spmdlint.runtime_checks"] if checks else []), str(case.program)]
    processes = []
    for number in range(case.processes):
        slurm = {
            "SLURM_JOB_ID": "1",
            "SLURM_STEP_NODELIST": "127.0.0.1",
            "SLURM_NTASKS": str(case.processes),
            "SLURM_PROCID": str(number),
            "SLURM_LOCALID": str(number),
            "JAX_COORDINATOR_PORT": str(port),
            "JAX_NUM_CPU_DEVICES": str(case.devices),
            "PYTHONHASHSEED": str(number + 1),  # as on different hosts
        }
        settings = {"SPMDLINT_RUNTIME_CHECKS": "background", "SPMDLINT_LEDGER": str(folder / "ledger")}
        with (folder / f"{number}.out").open("wb") as out, (folder / f"{number}.err").open("wb") as err:
            processes.append(
                subprocess.Popen(
                    command,
                    cwd=folder,
                    env={**environment(folder, mark), **slurm, **(settings if checks else {})},
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            )
    return processes


def posted(folder: Path, count: int) -> Path | None:
    """Where the report of a job is, once a process has said it."""
    for text in texts(folder, count, "err"):
        for line in text.splitlines():
            if line.startswith("{") and '"diverged"' in line:
                try:
                    said = json.loads(line)
                except ValueError:
                    continue  # the line is still being written
                if said.get("spmdlint") == "diverged" and said.get("report"):
                    return Path(said["report"]).with_suffix(".json")
    return None


def job(case: Case, checks: bool, folder: Path, mark: str) -> Run:
    """The processes as a scheduler starts them; after a verdict, they have some time to end by themselves."""
    begin = time.monotonic()
    end = begin + SECONDS
    report: Path | None = None
    with held_port() as port:
        processes = start_job(case, checks, folder, mark, port)
        try:
            while time.monotonic() < end and any(process.poll() is None for process in processes):
                time.sleep(0.2)
                if report is None and (report := posted(folder, case.processes)) is not None:
                    end = min(end, time.monotonic() + GRACE)
            statuses = [process.poll() for process in processes]
        finally:
            kill_marked(mark)
            for process in processes:
                process.wait()
    report = report or posted(folder, case.processes)
    out, err = texts(folder, case.processes, "out"), texts(folder, case.processes, "err")
    return Run(statuses, out, err, read_report(report) if report else None, time.monotonic() - begin)


def places(data: Any) -> set[Place]:
    """All places in a part of a report: pairs of a file and a line, and texts that name both."""
    found: set[Place] = set()
    if isinstance(data, dict):
        if isinstance(data.get("filename"), str) and isinstance(data.get("line"), int):
            found.add((Path(data["filename"]).name, data["line"]))
        for value in data.values():
            found |= places(value)
    elif isinstance(data, list):
        for value in data:
            found |= places(value)
    elif isinstance(data, str):
        found |= {(name, int(line)) for name, line in PLACE.findall(data)}
        found |= {(Path(name).name, int(line)) for name, line in re.findall(r'File "([^"]+)", line (\d+)', data)}
    return found


def of_processes(report: dict[str, Any], numbers: list[int]) -> list[dict[str, Any]]:
    return [data for number, data in report["processes"].items() if int(number) in numbers]


def names_sides(case: Case, report: dict[str, Any]) -> bool:
    """Whether the report names a line of each side at a process that stands there."""
    for side, numbers in case.sides.items():
        seen: set[Place] = set()
        for process in of_processes(report, numbers):
            seen |= places(process)
        if not seen & case.lines(side):
            return False
    for numbers in case.ended.values():
        states = [str(process["state"]) for process in of_processes(report, numbers)]
        if not any(re.search("finish|end|exit|left|done", state) for state in states):
            return False
    return True


def judge(case: Case, run: Run) -> str:
    report = run.report
    verdict = report["verdict"] if report else None
    if case.diverges:
        if report is None or verdict != "diverged":
            return "missed"
        if report["kind"] not in case.kinds:
            return "other kind"
        if case.says and case.says in report["message"]:
            return "found"
        return "found" if names_sides(case, report) else "other lines"
    if verdict == "diverged" or any('"spmdlint": "diverged"' in text for text in run.errors):
        return "false alarm"
    if any(status != case.status for status in run.statuses):
        return "changed"
    if len(run.results) != case.processes or set(run.results) != set(case.results):
        return "changed"
    if report is not None and verdict != ("failed" if case.status else "clean"):
        return "not compared"
    if report is None and any(ASIDE.search(line) for text in run.errors for line in text.splitlines()):
        return "not compared"
    return "clean"


def judge_plain(case: Case, run: Run) -> str:
    """Whether a program without the checks is what cases.toml says."""
    right = all(status == case.status for status in run.statuses) and len(run.results) == case.processes
    if case.diverges:
        return "missed" if right and len(set(run.results)) == 1 else "found"
    return "clean" if right and set(run.results) == set(case.results) else "changed"


def describe(case: Case, way: str, outcome: str, run: Run) -> str:
    said = ""
    if run.report is not None:
        kind = f" ({run.report['kind']})" if run.report.get("kind") else ""
        said = f"{run.report['verdict']}{kind}: {run.report.get('message', '')}"
    statuses = ",".join("killed" if status is None else str(status) for status in dict.fromkeys(run.statuses))
    return f"{outcome:<13}{case.name:<32}{way:<11}{run.seconds:5.0f} s  status {statuses:<9} {said[:160]}".rstrip()


def run_case(case: Case, way: str, keep: Path | None) -> tuple[str, Run]:
    mark = uuid.uuid4().hex
    folder = Path(tempfile.mkdtemp(prefix=f"unseen-{case.name}-{way}-"))
    try:
        if way in ("job", "plain"):
            run = job(case, way == "job", folder, mark)
        else:
            run = launch(case, way, folder, mark)
        if keep is not None:
            target = keep / case.name / way
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target, ignore_dangling_symlinks=True)
            (target / "report.json").write_text(json.dumps(run.report, indent=1), encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return (judge_plain if way == "plain" else judge)(case, run), run


def table(outcomes: dict[str, Counter[str]]) -> str:
    rows = [f"{'':<14}" + "".join(f"{way:>12}" for way in outcomes)]
    for outcome in OUTCOMES:
        rows.append(f"{outcome:<14}" + "".join(f"{counts[outcome]:>12}" for counts in outcomes.values()))
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs the unseen programs under the runtime checks and judges.")
    parser.add_argument("names", nargs="*", help="beginnings of names of programs; all without any")
    parser.add_argument("--way", action="append", choices=(*WAYS, "plain"), help="how to run them; may be repeated")
    parser.add_argument("--reports", type=Path, help="a folder in which reports and outputs are kept")
    arguments = parser.parse_args()

    ways = arguments.way or list(WAYS)
    outcomes: dict[str, Counter[str]] = {way: Counter() for way in ways}
    for case in read_cases(CASES, arguments.names):
        for way in ways:
            outcome, run = run_case(case, way, arguments.reports)
            outcomes[way][outcome] += 1
            print(describe(case, way, outcome, run), flush=True)
    print()
    print(table(outcomes))


if __name__ == "__main__":
    main()
