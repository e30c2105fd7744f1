"""What processes write is what the types of their records say: a reader drops nothing of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spmdlint.runtime_checks.background.publishing import Sample
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.records import (
    Answer,
    Details,
    JobName,
    Message,
    ProgramRecord,
    Question,
    QuietRecord,
    State,
    WaitRecord,
    Word,
    read_record,
)
from spmdlint.runtime_checks.reporting.report import Report
from tests.runtime import fakes
from tests.runtime.fakes import Behind, FakeClient, Job, call

KINDS: dict[str, Any] = {
    "answer": Answer,
    "call": Message,
    "detail": Details,
    "name": JobName,
    "now": Sample,
    "program": ProgramRecord,
    "question": Question,
    "quiet": dict[str, list[QuietRecord]],
    "state": State,
    "verdict": Report,
    "wait": WaitRecord,
    "word": Word,
}


class Written(FakeClient):
    """A store that remembers all that was ever written."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[tuple[str, str]] = []

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        self.all.append((key, value))
        super().key_value_set(key, value, allow_overwrite)


def checked(client: Written) -> Iterator[str]:
    """The kinds of all that was written, each of which is read as a whole."""
    for key, text in client.all:
        name = key.split("/")[1]
        if name in KINDS:
            yield name
            read = read_record(text, KINDS[name], key)
            assert json.loads(msgspec.json.encode(read)) == json.loads(text), key


def test_what_is_written_in_lockstep_is_read_as_a_whole() -> None:
    client = Written()

    def body(session: Any) -> None:
        call(session, "step", (0, 1, 2), values=[1.0, 2], callers=("/home/me/train.py:9",))
        call(session, "scale", (0, 1, 2), communicates=False, values=[1.0])
        call(session, "save" if session.me else "load", (0, 1, 2), line=7, name="a barrier")

    Job(3, Options(late_after=60), client).run(body)
    kinds = {"call", "program", "detail", "quiet", "verdict"}
    assert set(checked(client)) >= kinds


def test_what_a_waiting_process_writes_is_read_as_a_whole() -> None:
    client = Written()

    def body(session: Any) -> None:
        for step in range(2 - session.me):
            call(session, "step", (0, 1), line=step)
        if session.me:
            session.others.answer(calls=True)
            session.others.whereabouts([0])

    Job(2, client=client).run(body)
    assert set(checked(client)) >= {"call", "question", "state", "verdict"}


def test_what_is_written_behind_is_read_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fakes, "FakeClient", Written)
    job = Behind(3, ledger=tmp_path)
    try:
        for me in range(3):
            job.make(me, "step", times=3)
            job.make(me, "save" if me == 1 else "step", line=5, texts=lambda: {"canonical": "module"})
        assert job.report() is not None
        assert isinstance(job.client, Written)
        assert set(checked(job.client)) >= {"name", "now", "question", "answer", "verdict", "word"}
    finally:
        job.stop()


FIRST_LOOKS = """
import sys, threading
from typing import TypedDict
from spmdlint.runtime_checks.records import read_record
sys.setswitchinterval(1e-6)
fields = {f"field_{number}": int for number in range(40)}
for number in range(100):
    inner = TypedDict("inner", fields, total=False)
    outer = TypedDict("outer", {"one": inner, "some": list[inner], **fields}, total=False)
    together = threading.Barrier(8)

    def read():
        together.wait()
        assert read_record('{"one": {"field_3": 1}, "field_30": 4}', outer, "record")["field_30"] == 4

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_read_a_kind_of_record_for_the_first_time_at_once_do_not_crash() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_LOOKS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
