"""The record of the last calls in a file."""

from __future__ import annotations

from pathlib import Path

from spmdlint.runtime_checks.recording import LINES, Recording, read, read_programs


def test_the_newest_calls_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "0.ledger"
    recording = Recording(path)
    for index in range(1, LINES + 11):
        recording.write(["group", [0, 1], index, "", "digest", "step", "/home/me/train.py", index, {}])
    recording.write(["group", [0, 1], 99, "", "digest", "step", "/deep" * 200, 3, {}])
    recording.write_program("digest", {"function": "step"})
    rows = read(path)
    assert len(rows) == LINES
    assert rows[0][2] == 12
    assert rows[-2][:3] == ["group", [0, 1], LINES + 10]
    assert rows[-1] == ["group", [0, 1], 99, "", "digest", "step", None, None, {}]
    assert read_programs(path) == {"digest": {"function": "step"}}
    assert read(tmp_path / "absent") == []
    assert read_programs(tmp_path / "absent") == {}
