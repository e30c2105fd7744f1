"""What differs between processes and becomes part of the program that JAX traces: the programs differ then."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.callgraph.tracing import way_from_tracing
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Site, certain
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Reason
from spmdlint.analysis.variance.ownpart import says_who
from spmdlint.program import summary as s

_TRACED = ("jax.numpy.", "jax.lax.", "jax.random.", "jax.nn.", "jax.scipy.")
_KINDS = ("identity", "group", "clock", "entropy", "host")


class TracedConstant(Struct, frozen=True):
    """An operation of JAX's in traced code that is given a value of this process, and the way by which it is traced."""

    site: Site
    name: str
    reason: Reason
    way: tuple[Site, ...]


def traced_constants(evaluator: Evaluator, reach: Reach, facets: Facets, *, preview: bool) -> Iterator[TracedConstant]:
    """Every operation in surely traced code whose argument differs between processes, because of something in it.

    In preview also because of something that the host computed: the function may well be one for local devices.
    """
    for ref in sorted(reach.traced - reach.host, key=lambda r: (r.path, r.index)):
        frame = evaluator.free_frame(ref)
        given = _in_function(evaluator, reach, facets, frame, (*_KINDS, "data") if preview else _KINDS)
        found = next((each for each in given if preview or _inside(reach, each[2])), None)
        if found is not None:
            way = way_from_tracing(reach, ref)
            if way is not None:
                yield TracedConstant(found[0], found[1], found[2], way)


def _in_function(
    evaluator: Evaluator, reach: Reach, facets: Facets, frame: Frame, kinds: tuple[str, ...]
) -> Iterator[tuple[Site, str, Reason]]:
    function = evaluator.function(frame)
    for block in sorted(reach.certainty.blocks(frame)):
        for number in function.blocks[block].operations:
            operation = function.operations[number]
            if not isinstance(operation, s.Call):
                continue
            callee = certain(evaluator.value(frame, operation.function))
            if not isinstance(callee, External) or not callee.name.startswith(_TRACED):
                continue
            told = {given for _, given in says_who(evaluator, frame, operation)}
            for argument in operation.arguments:
                if argument.value in told:
                    continue  # a hazard of its own
                reason = facets.content.of(frame, argument.value)
                if reason is not None and reason.kind in kinds:
                    yield Site(frame.ref, number), callee.name, reason


def _inside(reach: Reach, reason: Reason) -> bool:
    """Do all steps of a reason lie in code that only runs while JAX traces."""
    return all(step.site.ref in reach.traced and step.site.ref not in reach.host for step in reason.chain())
