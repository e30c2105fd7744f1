"""How long the linter takes on public code, beside a bare parse of the same files and beside other programs.

    python benchmarks/linting.py [small|medium|large] [--runs N] [--no-peers] [--write]

takes pinned packages from PyPI into a temporary folder (the code alone, nothing is installed) and lints them: cold,
warm, after edits of one file. A bare parse is one process that does nothing but ``libcst.parse_module`` on every file,
with the garbage collector on. It prints medians, each as a multiple of the bare parse too, and the most memory that
one process took. Quote the multiples: they hold from machine to machine, the seconds do not, and on a busy machine
those of processor time do better than those on the wall. ``--write`` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import edits
import peers

SETS = {"small": ["chex==0.1.92", "equinox==0.13.8"]}
SETS["medium"] = [*SETS["small"], "dm-haiku==0.0.17", "numpyro==0.22.0", "brax==0.14.2", "optax==0.2.8"]
SETS["large"] = [*SETS["medium"], "flax==0.12.8", "orbax-checkpoint==0.12.8", "jax==0.10.2"]
PAGE = Path(__file__).parent.parent / "docs/benchmarks.md"

PARSE = """
import sys, libcst
for name in sys.stdin.read().split("\\n"):
    libcst.parse_module(open(name, encoding="utf-8").read())
"""
# Runs a command and says how long it and its processes took, and how much memory the largest of them had.
MEASURE = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
try:
    status = subprocess.run(
        sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=float(sys.argv[1])
    ).returncode
except subprocess.TimeoutExpired:
    status = None
took = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
print(json.dumps([took, used.ru_utime + used.ru_stime, used.ru_maxrss / unit, status]))
"""


@dataclass(frozen=True)
class Taken:
    """What one run took: seconds on the wall and of processor time, megabytes at the most. ``failed``: how it did."""

    wall: float
    processor: float
    megabytes: float
    failed: str = ""


def fetch(requirements: list[str], into: Path) -> list[Path]:
    """Unpack the packages' wheels, and give their Python files."""
    with tempfile.TemporaryDirectory() as wheels:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels]
        subprocess.run([*command, *requirements], check=True)
        for wheel in Path(wheels).glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(into)
    (into / "spmdlint.toml").write_text("")
    return sorted(into.rglob("*.py"))


def measure(command: list[str], folder: Path, given: str = "", limit: float = 3600) -> Taken:
    """Run a command once."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(limit), *command],
        cwd=folder,
        input=given,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    wall, processor, megabytes, status = json.loads(done.stdout)
    failed = f"ended after {limit:.0f} s" if status is None else "" if status in (0, 1) else f"status {status}"
    return Taken(wall, processor, megabytes, failed)


class Ours:
    """The runs of the linter over one folder. A small file of its own lies in another one."""

    def __init__(self, folder: Path, files: list[Path], small: Path) -> None:
        self._folder = folder
        self._files = files
        self._small = small
        self._chance = random.Random(1)

    def cases(self) -> Iterator[tuple[str, Callable[[], Taken]]]:
        """What is measured, in this order."""
        yield "`--version`", lambda: measure([*_SPMDLINT, "--version"], self._small)
        yield "one small file, cold", lambda: self._lint("--no-cache", folder=self._small)
        self._lint(folder=self._small)
        yield "one small file, warm", lambda: self._lint(folder=self._small)
        yield "cold, one worker", lambda: self._lint("--no-cache", "-j", "1")
        yield "cold, two workers", lambda: self._lint("--no-cache", "-j", "2")
        yield "cold, keeping", lambda: self._lint("-j", "2", "--cache-dir", tempfile.mkdtemp(dir=self._small))
        self._lint()
        yield "warm", self._lint
        yield "one comment more", lambda: self._edited(edits.comment)
        yield "one edit of any kind", lambda: self._edited(self._chance.choice(edits.KINDS))

    def _lint(self, *options: str, folder: Path | None = None) -> Taken:
        return measure([*_SPMDLINT, "check", "--output-format", "json", *options], folder or self._folder)

    def _edited(self, edit: edits.Edit) -> Taken:
        path = self._chance.choice(self._files)
        before = path.read_bytes().decode()
        path.write_bytes("\n".join(edit(before.split("\n"), self._chance)).encode())
        try:
            return self._lint()
        finally:
            path.write_bytes(before.encode())


def table(cases: Iterator[tuple[str, Callable[[], Taken]]], runs: int) -> Iterator[str]:
    """Measure, row by row of a table in Markdown. The first case is the measure of all."""
    yield "| | seconds | bare parses | processor seconds | bare parses | MB |"
    yield "|---|---|---|---|---|---|"
    bare: tuple[float, float] | None = None
    for name, run in cases:
        taken = [run() for _ in range(runs)]
        failed = next((each.failed for each in taken if each.failed), "")
        wall, processor = (
            statistics.median(times) for times in zip(*((t.wall, t.processor) for t in taken), strict=True)
        )
        bare = bare or (wall, processor)
        times = f"{wall:.2f} | {wall / bare[0]:.2f} | {processor:.2f} | {processor / bare[1]:.2f}"
        yield f"| {name}{f' ({failed})' if failed else ''} | {times} | {max(t.megabytes for t in taken):.0f} |"


def write(name: str, text: str) -> None:
    """Put the table of a set into the page, in place of the one that is there."""
    page = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    PAGE.write_text(re.sub(f"{begin}.*?{end}", lambda _: begin + text + end, page, flags=re.DOTALL), encoding="utf-8")


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("set", nargs="?", choices=SETS, default="small")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true", help="measure ours and the bare parse only")
    parser.add_argument("--peers-in", type=Path, metavar="FOLDER", help="keep the peers' environment there")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a run of a peer is ended")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    # Where it is set, each run compiles the linter anew; what is installed is compiled once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as temporary:
        folder, small = Path(temporary, "packages").resolve(), Path(temporary, "small").resolve()
        folder.mkdir()
        small.mkdir()
        (small / "spmdlint.toml").write_text("")
        (small / "train.py").write_bytes((PAGE.parent.parent / "fixtures/demo/train.py").read_bytes())
        files = fetch(SETS[options.set], folder)
        names = "\n".join(map(str, files))

        def cases() -> Iterator[tuple[str, Callable[[], Taken]]]:
            yield "bare parse", lambda: measure([sys.executable, "-c", PARSE], folder, names)
            yield from Ours(folder, files, small).cases()
            if not options.no_peers:
                programs = peers.install((options.peers_in or Path(temporary, "peers")).resolve())
                for peer, command in peers.commands(programs).items():
                    yield peer, lambda command=command: measure(command, folder, limit=options.limit)

        rows = sum(len(path.read_bytes().splitlines()) for path in files)
        head = (
            f"{', '.join(SETS[options.set])}: {len(files)} files, {rows:,} lines. {datetime.date.today()}, "
            f"Python {sys.version.split()[0]}, {os.cpu_count()} cores; medians of {options.runs}.\n"
        )
        said = [head]
        print(head)
        for line in table(cases(), options.runs):
            print(line, flush=True)
            said.append(line)
        if options.write:
            write(options.set, "\n".join(said) + "\n")


_SPMDLINT = [sys.executable, "-m", "spmdlint"]

if __name__ == "__main__":
    main()
