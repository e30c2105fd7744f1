"""Which function of the linted program the linter is busy with, told from a frame of its own."""

from __future__ import annotations

from pathlib import Path
from types import FrameType

from spmdlint.analysis.evaluation.values import Frame

_NAME = "frame"
"""What every analysis calls the function that it looks at."""


def analysed(frame: FrameType) -> tuple[Path, str] | None:
    """The file and the name of the function that a frame is about, if it is about one."""
    if _NAME not in frame.f_code.co_varnames:
        return None
    about = frame.f_locals.get(_NAME)
    return (about.ref.path, about.code.function.qualname) if isinstance(about, Frame) else None
