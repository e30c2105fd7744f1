"""Which function of the linted program the linter is analysing, determined from the linter's own stack frames."""

from __future__ import annotations

from pathlib import Path
from types import FrameType

from spmdlint.analysis.evaluation.values import Frame

_NAME = "frame"
"""The local variable in which every analysis holds the frame that it analyses."""


def analysed(frame: FrameType) -> tuple[Path, str] | None:
    """The file and the name of the function that a stack frame analyses, if it analyses one."""
    if _NAME not in frame.f_code.co_varnames:
        return None
    about = frame.f_locals.get(_NAME)
    return (about.ref.path, about.code.function.qualname) if isinstance(about, Frame) else None
