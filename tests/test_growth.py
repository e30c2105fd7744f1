"""The work of the analyses grows with the program, not with its square: steps are counted, no clock is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmdlint.analysis.program import Program
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Property
from spmdlint.interpreter import deep
from spmdlint.knowledge.load import built_in
from spmdlint.program.link import link
from spmdlint.program.lower import lower
from spmdlint.program.summary import Call


class Counted(Property):
    """Has no source, and counts how often the walk comes to an operation."""

    def __init__(self):
        self.steps = 0

    def step(self, origins, frame, number, operation):
        self.steps += 1
        return CONTINUE


def circle(count):
    """Functions that call one another in a circle, each also the one half a circle away."""
    for number in range(count):
        across = (number + count // 2) % count
        after = (number + 1) % count
        yield f"def f{number}(x):\n    if x > {number}:\n        return f{across}(x)\n    return f{after}(x)\n"
    yield "f0(1)\n"


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


def steps(text):
    """The steps that the walk takes when it is asked about every call of a program, the last one first."""
    path = Path("/project/main.py")
    with deep():
        program = Program(link({path: lower(text)}, (path.parent,)), built_in())
        counted = Counted()
        origins = Origins(program.evaluator, program.calls, program.reach, counted)
        for ref in reversed(list(program.project.functions())):
            frame = program.evaluator.free_frame(ref)
            operations = frame.code.operations
            for number in reversed(range(len(operations))):
                if isinstance(operations[number], Call):
                    assert origins.of(frame, number) is None
    return counted.steps


@pytest.mark.parametrize("shape", [circle, ladder, helper])
def test_twice_the_program_is_twice_the_work(shape):
    once, twice = (steps("".join(shape(count))) for count in (150, 300))
    assert 100 < once < twice <= 2.5 * once
