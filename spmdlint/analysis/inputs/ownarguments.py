"""Arguments that are the same on all devices by their spec, but for which each process passes its own value."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.evaluation.bindings import by_position
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Arguments, Collection, Site, Value, certain
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_SPECS = "in_specs"


class OwnArgument(Struct, frozen=True):
    """The argument, the map that is called with it, its spec, and why the argument differs."""

    site: Site
    map: Site
    spec: Site
    library: str
    reason: Reason


def own_arguments(evaluator: Evaluator, reach: Reach, content: Origins) -> Iterator[OwnArgument]:
    """Each such positional argument of maps with specs that the host calls."""
    told: set[Site] = set()
    for use in reach.uses:
        known = evaluator.knowledge.get(use.applied.name)
        if known is None or known.kind != "map" or _SPECS not in known.specs or use.frame not in reach.trusted:
            continue
        for site in reach.use_calls.get(use.site, ()):
            frame = evaluator.free_frame(site.ref)
            call = frame.code.operations[site.number]
            if site.ref not in reach.host or not isinstance(call, s.Call) or any(a.star for a in call.arguments):
                continue
            for position, argument in enumerate(by_position(call)):
                spec = _replicating(evaluator, use, position)
                reason = content.of(frame, argument) if spec is not None else None
                here = Site(site.ref, argument)
                if spec is not None and reason is not None and reason.kind == "identity" and here not in told:
                    told.add(here)
                    yield OwnArgument(here, use.site, spec, use.applied.name.rpartition(".")[2], reason)


def _replicating(evaluator: Evaluator, use: MapUse, position: int) -> Site | None:
    """The spec of an argument, if it names no axis."""
    given = evaluator.argument(use.applied, _SPECS)
    spec: Value | None = certain(given) if given is not None else None
    if isinstance(spec, Collection):
        spec = certain(spec.elements[position]) if position < len(spec.elements) and not spec.open else None
    known = evaluator.knowledge.get(spec.name) if isinstance(spec, Applied) else None
    if not isinstance(spec, Applied) or known is None or known.kind != "spec" or spec.arguments != Arguments():
        return None
    return spec.site
