"""Names that a program agrees on where there are several processes: ``if many and process_count() > 1: x = agree(x)``.

The value that is left as it was is that of one process, or of a job whose user has switched the agreement off.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.code import operands
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Instance
from spmdlint.analysis.variance.control import Control
from spmdlint.program import summary as s

_COUNTS = ("jax.process_count", "jax.host_count")
_OF_MPI = ("mpi4py.MPI.COMM_WORLD.Get_size", "mpi4py.MPI.COMM_WORLD.size")
_NAMES = frozenset(name.rpartition(".")[2] for name in _COUNTS) | {"mpi4jax", "MPI", "comm", "COMM"}
_DEPTH = 6


class AgreedNames:
    """Knows such names. One per run."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def is_one(self, frame: Frame, number: int, load: s.Load) -> bool:
        """Is one of the values that a name may have agreed on, in code for several processes alone."""
        ev = self.control.ev
        function = ev.function(frame)
        if not frame.code.mentions(_NAMES) or not function.binds(load.name):
            return False
        stores = ev.reaching(frame, number, load.name)
        if len(stores) < 2:
            return False
        for store in sorted(stores):
            operation = function.operations[store]
            if isinstance(operation, s.Store) and _calls(ev, frame, operation.value, None, _DEPTH):
                branches = self.control.choosing(frame, (store,), function.block_of[number])
                if any(_counts(ev, frame, branch.test) for branch in branches):
                    return True
        return False


def is_agreed(ev: Evaluator, frame: Frame, number: int, depth: int = 3) -> bool:
    """Is a value made by a call by which processes agree: here, by a function of the project, or by a property."""
    if _calls(ev, frame, number, None, _DEPTH):
        return True
    operation = frame.code.operations[frame.code.root_of(number)]
    made: list[FunctionValue | None] = []
    if isinstance(operation, s.Call):
        made = [value for value in ev.value(frame, operation.function) if isinstance(value, FunctionValue)]
    elif isinstance(operation, s.Attribute):
        owners = ev.value(frame, operation.base)
        made = [ev.objects.getter(value, operation.name) for value in owners if isinstance(value, Instance)]
    answers: list[bool] = []
    for function in made if depth > 0 else ():
        if function is not None:
            inner = ev.free_frame(function.ref)
            returned = [given.value for _, given in inner.code.returns if given.value is not None]
            answers += [is_agreed(ev, inner, value, depth - 1) for value in returned]
    return bool(answers) and all(answers)


def parts(ev: Evaluator, frame: Frame, number: int, depth: int) -> Iterator[int]:
    """The operations that an expression is made of, itself first: through calls, and names with one store."""
    yield number
    operation = frame.code.operations[number]
    inside = operands(operation)
    if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
        stores = [frame.code.operations[n] for n in ev.reaching(frame, number, operation.name)]
        inside = tuple(store.value for store in stores if isinstance(store, s.Store)) if len(stores) == 1 else ()
    elif isinstance(operation, s.Call):
        method = frame.code.operations[operation.function]
        inside = (*(a.value for a in operation.arguments), *([method.base] if isinstance(method, s.Attribute) else []))
    for part in inside if depth > 0 else ():
        yield from parts(ev, frame, part, depth - 1)


def _counts(ev: Evaluator, frame: Frame, test: int) -> bool:
    """Does a condition ask how many processes there are: JAX itself, or MPI, where it may have asked before."""
    if _calls(ev, frame, test, _COUNTS, _DEPTH):
        return True
    values = [value for part in parts(ev, frame, test, _DEPTH) for value in ev.value(frame, part)]
    return any(isinstance(value, (Applied, External)) and value.name in _OF_MPI for value in values)


def _calls(ev: Evaluator, frame: Frame, number: int, names: tuple[str, ...] | None, depth: int) -> bool:
    """Does an expression call one of these functions; without names, one by which processes agree."""
    for part in parts(ev, frame, number, depth):
        operation = frame.code.operations[part]
        for callee in ev.value(frame, operation.function) if isinstance(operation, s.Call) else ():
            if isinstance(callee, External):
                known = ev.knowledge.get(callee.name)
                if callee.name in names if names is not None else known is not None and known.agreement:
                    return True
    return False
