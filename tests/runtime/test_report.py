"""The report as text and as data."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from spmdlint.rule import load_rules
from spmdlint.runtime_checks.agreement.verdict import compare
from spmdlint.runtime_checks.launch.findings import join
from spmdlint.runtime_checks.launch.result import absent_from_start
from spmdlint.runtime_checks.records import read_record
from spmdlint.runtime_checks.reporting.report import (
    ADVICE,
    ADVICE_ON,
    EXPLAINED_BY,
    ProcessReport,
    Report,
    as_text,
    diverged,
)
from spmdlint.runtime_checks.reporting.sentences import calls, differs, missing, name_processes


def test_processes_are_named_in_spans() -> None:
    assert name_processes([3]) == "process 3"
    assert name_processes([0, 1, 2, 5, 7, 6]) == "processes 0-2, 5-7"
    assert name_processes([]) == "no process"


def test_equal_processes_are_folded_and_the_odd_one_stands_out() -> None:
    shape = [{"path": "batch['x']", "shape": [8, 4], "dtype": "float32", "spec": "P('data',) over (data: 64)"}]
    processes = {n: ProcessReport("calling", 7, "step", "/a/train.py", 30, arguments=shape) for n in range(64)}
    processes[31] = ProcessReport("calling", 7, "evaluate", "/a/train.py", 33)
    text = as_text(diverged("sequence", "call 7 differs.", 7, processes))
    assert "Processes 0-30, 32-63: calling, call 7" in text
    assert "Process 31: calling, call 7" in text
    assert "batch['x']: float32[8x4] P('data',) over (data: 64)" in text
    assert [line for line in text.splitlines() if "evaluate" in line] == ["    evaluate  at /a/train.py:33"]
    assert ADVICE["sequence"] in text


def test_calls_from_several_lines_are_all_named() -> None:
    one = {"function": "step", "defined_at": "train.py:3", "filename": "/a/train.py", "line": 30, "module": "a"}
    records = {0: one, 1: {**one, "line": 33, "module": "b"}}
    found = compare(records)
    assert found is not None
    assert (found.kind, differs(7, (0, 1), found.words, records).partition(" differs")[0]) == (
        "program",
        "call 7 of processes 0-1 (step; process 0: train.py:30; process 1: train.py:33)",
    )
    lambdas = {number: {**record, "function": "<lambda>"} for number, record in records.items()}
    found = compare(lambdas)
    assert found is not None
    assert (found.kind, found.words) == (
        "sequence",
        ": process 0 calls <lambda> at train.py:30; process 1 calls <lambda> at train.py:33",
    )
    assert compare({number: {**record, "module": "a"} for number, record in lambdas.items()}) is None


def test_arguments_are_said_to_agree_only_if_they_do() -> None:
    spread = {"path": "w", "shape": [4], "dtype": "float32", "spec": "P() over (data: 2)", "origin": "output 0 of init"}
    on_host = {**spread, "spec": None, "origin": None}
    record = {"function": "step", "defined_at": "train.py:3", "module": "a", "arguments": [spread]}
    elsewhere = {**record, "module": "b", "arguments": [{**spread, "origin": None}]}
    found = compare({0: record, 1: elsewhere})
    assert found is not None
    assert (found.kind, found.words) == ("program", " in its lowered program, though its arguments agree")
    found = compare({0: record, 1: {**elsewhere, "arguments": [on_host]}})
    assert found is not None
    assert found.words != " in its lowered program, though its arguments agree"


def test_who_raised_before_the_start_is_told_to_fix_the_exception() -> None:
    raised = {"state": "raised", "filename": "/a/train.py", "line": 3, "detail": "RuntimeError: no licence"}
    waiting = {1: {"filename": "/a/train.py", "line": 5}}
    assert absent_from_start({0: raised}, waiting).advice == ADVICE_ON["raised"]
    assert absent_from_start({0: {**raised, "state": "finished"}}, waiting).advice == ADVICE["missing"]


def test_of_many_arguments_those_that_differ_come_first() -> None:
    def arguments(odd: str) -> list[dict[str, object]]:
        return [{"path": f"p{n}", "shape": [n], "dtype": odd if n == 30 else "float32"} for n in range(40)]

    processes = {n: ProcessReport("calling", 7, "step", "/a/train.py", 30) for n in range(2)}
    for n, dtype in enumerate(("float32", "int32")):
        processes[n].arguments = arguments(dtype)
    report = diverged("arguments", "words", 7, processes)
    long = "x" * 500
    sides = [{"processes": [n], "text": f"{long}{n}{long}", "source": None} for n in range(2)]
    report.module = {"line": 3, "sides": sides}
    lines = as_text(report).splitlines()
    assert [line for line in lines if line.startswith("  > p")] == ["  > p30: float32[30]", "  > p30: int32[30]"]
    assert lines.count("    and 28 more arguments") == 2
    shown = [line for line in lines if line.startswith("    process ")]
    assert [f"x{n}x" in line and len(line) < 200 for n, line in enumerate(shown)] == [True, True]


def test_the_first_sentence_says_what_and_where() -> None:
    step = {"function": "step", "filename": "/a/train.py", "line": 3, "defined_at": "model.py:1"}
    other = {**step, "defined_at": "model.py:9"}
    assert calls({0: step, 1: {**step, "function": "norm", "line": 4}, 2: step}) == (
        "processes 0, 2 call step at train.py:3; process 1 calls norm at train.py:4"
    )
    assert "step (defined at model.py:1) at train.py:3; process 1 calls step (defined at" in calls({0: step, 1: other})
    same = differs(5, (0, 1), " in the dtype of x: ...", {0: step, 1: step})
    assert same == "call 5 of processes 0-1 (step at train.py:3) differs in the dtype of x: ...."
    apart = differs(5, (0, 1), " in x", {0: step, 1: {**step, "line": 8}})
    assert apart == "call 5 of processes 0-1 (step; process 0: train.py:3; process 1: train.py:8) differs in x."
    raised = {"state": "raised", "detail": "ValueError: no", "filename": "/a/load.py", "line": 8}
    assert missing({1: raised}, 1, (0, 1), "process 0 waits in call 2, step at train.py:3") == (
        "process 1 raised an exception at load.py:8 (ValueError: no) after 1 parallel call of processes 0-1, and "
        "process 0 waits in call 2, step at train.py:3."
    )


def test_data_and_back() -> None:
    report = diverged("missing", "process 1 finished.", 3, {0: ProcessReport("waiting", 3, "f", "a.py", 1)})
    data = json.loads(json.dumps(report.as_data()))
    assert read_record(json.dumps({**data, "of a newer version": 1}), Report, "report") == report
    assert data["schema_version"] == 1
    assert data["processes"]["0"]["line"] == 1


def test_every_kind_has_rules_and_advice() -> None:
    assert EXPLAINED_BY.keys() == ADVICE.keys()


def test_the_rules_that_may_explain_a_kind_can_be_looked_up() -> None:
    report = diverged("missing", "words", 3, {})
    assert "may explain it: SPMD301, SPMD303," in as_text(report)
    known = {rule.code for rule in load_rules()}
    assert {code for codes in EXPLAINED_BY.values() for code in codes} <= known


def finding(code: str, path: Path, row: int, related: int = 0) -> dict[str, object]:
    place = {"filename": str(path), "location": {"row": related, "column": 1}, "message": "led there"}
    location = {"row": row, "column": 1}
    return {"code": code, "filename": str(path), "location": location, "message": "why", "related": [place]}


def join_to(report: Report, script: Path, findings: list[dict[str, object]]) -> list[str]:
    """The places of the findings that the report gets from a linter that finds these."""
    join(report, [str(script)], (sys.executable, "-c", f"print({json.dumps(json.dumps(findings))})"))
    return [one["place"] for one in report.findings]


def test_the_linters_findings_at_the_lines_are_joined(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    findings = [finding("SPMD301", script, 4, related=9), finding("SPMD301", script, 2), finding("SPMD101", script, 9)]
    report = diverged("missing", "words", 3, {0: ProcessReport("waiting", 3, "step", str(script), 9)})
    assert join_to(report, script, findings) == [f"{script}:4"]
    report = diverged("missing", "words", 3, {0: ProcessReport("waiting", 3, "step", str(script), 7)})
    assert join_to(report, script, findings) == []
    assert report.explained_by == []
    assert "may explain it" not in as_text(report)
    report = diverged("missing", "words", 3, {0: ProcessReport("waiting", 3, "s", str(script), 7, [f"{script}:2"])})
    assert join_to(report, script, findings) == [f"{script}:2"]
    assert report.explained_by == ["SPMD301"]


def test_findings_on_the_lines_come_before_those_that_lead_there(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "def helper():\n    barrier(\n        1\n    )\n"
        "def one():\n    for n in many:\n        helper()\ndef two():\n    if mine:\n        helper()\n"
    )
    looped, guarded, other = (
        finding("SPMD303", script, 6, related=7),
        finding("SPMD301", script, 7, related=2),
        finding("SPMD301", script, 10, related=2),
    )
    report = diverged("missing", "words", 3, {0: ProcessReport("waiting", 3, "b", str(script), 3, [f"{script}:7"])})
    assert join_to(report, script, [other, looped, guarded]) == [f"{script}:7", f"{script}:6"]
    assert report.explained_by == ["SPMD301", "SPMD303"]
    report = diverged("missing", "words", 3, {0: ProcessReport("waiting", 3, "b", str(script), 3)})
    assert join_to(report, script, [other]) == [f"{script}:10"]  # who called the helper is not known
    assert report.explained_by == ["SPMD301"]


def test_findings_elsewhere_do_not_count_where_the_callers_are_known(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "def helper():\n    barrier()\ndef other():\n    if mine:\n        helper()\ndef main():\n    helper()\n"
    )
    other = finding("SPMD301", script, 5, related=2)
    waiting = ProcessReport("waiting", 3, "b", str(script), 2, [f"{script}:7"])
    assert join_to(diverged("missing", "words", 3, {0: waiting}), script, [other]) == []
    stack = ProcessReport("waiting", 3, "b", str(script), 2, stack=[f"{script}:7 in main", f"{script}:2 in helper"])
    assert join_to(diverged("missing", "words", 3, {0: stack}), script, [other]) == []
    # Another process, of which only the line is known, may have come through any function.
    unknown = ProcessReport("finished", 2, "b", str(script), 2)
    assert join_to(diverged("missing", "words", 3, {0: waiting, 1: unknown}), script, [other]) == [f"{script}:5"]


@pytest.mark.parametrize("how", ["killed by SIGKILL", "ended with exit status 9"])
def test_a_death_has_no_findings_and_an_exception_those_on_its_stack(how: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    findings = [finding("SPMD301", script, 9), finding("SPMD303", script, 5)]
    waiting = ProcessReport("waiting", 3, "step", str(script), 9)
    killed = diverged("missing", "words", 3, {0: waiting, 1: ProcessReport("died", 2, detail=how)})
    assert join_to(killed, script, findings) == []
    assert "may explain it" not in as_text(killed)
    raised = diverged("missing", "w", 3, {0: waiting, 1: ProcessReport("raised", 2, "main", str(script), 4)})
    assert join_to(raised, script, findings) == []
    raised.processes["1"].callers = [f"{script}:5"]
    assert join_to(raised, script, findings) == [f"{script}:5"]


def test_rules_that_fit_the_lines_are_named_alone(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    findings = [finding("SPMD303", script, 9), finding("SPMD104", script, 9)]
    linter = (sys.executable, "-c", f"print({json.dumps(json.dumps(findings))})")
    report = diverged("missing", "words", 3, {0: ProcessReport("waiting", 3, "step", str(script), 9)})
    join(report, [str(script)], linter)
    assert report.explained_by == ["SPMD303"]
    assert "may explain it: SPMD303 (spmdlint" in as_text(report)


def test_a_linter_that_fails_costs_its_findings_only(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    report = diverged("missing", "words", 3, {0: ProcessReport("waiting", 3, "step", str(script), 9)})
    for linter in ((sys.executable, "-c", "raise SystemExit(2)"), ("/nonexistent/linter",)):
        join(report, [str(script)], linter)
        assert report.findings == []


def test_a_linter_that_does_not_finish_ends_with_its_workers(tmp_path: Path) -> None:
    script, worker = tmp_path / "train.py", tmp_path / "worker"
    script.write_text("")
    code = (
        "import pathlib, subprocess, sys, time; worker = subprocess.Popen([sys.executable, '-c', 'import time; "
        f"time.sleep(600)']); pathlib.Path({str(worker)!r}).write_text(str(worker.pid)); time.sleep(600)"
    )
    report = diverged("missing", "words", 3, {0: ProcessReport("waiting", 3, "step", str(script), 9)})

    def once_it_has_a_worker() -> bool:
        while not (worker.exists() and worker.read_text()):
            time.sleep(0.01)
        assert os.getpgid(int(worker.read_text())) != os.getpgid(0)
        return False

    join(report, [str(script)], (sys.executable, "-c", code), within=0.0, interrupted=once_it_has_a_worker)
    assert (report.findings, report.explained_by) == ([], [])
    assert report.notes[-1].startswith("The linter did not finish within 0 s")
    assert report.notes[-1].endswith(f"spmdlint explain {script}:9")
    assert ends(int(worker.read_text()))


def ends(process: int) -> bool:
    """Whether a process that was killed ends, at the latest in a moment."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in ("Z", "X"):
            return True
        time.sleep(0.05)
    return False
