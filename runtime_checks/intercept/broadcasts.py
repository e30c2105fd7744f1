"""The source of ``broadcast_one_to_all``. JAX sums what the sources pass: with two, the result is that of neither."""

from __future__ import annotations

from pathlib import PurePath
from types import FrameType

from spmdlint.runtime_checks.calls.fingerprint import Program

MODULE = "multihost_utils.py"
FUNCTION = "broadcast_one_to_all"


def is_source(program: Program, frame: FrameType | None) -> bool | None:
    """Whether this process is the source of the broadcast in progress; None if the program is not part of one.

    It is read from the frame of JAX's function, which may have been imported by name before the checks were on.
    """
    if not (program.defined_at or "").startswith(f"{MODULE}:"):
        return None
    while frame is not None:
        code = frame.f_code
        if code.co_name == FUNCTION and PurePath(code.co_filename).name == MODULE:
            found = frame.f_locals.get("is_source")
            return found if found is None else bool(found)
        frame = frame.f_back
    return None
