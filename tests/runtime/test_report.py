"""The report as text and as data."""

from __future__ import annotations

import json

from spmdlint.runtime_checks.report import (
    ADVICE,
    EXPLAINED_BY,
    ProcessReport,
    as_text,
    diverged,
    from_data,
    name_processes,
)


def test_processes_are_named_in_spans() -> None:
    assert name_processes([3]) == "process 3"
    assert name_processes([0, 1, 2, 5, 7, 6]) == "processes 0-2, 5-7"
    assert name_processes([]) == "no process"


def test_equal_processes_are_folded_and_the_odd_one_stands_out() -> None:
    same = [{"index": 6, "function": "step", "filename": "/a/train.py", "line": 30}]
    recent = [*same, {"index": 7, "function": "step", "filename": "/a/train.py", "line": 30}]
    other = [*same, {"index": 7, "function": "evaluate", "filename": "/a/train.py", "line": 33}]
    shape = [{"path": "batch['x']", "shape": [8, 4], "dtype": "float32", "spec": "P('data',) over (data: 64)"}]
    processes = {
        n: ProcessReport("calling", 7, "step", "/a/train.py", 30, arguments=shape, recent=recent) for n in range(64)
    }
    processes[31] = ProcessReport("calling", 7, "evaluate", "/a/train.py", 33, recent=other)
    text = as_text(diverged("sequence", "call 7 differs.", 7, processes))
    assert "Processes 0-30, 32-63: calling, call 7" in text
    assert "Process 31: calling, call 7" in text
    assert "batch['x']: float32[8x4] P('data',) over (data: 64)" in text
    marked = [line for line in text.splitlines() if line.startswith("  >")]
    assert len(marked) == 1
    assert "evaluate train.py:33" in marked[0]
    assert ADVICE["sequence"] in text


def test_data_and_back() -> None:
    report = diverged("missing", "process 1 finished.", 3, {0: ProcessReport("waiting", 3, "f", "a.py", 1)})
    data = json.loads(json.dumps(report.as_data()))
    assert from_data({**data, "of a newer version": 1}) == report
    assert data["schema_version"] == 1
    assert data["processes"]["0"]["line"] == 1


def test_every_kind_has_rules_and_advice() -> None:
    assert EXPLAINED_BY.keys() == ADVICE.keys()
