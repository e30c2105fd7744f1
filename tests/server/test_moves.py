"""Places of a text in a later version of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmdlint.diagnostics import Fix
from spmdlint.fixes.apply import apply
from spmdlint.server import moves
from spmdlint.server.moves import Moves, Rows, Span

OLD = "import jax\n\n\ndef main():\n    step(state)\n    save(state)\n"


def span_of(text: str, part: str) -> Span:
    """The span of a part of a text that is in it once."""
    rows, start = Rows(text), text.index(part)
    assert text.count(part) == 1
    return Span(rows.location(start), rows.location(start + len(part)))


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        "x = 1\n" + OLD,
        OLD.replace("    save", "\n    save"),
        OLD.replace("    save", "    with x: save"),
        OLD.replace("    save", "    step(state)\n    save"),
        OLD.replace("    step(state)\n", ""),
        OLD.replace("    step(state)\n", "").replace("import jax\n", "import jax\n\nimport os\n"),
        OLD.replace("save(state)", "save(state); more()"),
        OLD.replace("def main():\n    step(state)\n    ", "def main():\n    step(state); "),
        OLD.replace("\n", "\r\n"),
        OLD.replace("def main", "'''\x0c\u2028'''\ndef main"),
        "",
    ],
)
def test_a_span_moves_with_its_code(new):
    moved = Moves(OLD, new).span(span_of(OLD, "save(state)"))
    if "save" in new:
        assert moved == span_of(new, "save(state)")
        assert Moves(OLD, new).unchanged(span_of(OLD, "save(state)")) == moved
    else:
        assert moved is None


@pytest.mark.parametrize(
    ("new", "covered"),
    [
        (OLD.replace("save(state)", "save(state, step)"), "save(state, step)"),
        (OLD.replace("save(state)", "save(\n        state\n    )"), "save(\n        state\n    )"),
        (OLD.replace("save(state)", "save(s)"), "save(s)"),
    ],
)
def test_a_span_whose_code_changed_stays_and_its_fix_does_not(new, covered):
    between = Moves(OLD, new)
    assert Rows(new).part(between.span(span_of(OLD, "save(state)"))) == covered
    assert between.unchanged(span_of(OLD, "save(state)")) is None


def test_a_deleted_span_is_nowhere():
    assert Moves(OLD, OLD.replace("    save(state)\n", "")).span(span_of(OLD, "save(state)")) is None


def test_many_changed_rows_count_as_one_change(monkeypatch):
    monkeypatch.setattr(moves, "MOST_COMPARED", 1)
    new = OLD.replace("step", "stop").replace("jax", "jack")
    assert Rows(new).part(Moves(OLD, new).span(span_of(OLD, "save(state)"))) == "save(state)"


TEXTS = st.text(alphabet="ab\n\r", max_size=30)


@settings(deadline=None, derandomize=True)
@given(TEXTS, TEXTS)
def test_the_edits_make_the_new_text(old, new):
    edits = tuple(Moves(old, new).edits())
    assert apply(old, [Fix("safe", "", edits)] if edits else []).text == new


@settings(deadline=None, derandomize=True)
@given(TEXTS, TEXTS, st.data())
def test_a_moved_span_is_one_of_the_new_text(old, new, data):
    rows = Rows(old)
    start = data.draw(st.integers(0, len(old)))
    span = Span(rows.location(start), rows.location(data.draw(st.integers(start, len(old)))))
    between, there = Moves(old, new), Rows(new)
    moved = between.span(span)
    if moved is not None:
        assert 0 <= there.offset(moved.start) <= there.offset(moved.end) <= len(new)
        assert there.location(there.offset(moved.end)) == moved.end
    exact = between.unchanged(span)
    assert exact is None or there.part(exact) == rows.part(span)


@settings(deadline=None, derandomize=True)
@given(TEXTS)
def test_locations_are_those_of_python(text):
    rows = Rows(text)
    for offset in range(len(text) + 1):
        assert rows.offset(rows.location(offset)) == offset
    assert "".join(rows.all) == text
