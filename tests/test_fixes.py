"""What --fix, --diff and their like write, and the exit status that they end with."""

from __future__ import annotations

import ast
import difflib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spmdlint.diagnostics import Edit, Fix, Location
from spmdlint.fixes.apply import apply
from tests.runtime.forked import can_fork, run

FIXTURES = Path(__file__).parent.parent / "fixtures" / "lint"
HEAD = """\
import glob
import os
from pathlib import Path

import jax
import jax.numpy as jnp

total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")


"""
SUM = "def f(x):\n    return jax.lax.psum(x, 'k')\n\n\n"
# What is written, what --fix makes of it, and what --unsafe-fixes does.
CASES = {
    "a set of known strings": (
        "def f(x):\n    for n in {'a', 'b'}:  # each\n        total(x[n])\n",
        "def f(x):\n    for n in sorted({'a', 'b'}):  # each\n        total(x[n])\n",
        None,
    ),
    "a set in a name": (
        "def f(x):\n    names = {'a', 'b'}\n    for n in names:\n        total(x[n])\n",
        "def f(x):\n    names = {'a', 'b'}\n    for n in sorted(names):\n        total(x[n])\n",
        None,
    ),
    "a set of what cannot be compared": (
        "def f(x):\n    for n in {1, 'a'}:\n        total(x[n])\n",
        None,
        None,
    ),
    "a set with None, in a name": (
        "def f(x):\n    names = frozenset([None, 'b'])\n    for n in list(names):\n        total(x[n])\n",
        None,
        None,
    ),
    "what cannot be compared beside what nobody knows": (
        "def f(x, y):\n    for n in {b'a', 'a', y}:\n        total(x[n])\n",
        None,
        None,
    ),
    "one known element": (
        "def f(x, y):\n    for n in {None, y}:\n        total(x[n])\n",
        None,
        "def f(x, y):\n    for n in sorted({None, y}):\n        total(x[n])\n",
    ),
    "a set of what nobody knows": (
        "def f(x):\n    for n in set( x ):\n        total(x[n])\n",
        None,
        "def f(x):\n    for n in sorted(set( x )):\n        total(x[n])\n",
    ),
    "enumerated": (
        "def f(x):\n    for k, n in enumerate(set(x)):\n        total(x[n] * k)\n",
        None,
        "def f(x):\n    for k, n in enumerate(sorted(set(x))):\n        total(x[n] * k)\n",
    ),
    "a list of a set": (
        "def f(x):\n    for n in list(set(x)):\n        total(x[n])\n",
        None,
        "def f(x):\n    for n in sorted(set(x)):\n        total(x[n])\n",
    ),
    "a union": (
        "def f(x, y):\n    for n in set(x) | set(y):\n        total(x[n])\n",
        None,
        "def f(x, y):\n    for n in sorted(set(x) | set(y)):\n        total(x[n])\n",
    ),
    "a comprehension": (
        "def f(x):\n    for y in [x[n] for n in set(x)]:\n        total(y)\n",
        None,
        "def f(x):\n    for y in [x[n] for n in sorted(set(x))]:\n        total(y)\n",
    ),
    "a set without a space before it": (
        "def f(x):\n    for n in{'a', 'b'}:\n        total(x[n])\n",
        "def f(x):\n    for n in(sorted({'a', 'b'})):\n        total(x[n])\n",
        None,
    ),
    "a set over several rows": (
        "def f(x, y):\n    for n in (\n        set(x)\n        | set(y)  # and\n    ):\n        total(x[n])\n",
        None,
        "def f(x, y):\n    for n in (\n        sorted(set(x)\n        | set(y))  # and\n    ):\n        total(x[n])\n",
    ),
    "a listing of strings": (
        "def f(d):\n    names = os.listdir(d)\n    return names[jax.process_index() :: jax.process_count()]\n",
        "def f(d):\n    names = sorted(os.listdir(d))\n    return names[jax.process_index() :: jax.process_count()]\n",
        None,
    ),
    "a listing of paths": (
        "def f(d):\n    return list(Path(d).iterdir())[jax.process_index() :: jax.process_count()]\n",
        None,
        "def f(d):\n    return list(sorted(Path(d).iterdir()))[jax.process_index() :: jax.process_count()]\n",
    ),
    "a listing of entries, which have no order": (
        "def f(d):\n    return list(os.scandir(d))[jax.process_index() :: jax.process_count()]\n",
        None,
        None,
    ),
    "a map without a name": (
        SUM + "g = jax.pmap( (f) )\n",
        None,
        SUM + 'g = jax.pmap( (f), axis_name="k" )\n',
    ),
    "a map without a name, over several rows": (
        SUM + "g = jax.pmap(\n    f,\n    in_axes=0,  # rows\n    # end\n)\n",
        None,
        SUM + 'g = jax.pmap(\n    f,\n    in_axes=0,  # rows\n    axis_name="k",\n    # end\n)\n',
    ),
    "a map without a name, with a comment": (
        SUM + "g = jax.pmap(f, in_axes=0  # rows\n             )\n",
        None,
        SUM + 'g = jax.pmap(f, in_axes=0, axis_name="k"  # rows\n             )\n',
    ),
    "an axis that the mesh lacks": (
        "mesh = jax.make_mesh((4,), ('data',))\nrows = jax.NamedSharding(mesh, jax.P(('date',), None))\n",
        None,
        "mesh = jax.make_mesh((4,), ('data',))\nrows = jax.NamedSharding(mesh, jax.P(('data',), None))\n",
    ),
    "a sorted of one's own": (
        "def sorted(x):\n    return x\n\n\ndef f(x):\n    for n in set(x):\n        total(x[n])\n",
        None,
        None,
    ),
    "a removed name": (
        "def f(x):\n    return jax.tree_map(jnp.sin, x)  # all\n",
        "def f(x):\n    return jax.tree.map(jnp.sin, x)  # all\n",
        None,
    ),
    "an unused suppression": ("x = 1  # spmdlint: ignore[SPMD301] once needed\n", "x = 1\n", None),
    "a reason that names an issue": ("x = 1  # spmdlint: ignore[SPMD301] one process, see #12\n", "x = 1\n", None),
    "one of two codes": (
        "x = jax.tree_map  # spmdlint: ignore[SPMD301, SPMD602] old\n",
        "x = jax.tree_map  # spmdlint: ignore[SPMD602] old\n",
        None,
    ),
    "the last of two codes": (
        "x = jax.tree_map  # spmdlint: ignore[SPMD602, SPMD301] old\n",
        "x = jax.tree_map  # spmdlint: ignore[SPMD602] old\n",
        None,
    ),
    "beside another tool's": ("x = 1  # noqa: E501, SPMD301\n", "x = 1  # noqa: E501\n", None),
    "before another tool's": ("x = 1  # spmdlint: ignore[SPMD301] y # z\n", "x = 1  # z\n", None),
    "behind another tool's": ("x = 1  # type: ignore  # noqa: SPMD301\n", "x = 1  # type: ignore\n", None),
    "on the last line": ("x = 1\n# spmdlint: ignore[SPMD301] y", "x = 1\n", None),
    "on a line of its own": ("    # spmdlint: ignore[SPMD301] y\nx = 1\n", "x = 1\n", None),
}


def fixed(project: Any, text: str, *argv: str) -> str:
    project.write({"a.py": HEAD + text})
    outcome = project.run("check", "--fix", *argv)
    assert outcome.status in (0, 1), outcome.err
    after = (project.root / "a.py").read_text()
    assert after.startswith(HEAD)
    return after.removeprefix(HEAD)


@pytest.mark.parametrize("case", CASES)
def test_fixes(project, case):
    text, safe, unsafe = CASES[case]
    project.write({"a.py": HEAD + text})
    findings = project.check().json
    assert findings
    assert {each["fix"] is not None for each in findings} == {safe is not None or unsafe is not None}
    assert fixed(project, text) == (safe or text)
    assert fixed(project, text, "--unsafe-fixes") == (unsafe or safe or text)
    if safe or unsafe:
        assert project.check().found == []


def test_what_sorts_what_cannot_be_compared_is_said(project):
    project.write({"a.py": HEAD + "for n in {None, 2}:\n    total(n)\nfor n in {'a', 'b'}:\n    total(n)\n"})
    first, second = project.check().json
    assert first["help"].endswith("Iterate over sorted(..., key=repr) instead.")
    assert second["help"].endswith("Iterate over sorted(...) instead.")


MISSPELLED = 'import jax\n\n\ndef f(x):\n    return jax.lax.psum(x, "dat")\n\n\nrun = jax.pmap(f, axis_name="data")\n'
OLD = "import jax\n\ny = jax.tree_map(abs, [])\n"


def test_safe_fixes_only_unless_asked_for_and_what_is_left_is_said(project):
    project.write({"a.py": MISSPELLED, "b.py": OLD})
    outcome = project.run("check", "--output-format", "concise")
    assert outcome.status == 1
    assert "b.py:3:5: error: SPMD602 [*] " in outcome.out
    assert outcome.out.endswith("Found 2 problems.\n[*] 1 fixable with '--fix' (1 more with '--unsafe-fixes').\n")
    outcome = project.run("check", "--fix", "--output-format", "concise")
    assert outcome.status == 1
    assert outcome.out.endswith(
        "Found 2 problems (1 fixed, 1 remaining).\nNo safe fixes; 1 with '--fix --unsafe-fixes'.\n"
    )
    assert (project.root / "a.py").read_text() == MISSPELLED
    outcome = project.run("check", "--fix", "--unsafe-fixes")
    assert (outcome.status, outcome.out) == (0, "Found 1 problem (1 fixed, 0 remaining).\n")


def test_exit_non_zero_on_fix(project):
    project.write({"b.py": OLD})
    assert project.run("check", "--fix", "--exit-non-zero-on-fix").status == 1
    assert project.run("check", "--fix", "--exit-non-zero-on-fix").status == 0


def test_fix_only_shows_nothing_of_what_remains(project):
    project.write({"a.py": MISSPELLED, "b.py": OLD})
    outcome = project.run("check", "--fix-only")
    said = "spmdlint: Fixed 1 problem (1 more with '--unsafe-fixes').\n"
    assert (outcome.status, outcome.out, outcome.err) == (0, "", said)
    assert project.run("check", "--fix-only", "--unsafe-fixes").err == "spmdlint: Fixed 1 problem.\n"


def test_diff_tells_of_unsafe_fixes(project):
    project.write({"a.py": MISSPELLED})
    outcome = project.run("check", "--diff")
    said = "spmdlint: Would fix 0 problems (1 more with '--unsafe-fixes').\n"
    assert (outcome.status, outcome.out, outcome.err) == (0, "", said)
    outcome = project.run("check", "--diff", "--unsafe-fixes")
    assert (outcome.status, outcome.err) == (1, "spmdlint: Would fix 1 problem.\n")


def test_diff_changes_nothing(project):
    project.write({"sub/b.py": OLD})
    outcome = project.run("check", "--diff")
    assert outcome.status == 1
    assert outcome.out == (
        "--- sub/b.py\n+++ sub/b.py\n@@ -1,3 +1,3 @@\n import jax\n \n"
        "-y = jax.tree_map(abs, [])\n+y = jax.tree.map(abs, [])\n"
    )
    assert outcome.err == "spmdlint: Would fix 1 problem.\n"
    assert (project.root / "sub/b.py").read_text() == OLD
    project.run("check", "--fix")
    assert project.run("check", "--diff").status == 0


# Programs in whose patch something is easily wrong.
_CALL = b"y = jax.tree_map(abs, [])"
PATCHED = {
    "the last line": {"a.py": b"import jax\n\n" + _CALL + b"\n"},
    "near the end": {"a.py": b"import jax\n\n" + _CALL + b"\nz = 1\n"},
    "no final line end": {"a.py": b"import jax\n\n" + _CALL},
    "no final line end, after the fix": {"a.py": b"import jax\n\n" + _CALL + b"\nz = 1"},
    "CRLF": {"a.py": b"import jax\r\n\r\n" + _CALL + b"\r\nz = 1\r\n"},
    "CRLF, no final line end": {"a.py": b"import jax\r\n\r\n" + _CALL},
    "both line ends": {"a.py": b"import jax\r\n\n" + _CALL + b"\r\nz = 1\n"},
    "a byte order mark": {"a.py": b"\xef\xbb\xbfimport jax\n\n" + _CALL + b"\n"},
    "latin-1": {"a.py": b"# coding: latin-1\nimport jax\n\n" + _CALL + b"  # \xe9\nname = '\xe9'\n"},
    "two hunks": {"a.py": b"import jax\n\n" + _CALL + b"\n" * 12 + _CALL},
    "several files": {
        "a.py": b"import jax\n\n" + _CALL,
        "sub/two words.py": b"import jax\n\n" + _CALL + b"\n",
        "sub/deep/é.py": b"import jax\r\n\r\n" + _CALL + b"\r\n",
    },
}
# In which folder the linter runs, and on what; and where its diff is applied.
PLACES = [
    (".", (), "."),
    ("sub", (), "sub"),
    ("other", ("..",), "."),
    ("other", ("../sub",), "."),
    (".", ("sub",), "."),
]


def diff_in(folder: Path, *argv: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """What --diff prints, as bytes, of a process in a folder."""
    words = ["-m", "spmdlint", "check", "--diff", *argv]
    if can_fork(os.environ):
        return run(words, folder, stdin, os.environ)
    return subprocess.run([sys.executable, *words], cwd=folder, input=stdin, capture_output=True, check=False)


@pytest.mark.parametrize("tool", [("git", "apply", "-p0"), ("patch", "-p0", "-s")], ids=["git", "patch"])
@pytest.mark.parametrize("files", PATCHED.values(), ids=PATCHED)
def test_a_diff_applies_and_does_what_fix_does(project, files, tool):
    if not shutil.which(tool[0]):
        pytest.skip(f"{tool[0]} is not installed")
    subprocess.run(["git", "init", "-q", project.root], check=True)
    project.write(files)
    done = diff_in(project.root)
    assert done.returncode == 1
    subprocess.run(tool, cwd=project.root, input=done.stdout, check=True)
    patched = {name: (project.root / name).read_bytes() for name in files}
    project.write(files)
    assert project.run("check", "--fix").status == 0
    assert patched == {name: (project.root / name).read_bytes() for name in files}
    assert all(patched[name] != files[name] for name in files)


@pytest.mark.parametrize(("folder", "paths", "applied_in"), PLACES)
def test_a_diff_names_files_as_the_folder_in_which_it_applies_does(project, folder, paths, applied_in):
    subprocess.run(["git", "init", "-q", project.root], check=True)
    project.write({**PATCHED["several files"], "other/c.txt": ""})
    done = diff_in(project.root / folder, *paths)
    said = done.stderr.decode()
    assert (f"Apply the diff in {project.root}." in said) == (applied_in != folder), said
    subprocess.run(["git", "apply", "-p0"], cwd=project.root / applied_in, input=done.stdout, check=True)
    assert diff_in(project.root / folder, *paths).stdout == b""


def test_a_diff_of_standard_input_has_its_bytes(project):
    text = b"# coding: latin-1\r\nimport jax\r\n" + _CALL + b"  # \xe9"
    done = diff_in(project.root, "-", "--stdin-filename", "a.py", stdin=text)
    new = _CALL.replace(b"tree_map", b"tree.map")
    end = b"  # \xe9\n\\ No newline at end of file\n"
    assert done.stdout == (
        b"--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n # coding: latin-1\r\n import jax\r\n-" + _CALL + end + b"+" + new + end
    )


def test_a_diff_with_a_notebook_applies_without_it(project):
    """As docs/check.md says: what is shown of a notebook is its code, and not its file."""
    subprocess.run(["git", "init", "-q", project.root], check=True)
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": OLD}
    project.write({"a.ipynb": json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]})})
    project.write({"a.py": OLD, "z.py": OLD})
    done = diff_in(project.root)
    assert b"--- a.ipynb\n" in done.stdout
    assert subprocess.run(["git", "apply", "-p0", "-"], cwd=project.root, input=done.stdout, check=False).returncode
    apply_others = ["git", "apply", "-p0", "--exclude=*.ipynb"]
    subprocess.run(apply_others, cwd=project.root, input=done.stdout, check=True)
    assert {(project.root / name).read_text() for name in ("a.py", "z.py")} == {OLD.replace("tree_map", "tree.map")}


def test_only_the_files_that_were_asked_for_are_fixed(project):
    project.write({"a.py": OLD, "b.py": OLD})
    assert project.run("check", "--fix", "a.py").status == 0
    assert (project.root / "b.py").read_text() == OLD


def test_what_the_baseline_holds_is_not_fixed(project):
    project.write({"b.py": OLD})
    project.run("check", "--baseline", "known.json", "--write-baseline")
    assert project.run("check", "--baseline", "known.json", "--fix").status == 0
    assert (project.root / "b.py").read_text() == OLD


def test_standard_input_is_fixed_onto_standard_output(project):
    outcome = project.run("check", "--fix", "-", "--stdin-filename", "b.py", stdin=OLD.encode())
    assert (outcome.status, outcome.out) == (0, OLD.replace("tree_map", "tree.map"))
    assert "1 fixed" in outcome.err


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + OLD.encode(),
        OLD.replace("\n", "\r\n").encode(),
        b"# -*- coding: latin-1 -*-\nname = '\xe4'\n" + OLD.encode(),
        OLD.encode().rstrip(),
        OLD.replace("abs", "'ä漢😀'").encode(),
    ],
)
def test_the_rest_of_the_file_stays_as_it_is_byte_by_byte(project, data):
    project.write({"b.py": data})
    assert project.run("check", "--fix").status == 0
    assert (project.root / "b.py").read_bytes() == data.replace(b"tree_map", b"tree.map")


def test_a_file_that_cannot_be_written(project):
    project.write({"b.py": OLD})
    if os.geteuid() == 0:
        pytest.skip("root may write every file")
    (project.root / "b.py").chmod(0o400)
    outcome = project.run("check", "--fix")
    assert outcome.status == 2
    assert "b.py cannot be written" in outcome.err


def test_a_file_whose_spans_are_not_sure_is_left_alone(project):
    project.write({"b.py": "\x0c" + OLD})
    outcome = project.run("check", "--fix")
    assert outcome.status == 1
    assert "b.py was not changed" in outcome.err
    assert (project.root / "b.py").read_text() == "\x0c" + OLD


# -- edits


def edit(start: int, end: int, content: str) -> Edit:
    return Edit(Location(1, start), Location(1, end), content)


def made(text: str, *fixes: tuple[Edit, ...]) -> tuple[str, int]:
    applied = apply(text, [Fix("safe", "x", edits) for edits in fixes])
    return applied.text, applied.count


def test_edits_are_put_in_together():
    assert made("f(a, b)", (edit(3, 4, "x"),), (edit(6, 7, "long"),)) == ("f(x, long)", 2)


def test_of_two_that_overlap_the_first_goes_in():
    assert made("abcdef", (edit(2, 4, "X"),), (edit(3, 5, "Y"),)) == ("aXdef", 1)
    assert made("abcdef", (edit(2, 2, "X"),), (edit(2, 2, "Y"),)) == ("aXbcdef", 1)
    assert made("abcdef", (edit(1, 2, ""), edit(5, 6, "")), (edit(5, 5, "!"),)) == ("bcdf", 1)


def test_the_same_fix_twice_is_put_in_once():
    wrap = (edit(1, 1, "("), edit(4, 4, ")"))
    assert made("abc", wrap, wrap) == ("(abc)", 2)


def test_a_fix_that_shares_a_part_with_another_waits():
    assert made("abc", (edit(1, 1, "f("), edit(4, 4, ")")), (edit(1, 1, "f("), edit(3, 3, ")"))) == ("f(ab)c", 1)


def test_edits_outside_of_the_text_spoil_nothing():
    assert made("abc", (edit(9, 12, "X"),), (Edit(Location(7, 1), Location(7, 2), "Y"),)) == ("abc", 0)
    assert made("abc", (edit(3, 1, "X"),), (edit(1, 3, "X"), edit(2, 4, "Y"))) == ("abc", 0)


# -- real code


@pytest.mark.parametrize("codes", [("SPMD101", "SPMD201"), ("SPMD202", "SPMD508", "SPMD602")])
def test_fixes_over_the_fixtures_touch_nothing_but_what_was_found(codes, project):
    """Files with findings on purpose: what comes out parses, and lines without an edit stay."""
    for code in codes:
        shutil.copytree(FIXTURES / code, project.root / code)
    before = {path: path.read_text() for path in project.root.rglob("*.py")}
    rows: dict[str, set[int]] = {}
    for finding in project.check("--preview").json:
        for each in (finding["fix"] or {"edits": []})["edits"]:
            touched = rows.setdefault(finding["filename"], set())
            touched.update(range(each["location"]["row"], each["end_location"]["row"] + 1))
    assert len(rows) > 3
    outcome = project.run("check", "--preview", "--fix-only", "--unsafe-fixes")
    assert outcome.status == 0
    changed = 0
    for path, old in before.items():
        new = path.read_text()
        if new == old:
            continue
        changed += 1
        ast.parse(new)
        allowed = rows.get(str(path), set())
        matcher = difflib.SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
        for tag, start, end, _, _ in matcher.get_opcodes():
            assert tag == "equal" or set(range(start + 1, end + 1)) <= allowed, (path, start, end)
    assert changed > 3
    assert "not changed" not in outcome.err
    assert "which is a bug" not in outcome.err


def test_fixes_that_undo_one_another_end(project):
    mapped = "import jax\n\n\ndef f(x):\n    return jax.lax.psum(x, {})\n\n\none = jax.pmap(f, axis_name='one')\n"
    project.write({"a.py": mapped.format("'one'") + "two = jax.pmap(f, axis_name='two')\n"})
    (found,) = project.check("--select", "SPMD101").json
    assert found["fix"] is not None
    outcome = project.run("check", "--select", "SPMD101", "--fix", "--unsafe-fixes", "--output-format", "concise")
    assert (outcome.status, outcome.err) == (1, "")
    assert "Found 2 problems (1 fixed, 1 remaining)." in outcome.out
    assert "psum(x, 'two')" in (project.root / "a.py").read_text()
