"""The edits that come with findings about names: applied, they mend what was found."""

from __future__ import annotations

import pytest

CASES = {
    "the nearest name": (
        'import jax\n\ndef f(x):\n    return jax.lax.psum(x, "dat")\n\nrun = jax.pmap(f, axis_name="data")\n',
        'jax.lax.psum(x, "data")',
    ),
    "a name in a tuple": (
        """\
import jax

def f(x):
    return jax.lax.psum(x, axis_name=('data', 'modle'))

run = jax.pmap(jax.vmap(f, axis_name="model"), axis_name="data")
""",
        "axis_name=('data', 'model')",
    ),
    "a literal in two parts": (
        'import jax\n\ndef f(x):\n    return jax.lax.psum(x, r\'da\' "t")\n\nrun = jax.pmap(f, axis_name="data")\n',
        'jax.lax.psum(x, "data")',
    ),
    "the nearest name of a mesh": (
        """\
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"))
rows = NamedSharding(mesh, P(None, ("data", "modle")))
""",
        'P(None, ("data", "model"))',
    ),
    "no name": (
        'import jax\n\ndef f(x):\n    return jax.lax.psum(x, "data")\n\nrun = jax.pmap(f,)\n',
        'jax.pmap(f, axis_name="data",)',
    ),
    "parentheses around the function": (
        'import jax\n\ndef f(x):\n    return jax.lax.psum(x, "data")\n\nrun = jax.pmap((f))\n',
        'jax.pmap((f), axis_name="data")',
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fix_mends_what_was_found(project, case):
    text, mended = CASES[case]
    project.write({"train.py": text})
    (finding,) = project.check().json
    fixed = applied(text, finding["fix"]["edits"])
    assert mended in fixed
    assert finding["fix"]["applicability"] == "unsafe"
    project.write({"train.py": fixed})
    assert project.check().json == []


@pytest.mark.parametrize(
    "text",
    [
        'import jax\nAXIS = "dat"\ndef f(x):\n    return jax.lax.psum(x, AXIS)\nrun = jax.pmap(f, axis_name="data")\n',
        """\
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

AXIS = "modle"
mesh = jax.make_mesh((4, 2), ("data", "model"))
rows = NamedSharding(mesh, P(AXIS))
""",
    ],
    ids=[
        "the name stands elsewhere",
        "the name of a spec stands elsewhere",
    ],
)
def test_what_no_edit_of_one_call_mends_has_no_fix(project, text):
    project.write({"train.py": text})
    (finding,) = project.check().json
    assert finding["fix"] is None


def applied(text, edits):
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda e: (e["location"]["row"], e["location"]["column"]), reverse=True):
        row = edit["location"]["row"] - 1
        assert edit["end_location"]["row"] - 1 == row
        start, end = edit["location"]["column"] - 1, edit["end_location"]["column"] - 1
        lines[row] = lines[row][:start] + edit["content"] + lines[row][end:]
    return "\n".join(lines)
