"""State that each process makes for itself but treats as one: it is replicated, but comes from chance."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.elements import tree
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import NOTHING, External, Frame, Site, certain
from spmdlint.analysis.inputs.demands import random_by
from spmdlint.analysis.placement.kinds import copied
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.typing import Typing, typing_table
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Project

_PUT = "jax.device_put"
_INDEX = "jax.lax.axis_index"
_BY_CHANCE = ("clock", "entropy", "host")


def own_replicas(
    evaluator: Evaluator,
    table: Typing,
    content: Origins,
    multi: MultiProcess,
    reach: Reach,
    placement: Placement,
    *,
    preview: bool,
) -> Iterator[tuple[Site, Reason]]:
    """The calls that give each device a copy of something random, with the reason of the first such array in it.

    `jax.device_put` with a spec that names no axis, or over the devices of all processes, counts in programs whose
    processes know one another, as JAX takes its argument for the whole array; copying to the
    devices of one process counts in programs for several processes that reduce over a mapped axis, as training does,
    and with ``preview`` in all.
    """
    for ref in evaluator.project.functions():
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            callee = evaluator.callee(frame, call)
            if not isinstance(callee, External) or not call.arguments:
                continue
            copies = callee.name in table.rows.replicate and (
                preview or (multi.runs_several(ref.path) and trains_together(evaluator, reach, ref))
            )
            if not copies and not (callee.name == _PUT and _is_whole(evaluator, placement, multi, frame, call)):
                continue
            for inside, leaf in (place for place, ends in tree(evaluator, frame, call.arguments[0].value) if ends):
                reason = content.of(inside, leaf)
                by = random_by(evaluator, inside, leaf) if reason is not None and reason.kind == "identity" else None
                known = evaluator.knowledge.get(by) if by is not None else None
                # A key of its own, copied to the devices of its process, is meant to be that.
                key = by in table.rows.split or (known is not None and known.seed is not None)
                own = by is not None and not (copies and key)
                if reason is not None and (own or reason.kind in _BY_CHANCE):
                    yield Site(ref, number), reason
                    break


def trains_together(evaluator: Evaluator, reach: Reach, ref: FunctionRef) -> bool:
    """Whether the program of a function reduces over a mapped axis, as training on all devices does.

    A program that sends the state of one device to all others makes it the same again: it sums over the devices what
    only one of them, by its index, puts in.
    """
    component, project = evaluator.project.component, evaluator.project
    here = [
        other for other in reach.calling(typing_table().rows.reductions) if component[other.path] == component[ref.path]
    ]
    asking = {_outermost(project, other) for other in reach.calling((_INDEX,))}
    return bool(here) and not any(
        _outermost(project, other) in asking and not _derives(evaluator, other) for other in here
    )


def _outermost(project: Project, ref: FunctionRef) -> FunctionRef:
    """The function of a module or class that a nested function is in, or the function itself."""
    parent = project.function(ref).parent
    while parent is not None and project.function(project.ref(ref.path, parent)).kind not in ("module", "class"):
        ref = project.ref(ref.path, parent)
        parent = project.function(ref).parent
    return ref


def _derives(evaluator: Evaluator, ref: FunctionRef) -> bool:
    """Whether a function takes derivatives: a step of training, and not a broadcast."""
    around = (ref, _outermost(evaluator.project, ref))
    return any(evaluator.code(each).mentions(typing_table().rows.derivatives) for each in around)


def _is_whole(evaluator: Evaluator, placement: Placement, multi: MultiProcess, frame: Frame, call: s.Call) -> bool:
    """Whether one of several processes puts a whole array on a sharding: its copies, or parts for all devices."""
    place = passed(call, "device", ("x", "device"))
    given = evaluator.value(frame, place) if place is not None else NOTHING
    sharding, path = certain(given), frame.ref.path
    copies = sharding is not None and copied(evaluator, sharding)
    if not multi.joins(path) or multi.tests_one_process(path):
        return False
    return copies or (place is not None and placement.spans(frame, place))
