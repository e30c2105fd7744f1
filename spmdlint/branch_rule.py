"""The form that the rules about divergent branches share: one check, one wording, a code for each kind of hazard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from pathlib import Path

    from spmdlint.analysis.divergence.branches import Divergence, Hazard
    from spmdlint.analysis.variance.reason import Reason
    from spmdlint.rule import Program


MANY = 9
"""More further calls than this are not counted in a message."""
_VARIES = "This condition is not the same on every process."


class BranchRule(Rule):
    """A rule on branches whose condition varies and whose arms make different parallel calls."""

    hazard: ClassVar[Hazard]
    way_out: ClassVar[str]
    more_ways_out: ClassVar[Mapping[str, str]] = {}
    """Others, by the kind of what varies."""

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.divergent_branches():
            if found.hazard == self.hazard:
                yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: Divergence) -> Diagnostic:
        place = program.place(found.call.site)
        at = program.where(found.branch, place.path)
        frames = len(found.call.path) - 1
        through = f" ({frames} call{'' if frames == 1 else 's'} below)" if frames else ""
        count = len(found.others)
        more = "" if not count else f", and {count} more after it" if count <= MANY else ", and many more after it"
        guard = _guard(found)
        told = "An exception leads here on some processes only." if found.handler else _VARIES
        related = [Related(program.place(found.branch), told)]
        related += [Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()]
        related += [Related(program.place(site), "This leads to the parallel call.") for site in found.call.path[1:]]
        way_out = " ".join(filter(None, (self.way_out, self.more_ways_out.get(found.reason.kind))))
        return self.finding(
            message=(
                f"{found.call.name} is a parallel call{through}, and {guard} at {at} lets only some processes make "
                f"it{more}: {_why(program, found.reason, place.path)}."
            ),
            place=place,
            help=f"The others never join it, and the job hangs or pairs the wrong calls. {way_out}",
            related=tuple(related),
        )


def _why(program: Program, reason: Reason, seen_from: Path) -> str:
    """Why the condition varies, in words: its source, or what was made of that and is at fault."""
    cause = reason.cause
    return cause.text if cause is reason.source else f"at {program.where(cause.site, seen_from)}, {cause.text}"


def _guard(found: Divergence) -> str:
    """What lets only some processes make the call, in words."""
    if found.handler:
        return "the handler"
    return "the early exit" if found.early_exit else "the loop" if found.loop else "the condition"
