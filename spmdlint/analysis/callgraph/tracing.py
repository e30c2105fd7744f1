"""Parallel calls of the host inside code that JAX traces."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import CallEdge, Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Free, Site
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


class CallWhileTracing(Struct, frozen=True):
    """A parallel call in traced code, and the path by which it is traced, starting at the jit or map."""

    site: Site
    name: str
    way: tuple[Site, ...]


def calls_while_tracing(evaluator: Evaluator, reach: Reach) -> Iterator[CallWhileTracing]:
    """Every parallel call of the host in a function that a jit or a map certainly runs."""
    for ref in sorted(reach.traced, key=lambda r: (r.path, r.index)):
        frame = evaluator.free_frame(ref)
        function = evaluator.function(frame)
        for block in sorted(reach.certainty.blocks(frame)):
            for number in function.blocks[block].operations:
                operation = function.operations[number]
                if not isinstance(operation, s.Call):
                    continue
                name = _of_host(evaluator, frame, operation)
                way = way_from_tracing(reach, ref) if name is not None else None
                if name is not None and way is not None:
                    yield CallWhileTracing(Site(ref, number), name, way)
                elif name is None and isinstance(function.operations[operation.function], s.Load):
                    yield from _of_given(evaluator, reach, frame, number, operation)


def _of_host(evaluator: Evaluator, frame: Frame, call: s.Call) -> str | None:
    """The name of the parallel call of the host that this call certainly is; None otherwise."""
    callee = evaluator.callee(frame, call)
    known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
    return known.name if known is not None and known.parallel and not known.compiled else None


def _of_given(
    evaluator: Evaluator, reach: Reach, frame: Frame, number: int, call: s.Call
) -> Iterator[CallWhileTracing]:
    """A call of a function that the caller passes in, if that caller is traced."""
    if not isinstance(evaluator.callee(frame, call), Free):
        return
    for edge in reach.callers.get(frame.ref, ()):
        name = _of_host(evaluator, edge.target.frame, call) if edge.certain else None
        way = (() if _traces(edge) else way_from_tracing(reach, edge.caller.ref)) if name is not None else None
        if name is not None and way is not None:
            yield CallWhileTracing(Site(frame.ref, number), name, (*way, edge.site))
            return


def way_from_tracing(reach: Reach, ref: FunctionRef, *, sure: bool = True) -> tuple[Site, ...] | None:
    """The calls from a jit or map to a function, by breadth-first search backwards; None if there are none.

    ``sure``: only calls that no undecided branch guards.
    """
    pending: list[tuple[FunctionRef, tuple[Site, ...]]] = [(ref, ())]
    seen = {ref}
    while pending:
        current, path = pending.pop(0)
        for edge in reach.callers.get(current, ()):
            if sure and not edge.certain:
                continue
            if _traces(edge):
                return (edge.site, *path)
            if edge.caller.ref not in seen:
                seen.add(edge.caller.ref)
                pending.append((edge.caller.ref, (edge.site, *path)))
    return None


def _traces(edge: CallEdge) -> bool:
    return edge.target.way in ("jit", "map")
