"""Imports point one way, as docs/architecture.md says: what lies below knows nothing of what lies above."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "spmdlint"
CHECKS = ROOT.parent / "runtime_checks"
APART = ("rules", "runtime_checks")  # links to folders that are packages by themselves

# From top to bottom; nothing imports from further up.
LAYERS = ("cli", "server", "engine", "analysis", "program", "files", "config", "rule", "diagnostics")
# The folders of the analysis from top to bottom, and between them the modules beside them.
ANALYSIS = (
    *(
        "sampling",
        "load",
        "program",
        "nodefacts",
        "answers",
        "ways",
        "words",
        "explanation",
        "uniformity",
    ),
    *("divergence", "inputs", "setup", "meshtypes", "order", "axes", "placement", "variance", "worlds", "callgraph"),
    "evaluation",
)
# The folders of the runtime checks, and the modules beside them.
RUNTIME = (
    "page",
    "launch",
    "api",
    "hook",
    "session",
    "watching",
    "intercept",
    "ending",
    "background",
    "agreement",
    "recording",
    "calls",
    "transport",
    "errors",
    "reporting",
    "records",
    "options",
    "owners",
)


def unit(path: Path, root: Path = ROOT) -> str:
    """The sub-package that a file belongs to, or its own name for a module at the top."""
    parts = path.relative_to(root).parts
    return parts[0] if len(parts) > 1 else path.stem


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path, package: str = "spmdlint", *, types: bool = False) -> Iterator[str]:
    """The units of a package that a module imports when it runs, here or in one of its functions; or for types only."""
    tree = parsed(path)
    types_only = {
        id(inner)
        for node in ast.walk(tree)
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in types_only and node.module is not None:
            if node.module == package:
                yield from (alias.name for alias in node.names)
            elif node.module.startswith(f"{package}."):
                yield node.module.removeprefix(f"{package}.").partition(".")[0]


@functools.cache
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


@functools.cache
def analysis_graph() -> dict[str, set[str]]:
    root = ROOT / "analysis"
    found: dict[str, set[str]] = {}
    for path in root.rglob("*.py"):
        own = unit(path, root)
        found.setdefault(own, set()).update(
            other for other in imported(path, "spmdlint.analysis", types=True) if other != own
        )
    return found


def test_every_part_of_the_analysis_has_a_layer() -> None:
    assert set(analysis_graph()) - {"__init__"} == set(ANALYSIS)


@pytest.mark.parametrize("layer", ANALYSIS)
def test_a_layer_of_the_analysis_imports_from_below(layer: str) -> None:
    assert analysis_graph()[layer] <= set(ANALYSIS[ANALYSIS.index(layer) + 1 :])


@functools.cache
def runtime_graph() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in CHECKS.rglob("*.py"):
        if path.name not in ("__init__.py", "__main__.py") or path.parent != CHECKS:
            own = unit(path, CHECKS)
            found.setdefault(own, set()).update(
                other for other in imported(path, "spmdlint.runtime_checks", types=True) if other != own
            )
    return found


def test_every_part_of_the_runtime_checks_has_a_layer() -> None:
    assert set(runtime_graph()) == set(RUNTIME)


@pytest.mark.parametrize("layer", RUNTIME)
def test_a_layer_of_the_runtime_checks_imports_from_below(layer: str) -> None:
    below = set(RUNTIME[RUNTIME.index(layer) + 1 :])
    assert runtime_graph()[layer] <= below


def test_the_runtime_checks_never_import_the_linter() -> None:
    own = {"runtime_checks", "_version"}
    assert all(set(imported(path)) <= own for path in CHECKS.rglob("*.py"))
