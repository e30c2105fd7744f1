"""State that is gathered in the arm for several processes, and used as it is in the arm for one.

Both arms give the same name the same state, so the code after them expects one form of it. A gathering that stacks
gives another one, with an axis for the processes, and raises for state that spans them.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.several import on_several
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.control import Control
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs

_DEPTH = 6


def plain_for_one_process(
    ev: Evaluator, control: Control, frame: Frame, gather: int, call: s.Call, states: frozenset[str]
) -> int | None:
    """The use of the gathered state in the arm for one process, if it stands where the gathering does in the other."""
    state = frame.code.operations[call.arguments[0].value]
    if not isinstance(state, s.Load) or states.isdisjoint(state.name.lower().split("_")):
        return None
    for one in _instead(ev, control, frame, gather):
        for used in _made_of(frame, one, _DEPTH):
            load = frame.code.operations[used]
            if isinstance(load, s.Load) and load.name == state.name:
                same = ev.reaching(frame, used, load.name) == ev.reaching(frame, call.arguments[0].value, load.name)
                return used if same else None
    return None


def _instead(ev: Evaluator, control: Control, frame: Frame, gather: int) -> Iterator[int]:
    """The values that take the place of one made of the gathering where there is one process."""
    code = frame.code
    block = code.function.block_of[gather]
    for branch in control.branches(frame.ref):
        several = on_several(ev, frame, branch.test)
        here, other = (branch.yes, branch.no) if several else (branch.no, branch.yes)
        if several is None or block not in here:
            continue
        stores = [(code.function.block_of[number], store) for number, store in code.of_kind(s.Store)]
        inside = (store for at, store in stores if at in here)
        names = {store.name for store in inside if gather in _made_of(frame, store.value, _DEPTH)}
        yield from (store.value for at, store in stores if at in other and store.name in names)
    for _, choice in code.of_kind(s.IfExp):
        several = on_several(ev, frame, choice.test)
        here_value, other_value = (choice.body, choice.orelse) if several else (choice.orelse, choice.body)
        if several is not None and gather in _made_of(frame, here_value, _DEPTH):
            yield other_value


def _made_of(frame: Frame, number: int, depth: int) -> Iterator[int]:
    """An operation, and those whose values are passed on to make it."""
    yield number
    operation = frame.code.operations[number]
    if depth == 0 or isinstance(operation, (s.IfExp, s.Load)):
        return
    for each in inputs(operation):
        yield from _made_of(frame, each, depth - 1)
