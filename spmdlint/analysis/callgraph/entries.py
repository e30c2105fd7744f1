"""The ways in which a function is entered with functions to call: as a wrapper is, or a retry, or a hook."""

from __future__ import annotations

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.values import Applied, Frame, FunctionValue, Instance
from spmdlint.program.link import FunctionRef

MAX_FRAMES = 8
"""Ways to enter one function that are looked at besides the one of which nothing is known."""


class Entries:
    """Those frames by function. One per run."""

    def __init__(self, reach: Reach) -> None:
        self._frames: dict[FunctionRef, list[Frame]] = {}
        for frame in reach.frames:
            if len(self._frames.get(frame.ref, ())) < MAX_FRAMES and _binds_functions(frame):
                self._frames.setdefault(frame.ref, []).append(frame)

    def of(self, ref: FunctionRef) -> list[Frame]:
        """The frames in which a name that a function uses is bound to a function."""
        return self._frames.get(ref, [])


def _binds_functions(frame: Frame) -> bool:
    """Is a parameter here, or one of the function around it, bound to a function."""
    current: Frame | None = frame
    while current is not None:
        for values in current.bindings.values():
            if any(isinstance(value, (FunctionValue, Applied, Instance)) for value in values):
                return True
        current = current.outer
    return False
