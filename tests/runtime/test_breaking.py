"""Whatever breaks in the checks, a correct job ends as it would without them: python tests/runtime/breaking.py tries
every fault."""

from __future__ import annotations

import pytest

from tests.runtime.breaking import MODES, Fault, faults, judge, places, run

pytestmark = pytest.mark.usefixtures("whole_ending")

SOME = [
    ("background", {"at": "request", "name": "key_value_try_get verdict/job", "what": "object", "process": "all"}),
    ("background", {"at": "request", "name": "key_value_dir_get now/*", "what": "deep", "process": 0}),
    ("background", {"at": "request", "name": "key_value_try_get over/job", "what": "block", "process": 1}),
    ("background", {"at": "journal", "name": "expect", "what": "raise", "process": 1}),
    ("background", {"at": "layer", "name": "every-call", "what": "raise", "process": 1}),
    ("background", {"at": "step", "name": "watching.watcher:Watcher._step", "what": "raise", "process": 0}),
    ("lockstep", {"at": "request", "name": "blocking_key_value_get call/*/#/#/#", "what": "types", "process": 1}),
    ("lockstep", {"at": "request", "name": "key_value_set call/*/#/#/#", "what": "raise", "process": 0}),
    ("lockstep", {"at": "step", "name": "hook:Hook._close.<locals>.<lambda>", "what": "raise", "process": 1}),
    ("lockstep", {"at": "seam", "name": "PjitFunctionCache.clear_all", "what": "none", "process": 1}),
]


@pytest.mark.parametrize("mode", MODES)
def test_there_is_a_fault_for_all_that_can_break(mode: str) -> None:
    listed = places(mode)
    assert {place for place, _ in listed} >= {"step", "layer", "seam", "request"}
    all_faults = list(faults(listed))
    assert len(all_faults) > 250
    missing = [fault for chosen, fault in SOME if chosen == mode and (fault["at"], fault["name"]) not in listed]
    assert not missing, "a place has another name: choose another one for the short form"


@pytest.mark.parametrize(("mode", "fault"), SOME, ids=lambda one: one if isinstance(one, str) else one["name"])
def test_the_job_goes_on(mode: str, fault: Fault) -> None:
    word, output = run(mode, fault)
    assert word == "right", output


def test_the_judge_can_fail() -> None:
    outputs = [f"RESULT {number} 2 32.0 1.0 True" for number in range(2)]
    assert judge([0, 0], outputs) == "right"
    assert judge([0, 1], outputs) == "statuses [0, 1]"
    assert judge([0, 0], [outputs[0], "RESULT 1 2 30.0 1.0"]) == "process 1 without its result"
    assert judge([0, 0], [outputs[0], outputs[1] + "\x1b[31m"]).endswith("prints what it was sent")
    assert judge([0, 0], [outputs[0], outputs[1] + "diverged"]).endswith("tells of a divergence")
