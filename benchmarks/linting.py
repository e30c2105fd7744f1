"""How long the linter takes on public code: cold, warm and after one edit, beside a bare parse of the same files.

    python benchmarks/linting.py [small|medium|large] [--runs N]

Takes pinned packages from PyPI into a temporary folder (the code alone, nothing is installed). Prints medians in
seconds, each as a multiple of the bare parse too: one process that does nothing but ``libcst.parse_module`` on every
file, with the garbage collector on. Quote the multiples: they hold from machine to machine, the seconds do not.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

SETS = {"small": ["chex==0.1.92", "equinox==0.13.8"]}
SETS["medium"] = [*SETS["small"], "dm-haiku==0.0.17", "numpyro==0.22.0", "brax==0.14.2", "optax==0.2.8"]
SETS["large"] = [*SETS["medium"], "flax==0.12.8", "orbax-checkpoint==0.12.8", "jax==0.10.2"]

PARSE = """
import sys, libcst
for name in sys.stdin.read().split("\\n"):
    libcst.parse_module(open(name, encoding="utf-8").read())
"""
# Runs a command and says how long it took and how much memory the largest of its processes had, in MB.
MEASURE = """
import resource, subprocess, sys, time
began = time.perf_counter()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
took = time.perf_counter() - began
unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
print(took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / unit, status)
"""


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


def measure(command: list[str], folder: Path, given: str = "") -> tuple[float, float]:
    """Seconds, and megabytes at the most."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command],
        cwd=folder,
        input=given,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    took, megabytes, status = done.stdout.split()
    if status not in ("0", "1"):
        raise SystemExit(f"{' '.join(command)} failed with status {status}.")
    return float(took), float(megabytes)


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("set", nargs="?", choices=SETS, default="small")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    chance = random.Random(1)
    lint = [sys.executable, "-m", "spmdlint", "check", "--output-format", "json"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        files = fetch(SETS[options.set], folder)
        rows = sum(len(path.read_bytes().splitlines()) for path in files)
        names = "\n".join(map(str, files))
        print(f"{options.set}: {', '.join(SETS[options.set])}; {len(files)} files, {rows} lines\n")

        def edited() -> tuple[float, float]:
            path = chance.choice(files)
            path.write_text(f"{path.read_text(encoding='utf-8')}\nedited_{time.time_ns()} = 1\n", encoding="utf-8")
            return measure(lint, folder)

        cases = {
            "bare parse": lambda: measure([sys.executable, "-c", PARSE], folder, names),
            "version": lambda: measure([sys.executable, "-m", "spmdlint", "--version"], folder),
            "cold, one process": lambda: measure([*lint, "--no-cache", "-j", "1"], folder),
            "cold, two processes": lambda: measure([*lint, "--no-cache", "-j", "2"], folder),
            "cold, keeping": lambda: measure(lint, folder),
            "warm": lambda: measure(lint, folder),
            "one file edited": edited,
        }
        print("| | seconds | bare parses | MB |\n|---|---|---|---|")
        bare = 0.0
        for name, run in cases.items():
            took, megabytes = zip(*(run() for _ in range(1 if name == "cold, keeping" else options.runs)), strict=True)
            seconds = statistics.median(took)
            bare = bare or seconds
            print(f"| {name} | {seconds:.2f} | {seconds / bare:.2f} | {max(megabytes):.0f} |", flush=True)


if __name__ == "__main__":
    main()
