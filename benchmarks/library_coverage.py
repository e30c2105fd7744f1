"""Counts the functions of libraries that programs call, and which of them the knowledge has a row for.

    python benchmarks/library_coverage.py FOLDER ... [--most 300] [--list]

Every folder is one code base; a function counts once for each that calls it, under the name that its imports give it.
Libraries are what the knowledge names and ``--also``; functions that only compute with arrays pass on nothing but what
the row of their module says, so ``jax`` and ``numpy`` count as covered there. ``--list`` prints those without a row.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spmdlint.knowledge.load import Knowledge, built_in

_ALSO = (
    "absl", "clu", "datasets", "equinox", "etils", "grain", "h5py", "itertools", "keras", "more_itertools", "orbax",
    "pandas", "queue", "seqio", "tensorboardX", "tensorflow", "tensorflow_datasets", "torch", "tqdm", "transformers",
    "wandb", "webdataset",
)  # fmt: skip


def imported(tree: ast.Module) -> dict[str, str]:
    """What the names that a file imports stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                found[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)
    return found


def called(tree: ast.Module) -> Iterator[str]:
    """The dotted names of imported functions that a file calls."""
    names = imported(tree)
    for node in ast.walk(tree):
        parts: list[str] = []
        function = node.func if isinstance(node, ast.Call) else None
        while isinstance(function, ast.Attribute):
            parts.insert(0, function.attr)
            function = function.value
        if isinstance(function, ast.Name) and function.id in names:
            yield ".".join((names[function.id], *parts))


def functions(folder: Path, knowledge: Knowledge) -> set[str]:
    """The functions that the files of a code base call."""
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        try:
            found.update(called(ast.parse(path.read_text(encoding="utf-8"))))
        except (SyntaxError, ValueError, OSError):
            continue
    return {knowledge.canonical(name) for name in found}


def count(folders: Iterable[Path], knowledge: Knowledge, also: Iterable[str] = _ALSO) -> Counter[str]:
    """How many of some code bases call each function of a library."""
    roots = {name.partition(".")[0] for name in knowledge.functions} | set(also)
    totals: Counter[str] = Counter()
    for folder in folders:
        totals.update(name for name in functions(folder, knowledge) if name.partition(".")[0] in roots)
    return totals


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, and print how many of the most frequent functions have a row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=300, help="how many of the most frequent functions count")
    parser.add_argument("--list", action="store_true", help="print those without a row")
    options = parser.parse_args(arguments)
    knowledge = built_in()
    totals = count(options.folders, knowledge)
    most = sorted(totals.items(), key=lambda each: (-each[1], each[0]))[: options.most]
    rows = [name for name, _ in most if knowledge.get(name) is not None]
    carried = [name for name, _ in most if knowledge.get(name) is None and knowledge.transfer(name) is not None]
    print(f"{len(options.folders)} code bases, {len(totals)} functions; of the {len(most)} most frequent")
    print(f"{len(rows)} have a row, {len(carried)} that of their module, {len(most) - len(rows) - len(carried)} none")
    if options.list:
        for name, number in most:
            if knowledge.transfer(name) is None and knowledge.get(name) is None:
                print(f"{number:5} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
