"""The calls without a collective that a process keeps: what it tells of them is short, in a job of any size."""

from __future__ import annotations

import json

import numpy as np

from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.calls.provenance import Provenance
from spmdlint.runtime_checks.calls.quiet import QuietCalls
from spmdlint.runtime_checks.records import MAX_VALUE, QuietRecord, read_record
from tests.runtime.fakes import program

MANY = tuple(range(1024))


def test_many_large_programs_on_many_devices_are_told_in_a_short_text() -> None:
    group, calls = Ledger().group(MANY), QuietCalls(Provenance())
    values, names = [np.zeros((8, 8))] * 1000, [f"params['layer_{n}']['kernel']" for n in range(1000)]
    for line in range(100):
        called = program(f"function_{line}", MANY, devices=tuple(range(65536)))
        site = Site("/home/me/train.py", line, "main", ("/home/me/main.py:3",) * 3)
        calls.note(group, Call(called, site, values=values, names=names), 0, each=True)
    text = json.dumps(calls.told([group]))
    assert len(text) < MAX_VALUE // 8
    told = read_record(text, dict[str, list[QuietRecord]], "quiet/0")[group.key]
    assert told[-1]["function"] == "function_99", "the last ones are told"
    assert len(told[-1]["arguments"]) == 1000
    assert "arguments" not in told[0], "unknown, not none"


def test_calls_are_placed_between_those_that_are_compared() -> None:
    group, calls = Ledger().group((0, 1)), QuietCalls(Provenance())
    called = Call(program("norm", (0, 1)), Site("/home/me/train.py", 7, "main"))
    for after in (1, 3, 3):
        calls.note(group, called, after, each=True)
    group.count = 4
    (told,) = calls.told([group], recent=True)[group.key]
    assert (told["after"], told["times"]) == (3, 2)
    group.count = 5
    assert calls.told([group], recent=True) == {}, "another call was compared since"
