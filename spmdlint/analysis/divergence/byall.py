"""What every process does although one is meant to: start the run of a tracker, write the file of one path."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.callgraph.upstream import upstream
from spmdlint.analysis.divergence.paths import opens_to_write
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Site, certain
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.guarded import decided
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.load import Known
from spmdlint.knowledge.startup import startup
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.testfiles import is_test

_ALIKE = frozenset(("data", "files", "listing", "records", "set", "shuffled"))
_CALLERS = 8
"""How many levels of callers are asked for the process."""


class DoneByAll(Struct, frozen=True):
    """A call that every process makes, and whether it writes a file."""

    site: Site
    name: str
    writes: bool


def done_by_all(
    evaluator: Evaluator, reach: Reach, multi: MultiProcess, content: Origins, *, preview: bool
) -> Iterator[DoneByAll]:
    """The calls in programs of several processes that nothing leaves to one of them; files only with ``preview``."""
    control = Control(evaluator)
    asking = upstream(evaluator.project, reach, startup().asks)
    for ref in evaluator.project.functions():
        if ref not in reach.host or is_test(ref.path) or not multi.surely_runs_several(ref.path):
            continue
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            known = _known(evaluator, frame, call)
            if known is None or known.once is None:
                continue
            writes = known.once == "file"  # what can read as well writes if its mode says so
            if writes and (not preview or (known.reads and not opens_to_write(frame, call))):
                continue
            method = frame.code.operations[call.function]
            given = [argument.value for argument in call.arguments]
            given += [method.base] if isinstance(method, s.Attribute) else []
            if any(_tells_apart(content.of(frame, each)) for each in given):
                continue  # by a path of their own for example
            if not multi.needs(ref.path) and asking.isdisjoint(_callers(reach, ref)):
                continue  # a tool of the same project, which may well be for one process
            if _reached_by_all(content, control, reach, frame, number, _CALLERS):
                yield DoneByAll(Site(ref, number), known.name, writes)


def _callers(reach: Reach, ref: FunctionRef) -> set[FunctionRef]:
    """A function and whatever leads to it."""
    found: set[FunctionRef] = set()
    pending = [ref]
    while pending:
        each = pending.pop()
        if each not in found:
            found.add(each)
            pending += [edge.caller.ref for edge in reach.callers.get(each, ())]
    return found


def _known(evaluator: Evaluator, frame: Frame, call: s.Call) -> Known | None:
    """What is known of a function of a library, or by its name of a method that is no function of the project."""
    callee = certain(evaluator.value(frame, call.function))
    if isinstance(callee, External):
        return evaluator.knowledge.get(callee.name)
    method = frame.code.operations[call.function]
    by_name = isinstance(method, s.Attribute) and not isinstance(callee, FunctionValue)
    return evaluator.knowledge.methods.get(method.name) if isinstance(method, s.Attribute) and by_name else None


def _tells_apart(reason: Reason | None) -> bool:
    """Whether a difference tells the processes apart: all of them may find the same files, or have data to write."""
    return reason is not None and reason.kind not in _ALIKE


def _reached_by_all(content: Origins, control: Control, reach: Reach, frame: Frame, number: int, callers: int) -> bool:
    """Whether a call is reached on some way on which no condition differs between processes."""
    on = decided(content, control, frame, (number,), None, "whether it is done depends on this", _tells_apart)
    if callers == 0 or on is not None:
        return False
    edges = reach.callers.get(frame.ref, ())
    return not edges or any(
        _reached_by_all(content, control, reach, edge.caller, edge.number, callers - 1) for edge in edges
    )
