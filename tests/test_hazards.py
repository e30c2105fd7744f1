"""How many hazards that readers noted a linter tells of, on a small project of our own."""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINTER = """
import json, sys
from pathlib import Path
def at(row, *related):
    name = str(Path(sys.argv[-1], "train.py"))
    place = lambda n: {"filename": name, "location": {"row": n}}
    return {"code": "SPMD301", **place(row), "related": [place(n) for n in related]}
found = [at(10, 40), {**at(70), "code": "SPMD602"}] + ([at(60)] if "--preview" in sys.argv else [])
print(json.dumps(found))
sys.exit(1)
"""


@pytest.fixture(scope="module")
def hazards():
    spec = importlib.util.spec_from_file_location("hazards", ROOT / "benchmarks" / "hazards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_hazard_is_found_near_a_place_of_a_finding(hazards, tmp_path, monkeypatch, capsys):
    lines = {12: True, 43: True, 44: True, 60: False, 70: False}
    noted = [
        {"batch": batch, "project": "small", "file": "train.py", "line": line, "what": "w", "sure": sure}
        for batch, line, sure in [*((1, *each) for each in lines.items()), (2, 10, True)]
    ]
    (tmp_path / "hazards.jsonl").write_text("".join(json.dumps(each) + "\n" for each in noted))
    (tmp_path / "linter.py").write_text(LINTER)
    (tmp_path / "small").mkdir()
    monkeypatch.setattr(hazards, "HAZARDS", tmp_path / "hazards.jsonl")
    command = shlex.join([sys.executable, str(tmp_path / "linter.py")])
    assert hazards.main([str(tmp_path), "--command", command, "--list"]) == 0
    printed = capsys.readouterr().out
    # 12 is near 10, and 43 near a related place; 44 is too far, 70 only a removed name.
    assert "| small | 3 | 2 | 2 | 2 | 0 | 1 | 1 | 2 |" in printed
    assert "<!-- missed: small/train.py:44 w -->" in printed


def test_a_linter_that_fails_is_told(hazards, tmp_path):
    with pytest.raises(RuntimeError, match="ended with status 3"):
        hazards.findings([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_what_is_noted_can_be_read(hazards):
    noted = hazards.read(1)
    assert {len(each["commit"]) >= 7 and each["line"] > 0 for each in noted} == {True}
    assert sum(each["sure"] for each in noted) == 66
