"""Random edits of single files, as somebody makes them: what benchmarks and tests try the cache with.

    python benchmarks/edits.py FOLDER [--edits N] [--seed S]

makes edit after edit in a copy of a project, and compares what a run with the cache finds with what one without it
finds, every second time with two workers. It prints what each took in seconds of processor time, and ends with 1 at the
first difference.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from spmdlint.cli import main as main_of_spmdlint

Edit = Callable[[list[str], random.Random], list[str]]
_LOCAL = re.compile(r"^ +([a-z]\w*) = ", re.MULTILINE)
_DOCSTRING = re.compile(r'^( *)"""\S.*', re.MULTILINE)


def comment(lines: list[str], chance: random.Random) -> list[str]:
    """A comment of its own somewhere."""
    at = _before_statement(lines, chance)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())] if at < len(lines) else ""
    return [*lines[:at], f"{indent}# look at this again", *lines[at:]]


def blank(lines: list[str], chance: random.Random) -> list[str]:
    """An empty line more."""
    at = _before_statement(lines, chance)
    return [*lines[:at], "", *lines[at:]]


def docstring(lines: list[str], chance: random.Random) -> list[str]:
    """Another word in a docstring."""
    at = [number for number, line in enumerate(lines) if _DOCSTRING.match(line)]
    if not at:
        return comment(lines, chance)
    number = chance.choice(at)
    return [*lines[:number], lines[number].replace('"""', '"""Really: ', 1), *lines[number + 1 :]]


def renamed(lines: list[str], chance: random.Random) -> list[str]:
    """A local variable under another name."""
    text = "\n".join(lines)
    names = sorted(set(_LOCAL.findall(text)))
    if not names:
        return comment(lines, chance)
    name = chance.choice(names)
    return re.sub(rf"(?<![.\w]){name}(?=\W)(?! *=[^=].*[,)])", f"{name}_2", text).split("\n")


def function(lines: list[str], chance: random.Random) -> list[str]:
    """A function more."""
    number = chance.randrange(1000)
    return [*lines, "", "", f"def added_{number}(values):", f"    return [value * {number} for value in values]", ""]


def deleted(lines: list[str], chance: random.Random) -> list[str]:
    """A line less."""
    at = chance.randrange(len(lines))
    return [*lines[:at], *lines[at + 1 :]]


def imported(lines: list[str], chance: random.Random) -> list[str]:
    """An import more, behind those that must come first."""
    at = max((n + 1 for n, line in enumerate(lines) if line.startswith(("import ", "from "))), default=len(lines))
    while at < len(lines) and lines[at].startswith((" ", ")")):
        at += 1
    return [*lines[:at], chance.choice(("import textwrap", "import jax", "from jax import lax")), *lines[at:]]


KINDS: tuple[Edit, ...] = (comment, blank, docstring, renamed, function, deleted, imported)


def edit(text: str, chance: random.Random) -> tuple[str, str]:
    """A text after a random edit, and the edit's name. Now and then it does not parse any more, as in life."""
    kind = chance.choice(KINDS)
    return "\n".join(kind(text.split("\n"), chance)), kind.__name__


def _before_statement(lines: list[str], chance: random.Random) -> int:
    """A row that a statement begins on."""
    try:
        rows = [node.lineno - 1 for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.stmt)]
    except SyntaxError:
        rows = []
    return chance.choice(rows) if rows else len(lines)


def _lint(folder: Path, *options: str) -> tuple[str, float]:
    """What the linter says, and the seconds of processor time that it took without its start."""
    said, began = io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(said):
        status = main_of_spmdlint(["check", str(folder), "--preview", "--output-format", "json", "-j", "1", *options])
    if status not in (0, 1):
        raise SystemExit(f"The linter failed with status {status}.")
    return said.getvalue(), time.process_time() - began


def main() -> None:
    """Edit, lint twice, compare; and again."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    took: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve() / "project"
        shutil.copytree(options.folder, folder, ignore=shutil.ignore_patterns(".git", ".spmdlint_cache"))
        files = sorted(folder.rglob("*.py"))
        _lint(folder)
        for number in range(options.edits):
            path = chance.choice(files)
            before = path.read_bytes().decode()
            after, kind = edit(before, chance)
            path.write_bytes(after.encode())
            jobs = str(1 + number % 2)
            (warm, seconds), (cold, cold_seconds) = _lint(folder), _lint(folder, "--no-cache", "-j", jobs)
            took.setdefault(kind, []).append(seconds)
            took.setdefault("cold", []).append(cold_seconds)
            print(
                f"{number + 1:4} {kind:9} {seconds:6.2f} {cold_seconds:6.2f} s  {path.relative_to(folder)}", flush=True
            )
            if warm != cold:
                raise SystemExit(f"They differ, with the cache and without it:\n{warm}\n{cold}")
            if chance.random() < 0.5:  # half of the edits stay
                path.write_bytes(before.encode())
    for kind, seconds in took.items():
        print(f"{kind:9} {len(seconds):4} runs, median {statistics.median(seconds):6.2f} s of processor time")


if __name__ == "__main__":
    main()
