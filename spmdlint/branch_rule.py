"""The base class of the rules about divergent branches, which share one check and one wording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from spmdlint.diagnostics import Diagnostic, Place, Related, sentence
from spmdlint.rule import Rule, load_rules

if TYPE_CHECKING:
    from pathlib import Path

    from spmdlint.analysis.callgraph.effects import ParallelCall
    from spmdlint.analysis.divergence.body import Inside
    from spmdlint.analysis.divergence.branches import Divergence, Hazard
    from spmdlint.analysis.evaluation.values import Site
    from spmdlint.analysis.variance.reason import Reason
    from spmdlint.rule import Program


MANY = 9
"""A message counts up to this many further calls, and says "many" beyond it."""
SHOWN = 3
"""The most further calls that notes point to."""


class BranchRule(Rule):
    """A rule on branches whose condition varies and whose two sides make different parallel calls."""

    hazards: ClassVar[tuple[Hazard, ...]]
    way_out: ClassVar[str]
    more_ways_out: ClassVar[Mapping[str, str]] = {}
    """Additional advice, by the kind of the source that varies."""
    other_ways_out: ClassVar[Mapping[str, str]] = {}
    """Advice in place of the usual, by the kind of the source that varies."""

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.divergent_branches:
            if found.hazard in self.hazards:
                yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: Divergence) -> Diagnostic:
        place, name = program.place(found.call.site), program.call_name(found.call)
        at = program.where(found.branch, place.path)
        below = (program.function_name(found.call.path[1]) if len(found.call.path) > 1 else "") or ""
        through = _through(program, found.call, below, place.path)
        others = [call for call in found.others if not _is_recursive(call)]
        count = len(others)
        more = "" if not count else f", and {count} more after it" if count <= MANY else ", and many more after it"
        fact, note, effect = _words(program, found, at, more)
        related = list(_steps(program, found, note))
        related += [Related(program.place(site), "This leads to the parallel call.") for site in found.call.path[1:]]
        related += islice(_further(program, found.call, others), SHOWN)
        kind = found.reason.kind
        usual = self.other_ways_out.get(kind, self.way_out)
        way_out = " ".join(filter(None, (usual, self.more_ways_out.get(kind))))
        unless = " (unless the array is whole on every process already, which is not known here)"
        unless = unless if found.call.of_devices else ""
        finding = self.finding(
            message=(f"{name} is a parallel call{through}, and {fact}: {_why(program, found.reason, place.path)}."),
            place=place,
            help=f"{effect}, so the job hangs or pairs the wrong calls{unless}. {way_out}",
            related=tuple(related),
            cause=program.cause(found.reason) or (program.place(found.branch),),
        )
        rules = [rule for rule in load_rules() if isinstance(rule, BranchRule)] if found.also else []
        codes = {hazard: rule.code for rule in rules for hazard in rule.hazards}
        also = tuple((codes[hazard], program.place(site)) for hazard, site in found.also if hazard in codes)
        return replace(finding, also=also, through=below)


def _steps(program: Program, found: Divergence, note: str) -> Iterator[Related]:
    """The branch and the steps from the source to it; one step if the source is all there is, and is in its row."""
    branch = program.place(found.branch)
    steps = [(program.place(step.site), step.text) for step in found.reason.chain()]
    if len(steps) == 1 and _is_in_row(steps[0][0], branch):
        yield Related(branch, f"{note.removesuffix('.')}: {steps[0][1]}.")
        return
    yield Related(branch, note)
    yield from (Related(place, sentence(text)) for place, text in steps)


def _is_in_row(inner: Place, outer: Place) -> bool:
    """Whether one place is a part of another that is in one row."""
    rows = {inner.start.row, inner.end.row, outer.start.row, outer.end.row}
    within = outer.start.column <= inner.start.column and inner.end.column <= outer.end.column
    return inner.path == outer.path and len(rows) == 1 and within


def _why(program: Program, reason: Reason, seen_from: Path) -> str:
    """Why the condition varies, in words: its source, or the later step that is at fault."""
    cause = reason.cause
    return cause.text if cause is reason.source else f"at {program.where(cause.site, seen_from)}, {cause.text}"


def _further(program: Program, first: ParallelCall, others: Iterable[ParallelCall]) -> Iterator[Related]:
    """The further calls, each where its way parts from those of the calls before it."""
    ways = [first.path]
    for call in others:
        apart = [site for site in call.path if not any(site in way for way in ways)]
        if apart:
            ways.append(call.path)
            made = "is made here" if apart[0] == call.path[-1] else "is reached from here"
            yield Related(program.place(apart[0]), f"{program.call_name(call)} {made}, after it.")


def _is_recursive(call: ParallelCall) -> bool:
    """Whether a call is made by a function that calls itself: the same line, once more."""
    functions = [site.ref for site in call.path[1:]]
    return len(set(functions)) < len(functions)


def _through(program: Program, call: ParallelCall, below: str, seen_from: Path) -> str:
    """The function through which the call is reached, in words, if the finding points to a call of that function."""
    if not below:
        return ""
    if below == "the lambda":
        return f" (reached through {below})"
    # A function that is named after what it calls.
    made = f", which makes it at {program.where(call.path[1], seen_from)}" if below == call.name else ""
    return f" (reached through {below}(){made})"


def _words(program: Program, found: Divergence, at: str, more: str) -> tuple[str, str, str]:
    """What the branch does to the call, a note on the branch, and what the other processes then do."""
    times = f"it{more}{',' if more else ''} a different number of times"
    left = "The processes that leave the loop first go on without it"
    missed = "The other processes never join it"
    if found.handler:
        return (
            f"the handler at {at} skips it on some processes{more}",
            "An exception leads here on some processes only.",
            missed,
        )
    if found.loop:
        return (
            f"the loop at {at} makes {times} on each process",
            "The number of iterations differs between processes.",
            left,
        )
    varies = "This condition is not the same on every process."
    body = _body(program, found)
    if body is not None:
        fact = f"the condition at {at} lets only some processes make it{more}"
        if body.leaves:
            fact = f"only the processes that leave early because of the condition at {at} make it{more}"
        return fact, varies, missed
    if _leaves_a_loop(program, found.branch):
        way = "early exit" if found.early_exit else "loop exit"
        return f"each process makes {times} because of the {way} at {at}", varies, left
    guard = "early exit" if found.early_exit else "condition"
    return f"the {guard} at {at} lets only some processes make it{more}", varies, missed


def _body(program: Program, found: Divergence) -> Inside | None:
    """How the body of the branch contains the call, if it does: then the call is made by those that leave early."""
    if found.call.site.ref != found.branch.ref:
        return None
    from spmdlint.analysis.divergence.body import inside  # which a run without such a finding does not need

    return inside(program.evaluator.flow(found.branch.ref), found.branch.number, found.call.site.number)


def _leaves_a_loop(program: Program, branch: Site) -> bool:
    """Whether one arm of a branch leaves a loop in which the other stays."""
    flow = program.evaluator.flow(branch.ref)
    blocks = [number for number, block in enumerate(flow.function.blocks) if block.test == branch.number]
    return any(flow.leaves(number, header) for number in blocks for header in flow.loops)
