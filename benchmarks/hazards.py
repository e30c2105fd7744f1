"""Score a linter on hazards that careful readers noted in public code before it was linted.

    python benchmarks/hazards.py FOLDER [--batch N] [--command "spmdlint check ..."] [--list]

``docs/field/hazards.jsonl`` has a line for each hazard: batch, project, commit, file, line, kind, what goes wrong, and
whether the reader was sure. FOLDER holds the projects of a batch, each in a folder of its name. A hazard is found by a
finding of a rule about processes (SPMD2xx to 6xx without removed names) that has its first place, or one of its first
eight related places, in the same file at most ``NEAR`` lines away. Printed are a row for each project and the total:
how many sure and other hazards are found by default and with ``--preview``, and how many findings there are.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HAZARDS = Path(__file__).resolve().parent.parent / "docs" / "field" / "hazards.jsonl"
NEAR = 3
"""The most lines between a hazard and a place of the finding that tells of it."""
_RELATED = 8
_NAMES_ONLY = frozenset(("SPMD602", "SPMD606", "SPMD900", "SPMD901"))


def read(batch: int) -> list[dict[str, Any]]:
    """The hazards of a batch."""
    hazards = [json.loads(line) for line in HAZARDS.read_text(encoding="utf-8").splitlines() if line]
    return [hazard for hazard in hazards if hazard["batch"] == batch]


def findings(command: Sequence[str], project: Path) -> list[dict[str, Any]]:
    """What a linter says of a project, without removed names and comments.

    Raises:
        RuntimeError: the linter neither finished nor found anything.

    """
    done = subprocess.run([*command, str(project)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{shlex.join(command)} ended with status {done.returncode} on {project}: {done.stderr}")
    return [finding for finding in json.loads(done.stdout) if finding["code"] not in _NAMES_ONLY]


def places(finding: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The files and lines that a finding names, the first ones."""
    yield finding["filename"], finding["location"]["row"]
    for related in finding["related"][:_RELATED]:
        yield related["filename"], related["location"]["row"]


def is_told(hazard: dict[str, Any], project: Path, found: Sequence[dict[str, Any]]) -> bool:
    """Whether a finding tells of a hazard."""
    file = (project / hazard["file"]).resolve()
    return any(
        Path(name).resolve() == file and abs(row - hazard["line"]) <= NEAR
        for finding in found
        for name, row in places(finding)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Lint every project of a batch, by default and with --preview, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--command", default="spmdlint check --no-cache --output-format json")
    parser.add_argument("--list", action="store_true", help="print each hazard, and whether it is found")
    options = parser.parse_args(arguments)
    command = shlex.split(options.command)
    hazards = read(options.batch)
    total = [0] * 8
    print("| project | sure | found | with preview | weak | found | with preview | findings | with preview |")
    print(f"|---|{'---|' * 8}")
    for project in dict.fromkeys(hazard["project"] for hazard in hazards):
        folder = options.folder / project
        said = findings(command, folder), findings([*command, "--preview"], folder)
        row = []
        for sure in (True, False):
            own = [hazard for hazard in hazards if hazard["project"] == project and hazard["sure"] is sure]
            told = [[is_told(hazard, folder, found) for hazard in own] for found in said]
            row += [len(own), *map(sum, told)]
            for hazard, default, preview in zip(own, *told, strict=True) if options.list else ():
                state = "default" if default else "preview" if preview else "missed"
                print(f"<!-- {state}: {project}/{hazard['file']}:{hazard['line']} {hazard['what']} -->")
        row += [len(found) for found in said]
        total = [one + other for one, other in zip(total, row, strict=True)]
        print(f"| {project} | {' | '.join(map(str, row))} |")
    print(f"| all | {' | '.join(map(str, total))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
