"""Whatever a file holds, the linter ends with 0 or 1: a finding at worst, never an internal error."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from spmdlint.cli import main
from spmdlint.program.syntax import python_tree

REPOSITORY = Path(__file__).parent.parent
SEEDS = [
    path.read_text(encoding="utf-8")
    for folder in ("fixtures/lint", "rules")
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
]
PARSED = [text for text in SEEDS if python_tree(text) is not None]
PIECES = st.sampled_from(
    [
        *("(", ")", "[", "]", "{", "}", ":", ",", "=", "\n", "\n    ", "\t", "\\\n", "\x00", "\x0c", "\r", "\ufeff"),
        *(
            '"""',
            "'",
            'f"{',
            "lambda: ",
            "*",
            "**",
            "async ",
            "await ",
            "yield ",
            "match x:\n    case ",
            "else:",
            "pass",
        ),
        *(
            "# noqa: ",
            "# spmdlint: ignore[",
            "SPMD301",
            "jax.lax.psum(x, 'i')",
            "jax.process_index() == 0",
            "é漢\u202e",
        ),
        *("global x", "nonlocal x", "del ", "with a as b:", "try:", "except* E:", "return", "x: int", "@", "import *"),
    ]
)


def status_of(data: bytes) -> tuple[int, str]:
    """Lint a file with these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.py"
        path.write_bytes(data)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["check", "--preview", str(path)])
    return status, err.getvalue()


def assert_survives(data: bytes) -> None:
    status, said = status_of(data)
    assert (status in (0, 1), said) == (True, "")


def sizes(some: int, full: int) -> pytest.MarkDecorator:
    """How many examples, of which the first are the same: the full number in make test-all."""
    return pytest.mark.parametrize("size", [some, pytest.param(full, marks=pytest.mark.long)])


def survives(size: int, files: st.SearchStrategy[Any], as_bytes: Callable[[Any], bytes]) -> None:
    settings(max_examples=size, deadline=None, derandomize=True)(given(files.map(as_bytes))(assert_survives))()


@sizes(40, 150)
def test_random_bytes(size):
    survives(size, st.binary(max_size=200), lambda data: data)


@sizes(40, 100)
def test_random_pieces_of_python(size):
    survives(size, st.lists(PIECES, max_size=25), lambda pieces: "".join(pieces).encode())


@st.composite
def mutated(draw) -> str:
    """A Python file in which some stretches are gone, doubled, moved or replaced."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 60)))
        piece = draw(st.one_of(PIECES, st.just(""), st.just(text[start:end] * 2)))
        text = text[:start] + piece + text[end:]
    return text


@sizes(60, 200)
def test_mutated_files(size):
    survives(size, mutated(), lambda text: text.encode())


@st.composite
def shuffled_lines(draw) -> str:
    lines = draw(st.sampled_from(SEEDS)).splitlines(keepends=True)
    kept = draw(st.lists(st.integers(0, len(lines) - 1), max_size=40)) if lines else []
    return "".join(lines[number] for number in kept)


@sizes(40, 100)
def test_lines_of_files_in_any_order(size):
    survives(size, shuffled_lines(), lambda text: text.encode())


def changed(draw: st.DrawFn, node: ast.AST, nodes: list[ast.AST]) -> None:
    """Drop, double or turn round a part of a node, or put another expression in the place of one of its own."""
    lists = [v for _, v in ast.iter_fields(node) if isinstance(v, list) and v and isinstance(v[0], ast.AST)]
    if lists:
        parts = draw(st.sampled_from(lists))
        place = draw(st.integers(0, len(parts) - 1))
        how = draw(st.sampled_from(("drop", "double", "turn")))
        if how == "drop":
            del parts[place]
        elif how == "double":
            parts.insert(place, copy.deepcopy(parts[draw(st.integers(0, len(parts) - 1))]))
        else:
            parts.reverse()
        return
    places = [name for name, value in ast.iter_fields(node) if isinstance(value, ast.expr) and is_read(value)]
    if places:
        others = [*(other for other in nodes if isinstance(other, ast.expr) and is_read(other)), ast.Constant(None)]
        setattr(node, draw(st.sampled_from(places)), copy.deepcopy(draw(st.sampled_from(others))))


def is_read(node: ast.expr) -> bool:
    return not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))


@st.composite
def restructured(draw: st.DrawFn) -> str:
    """A Python file that is one still, with parameters, arguments, statements and decorators gone or elsewhere."""
    tree = ast.parse(draw(st.sampled_from(PARSED)))
    for _ in range(draw(st.integers(1, 5))):
        nodes = list(ast.walk(tree))
        changed(draw, draw(st.sampled_from(nodes)), nodes)
    try:
        text = ast.unparse(tree)
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, AttributeError, TypeError):
        reject()
    return text


@sizes(60, 200)
def test_files_of_another_structure(size):
    survives(size, restructured(), lambda text: text.encode())


def made_of_itself(text: str, which: int, every: int) -> str:
    """A Python file in which names are made of what they were before, in a loop: no chain of names ends there."""
    tree, number = ast.parse(text), 0
    for outer in list(ast.walk(tree)):
        body = getattr(outer, "body", None)
        for place, statement in enumerate(body) if isinstance(body, list) else ():
            if not isinstance(statement, ast.Assign):
                continue
            bound = [n.id for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            loads = [n for n in ast.walk(statement.value) if isinstance(n, ast.Name) and is_read(n)]
            number += 1
            if bound and loads and number % every == 0:
                loads[which].id = bound[0]
                body[place] = ast.For(ast.Name("_", ast.Store()), ast.Name("rounds", ast.Load()), [statement], [])
    return ast.unparse(ast.fix_missing_locations(tree))


WAYS = ((0, 1), (-1, 1), (-1, 2))
PARTS = 16


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[] if part % 8 == 0 else pytest.mark.long) for part in range(PARTS)]
)
def test_names_that_are_made_of_themselves(part):
    """Each file in one of the ways, which its neighbours, of the same rule, are in the others of."""
    for number, text in enumerate(PARSED):
        if number % PARTS == part:
            assert_survives(made_of_itself(text, *WAYS[number % len(WAYS)]).encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("(" * 50_000, id="open brackets"),
        pytest.param("(" * 3_000 + ")" * 3_000, id="brackets"),
        pytest.param("[" * 150 + "]" * 150, id="some brackets"),
        pytest.param("f'{" + "(" * 3_000 + ")" * 3_000 + "}'", id="brackets in an f-string"),
        pytest.param("x = '" + "(" * 3_000 + "'", id="brackets in a string"),
        pytest.param("-" * 500 + "1", id="signs"),
        pytest.param("x" + ".x" * 500, id="attributes"),
        pytest.param("x" + "()" * 500, id="calls"),
        pytest.param("1" + "+1" * 500, id="sum"),
        pytest.param("x = " + "a + " * 20_000 + "a", id="long sum"),
        pytest.param("x = " + "not " * 500 + "x", id="negations"),
        pytest.param("x = " + "lambda: " * 300 + "x", id="lambdas"),
        pytest.param("".join("    " * depth + "if x:\n" for depth in range(300)) + "    " * 300 + "x\n", id="ifs"),
        pytest.param("if x:\n    x\n" + "elif x:\n    x\n" * 300, id="elifs"),
        pytest.param("x = 1\n" * 5_000, id="many lines"),
        pytest.param("x = [" + "1, " * 10_000 + "]", id="long list"),
        pytest.param("f'" + "{f'" * 30 + "'}" * 30 + "'", id="f-strings"),
        pytest.param("# " + "spmdlint: ignore[" * 5_000, id="directives"),
        pytest.param("x = 1  # noqa: " + "A1, " * 50_000, id="codes"),
    ],
)
def test_texts_of_an_extreme_form(project, text):
    """In a process of its own, because what overflows a stack takes the process with it."""
    project.write({"a.py": text, "b.py": project.hazard})
    outcome = project.spawn("check", "--output-format", "json")
    assert outcome.err == ""
    assert outcome.status == 1
    assert ("b.py", 7, "SPMD301") in outcome.found


def test_fuzzing_leaves_the_recursion_limit_as_it_was():
    before = sys.getrecursionlimit()
    status_of(b"(" * 100)
    assert sys.getrecursionlimit() == before
