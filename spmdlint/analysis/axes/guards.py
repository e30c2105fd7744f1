"""Conditions that test a spec before it is put on a mesh: ``if names_of(spec) <= set(mesh.axis_names)``."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.control import Control
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs


def asked_before(evaluator: Evaluator, frame: Frame, number: int, values: list[int]) -> bool:
    """Whether an undecided condition around an operation tests one of these values for more than being None."""
    wanted = {name for value in values for name in _names(frame, value)}
    if not wanted:
        return False
    live = evaluator.live_blocks(frame)
    for branch in Control(evaluator).choosing(frame, (number,), None):
        both = not live.isdisjoint(branch.yes) and not live.isdisjoint(branch.no | {branch.block})
        if both and not wanted.isdisjoint(_names(frame, branch.test, asked=True)):
            return True
    return False


def _names(frame: Frame, number: int, *, asked: bool = False) -> Iterator[str]:
    """The names in an expression; ``asked``: those passed to a call, or to a comparison other than with None."""
    operation = frame.code.operations[number]
    if isinstance(operation, s.Load):
        if not asked:
            yield operation.name
        return
    if isinstance(operation, s.Compare) and set(operation.operators) <= {"is", "is not"}:
        return
    if isinstance(operation, (s.Call, s.Compare)):
        asked = False
    for value in inputs(operation):
        yield from _names(frame, value, asked=asked)
