"""Rules of one's own: they find, fix, fail and are kept as any rule; the tutorial's is one of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "own-rules.md"
NAMED = re.compile(r"^`([\w/.]+)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Says what is known about the argument of each call of ask(), or about the call itself in which `this` is passed.
ASKING = '''\
import json

import libcst as cst

from spmdlint.visitor_rule import VisitorRule


class Asking(VisitorRule):
    """It says what is known."""

    code = "ACME101"
    name = "asking"

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Name) and node.func.value == "ask":
            asked = node.args[0].value if node.args else node
            facts = self.facts(asked)
            told = {
                "difference": facts.difference.answer,
                "aspects": [each.name for each in facts.difference.aspects],
                "sources": [each.source for each in facts.difference.aspects],
                "steps": [[s.place.start.row for s in each.steps] for each in facts.difference.aspects],
                "axes": sorted(facts.axes.names),
                "bound": facts.axes.bound("data"),
                "parallel": facts.parallel.answer,
                "calls": list(facts.parallel.calls),
                "names": sorted(facts.callees.names),
                "complete": facts.callees.complete,
                "first": facts.guards.always(lambda guard: guard.first_process),
                "ways": [
                    [way.begins, [guard.code for guard in way.guards], [call.start.row for call in way.calls]]
                    for way in facts.guards.ways
                ],
                "place": [facts.place.start.row, facts.place.start.column, facts.place.end.column],
            }
            self.report(node, json.dumps(told))
'''
PLAIN = '''\
import libcst as cst

from spmdlint.visitor_rule import Invalid, VisitorRule


class NoSleep(VisitorRule):
    """`sleep` is called.

    It hides a race.
    """

    code = "ACME101"
    name = "no-sleep"

    VALID = ["import time\\n"]
    INVALID = [Invalid("import time\\ntime.sleep(1)\\n", row=2, message="waits", replacement="import time\\nNone\\n")]

    def visit_Call(self, node: cst.Call) -> None:
        if "sleep" in self.facts(node).place.path.read_text() and getattr(node.func, "attr", None) is not None:
            if node.func.attr.value == "sleep":
                self.report(node, "It waits.", help="Do not.", replacement=cst.Name("None"))
'''
CONFIG = '[tool.spmdlint]\nrules = ["own.py"]\n'
SLEEPS = "import time\n\ntime.sleep(1)\n"


@pytest.fixture
def own(project):
    """The project with one rule of its own, in a file that is not linted."""
    (project.root / "spmdlint.toml").unlink()
    project.write({"pyproject.toml": CONFIG + 'exclude = ["own.py"]\n', "own.py": PLAIN})
    return project


def asked(project, text, **files):
    """What is known at each call of ask() in a program."""
    project.write({"own.py": ASKING, "a.py": text, **{f"{name}.py": other for name, other in files.items()}})
    outcome = project.check("a.py", "--select", "ACME101")
    assert outcome.err == ""
    return [json.loads(finding["message"]) for finding in outcome.json]


# -- the tutorial


@pytest.fixture
def tutorial(project):
    (project.root / "spmdlint.toml").unlink()
    files = dict(NAMED.findall(PAGE.read_text()))
    assert {"train.py", "acme/report.py", "lint_rules/flush_on_main.py"} <= set(files)
    project.write({**files, "pyproject.toml": '[tool.spmdlint]\nrules = ["lint_rules"]\n'})
    return project


def shown(command):
    """What the page says that a command prints."""
    return re.search(rf"^\$ spmdlint {re.escape(command)}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]


@pytest.mark.parametrize(("command", "status"), [("check train.py --output-format concise", 1), ("rule --test", 0)])
def test_the_tutorial_prints_what_it_says(tutorial, command, status):
    outcome = tutorial.run(*command.split())
    assert (outcome.status, outcome.out) == (status, shown(command))


def test_the_rule_of_the_tutorial_fixes(tutorial):
    before = (tutorial.root / "train.py").read_text()
    assert tutorial.run("check", "train.py", "--fix").status == 0
    row = "            reporter.flush()\n"
    assert (tutorial.root / "train.py").read_text() == before.replace(row, row.replace("flush", "flush_on_main"))


def test_the_tutorial_goes_on_with_a_rule_of_another_name(tutorial):
    named = re.search(r"`spmdlint rule --new ([\w-]+)`", PAGE.read_text())[1]
    assert tutorial.run("rule", "--new", named).status == 0
    assert tutorial.run("rule", "--test", named).out.endswith(f" {named}: 2 examples pass.\n")


def test_the_rule_of_the_tutorial_has_a_page(tutorial):
    assert tutorial.run("rule", "flush-on-main").out.startswith("# ACME101 flush-on-main\n\n`Reporter.flush` runs on")
    assert "ACME101" in tutorial.run("rule", "--all").out


# -- facts


VALUES = """\
import os
import jax
from jax.experimental import multihost_utils
from fleet import mystery

rank = jax.process_index()
many = jax.process_count() > 1
known = 3


def f(n, flag):
    ask(rank)
    ask(rank + known)
    ask(known)
    ask((known * 2, many))
    ask(mystery(known))
    ask(n)
    whole = multihost_utils.broadcast_one_to_all(rank)
    ask(whole)
    agreed = mystery(rank)  # spmdlint: uniform
    ask(agreed)
    chosen = 1
    if rank == 0:
        chosen = 2
    ask(chosen)
    other = 1
    if flag:
        other = 2
    ask(other)
    last = 0
    for last in range(known):
        ask(last)
        if mystery(last):
            break
    ask(last)
    grown = []
    grown.append(mystery())
    ask(grown)
    ask([os.listdir(".")[0]])


f(1, mystery())
"""


def test_whether_a_value_differs_is_yes_no_or_unknown(own):
    told = asked(own, VALUES)
    assert [each["difference"] for each in told] == [
        "yes", "yes", "no", "no", "unknown", "unknown", "no", "no", "yes", "unknown", "no", "unknown", "unknown", "yes"
    ]  # fmt: skip
    assert (told[0]["aspects"][0], told[0]["sources"][0], told[0]["steps"][0][0]) == ("content", "identity", 6)
    assert told[-1]["aspects"] == ["order"] or "files" in told[-1]["sources"]


SPANS = """\
import jax

rank = jax.process_index()


@ask(rank)
def f(a=(ask(
    (rank)
))):
    return ask((rank, 1)), f"{ask(rank)}", ask(x for x in [rank])


class C:
    field = ask(rank)
    names = [ask(each) for each in (rank, 1)]


try:
    ask(é := rank)
finally:
    ask(rank); ask("é", rank)
with open(rank) as file:
    ask(rank)
match rank:
    case 0: ask(rank)
"""


def test_every_node_is_found_wherever_it_stands(own):
    told = asked(own, SPANS)
    assert len(told) == 12
    constant = [each["place"] for each in told if each["difference"] == "no"]
    assert constant == [[21, 20, 23]]
    assert {each["difference"] for each in told if each["place"] not in constant} == {"yes"}
    assert [each["place"] for each in told][:3] == [[6, 6, 10], [8, 6, 10], [10, 17, 24]]


TARGETS = '''\
import libcst as cst

from spmdlint.visitor_rule import VisitorRule


class Assigned(VisitorRule):
    """It says what is known about what is assigned."""

    code = "ACME101"
    name = "assigned"

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.report(node, self.facts(node).difference.answer)

    def visit_Param(self, node: cst.Param) -> None:
        self.report(node, self.facts(node).difference.answer)
'''
ASSIGNING = """\
import jax


def f(self, other):
    self.rank = name = other["rank"] = jax.process_index()
    self.one = 1
    a, b = jax.process_index(), 1


f(object(), jax.process_index())
"""


def test_the_targets_of_assignments_and_parameters(own):
    own.write({"own.py": TARGETS, "a.py": ASSIGNING})
    told = [(each["location"]["row"], each["message"]) for each in own.check("--select", "ACME101").json]
    assert told == [(4, "unknown"), (4, "yes"), (5, "yes"), (5, "yes"), (5, "yes"), (6, "no"), (7, "unknown")]


CALLS = """\
import jax
import jax.numpy as np
from functools import partial
from acme.deep import Thing as T, helper
from tensorboardX import SummaryWriter
from jax.experimental.multihost_utils import sync_global_devices as sync


def save():
    sync("x")


@jax.jit
def step(x):
    return x


@partial(jax.pmap, axis_name="data")
def mapped(x):
    ask()
    return jax.lax.psum(x, "data")


thing = T()
ask(jax.lax.psum)
ask(np.zeros)
ask(helper)
ask(thing.run)
ask(T)
ask(SummaryWriter("x").flush)
ask(unheard.of)
ask(save())
ask(step(unheard))
ask(mapped(1))
ask(print(save))
ask(sync)
ask(dict(a=1))
"""
DEEP = "def helper(): pass\n\n\nclass Thing:\n    def run(self): pass\n"


def test_what_a_call_calls_and_whether_it_is_parallel(own):
    own.write({"acme/__init__.py": "", "acme/deep.py": DEEP})
    told = asked(own, CALLS)
    assert [each["names"] for each in told[1:]] == [
        ["jax.lax.psum"],
        ["jax.numpy.zeros"],
        ["acme.deep.helper"],
        ["acme.deep.Thing.run"],
        ["acme.deep.Thing"],
        ["tensorboardX.SummaryWriter.flush"],
        [],
        ["a.save"],
        ["a.step"],
        ["a.mapped"],
        ["builtins.print"],
        ["jax.experimental.multihost_utils.sync_global_devices"],
        ["builtins.dict"],
    ]
    assert not told[7]["complete"]
    assert [each["parallel"] for each in told[8:12]] == ["yes", "unknown", "yes", "no"]
    assert told[8]["calls"] == ["sync_global_devices"]
    assert (told[0]["axes"], told[0]["bound"], told[1]["bound"]) == (["data"], "yes", "no")


DEFINITIONS = """\
import jax
from jax.experimental import multihost_utils

def quiet():
    print()

def loud(name=lambda: 3):
    multihost_utils.sync_global_devices("x")
    return [jax.process_index()]

wait = lambda: multihost_utils.sync_global_devices("y")
ask({"a": 1, "b": {"c": jax.process_index()}})
ask({"a": 1})
"""


def test_definitions_and_dictionaries(own):
    told = asked(own, DEFINITIONS)
    assert [each["difference"] for each in told] == ["yes", "no"]
    rule = PLAIN[: PLAIN.index("    VALID")] + (
        "    def _tell(self, node):\n"
        "        if self.facts(node).parallel.answer == 'yes':\n"
        "            self.report(node, 'waits')\n\n"
        "    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:\n"
        "        self._tell(node)\n\n"
        "    def visit_Lambda(self, node: cst.Lambda) -> None:\n"
        "        self._tell(node)\n"
    )
    own.write({"own.py": rule})
    assert [each["location"]["row"] for each in own.check("--select", "ACME").json] == [7, 11]


GUARDS = """\
import jax
from acme import IS_MAIN, is_main


class Job:
    def __init__(self):
        self.main = jax.process_index() == 0

    @property
    def leads(self):
        return self.main

    def run(self, quiet):
        if self.leads:
            ask()
        if not self.main:
            return
        ask()
        if quiet:
            ask()


def below():
    ask()


def above():
    for _ in range(3):
        below()
    if is_main() and IS_MAIN:
        below()


def guarded():
    ask()


def twice():
    if IS_MAIN:
        guarded()
    if not is_main():
        raise SystemExit
    guarded()


def never_called():
    ask()


def other(flag):
    if flag:
        ask()
    if jax.process_index() != 0:
        ask()
    if jax.process_count() > 1:
        ask()
    if is_main() or flag:
        ask()
    try:
        open("x")
        ask()
    except OSError:
        ask()


def passed_on():
    ask()


Job().run(len("x") > 1)
above()
twice()
other(mystery())
if jax.process_index() == 0:
    passed_on()
    mystery(passed_on)
"""
ACME = "import jax\n\nIS_MAIN = jax.process_index() == 0\n\n\ndef is_main():\n    return IS_MAIN\n"


def test_what_guards_a_call_in_callers_too(own):
    told = asked(own, GUARDS, acme=ACME)
    assert [each["first"] for each in told] == [
        "yes", "yes", "yes", "no", "yes", "unknown", "unknown", "no", "no", "unknown", "no", "unknown", "unknown"
    ]  # fmt: skip
    below = told[3]["ways"]
    assert [way[0] for way in below] == ["module", "module"]
    assert [guards for _, guards, _ in below] == [["range(3)"], ["is_main() and IS_MAIN"]]
    assert [calls for _, _, calls in below] == [[71, 29], [71, 31]]
    assert told[2]["ways"] == [["module", ["quiet", "not self.main"], [70]]]
    assert told[5]["ways"] == [["function", [], []]]


CONDITIONS = {
    "guard.first_process": "yes",
    "guard.first_process == 'yes'": "yes",
    "guard.first_process != 'yes'": "no",
    "guard.code.startswith('jax.process_index()')": "yes",
    "guard.difference": "yes",
    "guard.holds": "yes",
    "not guard.holds": "no",
    "'unknown'": "unknown",
}
LED = "import jax\n\nif jax.process_index() == 0:\n    ask()\n"


@pytest.mark.parametrize(("condition", "answer"), CONDITIONS.items())
def test_a_condition_of_guards_returns_an_answer_a_bool_or_a_fact(own, condition, answer):
    own.write(
        {"own.py": ASKING.replace("lambda guard: guard.first_process", f"lambda guard: {condition}"), "a.py": LED}
    )
    outcome = own.check("a.py", "--select", "ACME101")
    assert [json.loads(finding["message"])["first"] for finding in outcome.json] == [answer]


@pytest.mark.parametrize("condition", ["None", "'always'", "1", "guard", "guard.code"])
def test_a_condition_of_guards_that_returns_something_else_is_told_so(own, condition):
    own.write(
        {"own.py": ASKING.replace("lambda guard: guard.first_process", f"lambda guard: {condition}"), "a.py": LED}
    )
    outcome = own.check("a.py", "--select", "ACME101")
    assert outcome.status == 2
    assert "TypeError" in outcome.err
    assert "for the guard 'jax.process_index() == 0'. It must return 'yes', 'no' or 'unknown'" in outcome.err


PASSED = """\
class Log:
    def flush(self): pass


class Report:
    def flush(self): pass


def one(report):
    ask(report.flush)


def two(thing):
    ask(thing.flush)


def three(thing):
    ask(thing.flush)


def four(thing):
    ask(thing.flush)


one(Report())
one(Report())
two(Report())
two(Log())
three(Report())
three(unheard)
four(Report())
unheard(four)
"""


def test_what_callers_pass_says_what_is_called(own):
    told = asked(own, PASSED)
    both = ["a.Log.flush", "a.Report.flush"]
    assert [each["names"] for each in told[:2]] == [["a.Report.flush"], both]
    assert [each["complete"] for each in told] == [True, True, False, False]


def test_functions_that_call_one_another_have_too_many_ways(own):
    calls = "".join(f"    f{number}(x)\n" for number in range(16))
    text = "".join(f"def f{number}(x):\n    if x:\n        ask()\n{calls}\n\n" for number in range(16))
    told = asked(own, f"import jax\n{text}f0(jax.process_index() == 0)\n")
    assert len(told) == 16
    assert {each["first"] for each in told} == {"unknown"}
    assert all(0 < len(each["ways"]) <= 64 for each in told)


def test_a_fact_is_neither_true_nor_false(own):
    own.write(
        {"own.py": PLAIN.replace('if "sleep" in', 'if self.facts(node).difference or "sleep" in'), "a.py": SLEEPS}
    )
    outcome = own.check()
    assert outcome.status == 2
    assert "Difference has three answers, so it is neither true nor false" in outcome.err


def test_a_file_that_the_program_does_not_need_is_visited_too(own):
    own.write({"a.py": "x = [1]\nask(x)\n", "own.py": ASKING})
    assert own.check().found == [("a.py", 2, "ACME101")]


# -- what rules take part in


def test_selection_and_settings(own):
    own.write({"a.py": SLEEPS, "b/c.py": SLEEPS})
    assert own.check().found == [("a.py", 3, "ACME101"), ("c.py", 3, "ACME101")]
    assert own.check("--ignore", "ACME").found == own.check("--select", "SPMD").found == []
    assert own.check("--select", "no-sleep", "a.py").found == [("a.py", 3, "ACME101")]
    settings = 'exclude = ["own.py"]\n[tool.spmdlint.per-file-ignores]\n"b/" = ["ACME101"]\n'
    own.write({"pyproject.toml": CONFIG + settings + '[tool.spmdlint.severity]\nACME = "info"\n'})
    outcome = own.check()
    assert outcome.found == [("a.py", 3, "ACME101")]
    assert outcome.json[0]["severity"] == "info"


def test_comments_and_baselines(own):
    own.write({"a.py": SLEEPS.replace("\n\n", "\n\nx = 1  # spmdlint: ignore[ACME101]\n", 1)})
    assert own.check().found == [("a.py", 3, "SPMD900"), ("a.py", 4, "ACME101")]
    own.write({"a.py": SLEEPS.rstrip() + "  # spmdlint: ignore[no-sleep] it must\n"})
    assert own.check().found == []
    own.write({"a.py": SLEEPS})
    own.run("check", "--baseline", "known.json", "--write-baseline")
    assert own.check("--baseline", "known.json").found == []
    assert own.run("check", "--add-ignore", "later").status == 0
    assert "# spmdlint: ignore[ACME101] later" in (own.root / "a.py").read_text()


@pytest.mark.parametrize("form", ["full", "concise", "json-lines", "github", "gitlab", "sarif", "junit"])
def test_every_format_shows_them(own, form):
    own.write({"a.py": SLEEPS})
    outcome = own.run("check", "--output-format", form)
    assert outcome.status == 1
    assert "ACME101" in outcome.out
    assert "It waits." in outcome.out


def test_explain_names_them(own):
    own.write({"a.py": SLEEPS})
    assert "ACME101 no-sleep (a.py:3): It waits." in own.run("explain", "a.py:3").out


def test_a_cell_of_a_notebook(own):
    cell = {"cell_type": "code", "source": "%time\nimport time\ntime.sleep(2)", "metadata": {}, "outputs": []}
    own.write({"a.ipynb": json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})})
    changed = [line for line in own.check("--fix", "--unsafe-fixes", "--diff").out.splitlines() if line[:1] in "+-"]
    assert changed[-2:] == ["-time.sleep(2)", "+None"]
    assert own.check().json[0]["cell"] == 1
    assert own.run("check", "--fix", "--unsafe-fixes").status == 0
    assert json.loads((own.root / "a.ipynb").read_text())["cells"][0]["source"] == "%time\nimport time\nNone"


def test_touching_visits_all_files(own):
    own.write({"a.py": SLEEPS, "b.py": SLEEPS})
    outcome = own.check("--touching", "a.py")
    assert outcome.found == [("a.py", 3, "ACME101")]
    assert "1 other finding elsewhere" in outcome.err


def test_a_package_brings_rules(project, plugin):
    project.write({"a.py": SLEEPS})
    assert project.spawn("check", "--output-format", "json", env=plugin(PLAIN)).found == [("a.py", 3, "ACME101")]


def test_files_in_a_folder_import_one_another(own):
    own.write(
        {
            "pyproject.toml": '[tool.spmdlint]\nrules = ["lint"]\nexclude = ["lint", "own.py"]\n',
            "lint/words.py": 'WORD = "It waits, and waits."\n',
            "lint/base.py": "from spmdlint.visitor_rule import VisitorRule\n\n\nclass _Base(VisitorRule): ...\n",
            "lint/sleep.py": "from .words import WORD\n" + PLAIN.replace('"It waits."', "WORD"),
            "a.py": SLEEPS,
        }
    )
    assert own.check().json[0]["message"] == "It waits, and waits."
    own.write({"lint/words.py": 'WORD = "It still waits."\n'})
    assert own.check().json[0]["message"] == "It still waits."
    assert not list(own.root.rglob("*.pyc"))


# -- fixes

REPLACING = '''\
import libcst as cst

from spmdlint.visitor_rule import VisitorRule


class Replacing(VisitorRule):
    """Things are replaced."""

    code = "ACME101"
    name = "replacing"

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Name) and node.func.value == "old":
            new = node.with_changes(func=cst.Name("new"))
            self.report(node, "Old.", replacement=cst.Call(cst.Name("wrap"), [cst.Arg(new)]), safe=True)

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        if node.body and isinstance(node.body[0], cst.Pass):
            self.report(node, "Pass.", replacement=cst.RemoveFromParent(), safe=True)
        if node.body and isinstance(node.body[0], cst.Assert):
            twice = cst.FlattenSentinel([node, node])
            self.report(node, "Assert.", replacement=twice)
'''


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = ( old(  1,\n   2 ) ) # c\n", "x = wrap(( new(  1,\n   2 ) )) # c\n"),
        ("def f():\n\tx = 1\n\tpass\n\ty = old()\n", "def f():\n\tx = 1\n\ty = wrap(new())\n"),
        ("old(old(1))\r\n", "wrap(new(wrap(new(1))))\r\n"),
        ("é = old('ä')", "é = wrap(new('ä'))"),
    ],
)
def test_a_replacement_leaves_everything_else_as_it_is(own, before, after):
    own.write({"own.py": REPLACING, "a.py": before})
    outcome = own.run("check", "--fix")
    assert (outcome.status, outcome.err) == (0, "")
    assert (own.root / "a.py").read_bytes().decode() == after


def test_only_a_safe_replacement_is_made_without_being_asked_for(own):
    own.write({"a.py": SLEEPS})
    assert own.run("check", "--fix").status == 1
    assert (own.root / "a.py").read_text() == SLEEPS
    assert own.run("check", "--fix", "--unsafe-fixes").status == 0
    assert (own.root / "a.py").read_text() == "import time\n\nNone\n"


def test_the_edits_are_as_small_as_the_change(own):
    own.write({"own.py": REPLACING, "a.py": "x = old(a, b)\n"})
    edits = own.check().json[0]["fix"]["edits"]
    assert [(each["location"]["column"], each["end_location"]["column"], each["content"]) for each in edits] == [
        (5, 8, "wrap(new"),
        (13, 13, ")"),
    ]


def test_a_replacement_that_does_not_fit(own):
    own.write({"own.py": PLAIN.replace('cst.Name("None")', "cst.Pass()"), "a.py": "import time\nx = time.sleep(1)\n"})
    outcome = own.run("check", "--fix", "--unsafe-fixes")
    assert outcome.status == 1
    assert "a.py was not changed: with its fixes, it would no longer parse" in outcome.err
    assert (own.root / "a.py").read_text() == "import time\nx = time.sleep(1)\n"
    own.write({"own.py": PLAIN.replace("report(node, ", "report(cst.Pass(), ")})
    outcome = own.check()
    assert outcome.status == 2
    assert "The node to replace is not a node of the file" in outcome.err


# -- rules that fail, and files that hold none


MORE = '''

class More(NoSleep):
    """More."""

    code = "ACME102"
    name = "more"

    def visit_Call(self, node):
        self.report(node, "A call.")
'''


def test_a_rule_that_raises_loses_one_file(own):
    fails = "                1 / int(node.args[0].value.value)"
    failing = PLAIN.replace("                self.report", f"{fails}\n                self.report")
    own.write({"own.py": failing + MORE, "a.py": SLEEPS, "b.py": SLEEPS.replace("1", "0"), "c.py": own.hazard})
    outcome = own.check()
    assert outcome.status == 2
    assert ("a.py", 3, "ACME101") in outcome.found
    assert ("b.py", 3, "ACME102") in outcome.found
    assert ("b.py", 3, "ACME101") not in outcome.found
    assert ("c.py", 7, "SPMD301") in outcome.found
    row = failing.split("\n").index(fails) + 1
    line = f"(line {row} of {own.root / 'own.py'})"
    assert f"failed in {own.root / 'b.py'}" in outcome.err
    assert f"ZeroDivisionError: division by zero {line}. This is a bug in the rule" in outcome.err
    assert outcome.err.count("failed") == 1
    assert own.check("--exit-zero").status == 2
    assert own.check("a.py").status == 1


WITH_METADATA = '''\
import libcst as cst
import libcst.matchers as m
from libcst.metadata import ParentNodeProvider, QualifiedNameProvider

from spmdlint.visitor_rule import VisitorRule


class Waiting(VisitorRule, m.MatcherDecoratableVisitor):
    """It asks LibCST's own providers, and has patterns for what it visits."""

    code = "ACME101"
    name = "waiting"
    METADATA_DEPENDENCIES = (ParentNodeProvider, QualifiedNameProvider)

    @m.visit(m.Call(func=m.Attribute(attr=m.Name("sleep"))))
    def waits(self, node: cst.Call) -> None:
        names = {each.name for each in self.get_metadata(QualifiedNameProvider, node.func)}
        self.report(self.get_metadata(ParentNodeProvider, node), f"{names}")
'''


def test_metadata_and_matchers_of_libcst(own):
    own.write({"own.py": WITH_METADATA, "a.py": "import time as t\n\nx = t.sleep(1), 2\n"})
    assert [each["message"] for each in own.check().json] == ["{'time.sleep'}"]


def test_a_rule_that_ends_python_does_not_end_the_run(own):
    own.write({"own.py": PLAIN.replace("self.report(node", "raise SystemExit(0)\n                self.report(node")})
    own.write({"a.py": SLEEPS, "b.py": own.hazard})
    outcome = own.check()
    assert (outcome.status, outcome.found) == (2, [("b.py", 7, "SPMD301")])
    assert "SystemExit: 0 (line " in outcome.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def (:\n", "invalid syntax (line 1 of "),
        ("import nowhere\n", "No module named 'nowhere' (line 1 of "),
        ("raise SystemExit(0)\n", "SystemExit: 0 (line 1 of "),
        ("x = 1\n", "There is no rule in "),
        (PLAIN.replace("ACME101", "SPMD999"), "claims SPMD999, but codes that begin with SPMD are the linter's"),
        (PLAIN.replace("ACME101", "acme"), "has the code 'acme' and the name 'no-sleep'"),
        (PLAIN.replace('    name = "no-sleep"\n', ""), "has the code 'ACME101' and the name ''"),
        (PLAIN.replace("no-sleep", "set-order"), "Two rules claim ACME101 set-order"),
        (PLAIN.replace("no-sleep", "ragged-batch"), "which is SPMD401 local-shape"),
        (PLAIN + PLAIN.replace("NoSleep", "Other"), "Two rules claim ACME101 no-sleep"),
    ],
)
def test_files_that_hold_no_valid_rule(own, text, said):
    own.write({"own.py": text, "a.py": SLEEPS})
    outcome = own.check()
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err
    assert f"{own.root}/own.py" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("where", ["../own.py", "missing.py", "linked.py"])
def test_rules_outside_of_the_project_do_not_run(own, where):
    ran = own.root.parent / "ran"
    (own.root.parent / "own.py").write_text(f"open({str(ran)!r}, 'w')\n" + PLAIN)
    (own.root / "linked.py").symlink_to(own.root.parent / "own.py")
    own.write({"pyproject.toml": f'[tool.spmdlint]\nrules = ["{where}"]\n', "a.py": SLEEPS})
    outcome = own.check()
    assert (outcome.status, outcome.out) == (2, "")
    assert "in the project" in outcome.err
    assert not ran.exists()


def test_another_configuration_runs_no_rule_of_the_project(own):
    own.write({"own.py": "raise SystemExit\n", "a.py": SLEEPS, "../mine.toml": ""})
    assert own.check("--config", "../mine.toml").found == []


def test_a_file_whose_spans_are_not_sure_is_not_visited(own):
    own.write({"a.py": "\x0c" + SLEEPS})
    outcome = own.check()
    assert outcome.found == []
    assert "did not visit" in outcome.err


# -- what is kept

COUNTING = PLAIN.replace(
    "    def visit_Call",
    "    def visit_Module(self, node):\n"
    "        with open(__file__ + '.log', 'a') as log:\n"
    "            log.write(self._visit.path.name + '\\n')\n\n"
    "    def visit_Call",
)
TEXT_ALONE = COUNTING.replace('"sleep" in self.facts(node).place.path.read_text() and ', "")
ASKS = COUNTING.replace('"sleep" in self.facts(node).place.path.read_text()', "self.facts(node).guards.ways")


@pytest.fixture
def visited(own):
    """The files that were visited since the last time."""

    def since():
        log = own.root / "own.py.log"
        names = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(names)

    return since


FILES = {"a.py": "import b\n" + SLEEPS, "b.py": SLEEPS, "c.py": SLEEPS}
FOUND = [("a.py", 4, "ACME101"), ("b.py", 3, "ACME101"), ("c.py", 3, "ACME101")]


@pytest.mark.parametrize(("rule", "again"), [(TEXT_ALONE, ["b.py"]), (ASKS, ["a.py", "b.py", "c.py"])])
def test_what_is_visited_again_after_an_edit(own, visited, rule, again):
    own.write({"own.py": rule, **FILES})
    assert own.check().found == FOUND
    assert visited() == ["a.py", "b.py", "c.py"]
    assert own.check().found == FOUND
    assert visited() == []
    own.write({"b.py": "# moved\n" + SLEEPS})
    assert own.check().found == [FOUND[0], ("b.py", 4, "ACME101"), FOUND[2]]
    assert visited() == again


def test_only_what_is_asked_for_is_visited(own, visited):
    own.write({"own.py": TEXT_ALONE, **FILES})
    assert own.check("c.py").found == FOUND[2:]
    assert visited() == ["c.py"]
    assert own.check().found == FOUND
    assert visited() == ["a.py", "b.py"]


def test_a_changed_rule_is_asked_again(own, visited):
    own.write({"own.py": TEXT_ALONE, **FILES})
    own.check()
    visited()
    own.write({"own.py": TEXT_ALONE.replace("It waits.", "It rests.")})
    assert {each["message"] for each in own.check().json} == {"It rests."}
    assert visited() == ["a.py", "b.py", "c.py"]


def test_the_cache_of_the_other_rules_is_not_touched(own):
    own.write({"own.py": ASKS, "a.py": own.hazard + SLEEPS})
    found = own.check().found
    assert [code for _, _, code in found] == ["SPMD301", "ACME101"]
    assert own.check().found == own.check("--no-cache").found == found


# -- spmdlint rule


def test_a_new_rule_runs_and_passes(own):
    outcome = own.run("rule", "--new", "no-prints")
    assert outcome.status == 0
    path = own.root / "spmdlint_rules" / "no_prints.py"
    assert f"'spmdlint rule --test {path.relative_to(own.root)}'" in outcome.err
    assert "Add 'rules = [\"spmdlint_rules\"]' to the configuration" in outcome.err
    assert own.run("rule", "--test", str(path)).out == "ACME102 no-prints: 2 examples pass.\n"
    assert own.run("rule", "--new", "no-prints").status == 2
    own.write(
        {"pyproject.toml": '[tool.spmdlint]\nrules = ["spmdlint_rules"]\nexclude = ["own.py", "spmdlint_rules"]\n'}
    )
    own.write({"a.py": "import jax\n\njax.debug.print('x')\n"})
    assert own.check().found == [("a.py", 3, "ACME102")]
    assert own.run("rule", "--new", "another").err.count("\n") == 1
    assert own.run("rule", "--test").out.splitlines()[-1] == "ACME103 another: 2 examples pass."


@pytest.mark.parametrize("there", [{}, {"lint/rules/__init__.py": ""}, {"lint/rules/shared.py": "x = 1\n"}])
def test_the_first_rule_goes_into_the_folder_that_is_configured(project, there):
    project.write({"spmdlint.toml": 'rules = ["own.py", "lint/rules"]\n', "own.py": "", "a.py": "x = 1\n", **there})
    outcome = project.check()
    assert (outcome.status, outcome.err.count("'spmdlint rule --new NAME' writes a rule to start from.")) == (2, 1)
    outcome = project.run("rule", "--new", "no-prints")
    told = "lint/rules/no_prints.py holds the rule; 'spmdlint rule --test lint/rules/no_prints.py' checks its examples."
    assert (outcome.status, outcome.err) == (0, f"spmdlint: {told}\n")
    project.write({"spmdlint.toml": 'rules = ["lint/rules"]\n'})
    assert project.run("rule", "--test").out == "OWN101 no-prints: 2 examples pass.\n"


@pytest.mark.parametrize("name", ["NoPrints", "no_prints", "no-sleep", ""])
def test_names_that_a_new_rule_cannot_have(own, name):
    assert own.run("rule", "--new", name).status == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("row=2", "row=3", "INVALID[0]: The finding is in row 2, not in row 3."),
        ('"waits"', '"rests"', "INVALID[0]: The finding says 'It waits.', without 'rests'."),
        (
            "\\nNone\\n",
            "\\n0\\n",
            "INVALID[0]: The replacement makes\n\n    import time\n    None\n\nand not\n\n    import time\n    0\n",
        ),
        (
            '["import time\\n"]',
            '["import time\\ntime.sleep(3)\\n"]',
            "VALID[0]: The rule finds something in row 2: It",
        ),
        ('["import time\\n"]', '["import (\\n"]', "VALID[0]: It cannot be linted: "),
        ("import time\\ntime.sleep(1)", "import time\\n1", "INVALID[0]: The rule finds nothing."),
        ("INVALID = [Inv", "NOTHING = [Inv", "INVALID is empty, so nothing shows that the rule finds anything"),
        ('VALID = ["import time\\n"]', 'VALID = "import time\\n"', "VALID is one text; write a tuple of examples."),
        ('"It waits."', "[][0]", "IndexError: list index out of range"),
    ],
)
def test_examples_that_fail(own, old, new, said):
    assert old in PLAIN
    own.write({"own.py": PLAIN.replace(old, new)})
    outcome = own.run("rule", "--test", "ACME101")
    assert outcome.status == 1
    assert outcome.out.startswith("ACME101 no-sleep: 1 failure:\n  ")
    assert said in outcome.out


def test_examples_that_pass(own):
    assert own.run("rule", "--test").out == "ACME101 no-sleep: 2 examples pass.\n"
    assert own.run("rule", "--test", "own.py").status == own.run("rule", "--test", "no-sleep").status == 0
    assert "Did you mean 'no-sleep'?" in own.run("rule", "--test", "no-slep").err
    assert own.run("rule", "--test", "SPMD301").status == 2


# -- what it costs those who have none


def test_a_run_without_such_rules_imports_nothing_of_them(project):
    project.write({"a.py": project.hazard})
    code = (
        "import sys; from spmdlint.cli import main; main(['check', '--no-cache', '-o', 'out.txt']);"
        "print([name for name in sys.modules if name.startswith(('libcst', 'spmdlint.visit', 'spmdlint.facts'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project.root, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert "SPMD301" in (project.root / "out.txt").read_text()


def test_the_stable_modules_name_no_analysis():
    code = (
        "import sys, spmdlint.facts, spmdlint.visitor_rule;"
        "print([name for name in sys.modules if name.startswith(('spmdlint.analysis', 'spmdlint.program'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_wrong_with_all_examples_is_said_once(own):
    raising = PLAIN.replace('        if "sleep" in', '        raise ValueError("too long")\n        if "sleep" in')
    raising = raising.replace('VALID = ["import time\\n"]', 'VALID = ["print(1)\\n", "print(2)\\n"]')
    own.write({"own.py": raising})
    outcome = own.run("rule", "--test")
    assert outcome.status == 1
    assert outcome.out.count("ValueError: too long") == 1
    assert "  VALID[0], VALID[1], INVALID[0]: The rule ACME101 (no-sleep) failed" in outcome.out


def test_the_steps_of_a_difference_become_notes(own):
    """As the page shows."""
    rule = PLAIN.replace('VALID = ["import time\\n"]', "VALID = []")
    rule = rule.replace(
        'self.report(node, "It waits.", help="Do not.", replacement=cst.Name("None"))',
        "aspects = self.facts(node.args[0].value).difference.aspects\n"
        "                related = [Related(step.place, step.text) for aspect in aspects for step in aspect.steps]\n"
        '                self.report(node, "It waits.", related=related)',
    )
    own.write(
        {
            "own.py": "from spmdlint.diagnostics import Related\n" + rule,
            "a.py": "import time\nimport jax\n\nlong = jax.process_index()\ntime.sleep(long)\n",
        }
    )
    (finding,) = own.check("a.py", "--select", "ACME101").json
    assert 4 in [each["location"]["row"] for each in finding["related"]]
