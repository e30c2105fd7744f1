"""The formats that servers read: they hold what their readers demand, and the same wherever the linter runs."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from spmdlint.rule import load_rules

SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-schema-2.1.0.json").read_text())
MISSPELLED = """\
import jax


def f(x):
    return jax.lax.psum(x, "dat")


run = jax.pmap(f, axis_name="data")
"""


def sarif(project: Any, *argv: str) -> Any:
    """The only run of the output, which must be valid."""
    log = json.loads(project.run("check", "--output-format", "sarif", *argv).out)
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    return run


def test_sarif_of_a_chain_over_two_files(project):
    project.write(
        {
            "with space/train.py": "from hosts import is_first\nfrom jax.experimental import multihost_utils\n\n"
            "if is_first():\n    multihost_utils.sync_global_devices('x')\n",
            "with space/hosts.py": "import jax\n\n\ndef is_first():\n    return jax.process_index() == 0\n",
        }
    )
    run = sarif(project)
    (result,) = run["results"]
    assert result["ruleId"] == "SPMD301"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "SPMD301"
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "with%20space/train.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 5, "startColumn": 5, "endLine": 5, "endColumn": 45},
    }
    related = [each["physicalLocation"]["artifactLocation"]["uri"] for each in result["relatedLocations"]]
    assert "with%20space/hosts.py" in related
    (flow,) = result["codeFlows"][0]["threadFlows"]
    steps = [step["location"]["physicalLocation"]["region"]["startLine"] for step in flow["locations"]]
    assert (steps[-1], len(steps)) == (5, len(related) + 1)
    assert str(project.root) not in json.dumps(run)


def test_sarif_declares_every_rule_and_has_the_page_of_those_with_a_finding(project):
    project.write({"a.py": project.hazard})
    run = sarif(project)
    declared = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert set(declared) == {rule.code for rule in load_rules()}
    assert {rule["id"] for rule in declared.values() if "help" in rule} == {"SPMD301"}
    assert "## Use instead" in declared["SPMD301"]["help"]["markdown"]
    assert all(rule["name"] and rule["shortDescription"]["text"] for rule in declared.values())
    (project.root / "a.py").write_text("x = 1\n")
    without = sarif(project)
    assert without["results"] == []
    assert {rule["id"] for rule in without["tool"]["driver"]["rules"]} == set(declared)
    assert len(json.dumps(without)) < 20_000


def test_sarif_holds_the_fix(project):
    project.write({"a.py": MISSPELLED})
    (result,) = sarif(project)["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    assert replacement["insertedContent"]["text"] == "data"
    assert replacement["deletedRegion"]["startLine"] == 5
    assert "unsafe" in result["fixes"][0]["description"]["text"]


def test_sarif_of_a_file_that_does_not_parse(project):
    project.write({"a.py": "def f(:\n"})
    assert [result["ruleId"] for result in sarif(project)["results"]] == ["SPMD901"]


def gitlab(project: Any) -> Any:
    return json.loads(project.run("check", "--output-format", "gitlab").out)


def prints(project: Any) -> list[list[str]]:
    """The fingerprints of both formats that have them."""
    ours = [result["partialFingerprints"]["primaryLocationLineHash"] for result in sarif(project)["results"]]
    return [ours, [issue["fingerprint"] for issue in gitlab(project)]]


def test_fingerprints_stay_when_lines_move_and_differ_where_findings_do(project):
    call = "    multihost_utils.sync_global_devices('saved')\n"
    twice = project.hazard.replace(
        "def main", f"def other():\n    if jax.process_index() == 0:\n    {call}\n\ndef main"
    )
    project.write({"a.py": twice})
    before = prints(project)
    assert len(set(before[0])) == 2
    project.write({"a.py": "'''A module.'''\n\nX = 1\n" + twice})
    assert prints(project) == before


@pytest.mark.parametrize("form", ["sarif", "gitlab"])
def test_paths_are_relative_to_the_work_tree_wherever_the_linter_runs(project, form):
    subprocess.run(["git", "init", "-q", project.root], check=True)
    (project.root / "spmdlint.toml").unlink()
    project.write({"sub/spmdlint.toml": "", "sub/a.py": project.hazard})
    out = project.run("check", "--output-format", form, "sub").out
    assert '"sub/a.py"' in out
    assert str(project.root) not in out


def test_gitlab(project):
    project.write({"a.py": project.hazard})
    (issue,) = gitlab(project)
    assert issue["check_name"] == "SPMD301"
    assert issue["severity"] == "major"
    assert issue["location"] == {
        "path": "a.py",
        "positions": {"begin": {"line": 7, "column": 9}, "end": {"line": 7, "column": 53}},
    }


def test_junit(project):
    project.write({"a.py": project.hazard, "b<&>.py": project.hazard.replace("saved", "\x01")})
    tree = ET.fromstring(project.run("check", "--output-format", "junit").out)
    assert (tree.get("tests"), tree.get("failures")) == ("2", "2")
    assert [suite.get("name") for suite in tree] == ["a.py", "b<&>.py"]
    text = tree[0][0][0].text or ""
    assert text.startswith("a.py:7:9: ")
    assert "a.py:6:8: " in text


def test_junit_without_findings_is_a_test_that_passed(project):
    project.write({"a.py": "x = 1\n"})
    tree = ET.fromstring(project.run("check", "--output-format", "junit").out)
    assert (tree.get("tests"), tree.get("failures"), len(tree)) == ("1", "0", 1)


def test_json_lines(project):
    project.write({"a.py": project.hazard, "b.py": project.hazard})
    lines = project.run("check", "--output-format", "json-lines").out.splitlines()
    assert [json.loads(line) for line in lines] == project.check().json


def test_output_file(project):
    project.write({"a.py": project.hazard})
    outcome = project.run("check", "--output-format", "json", "--output-file", "found.json")
    assert (outcome.status, outcome.out) == (1, "")
    assert json.loads((project.root / "found.json").read_text()) == project.check().json


def test_an_output_file_that_cannot_be_written(project):
    project.write({"a.py": project.hazard})
    outcome = project.run("check", "-o", "nowhere/found.txt")
    assert outcome.status == 2
    assert "nowhere/found.txt cannot be written: No such file or directory." in outcome.err
