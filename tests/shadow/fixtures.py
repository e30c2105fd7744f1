"""What the second engine finds in the fixtures of the rules that it runs in shadow for, against what is due there.

    python tests/shadow/fixtures.py [--write]

prints the differences and how many they are; ``--write`` makes them the expected ones. This goes with the first engine.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spmdlint.analysis.load import load
from spmdlint.analysis.program import Program
from spmdlint.config import read_config
from spmdlint.files.find import find
from spmdlint.hazards.strata import Strata
from spmdlint.interpreter import deep
from spmdlint.program.survey import Surveyor

FIXTURES = Path(__file__).parents[2] / "fixtures" / "lint"
EXPECTED = Path(__file__).parent / "differences.txt"
IN_SHADOW = {"condition": "SPMD301", "unsteady": "SPMD306", "checkpoint": "SPMD309"}
_DUE = re.compile(r"# error: (?P<codes>[A-Z]+[0-9]+(?:, *[A-Z]+[0-9]+)*)(?P<preview> \(preview\))?\s*$")


@dataclass(frozen=True)
class Judged:
    """How many lines are due, and the differences: ``- line`` for one that is missed, ``+ line`` for one too many."""

    due: int
    differences: tuple[str, ...]


def cases() -> list[Path]:
    """The fixtures of the rules in shadow."""
    folders = [FIXTURES / code for code in IN_SHADOW.values()]
    return sorted(p for folder in folders for p in folder.iterdir() if p.suffix == ".py" or p.is_dir())


def program_of(root: Path) -> Program:
    """The linked program of a folder."""
    config = read_config(root, None)
    return load(Surveyor(config, None).look(find(config, [root]).project, {}), config)


def copied(case: Path, to: Path) -> None:
    """A fixture as a project of its own."""
    (to / "spmdlint.toml").write_text("")
    if case.is_dir():
        shutil.copytree(case, to, dirs_exist_ok=True)
    else:
        shutil.copy(case, to)


def _lines(root: Path) -> Iterator[tuple[tuple[str, int, str], bool]]:
    for path in root.rglob("*.py"):
        for row, line in enumerate(path.read_text().split("\n"), start=1):
            found = _DUE.search(line)
            for code in found["codes"].split(",") if found else ():
                yield (str(path.relative_to(root)), row, code.strip()), bool(found and found["preview"])


def judge() -> Judged:
    """Run the second engine over all cases."""
    total, differences = 0, []
    for case in cases():
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch).resolve()
            copied(case, root)
            lines = {key: preview for key, preview in _lines(root) if key[2] in IN_SHADOW.values()}
            program = program_of(root)
            with deep():
                divergences = Strata(program.project, program.knowledge).divergences()
            told = set()
            for found in divergences:
                place = program.place(found.call.site)
                code = IN_SHADOW.get(found.hazard)
                if code is not None:
                    told.add((str(place.path.relative_to(root)), place.start.row, code))
            due = {key for key, preview in lines.items() if not preview}
            total += len(due)
            name = case.relative_to(FIXTURES)
            differences += [f"- {name} {path}:{row} {code}" for path, row, code in sorted(due - told)]
            differences += [f"+ {name} {path}:{row} {code}" for path, row, code in sorted(told - set(lines))]
    return Judged(total, tuple(differences))


def main() -> None:
    judged = judge()
    print(*judged.differences, sep="\n")
    missed = sum(line.startswith("-") for line in judged.differences)
    print(
        f"{judged.due - missed} of {judged.due} due lines, {len(judged.differences) - missed} lines where none is due"
    )
    if sys.argv[1:] == ["--write"]:
        EXPECTED.write_text("\n".join(judged.differences) + "\n")


if __name__ == "__main__":
    main()
