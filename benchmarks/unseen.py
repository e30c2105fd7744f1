"""Counts what the linter finds of faults in programs whose author had not seen it.

    python benchmarks/unseen.py                                   the linter that is installed beside this Python
    python benchmarks/unseen.py --command "COMMAND WITH OPTIONS"  another program; the path is added at the end
    python benchmarks/unseen.py 12_ 29_                           only the cases whose names begin so

Each ``bad`` and each ``good`` program of fixtures/unseen is copied to a temporary folder and checked there alone. The
command prints findings as JSON, as ``spmdlint check --output-format json`` does. A case is found if a finding of the
families that can say so (SPMD3xx, SPMD5xx, SPMD6xx in the first two sets, any in the third) is at an accepted line,
itself or with one of its first eight related places. Every SPMD3xx finding in a good program is noise, in the third set
every finding. See fixtures/unseen/README.md.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = ("condition", "choice", "unsteady", "checkpoint", "loop")
TELLING = ("SPMD3", "SPMD5", "SPMD6")
NOISY = ("SPMD3",)
ANY = ("SPMD",)
RELATED = 8
SECONDS = 120

Place = tuple[str, int]


@dataclass(frozen=True)
class Case:
    folder: Path
    family: str
    accepted: frozenset[Place]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def is_of_counts(self) -> bool:
        """Whether it is of the sets that are about how often each process makes a call."""
        return self.family in FAMILIES

    def program(self, kind: str) -> Path | None:
        """The file or folder of ``bad`` or ``good``; None if the case has only the other."""
        file, folder = self.folder / f"{kind}.py", self.folder / kind
        return file if file.exists() else folder if folder.exists() else None


@dataclass(frozen=True)
class Finding:
    code: str
    places: tuple[Place, ...]

    def __str__(self) -> str:
        file, line = self.places[0]
        return f"{self.code} {file}:{line}"


@dataclass(frozen=True)
class Result:
    case: Case
    found: tuple[Finding, ...]
    missed: tuple[Finding, ...]  # findings in the bad program, none of them at an accepted line
    noise: tuple[Finding, ...]
    failures: tuple[str, ...]


def read_cases(folder: Path, names: list[str]) -> Iterator[Case]:
    for path in sorted(folder.rglob("case.toml")):
        if names and not path.parent.name.startswith(tuple(names)):
            continue
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        accepted = frozenset((file, line) for file, lines in data.get("accept", {}).items() for line in lines)
        yield Case(path.parent, data["family"], accepted)


def _finding(data: dict[str, Any], root: Path) -> Finding:
    places = []
    for place in [data, *(data.get("related") or [])[:RELATED]]:
        path = (root / place["filename"]).resolve()
        file = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        places.append((file, int(place["location"]["row"])))
    return Finding(data["code"], tuple(places))


def check(command: list[str], program: Path) -> tuple[Finding, ...]:
    """The findings in a copy of a program; a RuntimeError says why there are none to read."""
    with tempfile.TemporaryDirectory(prefix="unseen-") as temporary:
        root = Path(temporary).resolve() / "project"
        if program.is_dir():
            shutil.copytree(program, root, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            root.mkdir()
            shutil.copy(program, root)
        try:
            done = subprocess.run(
                [*command, str(root)], cwd=root, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            return tuple(_finding(item, root) for item in json.loads(done.stdout))
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"no answer in {SECONDS} s") from error
        except ValueError as error:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"exit status {done.returncode} and no JSON: {last}") from error


def judge(command: list[str], case: Case) -> Result:
    found: list[Finding] = []
    missed: list[Finding] = []
    noise: list[Finding] = []
    failures: list[str] = []
    telling, noisy = (TELLING, NOISY) if case.is_of_counts else (ANY, ANY)
    for kind in ("bad", "good"):
        program = case.program(kind)
        if program is None:
            continue
        try:
            findings = check(command, program)
        except RuntimeError as error:
            failures.append(f"{kind}: {error}")
            continue
        for finding in findings:
            if kind == "good":
                if finding.code.startswith(noisy):
                    noise.append(finding)
            elif finding.code.startswith(telling) and case.accepted.intersection(finding.places):
                found.append(finding)
            else:
                missed.append(finding)
    return Result(case, tuple(found), tuple(missed), tuple(noise), tuple(failures))


def describe(result: Result) -> str:
    said = "found " if result.found else "missed" if result.case.program("bad") is not None else "right "
    parts = [said, f"{result.case.name} ({result.case.family})"]
    if result.found:
        parts.append(f": {result.found[0]}")
    elif result.missed:
        parts.append(f", elsewhere: {', '.join(map(str, result.missed))}")
    if result.noise:
        parts.append(f"; noise: {', '.join(map(str, result.noise))}")
    if result.failures:
        parts.append(f"; FAILED {'; '.join(result.failures)}")
    return f"{parts[0]} {parts[1]}{''.join(parts[2:])}"


def table(results: list[Result]) -> str:
    rows = [f"{'family':<12}{'faults':>7}{'found':>7}{'noisy':>7}{'noise':>7}{'failed':>8}"]
    others = sorted({r.case.family for r in results} - set(FAMILIES))
    for family in (*FAMILIES, *others, "all"):
        those = [r for r in results if family in (r.case.family, "all")]
        counts = (
            sum(r.case.program("bad") is not None for r in those),
            sum(bool(r.found) for r in those),
            sum(bool(r.noise) for r in those),
            sum(len(r.noise) for r in those),
            sum(bool(r.failures) for r in those),
        )
        rows.append(f"{family:<12}{counts[0]:>7}{counts[1]:>7}{counts[2]:>7}{counts[3]:>7}{counts[4]:>8}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs a linter on the unseen cases and counts what it finds.")
    parser.add_argument("names", nargs="*", help="beginnings of names of cases; all without any")
    parser.add_argument("--command", help="prints findings as JSON for a path that is added at its end")
    parser.add_argument("--cases", type=Path, default=ROOT / "fixtures" / "unseen", help="the folder of cases")
    arguments = parser.parse_args()
    if arguments.command:
        command = shlex.split(arguments.command)
    else:
        command = [str(Path(sys.executable).with_name("spmdlint")), "check", "--output-format", "json", "--no-cache"]

    results = []
    for case in read_cases(arguments.cases, arguments.names):
        results.append(judge(command, case))
        print(describe(results[-1]), flush=True)
    print()
    print(table(results))


if __name__ == "__main__":
    main()
