"""Summaries of modules: control flow, scopes and spans, on small programs and on real code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from spmdlint.program import summary as s
from spmdlint.program.lower import LoweringError, lower

REAL_CODE = sorted(Path(importlib.util.find_spec("libcst").origin).parent.rglob("*.py"))[::12]


def function(text, name):
    summary = lower(text)
    return next(f for f in summary.functions if f.name == name)


def calls_on_ways(text, name="f"):
    """The names called on every way from the entry to the exit, exceptions aside and loops at most once."""
    code = function(text, name)

    def called(block):
        for number in code.blocks[block].operations:
            operation = code.operations[number]
            if isinstance(operation, s.Call):
                yield code.operations[operation.function].name

    def ways(block, seen):
        if block == s.EXIT:
            yield ()
            return
        for edge in code.blocks[block].edges:
            if edge.kind not in ("except", "raise") and (edge.target not in seen or edge.target == s.EXIT):
                for rest in ways(edge.target, seen | {edge.target}):
                    yield (*called(block), *rest)

    return {" ".join(way) for way in ways(s.ENTRY, {s.ENTRY})}


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        ("a(); b()", {"a b"}),
        ("if t: a()\n    else: b()\n    c()", {"a c", "b c"}),
        ("x = a() and b()", {"a", "a b"}),
        ("x = a() if t else b()", {"a", "b"}),
        ("if t: return a()\n    b()", {"a", "b"}),
        ("for i in a():\n        b(i)\n    c()", {"a c"}),
        ("while a():\n        if t: break\n        b()\n    else:\n        c()\n    d()", {"a c d", "a d"}),
        ("while True:\n        if t: break\n    a()", {"a"}),
        ("try:\n        a()\n        if t: return b()\n    finally:\n        c()\n    d()", {"a c d", "a b c"}),
        ("with a() as g:\n        if t: return b()\n    c()", {"a b", "a c"}),
        (
            "match t:\n        case 1: a()\n        case [x, *_] if b(): c()\n        case _: d()",
            {"a", "b c", "b d", "d"},
        ),
        ("assert a(), b()\n    c()", {"a c"}),
        ("x = [b(i) for i in a() if c(i)]", {"a"}),
    ],
)
def test_the_calls_on_each_way_through_a_function(body, ways):
    # Ways go forward only: a loop's body leads back to its header and shows in no way to the exit.
    found = calls_on_ways(f"def f(t):\n    {body}\n")
    assert found == ways


def test_an_exception_leads_to_its_handlers_and_through_finally():
    code = function("def f():\n  try:\n    a()\n  except E:\n    b()\n  finally:\n    c()\n", "f")
    kinds = {edge.kind for block in code.blocks for edge in block.edges}
    assert {"except", "raise", "return"} <= kinds
    handlers = [o for o in code.operations if isinstance(o, s.Caught)]
    assert len(handlers) == 1
    assert sum(isinstance(o, s.Load) and o.name == "c" for o in code.operations) == 2


def test_a_comprehension_is_a_scope_of_its_own():
    code = function("def f(i):\n    y = [i for i in i]\n    return i\n", "f")
    names = [o.name for o in code.operations if isinstance(o, s.Load)]
    assert names.count("i") == 2
    assert any(name.startswith("i#") for name in names)


def test_scopes_follow_python():
    summary = lower(
        "x = 1\n"
        "class C:\n    x = 2\n    def m(self):\n        return x\n"
        "def f():\n    x = 3\n    def g():\n        nonlocal x\n        x = 4\n        return x\n"
        "def h():\n    global x\n    x = 5\n"
    )
    by_name = {f.name: f for f in summary.functions}
    assert summary.scope_of(by_name["m"], "x") is None
    assert summary.scope_of(by_name["g"], "x") is by_name["f"]
    assert summary.scope_of(by_name["h"], "x") is None
    assert summary.scope_of(by_name["f"], "x") is by_name["f"]


def test_a_decorator_is_the_call_that_it_is():
    summary = lower("@a(1)\n@b\ndef f(): pass\n")
    top = summary.functions[0]
    applied = [o for o in top.operations if isinstance(o, s.Call) and o.decorator]
    assert len(applied) == 2
    store = next(o for o in top.operations if isinstance(o, s.Store) and o.name == "f")
    assert top.operations[store.value] is applied[-1]


@pytest.mark.parametrize("path", REAL_CODE, ids=[path.stem for path in REAL_CODE])
def test_spans_on_real_code(path):
    text = path.read_text(encoding="utf-8")
    summary = lower(text)
    for code in summary.functions:
        assert len(code.spans) == len(code.operations)
        for operation, (start, end) in zip(code.operations, code.spans, strict=True):
            if isinstance(operation, s.Load):
                assert text[start:end] == operation.name.partition("#")[0]
            elif isinstance(operation, s.Attribute):
                assert text[start:end].rstrip(")").endswith(operation.name)
        for block in code.blocks:
            assert all(0 <= edge.target < len(code.blocks) for edge in block.edges)
    row, column = summary.position(len(text))
    assert (row, column) == (text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)


def test_a_file_that_does_not_parse_says_where():
    with pytest.raises(LoweringError) as caught:
        lower("x = 1\ny = (\n")
    assert caught.value.row >= 2
