"""The work of the analyses grows with the program alone: steps are counted, no clock is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmdlint.analysis.program import Program
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Property
from spmdlint.interpreter import deep
from spmdlint.knowledge.load import built_in
from spmdlint.program.link import link
from spmdlint.program.lower import lower
from spmdlint.program.summary import Call, Load


class Counted(Property):
    """Has no source, and counts how often the walk comes to an operation."""

    def __init__(self):
        self.steps = 0

    def step(self, origins, frame, number, operation):
        self.steps += 1
        return CONTINUE


def passed_on(count):
    """Functions that pass on what they are given, each to the two behind it: many ways lead back from the last."""
    for number in range(count):
        yield f"def f{number}(x):\n    f{number + 1}(x)\n    f{number + 2}(x)\n"
    yield f"def f{count}(x):\n    print(x)\ndef f{count + 1}(x):\n    print(x)\n"


def ladder(count):
    """Names that are each made of the one before."""
    yield "def f(x0):\n"
    for number in range(count):
        yield f"    x{number + 1} = id(x{number}) or x{number}\n"
    yield f"    return x{count}\nf(1)\n"


def helper(count):
    """One helper that many functions call, each with what its own caller passes."""
    yield "def helper(x):\n    return x\n"
    for number in range(count):
        yield f"def f{number}(x):\n    y = helper(x)\n    return helper(y)\ndef g{number}():\n    return f{number}(1)\n"


def work(text):
    """The steps of the walk that is asked about every name and call, the last one first, and the operations."""
    path = Path("/project/main.py")
    with deep():
        program = Program(link({path: lower(text)}, (path.parent,)), built_in())
        counted = Counted()
        origins = Origins(program.evaluator, program.calls, program.reach, counted)
        for ref in reversed(list(program.project.functions())):
            frame = program.evaluator.free_frame(ref)
            operations = frame.code.operations
            for number in reversed(range(len(operations))):
                if isinstance(operations[number], (Call, Load)):
                    assert origins.of(frame, number) is None
        operations = sum(len(program.project.function(ref).operations) for ref in program.project.functions())
    return counted.steps, operations


@pytest.mark.parametrize("shape", [passed_on, ladder, helper])
def test_every_place_is_searched_a_few_times_at_most(shape):
    steps, operations = work("".join(shape(300)))
    assert operations / 4 < steps <= 4 * operations
