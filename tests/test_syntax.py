"""Two parsers, one meaning: what LibCST's tree is lowered to is what Python's is, and both say where things stand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from spmdlint.program import lower as lowering
from spmdlint.program import summary as s
from spmdlint.program import syntax
from spmdlint.program.lower import lower
from spmdlint.program.strings import comments
from spmdlint.program.written import write

DATA = Path(__file__).parent / "data"
REAL_CODE = [
    DATA / "syntax.py.txt",
    *sorted(Path(importlib.util.find_spec("libcst").origin).parent.rglob("*.py"))[5::12],
    *sorted(Path(importlib.util.find_spec("email").origin).parent.rglob("*.py"))[::4],
]


@pytest.fixture
def through_libcst(monkeypatch):
    """Lower a text as if this Python did not know its syntax."""

    def run(text):
        with monkeypatch.context() as patched:
            patched.setattr(syntax, "python_tree", lambda text: None)
            return lower(text)

    return run


@pytest.mark.parametrize("path", REAL_CODE, ids=[path.stem for path in REAL_CODE])
def test_both_parsers_give_the_same_summary(path, through_libcst, monkeypatch):
    text = path.read_text(encoding="utf-8")
    other = write(through_libcst(text))
    monkeypatch.setattr(lowering, "parse_newer", lambda text: pytest.fail("Python's tree was not enough"))
    assert write(lower(text)) == other


def spans(summary, kind):
    return [
        span
        for code in summary.functions
        for operation, span in zip(code.operations, code.spans, strict=True)
        if isinstance(operation, kind)
    ]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("x = ( a, (b) , # c\n )", s.Display, "a, (b) ,"),
        ("x = (a), b", s.Display, "(a), b"),
        ("x = ((a, (b)))", s.Display, "a, (b)"),
        ("x[(a, b)]", s.Display, "a, b"),
        ("x[(a), b]", s.Display, "x[(a), b]"),
        ("f( x for x in (y) )", s.Collected, "x for x in (y)"),
        ("x = ((a)(b) for c in d if (e)\n # f\n)", s.Collected, "(a)(b) for c in d if (e)"),
        ("y = (a) or (b) # (\n", s.BoolOp, "(a) or (b)"),
        ("é = 'é', f(é . x)", s.Attribute, "é . x"),
        ("\x0cx = é\x0c; y.z", s.Attribute, "y.z"),
        ("x = 1\r\ny = 'é'; z.w\r", s.Attribute, "z.w"),
        ("f'é{ a . b !r:>{w}}'", s.Attribute, "a . b"),
        ("'é' f'''\n{a +\né(b . c)}'''", s.Attribute, "b . c"),
        ("f'{ a, b }'", s.Display, "a, b"),
        ("x[1: ]", s.Slice, "1:"),
    ],
)
def test_parentheses_around_an_expression_are_no_part_of_it(text, kind, expected, through_libcst):
    (start, end) = spans(lower(text), kind)[0]
    assert text[start:end] == expected
    if "\x0c" not in text:  # which moves what LibCST counts
        assert spans(through_libcst(text), kind)[0] == (start, end)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("async  def \\\n f(): pass", "f"),
        ("@def_\nclass  A : pass", "A"),
        ("import a . b as  c", "c"),
        ("try: pass\nexcept (A, # as x\n B) as e: pass", "e"),
        ("match x:\n case {'a': _, **  rest}: pass", "rest"),
        ("match x:\n case (a, * rest,): pass", "rest"),
        ("match x:\n case {} as  whole: pass", "whole"),
        ("lambda *  args: 0", "args"),
    ],
)
def test_names_stand_where_they_are_bound(text, name, through_libcst):
    for summary in (lower(text), through_libcst(text)):
        found = [
            text[slice(*span)]
            for code in summary.functions
            for operation, span in zip(code.operations, code.spans, strict=True)
            if isinstance(operation, s.Store) and operation.name == name
        ]
        assert found == [name]


NEWER = {
    "f-strings that use their own quotes": ('f(f"{x["a"]}{f"{y.z}"}")', "y.z"),
    "parameters of types": ("def f[T: int](x: T) -> T: y.z\ntype A[T] = list[T]", "y.z"),
    "exception groups": ("try: y.z\nexcept* E as e: pass", "y.z"),
    "an unpacked annotation": ("def f(*args: *Ts): y.z", "y.z"),
    "names that Python would write in another way": ("\ufb01x = y.z", "y.z"),
}


@pytest.mark.parametrize("case", NEWER)
def test_syntax_newer_than_this_python_is_read_all_the_same(case):
    text, expected = NEWER[case]
    found = [text[slice(*span)] for span in spans(lower(text), s.Attribute)]
    assert found == [expected]


def test_the_pieces_of_an_f_string():
    text = r"""x = f"a{{b}} {c!r:>{d}}\N{DASH} {e = }" 'g' rf'\{h}' """
    code = lower(text).functions[0]
    pieces = [text[slice(*span)] for span in code.spans]
    names = [operation.name for operation in code.operations if isinstance(operation, s.Load)]
    texts = [operation.value for operation in code.operations if isinstance(operation, s.Const)]
    assert names == ["c", "d", "e", "h"]
    assert texts == ["a{{b}} ", ">", r"\N{DASH} ", "g", "\\"]
    assert pieces[pieces.index("c") : pieces.index("c") + 3] == ["c", ">", "d"]


def test_an_f_string_is_not_split_in_a_wrong_way():
    for text in (
        "f'{x!r}'",
        "f'{x != y}'",
        "f'{x:=5}'",
        "f'{(x:=5)}'",
        "f'{x[\"a:b\"]:{w}}'",
        "f'{ {1: 2}[1] }'",
        "f''",
    ):
        parts = spans(lower(text), s.FString)
        assert parts == [(0, len(text))]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["x = '\\d'", "x = f'{y}\\d' '\\d'", "x = 1 is 1"])
def test_nobody_is_warned_of_the_code_that_is_linted(text):
    assert lower(text)


def test_comments_are_not_looked_for_in_strings():
    text = "x = '# a' # b\ny = f'{z}#' '''\n# c''' \"\\\"# d\" # e"
    assert [comment for _, comment in comments(text)] == ["# b", "# e"]
    assert all(text.startswith(comment, at) for at, comment in comments(text))


@pytest.mark.parametrize("text", ["a." * 2500 + "b", "-" * 2500 + "b", "a + " * 2500 + "b"])
def test_a_chain_of_thousands_of_links_is_lowered(text):
    assert len(lower(text).functions[0].operations) > 2500
