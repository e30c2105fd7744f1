"""Names that programs agree on only in multi-process jobs: ``if many and process_count() > 1: x = agree(x)``.

Or that one process sends and the others fetch: ``if sends: client.key_value_set(k, x)``, ``else: x = client...get(k)``.

On the path without agreement, the value is that of a single process, or of a job whose user has switched the agreement
off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Instance
from spmdlint.analysis.variance.control import Control
from spmdlint.knowledge.files import names
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

_OF_MPI = names("mpi_sizes")
_SENT = frozenset(names("senders"))
_NAMES = _SENT | {"process_count", "host_count", "mpi4jax", "MPI", "comm", "COMM"}
_DEPTH = 6
_COUNTS = frozenset(each for table in (units().counts, units().lists) for each in table if table[each] == "process")


class AgreedNames:
    """Recognises such names. One per run."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def is_one(self, frame: Frame, number: int, load: s.Load) -> bool:
        """Whether a use of a name may see an agreed value, where the agreement is made only in multi-process jobs."""
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
                sent = frame.code.mentions(_SENT)
                if any(sent or _counts(ev, frame, branch.test) for branch in branches):
                    return True
        return False


def is_agreed(ev: Evaluator, frame: Frame, number: int, depth: int = 3) -> bool:
    """Whether a value is made by an agreement point: here, in a function of the project, or in a property."""
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
    """The operations that make up an expression, itself first; follows calls, and names with a single store."""
    yield number
    operation = frame.code.operations[number]
    inside = operands(operation)
    if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
        stores = [frame.code.operations[n] for n in ev.reaching(frame, number, operation.name)]
        inside = tuple(store.value for store in stores if isinstance(store, s.Store)) if len(stores) == 1 else ()
    elif isinstance(operation, s.Call):
        inside = frame.code.taken_by(operation)
    for part in inside if depth > 0 else ():
        yield from parts(ev, frame, part, depth - 1)


def _counts(ev: Evaluator, frame: Frame, test: int) -> bool:
    """Whether a condition asks for the number of processes, from JAX or from MPI; MPI's may have been read earlier."""
    if _calls(ev, frame, test, _COUNTS, _DEPTH):
        return True
    values = [value for part in parts(ev, frame, test, _DEPTH) for value in ev.value(frame, part)]
    return any(isinstance(value, (Applied, External)) and value.name in _OF_MPI for value in values)


def _calls(ev: Evaluator, frame: Frame, number: int, names: Collection[str] | None, depth: int) -> bool:
    """Whether an expression calls one of these functions or, if no names are given, an agreement point."""
    for part in parts(ev, frame, number, depth):
        operation = frame.code.operations[part]
        for callee in ev.value(frame, operation.function) if isinstance(operation, s.Call) else ():
            if isinstance(callee, External):
                known = ev.knowledge.get(callee.name)
                if callee.name in names if names is not None else known is not None and known.agreement:
                    return True
    return False
