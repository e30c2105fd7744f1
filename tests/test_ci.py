"""What runs on CI servers: the action, the recipes, a rehearsal's verdict in their formats."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import check_jsonschema
import jsonschema
import pytest
import yaml
from pre_commit import clientlib

import spmdlint
from spmdlint.cli import rehearsal
from spmdlint.runtime_checks.reporting.report import ProcessReport, diverged
from spmdlint.runtime_checks.reporting.report import Report as Verdict

REPOSITORY = Path(__file__).parent.parent
SARIF = json.loads((REPOSITORY / "tests" / "data" / "sarif-schema-2.1.0.json").read_text())
VENDORED = Path(check_jsonschema.__file__).parent / "builtin_schemas" / "vendor"


def schema(name: str) -> Any:
    return jsonschema.Draft7Validator(json.loads((VENDORED / f"{name}.json").read_text()))


def recipes() -> list[tuple[str, str]]:
    """The blocks of the page, by language."""
    text = (REPOSITORY / "docs" / "ci.md").read_text()
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_action_is_valid():
    action = yaml.safe_load((REPOSITORY / "action.yml").read_text())
    schema("github-actions").validate(action)


def test_the_workflow_for_releases_is_valid():
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "release.yml").read_text())
    workflow["on"] = workflow.pop(True)  # YAML takes the key for a boolean
    schema("github-workflows").validate(workflow)
    (line,) = [
        step["run"] for step in workflow["jobs"]["build"]["steps"] if step.get("name") == "The tag is the version"
    ]
    for tag, status in ((f"v{spmdlint.__version__}", 0), ("v99", 1)):
        done = subprocess.run(
            ["bash", "-c", line.replace("python ", f"{sys.executable} ")], cwd=REPOSITORY, env={"TAG": tag}, check=False
        )
        assert done.returncode == status


def test_the_recipes_are_valid(tmp_path):
    kinds = []
    for language, text in recipes():
        if language != "yaml":
            continue
        data = yaml.safe_load(text)
        if "repos" in data:  # of pre-commit, which reads it itself
            path = tmp_path / "config.yaml"
            path.write_text(text)
            clientlib.load_config(str(path))
            continue
        kind = "github-workflows" if "jobs" in data else "gitlab-ci"
        if kind == "github-workflows" and True in data:
            data["on"] = data.pop(True)  # YAML takes the key for a boolean
        schema(kind).validate(data)
        kinds.append(kind)
    assert set(kinds) == {"github-workflows", "gitlab-ci"}


@pytest.mark.network
def test_the_steps_of_the_action(project, tmp_path):
    """The real script of its step, in an environment as a runner gives it."""
    project.write({"src/a b.py": project.hazard})
    step = yaml.safe_load((REPOSITORY / "action.yml").read_text())["runs"]["steps"][-1]
    (tmp_path / "runner").mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHON": sys.executable,
        "VERSION": "",
        "ARGS": "--preview",
        "PATHS": "src",
        "SARIF": "found.sarif",
        "RUNNER_TEMP": str(tmp_path / "runner"),
        "GITHUB_ACTION_PATH": str(REPOSITORY),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_WORKSPACE": str(project.root),
    }
    done = subprocess.run(
        ["bash", "-c", step["run"]], cwd=project.root, env=environment, capture_output=True, text=True, timeout=1000
    )
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "output").read_text() == "status=1\n"
    assert "::error title=spmdlint (SPMD301 varying-condition),file=src/a b.py,line=7" in done.stdout
    run = json.loads((project.root / "found.sarif").read_text())["runs"][0]
    assert [result["ruleId"] for result in run["results"]] == ["SPMD301"]


# -- rehearsals


def differing(folder: Path) -> Verdict:
    """Two processes that make different calls."""
    script = folder / "train.py"
    script.write_text("import jax\n\nif jax.process_index():\n    total(x)\nelse:\n    mean(x)\n")
    processes = {
        0: ProcessReport("calling", 2, "mean", str(script), 6),
        1: ProcessReport("calling", 2, "total", str(script), 4),
    }
    return diverged("sequence", "call 2 of processes 0-1 differs: process 0 calls mean", 2, processes)


def test_a_divergence_as_sarif(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rehearsal.write_sarif(differing(tmp_path), Path("train.py"), Path("out.sarif"))
    log = json.loads(Path("out.sarif").read_text())
    jsonschema.Draft4Validator(SARIF).validate(log)
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] == "diverged-sequence"
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "train.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 6, "startColumn": 5, "endLine": 6, "endColumn": 12},
    }
    texts = [each["message"]["text"] for each in result["relatedLocations"]]
    assert texts == ["Process 0 is here (calling, call 2): mean.", "Process 1 is here (calling, call 2): total."]


def test_a_divergence_as_an_annotation(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (line,) = rehearsal.workflow_commands(differing(tmp_path), tmp_path / "train.py")
    assert line.startswith("::error title=spmdlint (diverged-sequence rehearsal),file=train.py,line=6,endLine=6,col=5")
    assert "Process 1 is here" in line


def test_a_verdict_without_a_line_is_told_at_the_script(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (tmp_path / "train.py").write_text("import jax\n")
    late = Verdict("late", "out of time: processes 0-1 still ran")
    (line,) = rehearsal.workflow_commands(late, tmp_path / "train.py")
    assert "file=train.py,line=1," in line
    assert "Out of time" in line


@pytest.mark.parametrize("verdict", ["clean", "unchecked"])
def test_a_rehearsal_that_went_well_has_no_result(tmp_path, monkeypatch, verdict):
    monkeypatch.chdir(tmp_path)
    report = Verdict(verdict, "processes 0-1 made the same parallel calls and ended.")
    assert list(rehearsal.workflow_commands(report, Path("train.py"))) == []
    rehearsal.write_sarif(report, Path("train.py"), Path("out.sarif"))
    assert json.loads(Path("out.sarif").read_text())["runs"][0]["results"] == []


def test_a_rehearsal_as_a_step(tmp_path):
    """The real command on real processes."""
    pytest.importorskip("jax")
    script = tmp_path / "swapped_calls.py"
    script.write_text((REPOSITORY / "fixtures" / "divergent" / "swapped_calls.py").read_text())
    words = [
        "run",
        "-n",
        "2",
        "--timeout",
        "100",
        "--sarif",
        "out.sarif",
        "--output-format",
        "github",
        "swapped_calls.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "spmdlint", *words],
        cwd=tmp_path,
        env={**os.environ, "GITHUB_WORKSPACE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 3, done.stderr
    assert re.search(
        r"^::error title=spmdlint \(diverged-sequence rehearsal\),file=swapped_calls.py,", done.stdout, re.M
    )
    (result,) = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "diverged-sequence"
