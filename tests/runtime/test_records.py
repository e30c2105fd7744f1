"""What processes write is what the types of their records say: a reader drops nothing of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.records import (
    Answer,
    Ask,
    Details,
    JobName,
    Message,
    ProgramRecord,
    Question,
    QuietRecords,
    SampleRecord,
    State,
    Subtree,
    WaitRecord,
    Where,
    Word,
    read_record,
)
from spmdlint.runtime_checks.reporting.report import Report
from tests.runtime import fakes
from tests.runtime.fakes import Behind, FakeClient, Job, call

KINDS: dict[str, Any] = {
    "answer": Answer,
    "ask": Ask,
    "call": Message,
    "detail": Details,
    "down": Subtree,
    "name": JobName,
    "now": SampleRecord,
    "program": ProgramRecord,
    "question": Question,
    "quiet": QuietRecords,
    "stack": Where,
    "state": State,
    "up": Subtree,
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


@pytest.mark.parametrize("tree_above", [16, 1])
def test_what_is_written_in_lockstep_is_read_as_a_whole(tree_above: int) -> None:
    client = Written()

    def body(session: Any) -> None:
        call(session, "step", (0, 1, 2), values=[1.0, 2], callers=("/home/me/train.py:9",))
        call(session, "scale", (0, 1, 2), communicates=False, values=[1.0])
        call(session, "save" if session.me else "load", (0, 1, 2), line=7, name="a barrier")

    Job(3, Options(tree_above=tree_above, late_after=60), client).run(body)
    kinds = {"call", "program", "detail", "quiet", "verdict"}
    assert set(checked(client)) >= (kinds | {"up", "down"} if tree_above == 1 else kinds)


def test_what_a_waiting_process_writes_is_read_as_a_whole() -> None:
    client = Written()

    def body(session: Any) -> None:
        for step in range(2 - session.me):
            call(session, "step", (0, 1), line=step)
        if session.me:
            session.job.exchange.put_stack({**session.own.where(), "number": 1})
            session.others.whereabouts(0)

    Job(2, client=client).run(body)
    assert set(checked(client)) >= {"call", "ask", "stack", "state", "verdict"}


def test_what_is_written_behind_is_read_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fakes, "FakeClient", Written)
    job = Behind(3)
    try:
        for me in range(3):
            job.make(me, "step", times=3)
            job.make(me, "save" if me == 1 else "step", line=5, texts=lambda: {"canonical": "module"})
        assert job.report() is not None
        assert isinstance(job.client, Written)
        assert set(checked(job.client)) >= {"name", "now", "question", "answer", "verdict", "word"}
    finally:
        job.stop()
