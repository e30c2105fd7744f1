"""Collectives that are called without their axis."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.axes.specs import Specs
from spmdlint.analysis.evaluation.values import Site

_REQUIRED = "jax.lax."
"""Functions of other libraries may have a default axis."""


class MissingAxis(Struct, frozen=True):
    """A call of a collective that names no axis."""

    site: Site
    collective: str
    parameter: str


def missing_axes(specs: Specs) -> Iterator[MissingAxis]:
    """Each such call once; a call with starred arguments may pass the axis in them."""
    told: set[Site] = set()
    for use in specs.applications:
        known = specs.ev.knowledge.get(use.applied.name)
        if known is None or known.kind != "collective" or known.axes is None or use.site in told:
            continue
        if not known.name.startswith(_REQUIRED) or known.axes not in known.positional:
            continue
        given = use.applied.arguments
        if given.open or not given.positional or specs.ev.argument(use.applied, known.axes) is not None:
            continue
        told.add(use.site)
        yield MissingAxis(use.site, known.name, known.axes)
