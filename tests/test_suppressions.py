"""Comments that silence findings, and those that silence nothing."""

from __future__ import annotations

import pytest

HEAD = "import jax\nfrom jax.experimental import multihost_utils\n\nif jax.process_index() == 0:\n"
# The call stands in row 5.
CALL = '    multihost_utils.sync_global_devices("a")'


@pytest.mark.parametrize(
    "comment",
    [
        "# spmdlint: ignore[SPMD301]",
        "# spmdlint: ignore[SPMD301] only one host writes",
        "# spmdlint: ignore[varying-condition]",
        "#spmdlint:ignore[SPMD301]",
        "# type: ignore  # spmdlint: ignore[SPMD301]",
        "# noqa: SPMD301",
        "# noqa:SPMD301",
        "# NOQA: spmd301",
        "# noqa: E501,SPMD301",
        "# noqa: E501 SPMD301",
        "# noqa: SPMD301 E501 and a reason, long-winded",
        "# noqa: varying-condition",
        "# noqa",
        "# noqa  # because",
    ],
)
def test_a_comment_on_the_line(project, comment):
    project.write({"a.py": f"{HEAD}{CALL}  {comment}\n"})
    assert project.check().found == []


@pytest.mark.parametrize(
    "lines",
    [
        "    # spmdlint: ignore[SPMD301] only one host writes\n",
        "    # spmdlint: ignore[SPMD301] only one host\n    # writes, and the others\n    # do not wait\n",
    ],
)
def test_a_comment_on_the_line_above(project, lines):
    project.write({"a.py": f"{HEAD}{lines}{CALL}\n"})
    assert project.check().found == []


def test_noqa_holds_for_its_own_line_only(project):
    project.write({"a.py": f"{HEAD}    # noqa: SPMD301\n{CALL}\n"})
    assert project.check().found == [("a.py", 6, "SPMD301")]


def test_a_comment_of_its_own_reaches_no_further_than_the_next_line(project):
    project.write({"a.py": f"{HEAD}    # spmdlint: ignore[SPMD301]\n    x = 1\n{CALL}\n"})
    assert project.check().found == [("a.py", 5, "SPMD900"), ("a.py", 7, "SPMD301")]


@pytest.mark.parametrize("row", [0, 2])
def test_a_finding_over_several_lines_is_silenced_at_its_first_or_last(project, row):
    lines = ["    multihost_utils.sync_global_devices(", '        "a",', "    )"]
    lines[row] += "  # spmdlint: ignore[SPMD301]"
    project.write({"a.py": HEAD + "\n".join(lines) + "\n"})
    assert project.check().found == []


@pytest.mark.parametrize(
    ("comment", "column", "words"),
    [
        ("# spmdlint: ignore[SPMD101]", 27, "reports nothing here"),
        ("# spmdlint: ignore[unbound-axis]", 27, "reports nothing here"),
        ("# spmdlint: ignore[SPMD999]", 27, "no installed rule"),
        ("# spmdlint: ignore[varying-conditon]", 27, "no installed rule"),
        ("# spmdlint: ignore", 8, "names no rule"),
        ("# spmdlint: ignore[]", 8, "names no rule"),
        ("# spmdlint: disable=SPMD101", 8, "not a spmdlint directive"),
        ("# spmdlint: Ignore[SPMD101]", 8, "not a spmdlint directive"),
        ("# spmdlint: unifrom", 8, "not a spmdlint directive"),
        ("# noqa: SPMD101", 16, "reports nothing here"),
        ("# noqa: E501, SPMD101", 22, "reports nothing here"),
        ("# noqa: SPMD999", 16, "no installed rule"),
    ],
)
def test_unused(project, comment, column, words):
    project.write({"a.py": f"x = 1  {comment}\n"})
    (finding,) = project.check().json
    assert finding["code"] == "SPMD900"
    assert finding["location"] == {"row": 1, "column": column}
    assert words in finding["message"]


MISPLACED = {
    "a call": "print(f())  # spmdlint: uniform",
    "a call below": "# spmdlint: uniform\nprint(f())",
    "two lines above": "# spmdlint: uniform\n# as the launcher says\nx = f()",
    "a return": "def g():\n    return f()  # spmdlint: uniform",
    "a condition": "if f():  # spmdlint: uniform\n    x = 1",
    "an element": "x[0] = f()  # spmdlint: uniform",
    "a field without a value": "class C:\n    x: int  # spmdlint: uniform",
    "above a decorator": "# spmdlint: uniform\n@cache\ndef g():\n    return f()",
    "the end of a file": "x = f()\n# spmdlint: uniform",
}
PLACED = {
    "an assignment": "x = f()  # spmdlint: uniform",
    "below the comment": "# spmdlint: uniform\nx, y.z = f()",
    "its last line": "x = f(\n    1,\n)  # spmdlint: uniform",
    "added to": "x += f()  # spmdlint: uniform",
    "annotated": "x: int = f()  # spmdlint: uniform",
    "a walrus": "if (x := f()):  # spmdlint: uniform\n    pass",
    "a loop": "for x in f():  # spmdlint: uniform\n    print(x)",
    "a manager": "with f() as x:  # spmdlint: uniform\n    print(x)",
    "a function": "@cache\n# spmdlint: uniform\ndef g():\n    return f()",
    "a function of several lines": "async def g(\n    x,\n):  # spmdlint: uniform\n    return f()",
    "a function with a docstring": "def g():\n    'Text.'  # spmdlint: uniform\n    return f()",
    "a function in one line": "def g(): return f()  # spmdlint: uniform",
    "a case": "match f():\n    case [x]:  # spmdlint: uniform\n        print(x)",
}


@pytest.mark.parametrize("case", MISPLACED)
def test_a_declaration_where_nothing_is_stored_is_unused(project, case):
    project.write({"a.py": MISPLACED[case] + "\n"})
    (finding,) = project.check().json
    assert finding["code"] == "SPMD900"
    row = 1 + MISPLACED[case].split("# spmdlint")[0].count("\n")
    assert finding["location"]["row"] == finding["end_location"]["row"] == row
    assert "no value is stored here" in finding["message"]


@pytest.mark.parametrize("case", PLACED)
def test_a_declaration_of_a_value_is_not_unused(project, case):
    project.write({"a.py": PLACED[case] + "\n"})
    assert project.check().found == []


def test_unused_is_told_for_each_code(project):
    project.write({"a.py": f"{HEAD}{CALL}  # spmdlint: ignore[SPMD301, SPMD101,unbound-axis]\n"})
    outcome = project.check()
    assert [each["location"]["column"] for each in outcome.json] == [75, 83]
    assert {each["code"] for each in outcome.json} == {"SPMD900"}


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: E501",
        "# noqa: F401, B008 why-not",
        "# flake8: noqa",
        "# ruff: noqa: SPMD301",
        "# spmdlinty",
        "# spmdlint: see there",
    ],
)
def test_what_is_none_of_our_business_is_never_unused(project, comment):
    project.write({"a.py": f"x = 1  {comment}\n"})
    assert project.check().found == []


CONTINUED = {
    "as the guide has it": ("only host 0 runs this tool,", ["and it exits right after."], []),
    "after an article": ("only host 0 runs the", ["tool."], []),
    "until the sentence ends": ("it is a tool,", ["which only host 0", "runs at night.", "and this is about x"], [2]),
    "until the comment ends": ("it is a tool,", ["which only host 0", "runs at night"], []),
    "a new sentence": ("only host 0 runs this tool.", ["and this is about x"], [0]),
    "a sentence of its own": ("only host 0 runs this tool", ["Save x."], [0]),
    "perhaps a comment of its own": ("only host 0 runs this tool", ["save x"], [0]),
    "no reason": ("", ["and this is about x"], [0]),
    "a comment for a tool": ("only host 0 runs this,", ["type: ignore"], [0]),
    "another comment of a tool": ("only host 0 runs this,", ["noqa"], [0]),
    "a label": ("only host 0 runs this,", ["todo: x"], [0]),
    "another comment for the linter": ("only host 0 runs this,", ["spmdlint: uniform"], [0]),
}


@pytest.mark.parametrize("case", CONTINUED)
@pytest.mark.parametrize("indent", ["", "    "])
def test_the_fix_removes_the_reason_as_far_as_it_certainly_goes(project, case, indent):
    reason, below, left = CONTINUED[case]
    head = "if True:\n" if indent else ""
    comments = [f"{indent}# spmdlint: ignore[SPMD101] {reason}\n", *(f"{indent}# {line}\n" for line in below)]
    project.write({"a.py": f"{head}{''.join(comments)}{indent}x = time.time()\n"})
    assert project.check("--fix", "--select", "SPMD101,SPMD900", "--fix-only").status == 0
    kept = "".join(comments[1 + line] for line in left)
    assert (project.root / "a.py").read_text() == f"{head}{kept}{indent}x = time.time()\n"


@pytest.mark.parametrize("below", ["  # and this is about y", "\n# and this is about y", "y = 1  # and so on"])
def test_the_fix_leaves_what_is_not_a_comment_directly_below(project, below):
    project.write({"a.py": f"# spmdlint: ignore[SPMD101] a tool,\n{below}\nx = 1\n"})
    assert project.check("--fix").found == []
    assert (project.root / "a.py").read_text() == f"{below}\nx = 1\n"


def test_a_comment_below_the_end_of_a_line_is_not_its_reason(project):
    project.write({"a.py": "x = 1  # spmdlint: ignore[SPMD101] a tool,\n# and this is about y\ny = 1\n"})
    assert project.check("--fix").found == []
    assert (project.root / "a.py").read_text() == "x = 1\n# and this is about y\ny = 1\n"


def test_a_rule_that_did_not_run_leaves_its_suppressions_alone(project):
    project.write({"a.py": "x = 1  # spmdlint: ignore[SPMD101]\n"})
    assert project.check("--select", "SPMD900,SPMD301").found == []
    assert project.check("--select", "SPMD900,SPMD101").found == [("a.py", 1, "SPMD900")]
    assert project.check("--select", "SPMD101").found == []


def test_text_that_is_no_comment_silences_nothing(project):
    project.write({"a.py": 'x = """\n# spmdlint: ignore[SPMD101]\n"""\n'})
    assert project.check().found == []


def test_the_unused_suppression_can_be_silenced(project):
    project.write({"a.py": "x = 1  # spmdlint: ignore[SPMD101, SPMD900] kept for the next release\n"})
    assert project.check().found == []


def test_a_suppression_in_a_file_that_is_not_shown_counts_for_that_file_only(project):
    project.write({"a.py": f"{HEAD}{CALL}  # noqa: SPMD301\n", "b.py": "x = 1  # noqa: SPMD301\n"})
    assert project.check("a.py").found == []
    assert project.check("b.py").found == [("b.py", 1, "SPMD900")]


def test_a_family_in_a_comment(project):
    project.write({"a.py": "x = 1  # spmdlint: ignore[SPMD3] why\n"})
    (finding,) = project.check().json
    assert finding["code"] == "SPMD900"
    assert "SPMD3, which stands for several rules" in finding["message"]
    assert "Did you mean" not in str(finding)


@pytest.mark.parametrize("typed", ["unbound-axi", "unbound"])
def test_the_beginning_of_a_name_is_no_family(project, typed):
    project.write({"a.py": f"x = 1  # spmdlint: ignore[{typed}] why\n"})
    (finding,) = project.check().json
    assert f"suppresses {typed}, but no installed rule has that code or name" in finding["message"]
    assert "Did you mean unbound-axis?" in project.check().out


@pytest.mark.parametrize(
    ("comment", "below"), [("  # spmdlint: ignore[SPMD301] why", ""), ("", "x = 1  # noqa: SPMD301\n")]
)
def test_a_comment_on_the_condition_tells_where_the_finding_is(project, comment, below):
    text = (
        "import jax\nfrom jax.experimental import multihost_utils\n\n"
        f"if jax.process_index() == 0:{comment}\n    print(1)\n    multihost_utils.sync_global_devices('x')\n"
    )
    project.write({"a.py": text + below})
    (finding,) = [each for each in project.check().json if each["code"] == "SPMD900"]
    assert finding["message"].endswith("here: the finding is at line 6." if comment else "reports nothing here.")
    assert ("Move the comment there" in finding["help"]) == bool(comment)


def test_a_comment_on_a_condition_for_a_finding_in_a_different_file(project):
    helper = "from jax.experimental import multihost_utils\nfrom train import lead\n\nif lead:\n"
    project.write(
        {
            "train.py": "import jax\n\nlead = jax.process_index() == 0  # spmdlint: ignore[SPMD301] why\n",
            "helper.py": helper + "    multihost_utils.sync_global_devices('x')\n",
        }
    )
    (finding,) = [each for each in project.check().json if each["code"] == "SPMD900"]
    assert finding["message"].endswith("the finding is at line 5 of helper.py.")


def test_a_second_comment_on_one_finding_tells_that_the_first_stands_for_its_line(project):
    call = "    multihost_utils.sync_global_devices('x')  # spmdlint: ignore[SPMD301] why\n"
    text = "import jax\nfrom jax.experimental import multihost_utils\n\nif jax.process_index() == 0:\n"
    project.write({"a.py": text + 2 * call})
    (finding,) = project.check().json
    assert (finding["code"], finding["location"]["row"]) == ("SPMD900", 6)
    assert finding["message"].endswith("the finding is at line 5, and the comment there suppresses it.")
    assert finding["help"] == "Delete this one: the comment there stands for this line as well."
    project.check("--fix")
    assert project.check().json == []


# -- rules that were split from another one

FIRST_ROW = """
import jax
import jax.numpy as jnp


def step(params, batch):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((batch @ p) ** 2))(params)
    return params - 0.1 * jax.lax.pmean(grads, "batch"), loss


p_step = jax.pmap(step, axis_name="batch")


def train(params, batches):
    for batch in batches:
        params, loss = p_step(params, batch)
        print(loss[0])COMMENT
"""


@pytest.mark.parametrize(
    "comment", ["spmdlint: ignore[SPMD503] one example", "noqa: SPMD503", "spmdlint: ignore[missing-reduction]"]
)
def test_a_comment_with_the_code_before_a_split_still_holds(project, comment):
    project.write({"a.py": FIRST_ROW.replace("COMMENT", "")})
    assert project.check().found == [("a.py", 17, "SPMD512")]
    project.write({"a.py": FIRST_ROW.replace("COMMENT", f"  # {comment}")})
    outcome = project.check()
    assert outcome.found == []
    assert "1 comment in a.py names" in outcome.err
    assert "write SPMD512 there" in outcome.err


def test_a_comment_about_one_hazard_does_not_hide_another_that_was_split_from_it(project):
    step = "jax.pmap(lambda p, b: (p - 0.1 * jax.grad(loss)(p, b), loss(p, b)), axis_name='i')"
    both = f"""
import jax
import jax.numpy as jnp


def loss(params, batch):
    return jnp.mean((batch @ params) ** 2)


def train(params, batch):
    params, value = {step}(params, batch); print(value[0])COMMENT
    return params
"""
    project.write({"a.py": both.replace("COMMENT", "")})
    assert [code for _, _, code in project.check().found] == ["SPMD503", "SPMD512"]
    project.write({"a.py": both.replace("COMMENT", "  # spmdlint: ignore[SPMD503] a model of its own each")})
    outcome = project.check()
    assert [code for _, _, code in outcome.found] == ["SPMD512"]
    assert outcome.err == ""
    project.write({"a.py": both.replace("COMMENT", "  # spmdlint: ignore[SPMD503, SPMD512]")})
    assert project.check().found == []


def test_a_setting_that_names_a_rule_means_the_rule_of_today(project):
    project.write({"a.py": FIRST_ROW.replace("COMMENT", "")})
    assert project.check("--ignore", "SPMD503").found == [("a.py", 17, "SPMD512")]
    assert project.check("--ignore", "first-row").found == []


# -- rules that are part of another one now

LOOP = """
import jax
from jax.experimental import multihost_utils

for part in range(jax.process_index(), 8):
    multihost_utils.sync_global_devices("saved")COMMENT
"""


@pytest.mark.parametrize(
    "comment",
    [
        "spmdlint: ignore[SPMD302] as many on each",
        "spmdlint: ignore[data-dependent-loop-exit]",
        "noqa: SPMD302",
        "spmdlint: ignore[SPMD303]",
    ],
)
def test_a_comment_with_the_code_of_a_rule_that_was_merged_still_holds(project, comment):
    project.write({"a.py": LOOP.replace("COMMENT", "")})
    assert project.check().found == [("a.py", 6, "SPMD303")]
    project.write({"a.py": LOOP.replace("COMMENT", f"  # {comment}")})
    outcome = project.check()
    assert outcome.found == []
    assert outcome.err == ""


def test_a_comment_on_a_file_with_the_code_of_a_rule_that_was_merged_still_holds(project):
    project.write({"a.py": "# spmdlint: ignore-file[SPMD302]\n" + LOOP.replace("COMMENT", "")})
    assert project.check().found == []


def test_an_unused_comment_with_the_code_of_a_rule_that_was_merged_is_told(project):
    project.write({"a.py": "import jax\n\nx = 1  # spmdlint: ignore[SPMD302]\n"})
    assert project.check().found == [("a.py", 3, "SPMD900")]
    assert project.check("--ignore", "SPMD303").found == []


def test_a_comment_holds_whichever_of_two_findings_is_shown(project):
    project.write({"a.py": project.two_conditions.format(first="", second="")})
    assert project.check().found == [("a.py", 22, "SPMD303")]
    assert project.check("--preview").found == [("a.py", 22, "SPMD306")]
    project.write({"a.py": project.two_conditions.format(first="  # spmdlint: ignore[SPMD303] all agree", second="")})
    assert project.check().found == []
    assert project.check("--preview").found == []


def test_a_comment_holds_for_the_rules_that_a_finding_stands_for_and_for_no_others(project):
    project.write({"a.py": project.two_conditions.format(first="  # spmdlint: ignore[SPMD301] all agree", second="")})
    assert project.check("--preview").found == [("a.py", 22, "SPMD306"), ("a.py", 22, "SPMD900")]


ELSEWHERE = f"{HEAD}{CALL}\n"


@pytest.mark.parametrize("named", ["SPMD301", "varying-condition", "SPMD101, SPMD301", "ALL"])
@pytest.mark.parametrize(
    "before",
    ["", "#!/usr/bin/env python\n# Licence.\n\n", '"""What it is for."""\n\n'],
    ids=["first", "header", "text"],
)
def test_a_comment_for_a_whole_file(project, named, before):
    text = f"{before}# spmdlint: ignore-file[{named}] only process 0 imports this\n{HEAD}{CALL}\n{CALL}\n"
    project.write({"a.py": text, "b.py": ELSEWHERE})
    found = project.check("--no-cache", "--ignore", "SPMD900").found
    assert found == [("b.py", 5, "SPMD301")]


def test_a_comment_for_a_whole_file_counts_after_a_run_without_it(project):
    project.write({"a.py": ELSEWHERE, "pyproject.toml": ""})
    assert [code for _, _, code in project.check().found] == ["SPMD301"]
    project.write({"a.py": f"# spmdlint: ignore-file[SPMD301] a tool\n{ELSEWHERE}"})
    assert project.check().found == []
    project.write({"a.py": f"# a tool\n{ELSEWHERE}"})
    assert [code for _, _, code in project.check().found] == ["SPMD301"]


def test_a_comment_for_a_whole_file_leaves_the_other_rules(project):
    project.write({"a.py": f"# spmdlint: ignore-file[SPMD101] a tool\n{ELSEWHERE}"})
    found = project.check().json
    assert [(each["code"], each["location"]["row"]) for each in found] == [("SPMD900", 1), ("SPMD301", 6)]
    assert found[0]["message"] == "This comment suppresses SPMD101, which reports nothing in this file."
    assert project.check("--fix").found == [("a.py", 5, "SPMD301")]
    assert (project.root / "a.py").read_text() == ELSEWHERE


def test_a_comment_for_a_whole_file_that_silences_all_is_never_unused(project):
    project.write({"a.py": "# spmdlint: ignore-file[ALL] generated\nx = 1\n"})
    assert project.check().found == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{HEAD}    # spmdlint: ignore-file[SPMD301] why\n{CALL}\n", "does not have a line to itself"),
        (f"{HEAD}{CALL}  # spmdlint: ignore-file[ALL] why\n", "does not have a line to itself"),
        (f"# spmdlint: ignore-file why\n{ELSEWHERE}", "names no rule"),
        (f"# spmdlint: ignore-file[SPMD3] why\n{ELSEWHERE}", "stands for several rules"),
        (f"# spmdlint: ignore-flie[SPMD301] why\n{ELSEWHERE}", "not a spmdlint directive"),
    ],
)
def test_a_comment_for_a_whole_file_that_does_nothing_is_told(project, text, words):
    project.write({"a.py": text})
    found = project.check().json
    assert sorted(each["code"] for each in found) == ["SPMD301", "SPMD900"]
    assert words in next(each["message"] for each in found if each["code"] == "SPMD900")
