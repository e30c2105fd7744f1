"""The base class of the rules about orders, which share one wording for arguments in an order of a process's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from spmdlint.diagnostics import Diagnostic, Fix, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Breach, ListingNumbers, Program

_MIXED = "The processes combine elements that do not belong together."
_COMPOSED = "The processes compile different programs, and a checkpoint of one process does not fit another."
_ORDERS = {
    "set": "the order of a set",
    "listing": "the order of a listing",
    "shuffled": "the order of a listing",
    "completion": "the order of completion",
}
_DEALT = "Each process takes its records by number, so the shares overlap and leave records out."


class OrderedRule(Rule):
    """A rule on an order that differs between processes."""

    listed: ClassVar[str]
    """What names are numbered in, in words."""

    def numbered(self, program: Program, found: ListingNumbers, mend: str, fix: Fix | None) -> Diagnostic:
        """A finding about numbers that names get by their position in such an order."""
        steps = [Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()]
        return self.finding(
            message=f"Names are numbered by their position in {self.listed}: {found.reason.source.text}.",
            place=program.place(found.site),
            help=f"The same number stands for different names on different hosts, and nothing fails. {mend}",
            related=(*steps, Related(program.place(found.kept), "The numbers are stored here.")),
            fix=fix,
            cause=program.cause(found.reason),
        )

    def argument(self, program: Program, found: Breach, mend: str, fix: Fix | None) -> Diagnostic:
        """A finding about an argument of which the elements are in such an order."""
        place, demand = program.place(found.site), found.demand
        effect = _COMPOSED if demand.known.composes else _DEALT if demand.facet == "records" else _MIXED
        return self.finding(
            message=(
                f"The elements passed to {demand.call_name} are in {_ORDERS[found.reason.kind]}, which differs between "
                f"processes ({program.where(found.reason.source.site, place.path)})."
            ),
            place=place,
            help=f"{effect} {mend}",
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
            fix=fix,
            cause=program.cause(found.reason),
        )
