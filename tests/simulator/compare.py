"""The linter's verdict on random programs against that of the simulator.

``python tests/simulator/compare.py 5000`` prints precision and recall, by source and by construct, and the seeds of
the programs on which the two differ. ``--show SEED`` prints one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import programs
import world

from spmdlint.config import Config
from spmdlint.engine import check

ABOUT = ("SPMD30",)


@dataclass
class Tally:
    """Programs by the two verdicts: (the processes can diverge, the linter says so)."""

    all: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    by_kind: dict[str, Counter[tuple[bool, bool]]] = field(default_factory=dict)
    wrong: list[tuple[object, str]] = field(default_factory=list)

    def add(self, seed: object, made: programs.Program, diverges: bool, lines: set[int]) -> None:
        """Count one program, with the lines that the linter tells of."""
        found = bool(lines)
        self.all[diverges, found] += 1
        for kind in made.sources | made.constructs:
            self.by_kind.setdefault(kind, Counter())[diverges, found] += 1
        if diverges and not found:
            self.wrong.append((seed, "missed"))
        elif found and not diverges:
            runs = lines & world.reached(made.text)
            self.wrong.append((seed, "false alarm" if runs else "false alarm about a call that no process makes"))


def findings(texts: Sequence[str]) -> list[set[int]]:
    """The lines of the divergences that the linter finds in each of these programs, linted as one project."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        paths = []
        for number, text in enumerate(texts):
            path = root / f"p{number}" / "program.py"
            path.parent.mkdir()
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        checked = check(Config(root, preview=True), [root])
        told: dict[Path, set[int]] = {path: set() for path in paths}
        for found in checked.diagnostics:
            if found.code.startswith(ABOUT):
                told[found.place.path].add(found.place.start.row)
        return list(told.values())


def compare(seeds: Sequence[object], batch: int = 100) -> Tally:
    """Judge the programs of some seeds in both ways."""
    tally = Tally()
    for start in range(0, len(seeds), batch):
        some = seeds[start : start + batch]
        made = [programs.program(seed) for seed in some]
        found = findings([program.text for program in made])
        for seed, program, said in zip(some, made, found, strict=True):
            tally.add(seed, program, bool(world.can_diverge(program.text)), said)
    return tally


def line(name: str, counted: Counter[tuple[bool, bool]]) -> str:
    """One line of the table."""
    right, alarms, missed = counted[True, True], counted[False, True], counted[True, False]
    precision = right / (right + alarms) if right + alarms else 1.0
    recall = right / (right + missed) if right + missed else 1.0
    return f"| {name} | {sum(counted.values())} | {right + missed} | {precision:.1%} | {recall:.1%} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--show", metavar="SEED", help="print the program of one seed and its verdicts")
    options = parser.parse_args()
    if options.show is not None:
        text = programs.program(options.show).text
        print(text)
        print("# simulator:", world.can_diverge(text) or "no divergence", "| linter:", sorted(findings([text])[0]))
        return
    tally = compare([str(seed) for seed in range(options.first, options.first + options.count)])
    print("| | programs | diverge | precision | recall |\n|---|---|---|---|---|")
    print(line("all", tally.all))
    for kind in sorted(tally.by_kind):
        print(line(kind, tally.by_kind[kind]))
    for what in ("false alarm", "false alarm about a call that no process makes", "missed"):
        seeds = [str(seed) for seed, how in tally.wrong if how == what]
        print(f"{what}: {len(seeds)}: {' '.join(seeds[:40])}")


if __name__ == "__main__":
    main()
