"""Imports point one way, as docs/architecture.md says: what lies below knows nothing of what lies above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "spmdlint"
APART = ("rules", "runtime_checks")  # links to folders that are packages by themselves

# From top to bottom; nothing imports from further up.
LAYERS = ("cli", "server", "engine", "analysis", "program", "files", "config", "rule", "diagnostics")
# The layers of the second engine, which know nothing of the first.
SECOND = ("hazards", "domains", "core", "program")


def unit(path: Path) -> str:
    """The sub-package that a file belongs to, or its own name for a module at the top."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else path.stem


def imported(path: Path) -> Iterator[str]:
    """The units that a module imports when it runs, here or in one of its functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    types_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in types_only and node.module is not None:
            package, _, rest = node.module.partition(".")
            if package == "spmdlint":
                yield from [rest.partition(".")[0]] if rest else [alias.name for alias in node.names]


@cache
def graph() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] not in APART:
            own = unit(path)
            found.setdefault(own, set()).update(other for other in imported(path) if other != own)
    return found


def test_no_two_parts_need_one_another() -> None:
    order = tuple(TopologicalSorter(graph()).static_order())  # raises where there is a cycle
    assert set(LAYERS) <= set(order)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_from_below(layer: str) -> None:
    above = set(LAYERS[: LAYERS.index(layer)])
    assert not graph()[layer] & above


@pytest.mark.parametrize("layer", SECOND)
def test_a_layer_of_the_second_engine_imports_from_below(layer: str) -> None:
    above = {"analysis", *SECOND[: SECOND.index(layer)]}
    assert not graph()[layer] & above
