"""The record of the last calls in a file."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from spmdlint.runtime_checks.agreement.offline import explain
from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.recording.reading import read, read_lines
from spmdlint.runtime_checks.recording.writing import CALLS, Recording
from spmdlint.runtime_checks.transport.packing import pack
from tests.runtime.fakes import program


def journal(path: Path) -> Journal:
    return Journal(Ledger(), Recording(path))


def make(made: Journal, called: Program, line: int, times: int = 1) -> None:
    for _ in range(times):
        made.note_slowly(made.event_of(called, Site("/home/me/train.py", line, "main")))


@pytest.mark.parametrize("numbered", [3, 200, CALLS + 90])
def test_the_last_calls_are_numbered_whenever_they_were_numbered_last(numbered: int, tmp_path: Path) -> None:
    """A process dies between two moments at which its calls were numbered, also long after the ring was full."""
    path = tmp_path / "deep" / "0.ledger"
    made = journal(path)
    step, pair = program("step", (0, 1, 2)), program("sum", (0, 1))
    events = [made.event_of(step, Site("/home/me/train.py", line, "main")) for line in range(7)]
    other = made.event_of(pair, None)
    for number in range(CALLS + 100):
        made.note(other if number % 4 == 0 else events[number % 7])
        if number + 1 == numbered:
            made.drain()
    rows = read(path)
    if numbered > 100:
        made.drain()
        total = {tuple(group.processes): group for group in made._ledger.groups()}
        last = rows[-1]
        assert (last.index, last.prefix) == (total[0, 1, 2].count, f"{total[0, 1, 2].prefix:016x}")
        assert (last.function, last.filename, last.line) == ("step", "/home/me/train.py", (CALLS + 99) % 7)
        assert len(rows) == CALLS
    else:
        assert rows == [], "what was overwritten since can't be numbered"


def test_calls_after_the_last_numbering_are_read(tmp_path: Path) -> None:
    path = tmp_path / "0.ledger"
    made = journal(path)
    make(made, program("step", (0, 1)), 3, times=40)
    made.drain()
    make(made, program("step", (0, 1)), 4, times=2)
    make(made, program("evaluate", (0, 1)), 5)
    rows = read(path)
    last = [(row.index, row.function, row.line) for row in rows[-3:]]
    assert last == [(41, "step", 4), (42, "step", 4), (43, "evaluate", 5)]
    made.drain()
    assert read(path) == rows, "numbering changes nothing"


def test_calls_of_many_threads_are_recorded_in_the_order_in_which_they_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "0.ledger"
    made = journal(path)
    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def call(number: int) -> None:
        event = made.event_of(program("step", (0, 1 + number)), Site("/home/me/train.py", number, "main"))
        for _ in range(3000):
            made.note(event)

    try:
        threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            made.drain()
            time.sleep(0.001)
    finally:
        sys.setswitchinterval(often)
    made.drain()
    rows = read(path)
    assert made.made == 12_000
    assert [row.line for row in rows] == [event.site.line for event in made.calls]
    assert [row.index for row in rows if row.line == 2] == list(range(1, 3001))
    assert all((row.function, row.members) == ("step", (0, 1 + row.line)) for row in rows)


def test_calls_of_another_thread_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "0.ledger"
    made = journal(path)
    make(made, program("step", (0, 1)), 3)
    aside = threading.Thread(target=make, args=(made, program("evaluate", (0, 1)), 4))
    aside.start()
    aside.join()
    made.drain()
    assert [(row.function, row.aside) for row in read(path)] == [("step", False), ("evaluate", True)]


def test_what_is_no_recording_is_none(tmp_path: Path) -> None:
    assert read(tmp_path / "absent") == []
    assert read_lines(tmp_path / "absent").programs == {}
    (tmp_path / "1.ledger").write_bytes(b"x" * 2_000_000)
    (tmp_path / "1.events").write_text("nonsense\n[]\n")
    assert read(tmp_path / "1.ledger") == []


LINES = (
    "17",
    "[" * 100_000,
    '{"event": 1, "group": "g", "digest": "not a number"}',
    '{"event": "1", "group": "g", "digest": "d", "line": "x"}',
    '{"event": 2}',
    '{"group": "g", "members": ["all"]}',
    '{"members": [0]}',
    f'{{"program": "d", "record": "{pack(b"[0" + b", 0" * (1 << 26))}"}}',
    f'{{"program": "d", "record": "{pack(b"[0, 1]")}"}}',
    '{"program": "d", "record": "no pack"}',
    '{"program": "d", "record": {"arguments": 3}}',
    '{"end": {"state": 3}}',
)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:40])
def test_a_line_that_is_none_costs_nothing_else(line: str, tmp_path: Path) -> None:
    path = tmp_path / "0.ledger"
    made, step = journal(path), program("step", (0, 1))
    made.explain(step, step.decisive)
    make(made, step, 3, times=2)
    made.drain()
    rows, programs = read(path), read_lines(path).programs
    assert (len(rows), set(programs)) == (2, {step.digest})
    with path.with_suffix(".events").open("a") as file:
        file.write(line + "\n")
    assert read(path) == rows
    assert read_lines(path).programs == programs
    assert read_lines(path).end == {}


def test_records_of_a_crash_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(tmp_path) == 2
    for process in (0, 1):
        made = journal(tmp_path / f"{process}.ledger")
        make(made, program("step", (0, 1)), 3, times=9)
        make(made, program("evaluate" if process else "save", (0, 1)), 4 + process)
    assert explain(tmp_path) == 3
    told = (
        "call 10 of processes 0-1 differs: process 0 calls save at train.py:4; process 1 calls evaluate at train.py:5"
    )
    assert told in capsys.readouterr().out
    (tmp_path / "1.ledger").unlink()
    assert explain(tmp_path) == 2
    assert "call 10 of processes 0-1: save  at /home/me/train.py:4" in capsys.readouterr().out
