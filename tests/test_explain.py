"""`spmdlint explain FILE:LINE`."""

from __future__ import annotations

import json

import pytest

PROGRAM = """\
import jax
from jax.experimental import multihost_utils
from fleet import mystery


def leads():
    return jax.process_index() == 0


def save(state):
    multihost_utils.sync_global_devices("saved")


def train(state, batches, debug):
    lead = leads()
    if lead and debug:
        save(state)
        mystery(state)
    whole = leads()  # spmdlint: uniform
    for batch in batches:
        print(batch, whole)


@jax.pmap
def step(x):
    return jax.lax.psum(x, "data")


both = jax.pmap(lambda x: step_in(x), axis_name="data")


def step_in(x):
    return jax.lax.psum(x, "data")


train(None, [], True)
"""


@pytest.fixture
def explain(project):
    project.write({"job/train.py": PROGRAM, "pyproject.toml": "[tool.spmdlint]\n"})

    def run(row, *options):
        return project.run("explain", f"job/train.py:{row}", *options)

    return run


def test_the_findings_that_earlier_runs_kept_are_not_looked_for_again(explain, monkeypatch):
    first = explain(17)
    assert "SPMD301" in first.out
    monkeypatch.setattr("spmdlint.engine.run", None)
    assert explain(17).out == first.out
    assert "SPMD301" not in explain(12).out


def test_a_large_project_that_was_checked_is_not_linked_whole(explain, project):
    far = {f"far/part{number}.py": "import jax\n\njax.process_index()\n" + "#\n" * 6_000 for number in range(2)}
    project.write(far)
    cold = explain(17)
    assert project.run("check").status == 1
    warm, whole = explain(17), explain(17, "--whole-program")
    assert "SPMD301" in warm.out
    assert cold.out == warm.out == whole.out
    assert "1 of 3 files, the nearest to the line" in warm.err
    assert cold.err == whole.err == ""
    project.write({"job/train.py": PROGRAM + "# as before\n"})
    assert explain(17).out == warm.out


def test_a_guarded_call(explain):
    outcome = explain(17)
    assert outcome.status == 0
    for words in (
        "in train: it runs on the host",
        "if lead and debug (job/train.py:16): its content varies (identity)",
        "(job/train.py:7) jax.process_index() differs between processes",
        "leads() returns it",
        "save(state): save (job/train.py:10)",
        "extent: not a parallel call itself",
        "makes sync_global_devices (strong), (job/train.py:11) through (job/train.py:17)",
        "SPMD301 varying-condition",
    ):
        assert words in outcome.out


def test_what_loops_in_loops_do_is_told_once(project):
    project.write(
        {
            "loops.py": """\
import jax


@jax.pmap
def step(x):
    return x


def epochs(data, count):
    for _ in range(count):
        for batch in data:
            step(batch)
        step(data)


epochs([], 3)
"""
        }
    )
    assert "does: {{step}*; step}*" in project.run("explain", "loops.py:16").out


def test_calls_that_nobody_knows_are_told_in_words(project):
    project.write(
        {
            "saving.py": """\
from jax.experimental import multihost_utils


def save(tools, x):
    tools.prepare(x)
    tools.check(x)
    multihost_utils.process_allgather(x)
    tools.finish(x)


def main(tools, x):
    save(tools, x)
"""
        }
    )
    said = project.run("explain", "saving.py:12").out
    assert "does: calls that are not known; process_allgather; calls that are not known\n" in said


WHY_NONE = """import socket

import jax
from jax.experimental.multihost_utils import sync_global_devices


def save(x):
    if jax.process_index() == 0:
        x = x + 1
    if socket.gethostname():
        sync_global_devices("name")
    if jax.process_index() == 0:
        sync_global_devices("same")
    else:
        sync_global_devices("same")
    if jax.process_index() > 7:
        raise ValueError("too many")
    if jax.process_index() == 0:
        sync_global_devices("lead")
"""


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (9, "no finding, because neither branch makes a parallel call"),
        (11, "no finding, because the value that it tests is never zero or empty"),
        (13, "no finding, because both branches make the same parallel calls (their arguments are not compared)"),
        (17, "no finding, because one branch ends in an exception"),
        (19, "SPMD301 varying-condition"),
    ],
)
def test_why_there_is_no_finding(project, row, words):
    project.write({"save.py": WHY_NONE})
    out = project.run("explain", f"save.py:{row}").out
    assert words in out
    assert ("no finding" in out) is words.startswith("no finding")


NO_FINDING = """\
import jax
import optax

jax.distributed.initialize()
rate = 0.1 * (1 + jax.process_index())
optimizer = optax.adam(rate)
same = sum([jax.process_index()])  # spmdlint: uniform
total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
print(total(rate))
for n in range(jax.process_index()):
    print(n)
if jax.process_index() == 0:
    print(same)
print(1)
hosts = frozenset(["a"]) if rate else known(rate)
print(jax.process_index())
"""


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (1, "there is no code on it that a rule looks at."),
        (
            6,
            "rate and optimizer differ between processes, but no call on it is known to be parallel. Explain the lines",
        ),
        (7, "what differs on it is declared to be uniform, and no other rule applies."),
        (8, "nothing on it is known to differ between processes, and no other rule applies."),
        (9, "rate differs between processes, and total(rate) may be given values that do, such as the rows of each"),
        (10, "it decides about other lines, and differs between processes; explain those that it decides about."),
        (11, "what decides whether or how often it runs differs between processes, but no call on it is known"),
        (12, "above is why nothing is reported at the conditions."),
        (13, "above is why nothing is reported at the conditions."),
        (16, "jax.process_index() differs between processes, but no call on it is known to be parallel."),
    ],
)
def test_a_line_without_a_finding_says_why(project, row, words):
    project.write({"job.py": NO_FINDING})
    out = project.run("explain", f"job.py:{row}").out
    assert f"findings\n  none on this line: {words}" in out


def test_a_condition_is_explained_on_its_own_line(project):
    project.write({"job.py": NO_FINDING})
    told = project.run("explain", "job.py:12").out.partition("decides whether other lines run\n")[2].splitlines()
    assert told[0].strip() == "if jax.process_index() == 0 (job.py:12): its content varies (identity)"
    assert told[2].strip() == "no finding, because neither branch makes a parallel call"
    (part,) = json.loads(project.run("explain", "job.py:12", "--output-format", "json").out)["parts"]
    (condition,) = part["conditions"]
    assert condition["silence"] == "neither branch makes a parallel call"
    (call,) = part["calls"]
    assert [each["facet"] for each in call["result"]["varies"]] == ["content"]


def test_where_a_value_stops(project):
    project.write({"job.py": NO_FINDING.replace("known(rate)", "len(known[rate])")})
    assert "takes" not in project.run("explain", "job.py:11").out, "nothing uses what print returns"
    step = "import jax\n\n\ndef half(x):\n    return 2\n\n\nrate = jax.process_index()\nkept = half(rate)\n"
    project.write({"half.py": step})
    told = project.run("explain", "half.py:9").out
    assert "half(rate): half (half.py:4)" in told
    assert "    takes rate, different between processes; what it returns counts as uniform all the same\n" in told


def test_functions_of_one_name_in_files_of_one_name_are_told_apart(project):
    helper = "def save(x):\n    return x\n"
    train = "import jax\nfrom pack.b.io import save\n\nsave(jax.process_index())\n"
    project.write({"pack/a/io.py": helper, "pack/b/io.py": helper, "train.py": train})
    assert "save(jax.process_index()): save (pack/b/io.py:1)" in project.run("explain", "train.py:4").out


def test_where_its_knowledge_ends(explain):
    out = explain(18).out
    assert "mystery(state): fleet.mystery; no parallel call is known of it, so it counts as making none" in out
    assert "state: no source of variance is known; it counts as uniform" in out


def test_what_is_declared(explain):
    assert "whole: uniform, as '# spmdlint: uniform' says" in explain(19).out


def test_a_suppressed_finding_is_marked(project, explain):
    assert "(suppressed by a comment)" not in explain(17).out
    project.write({"job/train.py": PROGRAM.replace("        save(state)", "        save(state)  # noqa: SPMD301")})
    assert "SPMD301 varying-condition (suppressed by a comment) (job/train.py:17): " in explain(17).out
    assert [each["suppressed"] for each in json.loads(explain(17, "--output-format", "json").out)["findings"]] == [True]
    assert project.check().found == [("train.py", 26, "SPMD101")]


def test_the_axes_around_a_line(explain):
    assert "axes bound around it: 'data'" in explain(33).out
    assert "it runs while JAX traces it" in explain(33).out


def test_json(explain):
    known = json.loads(explain(17, "--output-format", "json").out)
    (part,) = known["parts"]
    (guard,) = part["guards"]
    assert (part["function"], guard["answer"], guard["varies"][0]["kind"]) == ("train", True, "identity")
    (call,) = part["calls"]
    assert [(made["name"], made["path"][-1]["row"]) for made in call["makes"]] == [("sync_global_devices", 11)]
    assert [finding["code"] for finding in known["findings"]] == ["SPMD301"]


def test_a_line_without_code(explain):
    assert "begins on this line" in explain(4).out


def test_a_file_that_leads_to_nothing(project):
    project.write({"a.py": "print(1)\n"})
    assert "was not analysed" in project.run("explain", "a.py:1").out


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("a.py", "does not name a line"),
        ("b.py:1", "There is no file b.py"),
        ("broken.py:1", "does not parse"),
        ("a.py:2", "has no line 2; its lines are 1 to 1."),
        ("empty.py:1", "has no line 1; it is empty."),
        ("notes.txt:1", "neither a .py file nor a notebook"),
        ("n.ipynb:cell 1", "name the line in it too: 'n.ipynb:cell 1:LINE'"),
    ],
)
def test_what_cannot_be_explained(project, argument, words):
    project.write({"a.py": "import jax\n", "broken.py": "import jax\ndef\n", "empty.py": "", "notes.txt": "x\n"})
    outcome = project.run("explain", argument)
    assert outcome.status == 2
    assert words in outcome.err


SHARED = """import itertools

import jax


def batches(rows, size):
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def share(data):
    return itertools.islice(data, jax.process_index(), None, jax.process_count())


def train(step, rows, size):
    step = jax.pmap(step, axis_name="i")
    for batch in share(batches(rows, size)):
        step(batch)
"""


def test_what_is_shared_out(project):
    """A share that leaves a rest points to what is shared out, where that is made elsewhere."""
    project.write({"data.py": SHARED})
    (finding,) = json.loads(project.check().out)
    steps = {each["message"]: each["location"]["row"] for each in finding["related"]}
    assert steps["The data that is shared out is made here."] == 17


SAVES = """import time

import orbax.checkpoint as ocp


def main(state):
    manager = ocp.CheckpointManager(f"/tmp/run_{time.time()}")
    manager.save(0, args=ocp.args.StandardSave(state))
"""


@pytest.mark.parametrize(("configured", "shown"), [("", "(with --preview only)"), ("preview = true", "SPMD308")])
def test_what_only_a_preview_finds(project, configured, shown):
    project.write({"saves.py": SAVES, "spmdlint.toml": configured})
    told = project.run("explain", "saves.py:7").out
    assert shown in told
    assert ("--preview" in told) == (not configured)
    found = json.loads(project.run("explain", "saves.py:7", "--output-format", "json").out)["findings"]
    assert {each["preview"] for each in found} == {not configured}
    asked = project.run("explain", "--preview", "saves.py:7").out
    assert "SPMD308" in asked
    assert "--preview" not in asked
    assert "(with --preview only)" in project.run("explain", "--no-preview", "saves.py:7").out


def test_why_only_a_preview_finds_it(project):
    """The key is a fault only if several processes make it, and nothing says that they do."""
    project.write({"train.py": "import time\n\nimport jax\n\nkey = jax.random.key(time.time_ns())\nprint(key)\n"})
    asked = ("explain", "train.py:5")
    told = project.run(*asked).out
    assert "SPMD501 varying-seed (with --preview only)" in told
    assert 'The setting multi-process = "always" says so' in told
    (found,) = json.loads(project.run(*asked, "--output-format", "json").out)["findings"]
    assert found["preview_because"] in told
    project.write({"spmdlint.toml": 'multi-process = "always"'})
    assert "preview" not in project.run(*asked).out
    assert "SPMD501" in project.run("check").out


def test_a_preview_rule_is_called_one(project):
    program = 'import jax\n\nif __name__ == "__main__":\n    print(jax.process_index())\n'
    project.write({"train.py": program})
    assert "SPMD607 is a preview rule." in project.run("explain", "train.py:4").out


def test_a_part_of_a_rule_is_said_to_be_in_preview(project):
    step = 'step = jax.pmap(jax.vmap(lambda x: jax.lax.pmean(x, "batch"), axis_name="batch"), axis_name="batch")'
    project.write({"step.py": f"import jax\n\n{step}\n"})
    assert "This part of SPMD101 is in preview" in project.run("explain", "step.py:3").out


def test_two_files_of_one_name_are_told_apart(project):
    lead = "import jax\n\n\ndef is_lead():\n    return jax.process_index() == 0\n"
    train = (
        "from jax.experimental.multihost_utils import sync_global_devices\nfrom pack.a.hosts import is_lead\n\n"
        "if is_lead():\n    sync_global_devices('x')\n"
    )
    project.write({"pack/a/hosts.py": lead, "pack/b/hosts.py": train})
    told = project.run("explain", "pack/b/hosts.py:5").out
    assert "(pack/a/hosts.py:5) jax.process_index() differs" in told
    assert "SPMD301 varying-condition (pack/b/hosts.py:5)" in told


ORDERED = """\
import os
from jax.experimental import multihost_utils

names = {"loss", "accuracy"}
for name in names:
    multihost_utils.sync_global_devices(name)

for file in os.listdir("."):
    multihost_utils.sync_global_devices(file)
"""


@pytest.mark.parametrize(
    ("row", "words"),
    [(5, "name: its order varies"), (9, 'for each of os.listdir(".") (ordered.py:8): its order varies')],
)
def test_order_is_a_facet(project, row, words):
    project.write({"ordered.py": ORDERED})
    text = project.run("explain", f"ordered.py:{row}").out
    assert words in text
    assert "(ordered.py:5):" in text or row == 9  # where the finding is
    assert "counts as uniform" not in text


BY_KEY = """\
import jax
from jax.experimental import multihost_utils

jax.distributed.initialize()
LOSSES = {"a": jax.pmap(lambda x: x, axis_name="i"), "b": jax.pmap(lambda x: 2 * x, axis_name="i")}


def known(names, x):
    for name in set(names):
        LOSSES[name](x)


def unknown(losses, x):
    for name in set(losses):
        losses[name](x)


def once(names, x):
    for name in set(names):
        print(name)
    multihost_utils.process_allgather(x)
"""


def test_what_is_called_by_a_key_in_set_order(project):
    project.write({"a.py": BY_KEY})
    assert project.check().found == [("a.py", 9, "SPMD201")]
    said = project.run("explain", "a.py:10").out
    assert "extent: strong" in said
    assert "SPMD201 set-order (a.py:9)" in said


def test_a_loop_of_which_only_the_order_differs_is_not_said_to_decide_how_often_anything_runs(project):
    project.write({"a.py": BY_KEY})
    called = project.run("explain", "a.py:15").out
    why = "the order of the loop around it differs between processes, but no call on it is known to be parallel."
    assert f"none on this line: {why}" in called
    assert "its effect is not known" in called
    for row in (14, 19):
        loop = project.run("explain", f"a.py:{row}").out
        assert "none on this line: the order in which it runs other lines differs between processes, and no " in loop
    assert "how often" not in called


def test_what_check_reports_is_listed_beside_what_a_preview_would_report_in_its_place(project):
    project.write({"a.py": project.two_conditions.format(first="", second="")})
    assert project.check().found == [("a.py", 22, "SPMD303")]
    found = json.loads(project.run("explain", "a.py:22", "--output-format", "json").out)["findings"]
    assert [(each["code"], each["preview"]) for each in found] == [("SPMD303", False), ("SPMD306", True)]
    previewed = json.loads(project.run("explain", "--preview", "a.py:22", "--output-format", "json").out)["findings"]
    assert [(each["code"], each["preview"]) for each in previewed] == [("SPMD306", False)]


PASSED = """\
import jax
from jax.experimental import multihost_utils


def only_first(fn):
    def inner(*args):
        if jax.process_index() == 0:
            return fn(*args)

    return inner


@only_first
def gather(x):
    return multihost_utils.process_allgather(x)


class Trainer:
    step: object

    def run(self, x):
        return self.step(x)


def fit(step_fn, x):
    return step_fn(x)


gather(1)
twice = lambda f: f(f)
only_first(print)(1)
"""


@pytest.mark.parametrize(
    ("row", "callees", "passed"),
    [
        (8, ["the parameter fn of only_first (a.py:5)"], ["builtins.print", "gather (a.py:14)"]),
        (22, ["the field step of Trainer (a.py:18)"], []),
        (26, ["the parameter step_fn of fit (a.py:25)"], []),
        (30, ["the parameter f of a lambda (a.py:30)"], []),
    ],
    ids=["a closed-over parameter", "a field", "a parameter without a caller", "of a lambda"],
)
def test_a_parameter_that_is_called_is_not_taken_for_its_function(project, row, callees, passed):
    project.write({"a.py": PASSED, "spmdlint.toml": ""})
    calls = [
        call
        for part in project.run("explain", f"a.py:{row}", "--output-format", "json").json["parts"]
        for call in part["calls"]
    ]
    assert [(call["callees"], call["passed"]) for call in calls] == [(callees, passed)]
    text = project.run("explain", f"a.py:{row}").out
    assert f"): {callees[0]}\n" in text
    assert ("    known callers pass " + ", ".join(passed) + "\n" in text) == bool(passed)
    assert "    extent: that of whichever function it is\n" in text


@pytest.mark.parametrize(("row", "begins"), [(6, 6), (7, 7), (8, 6), (9, 6), (10, 10)])
def test_a_line_in_a_statement_of_several_lines(project, row, begins):
    project.write(
        {
            "gathers.py": (
                "from jax.experimental import multihost_utils\n\n\n"
                "def whole(x, y):\n"
                "    y.sort()\n"
                "    x = multihost_utils.process_allgather(\n"
                "        x,\n"
                "        tiled=True,\n"
                "    )\n"
                "    return x\n"
            )
        }
    )
    assert project.run("explain", f"gathers.py:{row}").out.startswith(f"gathers.py:{begins}: ")
