"""Random numbers that each process draws for itself, from a generator with a seed of its own.

They are data of that process, like the contents of its own file: they differ, and do not tell which process it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.origins import Origins
from spmdlint.analysis.variance.reason import Reason

_TEXT = "each process draws numbers of its own here"


def drawn(site: Site, generator: Reason | None) -> Reason | None:
    """Why the numbers vary that a generator draws, which varies because of ``generator``."""
    if generator is None or generator.kind != "identity":
        return generator
    return Reason(site, _TEXT, "data", generator)


def drawn_in_round(content: Origins, frame: Frame, loop: int, values: Iterable[int]) -> Reason | None:
    """Why a value varies that is drawn anew in each iteration of a loop."""
    block_of = frame.code.function.block_of
    body = frame.code.flow.loop_body(block_of[loop])
    found = content.any_of(frame, values)
    cause = None if found is None or found.kind != "data" else found.cause
    if cause is None or cause.text != _TEXT or cause.site.ref != frame.ref:
        return None
    return found if block_of[cause.site.number] in body else None
