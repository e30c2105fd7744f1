"""How long a text is: one that a process found for itself, letter by letter, or a whole file of it."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_OWN = ("files", "host", "data")
"""Kinds of what has another length on every process; numbers, times and random names are as long everywhere."""
_WHOLE_FILES = frozenset(("read_bytes", "read_text"))


def of_letters(content: Origins, frame: Frame, number: int, operation: s.Collected) -> Reason | None:
    """``[ord(c) for c in name]``: as many as the name has."""
    call = frame.code.operations[operation.element]
    if not isinstance(call, s.Call) or len(operation.loops) != 1:
        return None
    if not any(v == External("builtins.ord") for v in content.ev.value(frame, call.function)):
        return None
    loop = frame.code.operations[operation.loops[0]]
    found = content.of(frame, loop.iterable) if isinstance(loop, s.Next) else None
    if found is None or found.kind not in _OWN:
        return None
    return content.step(frame, number, "there are as many as the text has letters", found)


def of_whole_file(frame: Frame, number: int, method: s.Attribute) -> Reason | None:
    """``path.read_bytes()``: as much as the file holds that the process finds."""
    if method.name not in _WHOLE_FILES:
        return None
    return Reason(Site(frame.ref, number), f".{method.name}() may find another file on every process", "files")
