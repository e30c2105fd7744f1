"""Faults of public projects, on two real processes: without the checks, and under ``spmdlint run``.

    python benchmarks/shown.py [NAME ...] [--sources FOLDER] [--limit SECONDS] [--write]

The faults stand in ``benchmarks/shown/faults.jsonl``. Each has a driver beside it, which loads the project's own code,
or the smallest part of it that has the fault, and runs it on small data. The command fetches the project's Python files
at the commit that was read, and makes an environment with what the drivers need; both are kept in a cache, and nothing
of the project is installed. Then the driver runs as two processes on this machine, which reach each other through Gloo:
first as they are, until they end or the limit is over, and then under ``spmdlint run``.

Prints what happened and the report. With ``--write``, docs/field/shown.jsonl is updated, which docs/bugs-found.md is
made from. Ends with 0 if all went as expected, with 1 if a fault did not show, and with 2 if a driver could not be run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from field import DATA, FieldError, Project, fetched

from spmdlint.runtime_checks.launch.service import held_port

ROOT = Path(__file__).resolve().parent.parent
DRIVERS = Path(__file__).resolve().parent / "shown"
RESULTS = DATA / "shown.jsonl"
RULE = "-" * 80
"""What ``spmdlint run`` prints above a report."""


@dataclass(frozen=True)
class Fault:
    """A fault that a driver shows.

    Attributes:
        name: the driver's file, without its suffix.
        heading: what docs/bugs-found.md calls it.
        what: what is run, and what stands in for parts of the project.
        outcome: how two processes end without the checks: "hang", "error" or "wrong numbers".
        report: whether ``spmdlint run`` reports that the processes diverge.
        confirmed: whether a blind reading of the project's code agrees that it is a fault.
        devices: CPU devices in each process.

    """

    name: str
    heading: str
    what: str
    git: str
    commit: str
    outcome: str
    report: bool
    confirmed: bool
    devices: int = 1


@dataclass(frozen=True)
class Ended:
    """How processes ended.

    Attributes:
        statuses: None for one that was still running when the limit was over.
        seconds: until the first one that failed ended, or all did, or the limit was over.
        said: what each one printed, without the noise of start-up.

    """

    statuses: tuple[int | None, ...]
    seconds: float
    said: tuple[str, ...]

    @property
    def outcome(self) -> str:
        """In one or two words."""
        if None in self.statuses:
            return "hang"
        if any(self.statuses):
            return "error"
        return "wrong numbers" if any("wrong: " in text for text in self.said) else "nothing wrong"


HASH_SEEDS = ("2", "3")
"""Of the two processes, in place of the random ones that two hosts have: here every set of ours has two orders."""
DIVERGED = 3
"""The status of ``spmdlint run`` if the processes diverged."""
TRIES = 4
"""Under ``spmdlint run``, two processes may take a set in the same order by chance: then they run again."""
NOISE = ("[Gloo] Rank ", "WARNING: All log messages before absl::InitializeLog()", "I0000 ", "W0000 ", "E0000 ")


def faults(drivers: Path = DRIVERS) -> list[Fault]:
    """The faults that have a driver."""
    lines = (drivers / "faults.jsonl").read_text(encoding="utf-8").splitlines()
    return [Fault(**json.loads(line)) for line in lines]


def environment(cache: Path) -> Path:
    """The Python of an environment with the drivers' requirements and spmdlint, made where it is missing."""
    requirements = DRIVERS / "requirements.txt"
    asked = requirements.read_bytes() + str(ROOT).encode() + sys.version.encode()
    folder = cache / f"environment-{hashlib.sha256(asked).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements), "-e", f"{ROOT}[runtime]"]
        subprocess.run(install, check=True)
        (folder / "complete").touch()
    return python


def _variables(checkout: Path, scratch: Path) -> dict[str, str]:
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "SHOWN_CHECKOUT": str(checkout),
        "SHOWN_SCRATCH": str(scratch),
    }


def alone(fault: Fault, drivers: Path, python: Path, checkout: Path, limit: float) -> Ended:
    """Run a driver as two processes that nobody watches."""
    with tempfile.TemporaryDirectory() as folder, held_port() as port, ExitStack() as outputs:
        address = f"127.0.0.1:{port}"
        scratch = Path(folder)
        (scratch / "files").mkdir()
        started = time.monotonic()
        processes = [
            subprocess.Popen(
                [str(python), str(drivers / f"{fault.name}.py")],
                env={
                    **_variables(checkout, scratch / "files"),
                    "JAX_NUM_CPU_DEVICES": str(fault.devices),
                    "PYTHONHASHSEED": HASH_SEEDS[number],
                    "SHOWN_ADDRESS": address,
                    "SHOWN_PROCESS": str(number),
                },
                stdout=outputs.enter_context((scratch / f"{number}.out").open("wb")),
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for number in (0, 1)
        ]
        try:
            seconds = _wait(processes, started, limit)
            statuses = tuple(process.poll() for process in processes)
            # Before they are ended: the first one to go makes the others complain.
            said = [(scratch / f"{number}.out").read_text(errors="replace") for number in (0, 1)]
        finally:
            for process in processes:
                _end(process)
        return Ended(statuses, seconds, tuple(_cleaned(text, checkout, drivers, scratch / "files") for text in said))


def _wait(processes: Sequence[subprocess.Popen[bytes]], started: float, limit: float) -> float:
    """Until all have ended or the limit is over; gives the seconds until something happened."""
    failed = None
    while (seconds := time.monotonic() - started) < limit:
        statuses = [process.poll() for process in processes]
        if failed is None and any(statuses):
            failed = seconds
        if None not in statuses:
            return failed or seconds
        time.sleep(0.1)
    return limit


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and whatever it has started: one that hangs in a collective takes no other signal."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def checked(fault: Fault, drivers: Path, python: Path, checkout: Path, limit: float) -> Ended:
    """Run a driver under ``spmdlint run``; what it printed ends in its report."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", "-n", "2", "--devices-per-process", str(fault.devices), "--timeout", str(int(limit))]
        started = time.monotonic()
        launcher = subprocess.Popen(
            [str(python), "-m", "spmdlint", *words, "--", str(drivers / f"{fault.name}.py")],
            env={**_variables(checkout, Path(folder)), "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            printed, _ = launcher.communicate(timeout=limit + 60)
        except subprocess.TimeoutExpired:
            raise FieldError(f"{fault.name}: spmdlint run did not end within {limit + 60:.0f} s") from None
        finally:
            _end(launcher)
        text = _cleaned(printed.decode(errors="replace"), checkout, drivers, Path(folder))
        return Ended((launcher.returncode,), time.monotonic() - started, (text,))


def repeated(fault: Fault, drivers: Path, python: Path, checkout: Path, limit: float) -> tuple[Ended, int]:
    """Run a driver under ``spmdlint run`` until it is reported, or ``TRIES`` times; gives the number of runs."""
    runs = 1
    while True:
        under = checked(fault, drivers, python, checkout, limit)
        if under.statuses == (DIVERGED,) or not fault.report or runs == TRIES:
            return under, runs
        runs += 1


def _cleaned(text: str, checkout: Path, drivers: Path, scratch: Path) -> str:
    """Without what libraries log at their start, and without the places of this machine."""
    lines = [line for line in text.splitlines() if not any(noise in line[:100] for noise in NOISE)]
    cleaned = "\n".join(lines)
    for folder, name in ((checkout, ""), (drivers, ""), (scratch, "scratch/")):
        cleaned = cleaned.replace(f"{folder}/", name)
    return cleaned


def report(printed: str) -> str:
    """The report at the end of what ``spmdlint run`` printed."""
    _, found, text = printed.rpartition(f"{RULE}\n")
    return text.strip() if found else printed.strip().splitlines()[-1]


def telling(printed: str) -> str:
    """The line of a process's output that says how it went."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    for pattern in (r"(wrong|right): ", r"what\(\):", r"[\w.]*(Error|Exception)\b.*: "):
        if found := [line for line in lines if re.match(pattern, line)]:
            return found[0]
    return lines[-1] if lines else ""


def record(fault: Fault, plain: Ended, under: Ended, runs: int) -> dict[str, Any]:
    """What the page is made from."""
    return {
        **asdict(fault),
        "plain": {
            "outcome": plain.outcome,
            "statuses": plain.statuses,
            "seconds": round(plain.seconds),
            "said": [telling(text) for text in plain.said],
        },
        "checked": {
            "status": under.statuses[0],
            "runs": runs,
            "seconds": round(under.seconds),
            "report": report(under.said[0]),
        },
    }


def problems(fault: Fault, result: Mapping[str, Any]) -> list[str]:
    """In what a result is not as expected."""
    found = []
    if result["plain"]["outcome"] != fault.outcome:
        found.append(f"{fault.name}: without the checks, {result['plain']['outcome']}, not {fault.outcome}")
    diverged = result["checked"]["status"] == DIVERGED
    if diverged != fault.report:
        words = "reports that the processes diverge" if diverged else "reports no divergence"
        found.append(f"{fault.name}: spmdlint run {words}")
    return found


def write(results: Sequence[Mapping[str, Any]], order: Sequence[str], path: Path) -> None:
    """Put the results in the place of older ones of the same faults, in that order of the names."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = {each["name"]: each for each in map(json.loads, lines)}
    kept.update({each["name"]: each for each in results})
    path.write_text("".join(json.dumps(kept[name]) + "\n" for name in order if name in kept), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these faults")
    parser.add_argument("--sources", type=Path, help="a folder of git repositories that are looked at before GitHub")
    parser.add_argument("--cache", type=Path, default=_default_cache(), help="where projects and packages are kept")
    parser.add_argument("--drivers", type=Path, default=DRIVERS, help="the folder with faults.jsonl and the drivers")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file that --write updates")
    parser.add_argument("--python", type=Path, help="a Python that has the drivers' requirements")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which two processes hang")
    parser.add_argument("--write", action="store_true", help="update docs/field/shown.jsonl")
    options = parser.parse_args(arguments)
    known = faults(options.drivers)
    if unknown := set(options.names) - {fault.name for fault in known}:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    chosen = [fault for fault in known if not options.names or fault.name in options.names]
    python = options.python or environment(options.cache)
    results, wrong = [], []
    failed = False
    for fault in chosen:
        try:
            project = Project(fault.name, git=fault.git, commit=fault.commit)
            checkout = fetched(project, options.cache.resolve() / "projects", options.sources)
            plain = alone(fault, options.drivers, python, checkout, options.limit)
            under, runs = repeated(fault, options.drivers, python, checkout, options.limit)
        except FieldError as error:
            print(f"failed: {error}", flush=True)
            failed = True
            continue
        result = record(fault, plain, under, runs)
        results.append(result)
        wrong += problems(fault, result)
        print(f"== {fault.name}: {plain.outcome} after {plain.seconds:.0f} s; statuses {plain.statuses}", flush=True)
        for number, text in enumerate(plain.said):
            print("\n".join(f"[{number}] {line}" for line in text.splitlines()[-6:]), flush=True)
        print(f"-- spmdlint run: status {under.statuses[0]} after {under.seconds:.0f} s\n", flush=True)
        print(report(under.said[0]), end="\n\n", flush=True)
    if options.write:
        write(results, [fault.name for fault in known], options.results)
    print("\n".join(wrong))
    return 2 if failed else int(bool(wrong))


def _default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spmdlint-shown"


if __name__ == "__main__":
    sys.exit(main())
