"""The formats."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spmdlint.diagnostics import Diagnostic, Edit, Fix, Location, Place, Related
from spmdlint.files.read import Source
from spmdlint.output import FORMATS, renderer, statistics
from spmdlint.output.report import Report

HERE = Path("/home/me/project")


def place(row: int, column: int, end_row: int, end_column: int, path: str = "a.py") -> Place:
    return Place(HERE / path, Location(row, column), Location(end_row, end_column))


def report(text: str, where: Place, message: str = "Something disagrees.", **values: object) -> Report:
    finding = Diagnostic("SPMD301", "varying-condition", "error", message, where, **values)
    return Report((finding,), {where.path: Source(where.path, text)}, base=HERE)


def full(text: str, where: Place, **values: object) -> str:
    return "".join(renderer("full")(report(text, where, **values)))


def shown(text: str, where: Place) -> str:
    """What `full` shows of the source, without head and summary."""
    return "\n".join(full(text, where).split("\n")[2:-4])


def test_full():
    text = "import jax\n\nrank = jax.process_index()\nif rank == 0:\n    sync()\n"
    related = (Related(place(3, 8, 3, 27), "The rank comes from here."),)
    assert (
        full(text, place(5, 5, 5, 11), related=related, help="Let every process call it.")
        == """\
error: SPMD301 varying-condition: Something disagrees.
 --> a.py:5:5
  |
4 | if rank == 0:
5 |     sync()
  |     ^^^^^^
  |
note: The rank comes from here.
 --> a.py:3:8
  |
3 | rank = jax.process_index()
  |        ^^^^^^^^^^^^^^^^^^^
  |
help: Let every process call it.

Found 1 problem.
"""
    )


@pytest.mark.parametrize(("count", "left_out"), [(8, 0), (9, 0), (10, 2), (26, 18)])
def test_full_shows_both_ends_of_many_steps(count, left_out):
    related = tuple(Related(place(row, 1, row, 2), f"Step {row}.") for row in range(1, count + 1))
    said = full("x\n" * 30, place(30, 1, 30, 2), related=related).splitlines()
    shown = [line for line in said if line.startswith(("note:", "..."))]
    steps = [f"note: Step {row}." for row in range(1, count + 1)]
    line = [f"... and {left_out} more steps (spmdlint explain a.py:30 shows all)"] if left_out else []
    assert shown == (steps[:3] + line + steps[-5:] if left_out else steps)


def test_explain_shows_the_steps_that_full_leaves_out(project):
    passes = "".join(f"def f{number}(x):\n    f{number + 1}(x)\n\n\n" for number in range(12))
    guard = "def f12(x):\n    if x == 0:\n        multihost_utils.sync_global_devices('x')\n\n\n"
    head = "import jax\nfrom jax.experimental import multihost_utils\n\n\n"
    project.write({"a b.py": f"{head}{passes}{guard}f0(jax.process_index())\n"})
    (command,) = re.findall(
        r"\.\.\. and \d+ more steps \(spmdlint (explain '(.*)') shows all\)", project.run("check").out
    )
    (finding,) = project.check().json
    assert len(finding["related"]) > 9
    told = project.run("explain", command[1]).out.partition("\nfindings\n")[2]
    steps = [f"    (a b.py:{each['location']['row']}) {each['message']}" for each in finding["related"]]
    assert told.splitlines()[1:] == steps


def test_full_several_rows():
    assert (
        shown("a\nf(\n    x,\n)\nb\n", place(2, 1, 4, 2))
        == """\
  |
1 | a
2 | f(
  | ^^
3 |     x,
  |     ^^
4 | )
  | ^
5 | b"""
    )


def test_full_many_rows_leaves_out_the_middle():
    text = "".join(f"x{n}\n" for n in range(1, 31))
    lines = shown(text, place(2, 1, 29, 4)).split("\n")
    assert [line.split()[0] for line in lines if line[0:2].strip()] == ["1", "2", "3", "4", "28", "29", "30"]
    assert "   :" in lines


@pytest.mark.parametrize(
    ("row", "start", "end", "line", "mark"),
    [
        ("\tif x:", 5, 6, "    if x:", "       ^"),
        ("a\tb = 1", 3, 4, "a   b = 1", "    ^"),
        ("s = '漢字'; f()", 11, 14, "s = '漢字'; f()", "            ^^^"),
        ("s = 'e\u0301'; f()", 11, 14, "s = 'e\u0301'; f()", "         ^^^"),
        ("s = '\x1b[31m'; f()", 14, 17, "s = '␛[31m'; f()", "             ^^^"),
        ("s = '\u202e'; f()", 10, 13, "s = '<202e>'; f()", "              ^^^"),
        ("f()", 1, 1, "f()", "^"),
        ("f()", 4, 4, "f()", "   ^"),
        ("f()", 90, 99, "f()", "   ^"),
        ("f()   ", 1, 7, "f()", "^^^^^^"),
    ],
)
def test_full_underlines_what_is_meant(row, start, end, line, mark):
    assert shown(f"{row}\n", place(1, start, 1, end)) == f"  |\n1 | {line}\n  | {mark}"


def test_full_survives_places_that_do_not_exist():
    assert "1 | x" in shown("x\n", place(70, 3, 71, 9))
    assert "1 |" in shown("", place(1, 1, 1, 1))
    assert "-->" in full("x\n", place(1, 1, 1, 2), related=(Related(place(1, 1, 1, 2, "gone.py"), "There."),))


def test_full_keeps_a_long_row_short():
    assert max(map(len, shown("x" * 5000 + "\n", place(1, 4000, 1, 5000)).split("\n"))) < 200


def test_full_is_the_same_with_colours_taken_out():
    plain = report("\tsync(\n)\n", place(1, 2, 2, 2), help="Don't.")
    colored = Report(plain.diagnostics, plain.sources, base=HERE, color=True)
    text = "".join(renderer("full")(colored))
    assert "\x1b[" in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == "".join(renderer("full")(plain))


def test_concise():
    text = "".join(renderer("concise")(report("x\n", place(1, 1, 1, 2), "It\nbreaks.")))
    assert text == "a.py:1:1: error: SPMD301 It breaks.\nFound 1 problem.\n"


@pytest.mark.parametrize("severity", ["error", "warning", "info"])
@pytest.mark.parametrize("name", ["full", "concise"])
def test_the_severity_is_in_the_text(project, name, severity):
    project.write({"a.py": project.hazard, "spmdlint.toml": f'[severity]\nSPMD301 = "{severity}"\n'})
    (line, *_) = project.run("check", "--output-format", name).out.splitlines()
    assert f"{severity}: SPMD301 " in line


def test_json_has_the_shape_of_ruff():
    made = report(
        "x\n",
        place(1, 1, 1, 2),
        help="Don't.",
        related=(Related(place(3, 1, 4, 2, "b.py"), "There."),),
        fix=Fix("unsafe", "Sort it", (Edit(Location(1, 1), Location(1, 2), "sorted(x)"),)),
    )
    assert json.loads("".join(renderer("json")(made))) == [
        {
            "code": "SPMD301",
            "name": "varying-condition",
            "severity": "error",
            "message": "Something disagrees.",
            "help": "Don't.",
            "url": None,
            "filename": "/home/me/project/a.py",
            "cell": None,
            "location": {"row": 1, "column": 1},
            "end_location": {"row": 1, "column": 2},
            "related": [
                {
                    "filename": "/home/me/project/b.py",
                    "cell": None,
                    "location": {"row": 3, "column": 1},
                    "end_location": {"row": 4, "column": 2},
                    "message": "There.",
                }
            ],
            "fix": {
                "applicability": "unsafe",
                "message": "Sort it",
                "edits": [
                    {
                        "content": "sorted(x)",
                        "location": {"row": 1, "column": 1},
                        "end_location": {"row": 1, "column": 2},
                    }
                ],
            },
        }
    ]


def test_json_without_findings_is_an_empty_array():
    assert json.loads("".join(renderer("json")(Report(())))) == []


def test_github_escapes(monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(HERE))
    made = report("x\n", place(1, 1, 1, 2, "odd,na:me%.py"), "50 % of\nit: a, b.", help="Don't.")
    (line,) = renderer("github")(made)
    assert line == (
        "::error title=spmdlint (SPMD301 varying-condition),file=odd%2Cna%3Ame%25.py,line=1,endLine=1,col=1,endColumn=2"
        "::odd,na:me%25.py:1:1: SPMD301 50 %25 of it: a, b.%0AHelp: Don't.\n"
    )


def test_github_gives_columns_within_a_line_only(monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", "/elsewhere")
    (line,) = renderer("github")(report("x(\n)\n", place(1, 1, 2, 2)))
    assert line.startswith(
        "::error title=spmdlint (SPMD301 varying-condition),file=/home/me/project/a.py,line=1,endLine=2::"
    )


def test_statistics():
    findings = tuple(
        Diagnostic(code, name, "error", "x", place(row, 1, row, 2))
        for row, (code, name) in enumerate([("A1", "one-thing"), ("B2", "other-thing"), ("B2", "other-thing")], start=1)
    )
    made = Report(findings)
    assert "".join(statistics.render(made)) == "2  B2  other-thing\n1  A1  one-thing\nFound 3 problems.\n"
    assert json.loads("".join(statistics.render_json(made)))[0] == {"code": "B2", "name": "other-thing", "count": 2}


def test_statistics_have_no_other_form(project):
    outcome = project.run("check", "--statistics", "--output-format", "sarif")
    assert (outcome.status, outcome.out) == (2, "")
    assert "--statistics has no format sarif" in outcome.err


def test_statistics_from_the_command_line(project):
    project.write({"a.py": project.hazard, "b.py": project.hazard})
    outcome = project.run("check", "--statistics")
    assert (outcome.status, outcome.out) == (1, "2  SPMD301  varying-condition\nFound 2 problems.\n")
    assert project.check("--statistics").json == [{"code": "SPMD301", "name": "varying-condition", "count": 2}]


def test_many_findings_of_one_rule_end_with_what_to_do(project):
    old = "import jax\n" + "x = jax.xla_computation\n" * 19
    project.write({"old.py": old, "a.py": project.hazard})
    assert project.run("check").out.endswith("\nFound 20 problems.\n")
    project.write({"more.py": "import jax\n\nx = jax.xla_computation\n"})
    said = "20 of them are SPMD602 removed-api. Set jax-version to the JAX that the program runs on."
    for form in ("full", "concise"):
        outcome = project.run("check", "--output-format", form)
        assert outcome.out.endswith(f"\nFound 21 problems.\n{said} '--statistics' shows numbers only.\n")
    outcome = project.run("check", "--statistics")
    assert outcome.out.endswith(f"\nFound 21 problems.\n{said}\n")
    project.write({"many.py": project.hazard * 21})
    outcome = project.run("check", "many.py")
    assert outcome.out.endswith("All of them are SPMD301 varying-condition. '--statistics' shows numbers only.\n")
    assert project.run("check", "many.py", "--statistics").out.endswith("\nFound 21 problems.\n")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_from_the_command_line(project, name):
    project.write({"sub/a.py": project.hazard})
    outcome = project.run("check", "--output-format", name)
    assert outcome.status == 1
    assert "a.py" in outcome.out
    assert "SPMD301" in outcome.out


def test_paths_are_shown_from_the_current_folder(project, monkeypatch):
    project.write({"sub/a.py": project.hazard})
    assert project.run("check", "--output-format", "concise").out.startswith("sub/a.py:7:9: ")


LOOPS = """\
import jax
from jax.experimental.multihost_utils import sync_global_devices as sync


def bounds():
    for _ in range(jax.process_index() + 1):
        sync("a")


def leaves():
    for step in range(9):
        sync("b")
        if step > jax.process_index():
            break
    print("done")


def returns():
    while True:
        sync("c")
        if jax.process_index() > 0:
            return


def guarded():
    if jax.process_index() > 0:
        return
    sync("d")
"""


@pytest.mark.parametrize(
    ("row", "message", "note", "help_"),
    [
        (7, "the loop at line 6 makes it a different number of times on each process", "The number of", "leave the"),
        (12, "makes it a different number of times because of the loop exit at line 13", "This condition", "leave the"),
        (20, "makes it a different number of times because of the loop exit at line 21", "This condition", "leave the"),
        (28, "the early exit at line 26 lets only some processes make it", "This condition", "The other processes"),
    ],
)
def test_a_loop_is_not_called_a_condition(project, row, message, note, help_):
    project.write({"a.py": LOOPS})
    (finding,) = (each for each in project.check().json if each["location"]["row"] == row)
    assert message in finding["message"]
    assert finding["related"][0]["message"].startswith(note)
    assert help_ in finding["help"]


ARMS = """\
import sys
import time

import jax
from jax.experimental.multihost_utils import sync_global_devices as sync


def stays(x):
    if jax.process_index() == 0:
        return x
    sync("a")
    return x


def leaves(x):
    if jax.process_index() == 0:
        sync("b")
        return x
    print("the others go on")
    return x


def last(x):
    if jax.process_index() == 0:
        return sync("c")


def ends(x):
    if jax.process_index() == 0:
        sync("d")
        sys.exit(0)
    print(x)


def stops(steps):
    for step in steps:
        sync("e")
        if time.time() > 3:
            sync("f")
            return
        print(step)


def other(x):
    if jax.process_index() == 0:
        return x
    else:
        sync("g")
        return 2 * x


def goes_on(x):
    if jax.process_index() == 0:
        sync("h")
    else:
        return
    print(x)


def breaks(steps):
    for step in steps:
        sync("i")
        if jax.process_index() == 0:
            break
        sync("j")


def some(x):
    if jax.process_index() == 0:
        sync("k")
        sync("l")
        return
    print(x)


stays(1), leaves(1), last(1), ends(1), stops(range(3)), other(1), goes_on(1), breaks(range(3)), some(1)
"""


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        ("a", "the early exit at line 9 lets only some processes make it:"),
        ("b", "only the processes that leave early because of the condition at line 16 make it:"),
        ("c", "the condition at line 24 lets only some processes make it:"),
        ("d", "only the processes that leave early because of the condition at line 29 make it:"),
        ("f", "only the processes that leave early because of the condition at line 38 make it:"),
        ("g", "the early exit at line 45 lets only some processes make it:"),
        ("h", "the condition at line 53 lets only some processes make it:"),
        ("j", "each process makes it, and 1 more after it, a different number of times because of the loop exit at"),
        ("k", "only the processes that leave early because of the condition at line 69 make it, and 1 more after it:"),
    ],
)
def test_a_call_of_those_that_leave_early_is_told_from_one_of_those_that_stay(project, call, fact):
    project.write({"a.py": ARMS})
    row = next(number for number, line in enumerate(ARMS.splitlines(), 1) if f'sync("{call}")' in line)
    (finding,) = (each for each in project.check().json if each["location"]["row"] == row)
    assert f"and {fact}" in finding["message"]
    assert ("The other processes never join it" in finding["help"]) == (call != "j")


SOURCES = """\
import jax
from jax.experimental.multihost_utils import sync_global_devices as sync


def is_first():
    return jax.process_index() == 0


if jax.process_index() == 0:
    sync("a")

if is_first():
    sync("b")

first = jax.process_index() == 0
if first:
    sync("c")

if (
    jax.process_index()
    == 0
):
    sync("d")
"""


@pytest.mark.parametrize(
    ("call", "rows"), [("a", [9]), ("b", [12, 6, 12]), ("c", [16, 15, 16]), ("d", [20, 20])], ids="abcd"
)
def test_a_condition_and_the_source_in_its_row_are_one_note(project, call, rows):
    project.write({"a.py": SOURCES})
    row = next(number for number, line in enumerate(SOURCES.splitlines(), 1) if f'sync("{call}")' in line)
    (finding,) = (each for each in project.check().json if each["location"]["row"] == row)
    told = [each["message"] for each in finding["related"]]
    assert [each["location"]["row"] for each in finding["related"]] == rows
    assert told[0].startswith("This condition is not the same on every process")
    source = "jax.process_index() differs between processes."
    assert told[0].endswith(f": {source}") if len(told) == 1 else source in told[1:]
