"""A project that has findings already: baselines, suppressions written for it, severities, shared settings."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

BASELINE = ("--baseline", "known.json")
HEAD = "import jax\nfrom jax.experimental import multihost_utils\n\n\n"


def guarded(name: str, barrier: str) -> str:
    """A function with one finding."""
    return (
        f"def {name}():\n    if jax.process_index() == 0:\n"
        f'        multihost_utils.sync_global_devices("{barrier}")\n        print("{barrier}")\n\n\n'
    )


def write_baseline(project: Any) -> None:
    outcome = project.run("check", *BASELINE, "--write-baseline")
    assert outcome.status == 0, outcome.err
    assert "holds" in outcome.err
    assert re.fullmatch(r"Recorded (1 finding|\d+ findings) in the baseline\.\n", outcome.out)


def entries(project: Any) -> list[dict[str, str]]:
    data = json.loads((project.root / "known.json").read_text())
    return list(data["findings"])


# -- baselines


def test_what_the_baseline_holds_is_not_shown_and_what_is_new_is(project):
    project.write({"a.py": HEAD + guarded("save", "saved")})
    write_baseline(project)
    outcome = project.run("check", *BASELINE)
    assert (outcome.status, outcome.out, outcome.err) == (0, "All checks passed! (1 more in the baseline.)\n", "")
    project.write({"a.py": HEAD + guarded("save", "saved") + guarded("load", "loaded")})
    assert project.check(*BASELINE).found == [("a.py", 13, "SPMD301")]
    assert len(project.check().found) == 2


DECORATOR = """import functools
import jax

def rank_zero_only(function):
    @functools.wraps(function)
    def inner(*args):
        if jax.process_index() == 0:
            return function(*args)
    return inner
"""
USER = """from jax.experimental import multihost_utils
from decorator import rank_zero_only

@rank_zero_only
def {name}(x):
    multihost_utils.{call}(x)

{name}(1)
"""


def test_another_function_under_a_known_decorator_is_new(project):
    one = USER.format(name="first", call="process_allgather")
    project.write({"decorator.py": DECORATOR, "one.py": one})
    write_baseline(project)
    assert [entry["through"] for entry in entries(project)] == ["first"]
    # The new one comes first, and makes the same call.
    project.write({"a.py": USER.format(name="fresh", call="process_allgather")})
    for options in ((), ("--touching", "a.py")):
        (found,) = project.check(*BASELINE, *options).json
        assert (found["filename"].rpartition("/")[2], found["location"]["row"]) == ("decorator.py", 8)
        assert "reached through fresh()" in found["message"]
    whole = project.run("check").out
    assert whole.count("also, for the same cause") == 1
    assert whole.endswith("Found 2 problems with one cause.\n")


WRAPPER = """import jax
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",))

def smap(in_specs, out_specs=P("data")):
    def deco(f):
        return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    return deco

def alike(f):
    return jax.shard_map(f, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)
"""
UNDER_IT = {
    "the number of arguments": (
        "SPMD104",
        '@smap((P("data"),))\ndef known(x, scale): return x\n',
        '@smap((P("data"),))\ndef new(x, y): return x\n',
    ),
    "a number": (
        "SPMD104",
        '@smap(P("data"))\ndef known(x): return x.sum()\n',
        '@smap(P("data"))\ndef new(x): return x.max()\n',
    ),
    "the same on all": ("SPMD504", "@alike\ndef known(x): return x * 2\n", "@alike\ndef new(x): return x * 3\n"),
}


@pytest.mark.parametrize("case", UNDER_IT)
def test_another_function_under_a_shared_wrapper_is_new(project, case):
    code, known, new = UNDER_IT[case]
    project.write({"a.py": WRAPPER + known})
    write_baseline(project)
    assert [(entry["code"], entry["through"]) for entry in entries(project)] == [(code, "known")]
    for rest in (known + new, new + known):
        project.write({"a.py": WRAPPER + rest})
        (found,) = project.check(*BASELINE).json
        assert found["code"] == code
        assert "new" in found["message"]
        row = (WRAPPER + rest).splitlines().index("def " + new.split("def ")[1].strip()) + 1
        assert row in [each["location"]["row"] for each in found["related"]]


MOVED = {
    "lines above": HEAD + "x = 1\n" * 20 + guarded("save", "saved"),
    "another layout": HEAD
    + guarded("save", "saved").replace("devices(", "devices( ").replace('")\n', '")  # all\n', 1),
    "the function renamed": HEAD + guarded("store", "saved"),
    "the line changed": HEAD + guarded("save", "saved").replace('devices("saved")', 'devices("stored")'),
    "another order": HEAD
    + guarded("first", "first").replace("if jax.process_index() == 0:", "if x:")
    + guarded("save", "saved"),
}


@pytest.mark.parametrize("way", MOVED)
def test_the_baseline_survives(project, way):
    project.write({"a.py": HEAD + guarded("save", "saved")})
    write_baseline(project)
    project.write({"a.py": MOVED[way]})
    assert len(project.check().found) == 1
    outcome = project.run("check", *BASELINE)
    assert (outcome.status, outcome.err) == (0, "")


def test_the_baseline_survives_a_renamed_file(project):
    project.write({"a.py": HEAD + guarded("save", "saved"), "b.py": "x = 1\n"})
    write_baseline(project)
    (project.root / "a.py").rename(project.root / "moved.py")
    outcome = project.run("check", *BASELINE)
    assert (outcome.status, outcome.err) == (0, "")


def test_the_baseline_survives_a_renamed_function_and_then_a_moved_file(project):
    project.write({"a.py": HEAD + guarded("save", "saved") + guarded("load", "loaded")})
    write_baseline(project)
    (project.root / "a.py").unlink()
    project.write({"moved.py": HEAD + guarded("store", "saved") + guarded("fetch", "loaded")})
    outcome = project.run("check", *BASELINE)
    assert (outcome.status, outcome.err) == (0, "")
    assert project.run("check", *BASELINE, "--prune-baseline").status == 0
    assert {(entry["path"], entry["scope"]) for entry in entries(project)} == {
        ("moved.py", "store"),
        ("moved.py", "fetch"),
    }


ALIKE = guarded("store", "saved")
UNSURE = {
    "two findings": ({"a.py": ALIKE}, {"b.py": ALIKE + guarded("put", "saved")}, 2),
    "two entries": ({"a.py": ALIKE, "b.py": guarded("put", "saved")}, {"c.py": guarded("keep", "saved")}, 1),
    "a copy of what is known": (
        {"a.py": ALIKE, "b.py": guarded("put", "saved")},
        {"a.py": ALIKE, "c.py": guarded("keep", "saved")},
        1,
    ),
    "other neighbours": (
        {"a.py": ALIKE},
        {"b.py": guarded("put", "saved").replace('print("saved")', "x = 1").replace(" == 0", " < 1")},
        1,
    ),
}


@pytest.mark.parametrize("case", UNSURE)
def test_a_finding_that_may_be_another_one_is_new(project, case):
    before, after, new = UNSURE[case]
    project.write({name: HEAD + text for name, text in before.items()})
    write_baseline(project)
    for name in before:
        (project.root / name).unlink()
    after = {
        name: text.replace("def store", "def other") if name not in before else text for name, text in after.items()
    }
    project.write({name: HEAD + text for name, text in after.items()})
    assert len(project.check(*BASELINE).found) == new


def test_a_copy_is_new(project):
    """One entry stands for one finding, however alike they are."""
    project.write({"a.py": HEAD + guarded("save", "saved")})
    write_baseline(project)
    project.write({"a.py": HEAD + guarded("save", "saved") * 2})
    assert len(project.check(*BASELINE).found) == 1
    project.write({"a.py": HEAD + guarded("save", "saved"), "b.py": HEAD + guarded("save", "saved")})
    assert project.check(*BASELINE).found == [("b.py", 7, "SPMD301")]


def test_what_is_gone_is_counted_and_pruned(project):
    project.write({"a.py": HEAD + guarded("save", "saved") + guarded("load", "loaded")})
    write_baseline(project)
    project.write({"a.py": HEAD + guarded("load", "loaded")})
    outcome = project.run("check", *BASELINE)
    assert outcome.status == 0
    assert "1 finding in the baseline is gone; --prune-baseline" in outcome.err
    outcome = project.run("check", *BASELINE, "--prune-baseline")
    assert (outcome.status, "1 finding removed from" in outcome.err) == (0, True)
    assert [entry["scope"] for entry in entries(project)] == ["load"]
    assert project.run("check", *BASELINE).err == ""


def test_what_was_not_looked_at_is_not_gone_and_stays(project):
    project.write({"a.py": HEAD + guarded("save", "saved"), "b.py": HEAD + guarded("load", "loaded")})
    write_baseline(project)
    project.write({"a.py": "x = 1\n", "b.py": "x = 1\n"})
    assert "1 finding in the baseline is gone" in project.run("check", *BASELINE, "a.py").err
    assert project.run("check", *BASELINE, "--select", "SPMD101").err == ""
    project.run("check", *BASELINE, "--write-baseline", "a.py")
    assert [entry["path"] for entry in entries(project)] == ["b.py"]


def test_a_file_that_cannot_be_read_is_never_known(project):
    project.write({"a.py": "def f(:\n"})
    outcome = project.run("check", *BASELINE, "--write-baseline")
    assert outcome.status == 1
    assert entries(project) == []


def test_the_baseline_is_a_setting_too(project):
    project.write({"spmdlint.toml": 'baseline = "lint/known.json"\n', "a.py": HEAD + guarded("save", "saved")})
    (project.root / "lint").mkdir()
    assert project.run("check", "--write-baseline").status == 0
    assert project.run("check", "a.py").status == 0


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("--baseline", "nowhere.json"), "There is no baseline"),
        (("--write-baseline",), "--write-baseline needs to know the file: add '--baseline spmdlint-baseline.json'"),
        (("--prune-baseline",), "--prune-baseline needs to know the file"),
        (("--baseline", "text.json"), "it is not JSON"),
        (("--baseline", "other.json"), "is not a baseline of version 1"),
        (("--baseline", "bad.json"), "has an entry that is not a finding"),
    ],
)
def test_a_baseline_that_is_none(project, argv, told):
    bad = '{"version": 1, "findings": [{"row": 3}]}'
    project.write({"a.py": "x = 1\n", "text.json": "nonsense", "other.json": "[]", "bad.json": bad})
    outcome = project.run("check", *argv)
    assert outcome.status == 2
    assert told in outcome.err


ONE_ROW = """
import jax
import jax.numpy as jnp


def step(params, batch):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((batch @ p) ** 2))(params)
    return params - 0.1 * jax.lax.pmean(grads, "batch"), loss


p_step = jax.pmap(step, axis_name="batch")


def train(params, batch):
    print(p_step(params, batch)[1][0])
"""


def test_an_entry_with_the_code_before_a_rule_was_split_still_holds(project):
    project.write({"a.py": ONE_ROW})
    write_baseline(project)
    (entry,) = entries(project)
    assert entry["code"] == "SPMD512"
    before = {"version": 1, "findings": [entry | {"code": "SPMD503"}]}
    project.write({"known.json": json.dumps(before)})
    assert project.check(*BASELINE).found == []
    assert project.check(*BASELINE, "--select", "SPMD512").found == []
    # A run of one of the rules alone cannot tell that an entry of another is gone.
    project.run("check", *BASELINE, "--select", "SPMD503", "--prune-baseline")
    assert entries(project) == before["findings"]
    project.run("check", *BASELINE, "--prune-baseline")
    assert entries(project) == [entry]
    project.write({"known.json": json.dumps(before), "a.py": ONE_ROW.replace("[1][0]", "[1].mean()")})
    project.run("check", *BASELINE, "--prune-baseline")
    assert entries(project) == []


def test_an_entry_with_the_code_of_a_rule_that_was_merged_still_holds(project):
    loop = "for part in range(jax.process_index(), 8):\n    multihost_utils.sync_global_devices('saved')\n"
    project.write({"a.py": HEAD + loop})
    write_baseline(project)
    (entry,) = entries(project)
    assert entry["code"] == "SPMD303"
    project.write({"known.json": json.dumps({"version": 1, "findings": [entry | {"code": "SPMD302"}]})})
    assert project.check(*BASELINE).found == []
    assert project.check(*BASELINE, "--select", "SPMD302").found == []
    project.run("check", *BASELINE, "--prune-baseline")
    assert entries(project) == [entry]


# -- suppressions that are written


STUBBORN = """\
import jax
from jax.experimental import multihost_utils


def main(first):
    if jax.process_index() == 0:
        multihost_utils.sync_global_devices("plain")
        multihost_utils.sync_global_devices('''one
two''')
        print(
            multihost_utils.process_allgather(1), \\
            2,
        )
        multihost_utils.sync_global_devices("known")  # spmdlint: ignore[SPMD101] a mistake
        multihost_utils.sync_global_devices("commented")  # why
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_finding_is_silenced_with_a_reason(project, end):
    text = STUBBORN.replace("\n", end)
    project.write({"a.py": text.encode()})
    before = project.check("--ignore", "SPMD900").found
    assert len(before) > 0
    outcome = project.run("check", "--add-ignore", "known since 2024", "--ignore", "SPMD900")
    assert (outcome.status, outcome.out) == (0, "All checks passed!\n")
    assert f"{len(before)} finding" in outcome.err
    after = (project.root / "a.py").read_bytes().decode()
    assert "# spmdlint: ignore[SPMD301] known since 2024" in after
    assert after.count(end) == after.count("\n")
    compile(after, "a.py", "exec")


def test_a_suppression_joins_the_one_that_is_there(project):
    """In its brackets if the reason is the same: each code has the reason that was given for it."""
    call = 'multihost_utils.sync_global_devices("known")'
    text = f"{HEAD}if jax.process_index() == 0:\n    {call}  # spmdlint: ignore[SPMD101] a slip, see #12\n"
    joined, beside = (
        "[SPMD101, SPMD301] a slip, see #12\n",
        "[SPMD101] a slip, see #12  # spmdlint: ignore[SPMD301] later\n",
    )
    for reason, comment in (("a slip, see #12", joined), ("later", beside)):
        project.write({"a.py": text})
        assert project.run("check", "--ignore", "SPMD900", "--add-ignore", reason).status == 0
        assert f"  # spmdlint: ignore{comment}" in (project.root / "a.py").read_text()
    assert project.check("--ignore", "SPMD900").found == []
    assert project.run("check", "--fix").status == 0
    assert f"{call}  # spmdlint: ignore[SPMD301] later\n" in (project.root / "a.py").read_text()


def test_a_suppression_needs_a_reason(project):
    project.write({"a.py": project.hazard})
    assert project.run("check", "--add-ignore", " ").status == 2
    assert (project.root / "a.py").read_text() == project.hazard


# -- settings


def test_per_file_ignores(project):
    files = ("tests/a.py", "tests/deep/b.py", "src/c.py", "d.py")
    project.write(dict.fromkeys(files, project.hazard))
    project.write({"spmdlint.toml": '[per-file-ignores]\n"tests/" = ["SPMD3"]\n"/d.py" = ["varying-condition"]\n'})
    assert [name for name, _, _ in project.check().found] == ["c.py"]
    assert [name for name, _, _ in project.check("tests/a.py", "src/c.py").found] == ["c.py"]


def test_a_suppression_in_a_file_whose_rules_are_ignored_is_used(project):
    project.write({"spmdlint.toml": '[per-file-ignores]\n"a.py" = ["SPMD301"]\n'})
    project.write({"a.py": project.hazard.replace('("saved")', '("saved")  # spmdlint: ignore[SPMD301] so')})
    assert project.check().found == []


@pytest.mark.parametrize(
    "table",
    ['[per-file-ignores]\n"a.py" = ["SPMD999"]\n', '[severity]\nSPMD999 = "info"\n', '[severity]\nSPMD3 = "bad"\n'],
)
def test_settings_that_name_nothing(project, table):
    project.write({"a.py": "x = 1\n", "spmdlint.toml": table})
    assert project.run("check").status == 2


def test_severities_and_the_exit_status(project):
    project.write({"a.py": project.hazard})
    project.write({"spmdlint.toml": '[severity]\nSPMD301 = "warning"\nSPMD3 = "info"\n'})
    (finding,) = project.check().json
    assert finding["severity"] == "warning"
    assert project.check().status == 1
    assert project.check("--fail-on", "error").status == 0
    assert project.check("--fail-on", "warning").status == 1
    project.write({"spmdlint.toml": 'fail-on = "warning"\n[severity]\nSPMD3 = "info"\n'})
    assert project.check().status == 0
    assert len(project.check().json) == 1


@pytest.mark.parametrize("options", [(), ("--output-format", "concise"), ("--statistics",)])
def test_findings_that_do_not_fail_the_run_are_counted(project, options):
    two = project.hazard + "\n\ndef late():\n    if jax.process_index() == 0:\n        x = jax.tree_map(abs, [])\n"
    project.write({"a.py": two})
    assert {each["code"] for each in project.check().json} == {"SPMD301", "SPMD602"}
    project.write({"spmdlint.toml": '[severity]\nSPMD301 = "info"\nSPMD602 = "warning"\n'})
    assert "the run" not in project.run("check", *options).out
    assert "the run" not in project.run("check", *options, "--fail-on", "error", "--exit-zero").out
    last = project.run("check", *options, "--fail-on", "warning").out.splitlines()[1:]
    assert "1 of them fails the run; the lowest severity that does is warning (fail-on)." in last
    last = project.run("check", *options, "--fail-on", "error").out.splitlines()[1:]
    assert "None of them fails the run; the lowest severity that does is error (fail-on)." in last
    project.write({"spmdlint.toml": 'ignore = ["SPMD602"]\nfail-on = "error"\n[severity]\nSPMD301 = "info"\n'})
    outcome = project.run("check", *options)
    assert outcome.status == 0
    assert outcome.out.endswith(
        "Found 1 problem.\nIt does not fail the run; the lowest severity that does is error (fail-on).\n"
    )


def test_extend(project):
    project.write(
        {
            "shared/base.toml": 'ignore = ["SPMD301"]\nexclude = ["old/"]\n[per-file-ignores]\n"b.py" = ["SPMD3"]\n',
            "spmdlint.toml": 'extend = "shared/base.toml"\n',
            "a.py": project.hazard,
            "old/c.py": "def f(:\n",
            "b.py": project.hazard,
        }
    )
    assert project.check().found == []
    project.write({"spmdlint.toml": 'extend = "shared/base.toml"\nselect = ["SPMD3"]\nexclude = ["new/"]\n'})
    assert project.check().found == [("a.py", 7, "SPMD301")]


def test_extend_a_pyproject_and_a_chain(project):
    project.write(
        {
            "base/pyproject.toml": '[tool.spmdlint]\nextend = "../top.toml"\nseverity = {SPMD3 = "info"}\n',
            "top.toml": 'fail-on = "warning"\n[severity]\nSPMD301 = "warning"\n',
            "spmdlint.toml": 'extend = "base/pyproject.toml"\n[severity]\nSPMD301 = "info"\n',
            "a.py": project.hazard,
        }
    )
    assert project.check().status == 0
    assert project.check().json[0]["severity"] == "info"


def test_files_that_extend_each_other(project):
    project.write({"spmdlint.toml": 'extend = "b.toml"\n', "b.toml": 'extend = "spmdlint.toml"\n', "a.py": "x = 1\n"})
    outcome = project.run("check")
    assert outcome.status == 2
    assert "extends" in outcome.err


def test_a_mistake_in_a_file_that_is_extended_names_that_file(project):
    project.write({"spmdlint.toml": 'extend = "b.toml"\n', "b.toml": "selct = []\n", "a.py": "x = 1\n"})
    outcome = project.run("check")
    assert outcome.status == 2
    assert "b.toml sets 'selct'" in outcome.err
    assert "'select'" in outcome.err


@pytest.mark.parametrize("fixing", ["--fix", "--fix-only", "--diff"])
@pytest.mark.parametrize("adopting", [("--add-ignore", "later"), (*BASELINE, "--write-baseline")])
def test_fixes_and_records_take_two_runs(project, fixing, adopting):
    """A fix must not be lost to a comment, and --diff must not write anything."""
    project.write({"a.py": project.hazard})
    outcome = project.run("check", fixing, *adopting)
    assert outcome.status == 2
    assert f"run {fixing} first" in outcome.err
    assert (project.root / "a.py").read_text() == project.hazard
    assert not (project.root / BASELINE[1]).exists()
