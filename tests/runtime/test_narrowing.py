"""Asserted arrays that differ, over a faked store: the first value that differs is found, at a bounded cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from spmdlint.runtime_checks.agreement import narrowing
from spmdlint.runtime_checks.calls.named import announce, as_value
from spmdlint.runtime_checks.errors import DivergenceError
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.session import Session
from tests.runtime.fakes import Job

pytest.importorskip("jax")
ml_dtypes = pytest.importorskip("ml_dtypes")


def said(job: Job, values: Sequence[Any]) -> str:
    """What all processes say of the difference between these values, of which each asserts one."""

    def body(session: Session) -> None:
        announce(session, "assert_equal", name="w", value=as_value(values[session.me]))

    errors = job.run(body)
    messages = {error.report.message for error in errors.values() if isinstance(error, DivergenceError)}
    assert len(errors) == len(values), errors
    assert len(messages) == 1, messages
    return messages.pop().partition(" differs in w")[2]


def written(job: Job, *folders: str) -> int:
    """The characters that processes have published in some folders."""
    return sum(len(text) for key, text in job.client.values.items() if key.split("/")[1] in folders)


def with_change(shape: tuple[int, ...], change: Callable[[Any], None]) -> list[Any]:
    odd = np.zeros(shape, np.float32)
    change(odd)
    return [np.zeros(shape, np.float32), odd]


def change(place: tuple[int, ...]) -> Callable[[Any], None]:
    def made(array: Any) -> None:
        array[place], array[-1] = 0.1, 5

    return made


@pytest.mark.parametrize(
    ("shape", "place"), [((17,), (4,)), ((257,), (0,)), ((300, 7), (299, 2)), ((40, 5, 10_007), (33, 1, 10_006))]
)
def test_the_first_value_that_differs_is_found(shape, place):
    job = Job(2)
    values = with_change(shape, change(place))
    first = list(np.argwhere(values[0] != values[1])[0])
    two = f"process 0: 0.0; process 1: {values[1][tuple(first)]!s}."
    assert said(job, values) == f": float32{list(shape)} first differs at {list(map(int, first))}: {two}"
    assert 0 < written(job, "parts", "first") < 30_000


@pytest.mark.parametrize("tree_above", [16, 2])
def test_two_of_many_processes_search(tree_above):
    job = Job(5, Options(late_after=60, tree_above=tree_above))
    same, odd = with_change((100, 100), change((7, 3)))
    found = said(job, [{"a": 1, "b": each} for each in (same, same, odd, same, odd)])
    first = "float32[100, 100] first differs at [7, 3]: process 0: 0.0; process 2: 0.1"
    assert found == f", at ['b']: {first} (alike are processes 0-1, 3; processes 2, 4)."
    assert {key.split("/")[4] for key in job.client.values if key.startswith("job/parts/")} == {"0", "2"}


def test_few_values_are_all_shown():
    told = said(Job(2), [np.arange(4.0).reshape(2, 2), np.arange(4.0).reshape(2, 2) - [[0, 0], [0, 1]]])
    values = "process 0: float64[2, 2] [[0.0, 1.0], [2.0, 3.0]]; process 1: float64[2, 2] [[0.0, 1.0], [2.0, 2.0]]"
    assert told == f": {values}; the first value that differs is at [1, 1]."
    assert said(Job(2), [np.float32(0.1), np.float32(0.2)]) == ": process 0: float32[] 0.1; process 1: float32[] 0.2."


def test_shapes_and_types_tell_arrays_apart():
    job = Job(2)
    told = said(job, [np.zeros(30), np.zeros((30, 1), np.float32)])
    assert told == ": process 0: float64[30]; process 1: float32[30, 1]."
    assert written(job, "parts", "first", "pair") == 0


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (np.array([1.5] * 20, ml_dtypes.bfloat16), np.array([1.5] * 19 + [2.5], ml_dtypes.bfloat16), ("1.5", "2.5")),
        (np.array([np.nan] * 20), np.array([np.nan] * 19 + [np.inf]), ("nan", "inf")),
        (np.array([0.0] * 20), np.array([0.0] * 19 + [-0.0]), ("0.0", "-0.0")),
        (np.array([False] * 20), np.array([False] * 19 + [True]), ("False", "True")),
        (np.array(["a"] * 20), np.array(["a"] * 19 + ["b"]), None),
        (np.zeros((20, 2))[:, 0], np.array([0.0] * 19 + [1.0]), ("0.0", "1.0")),
    ],
)
def test_values_of_any_kind(one, other, shown):
    told = said(Job(2), [one, other])
    if shown is not None:
        assert told.endswith(f" first differs at [19]: process 0: {shown[0]}; process 1: {shown[1]}.")
    else:
        assert told.startswith(": process 0: ")


def test_without_an_answer_the_difference_is_told_all_the_same(monkeypatch):
    monkeypatch.setattr(narrowing, "WITHIN", 0.5)
    job = Job(2)
    monkeypatch.setattr(job.sessions[1].job.exchange, "put_parts", lambda *_: None)
    told = said(job, with_change((100,), change((7,))))
    assert told.startswith(": process 0: float32[100] digest ")
