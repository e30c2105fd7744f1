"""Changes of syntax trees over real code: the tree is the one that was meant, and every comment is still there."""

from __future__ import annotations

import ast
import io
import random
import tokenize
from pathlib import Path
from typing import Any

import pytest

from spmdlint.changes import AddKeyword, Change, Wrap
from spmdlint.diagnostics import Fix
from spmdlint.fixes.apply import apply
from spmdlint.fixes.making import EditMaker

ROOT = Path(__file__).parent.parent
FILES = ("spmdlint/cli/check.py", "docs/generate.py", "benchmarks/scale.py")
MOST = 12
"""The most places in one file that are changed, each by itself."""
ODD = """\
f(  # first
    a,  # second
    *b, c = (yield_),  # third
    # fourth
)
g(a
  , b)
h((a, b), (c), [d for d in e], key=lambda x: (x))
k(x for x in y)
(m)(1, 2,)
n (a, key = 1)
if(o(a, key=2))and p(b, key=3,): pass
q(a, key=4  # fifth
  )
r(**{"a": 1}, key=(5))
s(key=6)
t(key=7,)
u(
    # sixth
    key=8
)
"""


def places(node: ast.expr) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset + 1), (node.end_lineno or 0, (node.end_col_offset or 0) + 1)


def changed(text: str, maker: EditMaker, change: Change) -> str:
    fix = maker.made(Fix("safe", "Change it.", change=change))
    assert fix is not None
    return apply(text, [fix]).text


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def texts() -> Any:
    found = [pytest.param((ROOT / name).read_text(), id=name) for name in FILES]
    odd = [pytest.param(ODD, id="odd"), pytest.param(ODD.replace("\n", "\r\n"), id="odd, with other line ends")]
    return pytest.mark.parametrize("text", [*found, *odd])


def check(text: str, kind: type[ast.expr], change: Any, expect: Any) -> None:
    """Change some expressions of a text, each by itself, and compare with a change of Python's own tree."""
    count = len([node for node in ast.walk(ast.parse(text)) if isinstance(node, kind)])
    numbers = random.Random(1).sample(range(count), min(count, MOST))
    maker, done = EditMaker(text), 0
    for number in sorted(numbers):
        tree = ast.parse(text)
        node = [node for node in ast.walk(tree) if isinstance(node, kind)][number]
        wanted = change(node)
        if wanted is None:
            continue
        result = changed(text, maker, wanted)
        expected = _Replacing(node, expect(node)).visit(tree)
        assert ast.dump(ast.parse(result)) == ast.dump(expected), ast.unparse(node)
        assert comments(result) == comments(text), ast.unparse(node)
        done += 1
    assert done


class _Replacing(ast.NodeTransformer):
    def __init__(self, node: ast.expr, new: ast.expr) -> None:
        self.node = node
        self.new = new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.node else super().generic_visit(node)


def call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


@texts()
def test_a_function_around_an_expression(text):
    check(text, ast.Call, lambda node: Wrap(*places(node), "sorted"), lambda node: call("sorted", node))


@texts()
def test_one_more_keyword(text):
    def expect(node: ast.Call) -> ast.expr:
        return ast.Call(node.func, node.args, [*node.keywords, ast.keyword("added", ast.Constant("x"))])

    def change(node: ast.Call) -> Change | None:
        return AddKeyword(*places(node), "added", "'x'") if node.args or node.keywords else None

    check(text, ast.Call, change, expect)
