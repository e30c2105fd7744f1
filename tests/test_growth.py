"""The work of the analyses grows with the program alone: steps are counted, no clock is asked."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from spmdlint.analysis.callgraph import reach
from spmdlint.analysis.program import CUT_SHORT, Program
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Property
from spmdlint.interpreter import deep
from spmdlint.knowledge.load import built_in
from spmdlint.program.link import link
from spmdlint.program.lower import lower
from spmdlint.program.summary import Call, Load
from spmdlint.rule import load_rules


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
                    assert origins.why(frame, number) is None
        operations = sum(len(program.project.function(ref).operations) for ref in program.project.functions())
    return counted.steps, operations


@pytest.mark.parametrize("shape", [passed_on, ladder, helper])
def test_every_place_is_searched_a_few_times_at_most(shape):
    steps, operations = work("".join(shape(300)))
    assert operations / 4 < steps <= 4 * operations


def chain(count):
    """Functions that each call the one before, under a branch and without."""
    yield "def f0(x):\n    return x\n"
    for number in range(1, count):
        before = f"f{number - 1}"
        yield f"def f{number}(x):\n    if x > {number}:\n        return {before}(x + 1)\n    return {before}(x)\n"
    yield f"import jax\njax.pmap(f{count - 1}, axis_name='i')(1)\n"


def mutual(count):
    """Functions that call one another in circles, and hand one another on."""
    for number in range(count):
        one, two, three = ((number * 7 + 1) % count, (number * 13 + 5) % count, (number * 3 + 2) % count)
        yield f"def f{number}(x, g):\n    y = f{one}(x, g)\n    return g(f{two}(y, f{three}), f{number})\n"
    yield "import jax\nstep = jax.jit(f0)\n"


def methods(count):
    """A class whose methods call one another and keep what they are given."""
    yield "class Large:\n    def __init__(self, x):\n        self.x = x\n"
    for number in range(count):
        yield f"    def m{number}(self, y):\n        self.a{number} = y\n"
        yield f"        return self.m{(number + 1) % count}(self.a{(number * 5 + 3) % count}) + self.x\n"
    yield "import jax\nLarge(jax.jit(lambda x: x)).m0(1)\n"


def generated(count):
    """A file as a program writes it: many functions alike, and a table of them."""
    yield "import jax.numpy as jnp\nTABLE = {}\n"
    for number in range(count):
        yield f"def op{number}(x, axis={number}):\n    y = jnp.sum(x, axis=axis)\n    for v in (1, 2):\n"
        yield f"        y = y + v\n    return y\nTABLE['op{number}'] = op{number}\n"
    yield "def run(name, x):\n    return TABLE[name](x)\n"


def straight(count):
    """One function with many branches, one behind another."""
    yield "import jax\nimport jax.numpy as jnp\ndef f(x):\n"
    for number in range(count):
        yield f"    x = jnp.sin(x) + {number}\n    if x.any():\n        x = -x\n"
    yield "    return x\nprint(jax.jit(f)(1))\n"


def top(count):
    """A module with many names of its own, and branches between them."""
    yield "import jax.numpy as jnp\nA0 = 0\n"
    for number in range(1, count):
        yield f"A{number} = jnp.array([{number}])\nB{number} = A{number} + 1\n"
        yield f"if B{number}.any():\n    B{number} = A{number - 1}\n"


def callers(count):
    """One helper that is called in many ways."""
    yield "import jax\ndef helper(x, fn, axis=0):\n    if jax.process_index() == 0:\n        return fn(x)\n"
    for number in range(count):
        yield f"def c{number}(x):\n    return helper(x, lambda y: y + {number}, axis={number})\n"


@contextmanager
def counted_lines(counted):
    """Count the lines of Python that run meanwhile."""

    def trace(frame, event, argument):
        if event == "line":
            counted[0] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def lines_run(text):
    """How many lines of the linter run for the call graph and all rules."""
    path = Path("/project/main.py")
    counted = [0]
    with deep():
        program = Program(link({path: lower(text)}, (path.parent,)), built_in(), preview=True)
        rules = load_rules()
        with counted_lines(counted):
            found = [finding for rule in rules for finding in rule.check(program)]
    assert all(finding.code for finding in found)
    return counted[0]


@pytest.mark.parametrize("shape", [chain, mutual, methods, generated, straight, top, callers])
def test_twice_the_program_is_twice_the_work(shape):
    short, long = (lines_run("".join(shape(count))) for count in (60, 120))
    assert 1.5 * short < long < 2.6 * short


def ways(calls):
    """Functions that each call the next one several times: the ways that lead to the last one are many."""
    yield "import jax\nimport wandb\ndef f0():\n    wandb.init(project='p')\n"
    for number in range(9):
        yield f"def f{number + 1}():\n" + f"    f{number}()\n" * calls
    yield "if jax.process_index() == 0:\n    print(jax.process_count())\nf9()\n"


def test_each_call_on_many_ways_is_asked_about_once():
    few, many = (lines_run("".join(ways(calls))) for calls in (2, 4))
    assert many < 2.6 * few


def handed_on(calls):
    """Functions that loop over what they are given, and each hand it on several times."""
    branch = "if x.mean() > 0:\n            multihost_utils.sync_global_devices('x')\n"
    yield "import numpy as np\nfrom jax.experimental import multihost_utils\n"
    yield f"def f0(xs):\n    for x in xs:\n        {branch}"
    for number in range(6):
        again = f"    f{number}(xs)\n" * calls
        yield f"def f{number + 1}(xs):\n    for x in xs:\n        {branch}{again}"
    yield "f6([np.zeros(4)])\n"


def test_what_is_iterated_is_followed_to_each_place_once():
    few, many = (lines_run("".join(handed_on(calls))) for calls in (2, 4))
    assert many < 2.6 * few


def test_what_is_beyond_the_bound_is_analysed_without_its_callers_and_said(project, monkeypatch):
    files = {"a.py": "".join(callers(40)), "z.py": "import jax\ndef loss(x):\n    return jax.lax.pmean(x, 'batch')\n"}
    project.write({**files, "z_test.py": "import z\nz.loss(1.0)\n", "spmdlint.toml": ""})
    whole = project.check()
    assert ("z.py", 3, "SPMD101") in whole.found
    assert CUT_SHORT not in whole.err
    monkeypatch.setattr(reach, "MAX_FRAMES", 20)
    for options in (["--no-cache"], ["--preview"], ["--preview"]):  # the last one is told what was kept
        cut = project.check(*options)
        assert ("z.py", 3, "SPMD101") in cut.found
        assert CUT_SHORT in cut.err
