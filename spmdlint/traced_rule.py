"""The base class of the rules about constants in traced code, which share one check and one wording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, Reason, Site, TracedConstant


class TracedRule(Rule):
    """A rule on process-specific values that become constants while JAX traces."""

    shapes: ClassVar[bool]
    """True for the values that decide the shape of an array, False for all others."""
    then: ClassVar[str]
    """The consequence, as the end of the message."""

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for constant in program.traced_constants():
            if constant.shapes is self.shapes:
                yield self._constant(program, constant)

    def _constant(self, program: Program, found: TracedConstant) -> Diagnostic:
        text = found.reason.source.text
        message = f"{found.name} is given a process-specific value while JAX traces: {text}, so {self.then}."
        way_out = "Compute the value outside and pass it as an argument, or use jax.lax.axis_index inside a map."
        traced = tuple(Related(program.place(site), "JAX reaches it through here while tracing.") for site in found.way)
        return self.diagnostic(
            program, place_of=found.site, message=message, way_out=way_out, reason=found.reason, more=traced
        )

    def diagnostic(
        self,
        program: Program,
        *,
        place_of: Site,
        message: str,
        way_out: str,
        reason: Reason,
        more: tuple[Related, ...] = (),
    ) -> Diagnostic:
        """A finding whose notes are the steps of its reason."""
        steps = tuple(Related(program.place(step.site), sentence(step.text)) for step in reason.chain())
        return self.finding(
            message=message,
            place=program.place(place_of),
            help=way_out,
            related=(*steps, *more),
            cause=program.cause(reason),
        )
