"""What every process does although one is meant to: start the run of a tracker, write the file of one path."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.divergence.paths import opens_to_write
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Site, certain
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.guarded import guarded
from spmdlint.analysis.variance.origins import Origins
from spmdlint.heuristics.multiprocess import MultiProcess

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
    for ref in evaluator.project.functions():
        if ref not in reach.host or not multi.needs(ref.path):
            continue
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            callee = certain(evaluator.value(frame, call.function))
            known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is None or known.once is None:
                continue
            writes = known.once == "file"  # what can read as well writes if its mode says so
            if writes and (not preview or (known.reads and not opens_to_write(frame, call))):
                continue
            given = (content.of(frame, argument.value) for argument in call.arguments)
            if any(each is not None and each.kind != "data" for each in given):
                continue  # the processes are told apart, by a path of their own for example
            if _reached_by_all(content, control, reach, frame, number, _CALLERS):
                yield DoneByAll(Site(ref, number), known.name, writes)


def _reached_by_all(content: Origins, control: Control, reach: Reach, frame: Frame, number: int, callers: int) -> bool:
    """Whether a call is reached on some way on which no condition differs between processes."""
    if callers == 0 or guarded(content, control, frame, number) is not None:
        return False
    edges = reach.callers.get(frame.ref, ())
    return not edges or any(
        _reached_by_all(content, control, reach, edge.caller, edge.number, callers - 1) for edge in edges
    )
