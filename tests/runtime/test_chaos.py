"""A short run of the chaos campaign: python tests/runtime/chaos.py makes it longer."""

from __future__ import annotations

from tests.runtime.chaos import batches, generate, judge, run_batch, summary


def test_a_short_campaign() -> None:
    schedules = [one for one in map(generate, range(3049, 3079)) if one.processes == 2 and one.fault != "kill"][:12]
    assert len({one.fault for one in schedules}) >= 9
    outcomes: dict[int, str] = {}
    for batch in batches(schedules):
        outcomes.update(run_batch(batch))
    assert set(outcomes.values()) == {"right"}, summary(schedules, outcomes)


def test_the_judge_can_fail() -> None:
    schedule = next(one for one in map(generate, range(100)) if one.fault == "dtype")
    right = {"verdict": "diverged", "kind": "arguments", "message": "", "index": schedule.expected.places[0][1]}
    assert judge(schedule, [right]) == "right"
    assert judge(schedule, [{"verdict": "clean"}]) == "missed"
    assert judge(schedule, [{**right, "kind": "program"}]).startswith("kind")
    assert judge(schedule, [{**right, "index": 99}]).startswith("place")
    legal = next(one for one in map(generate, range(100)) if one.fault == "none")
    assert judge(legal, [right]).startswith("false alarm")
