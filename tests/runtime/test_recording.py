"""The record of the last calls in a file."""

from __future__ import annotations

from pathlib import Path

from spmdlint.runtime_checks.frames import Site
from spmdlint.runtime_checks.ledger import Entry
from spmdlint.runtime_checks.recording import LINES, Recording, read
from tests.runtime.fakes import program


def test_the_newest_calls_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "0.ledger"
    recording = Recording(path)
    for index in range(1, LINES + 11):
        recording.write(Entry(index, program("step", (0, 1)), Site("/home/me/train.py", index, "main")))
    lines = read(path)
    assert len(lines) == LINES
    assert lines[0].startswith("11 call 11 of 0,1 step /home/me/train.py:11")
    assert lines[-1].startswith(f"{LINES + 10} call {LINES + 10} of 0,1 step")
    assert read(tmp_path / "absent") == []
