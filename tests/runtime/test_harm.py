"""Right jobs whose checks are harmed end as they would without: `chaos.py --harm` makes it longer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.runtime.chaos import draw
from tests.runtime.harm import KINDS, judge, plan, run, values


def first(kind: str) -> int:
    """The first seed with this kind of harm.

    Who is late is so between two calls. In lockstep the other process waits in its first call for as long as it has
    patience, and this one for it: however short the pause, it comes after the decision.
    """

    def fits(chosen: dict[str, Any]) -> bool:
        harm = chosen["harm"]
        between = 0 < harm["after"] < len(chosen["steps"][harm["process"]])
        short = between and harm["pause"] < 1 and len(chosen["steps"]) == 2
        return harm["kind"] == kind and (kind != "late" or short)

    return next(seed for seed in range(1000) if fits(plan(seed, draw)))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("absent", "background"),
        ("late", "lockstep"),
        ("mode", "lockstep"),
        ("record", "background"),
        ("seam", "lockstep"),
        ("end", "background"),
        ("silent", "background"),
    ],
)
def test_a_harmed_job_ends_as_it_would_without_the_checks(kind: str, mode: str) -> None:
    word, output = run(plan(first(kind), draw), mode)
    assert word == "right", output


def test_what_places_arrays_put_back_in_the_middle() -> None:
    """Another tool puts JAX's shard_args back after the first fast call of a function was prepared."""
    chosen = plan(9109, draw)
    assert chosen["harm"]["kind"] == "silent"
    word, output = run(chosen, "background")
    assert word == "right", output
    assert "shard_args" in output


def test_each_kind_of_harm_is_drawn() -> None:
    assert {plan(seed, draw)["harm"]["kind"] for seed in range(100)} == set(KINDS)


def test_the_judge_can_fail() -> None:
    chosen = plan(0, draw)
    outputs = [f"RESULT {json.dumps(values(steps))}" for steps in chosen["steps"]]
    fine: list[int | None] = [0] * len(outputs)
    assert judge(chosen, fine, outputs) == "right"
    assert judge(chosen, [3, *fine[1:]], outputs).startswith("statuses [3")
    assert judge(chosen, [None, *fine[1:]], outputs).startswith("statuses [None")
    assert judge(chosen, fine, [*outputs[1:], "RESULT [0]"]).endswith("without its result")
    assert judge(chosen, fine, [*outputs[:-1], f"{outputs[-1]}\nspmdlint: diverged"]) == "called diverged"
