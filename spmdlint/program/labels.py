"""Names in the source: those by which processes match calls, f-strings with variables in braces, and what is called."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spmdlint.program import summary as s

_HOLES = re.compile(r"\{[^}]*\}")


def template(operations: Sequence[s.Operation], number: int | None) -> str | None:
    """The text of an f-string of constants and names; None for anything else."""
    written = operations[number] if number is not None else None
    if not isinstance(written, s.FString):
        return None
    text = ""
    for part in (operations[each] for each in written.parts):
        if isinstance(part, s.Const) and isinstance(part.value, str) and not {"{", "}"} & set(part.value):
            text += part.value
        elif isinstance(part, s.Load):
            text += f"{{{part.name}}}"
        else:
            return None
    return text


def may_be_one(one: str | None, other: str | None) -> bool:
    """Whether two names may be the same: if they have different variables in braces, they may."""
    return one is None or other is None or one == other or _HOLES.findall(one) != _HOLES.findall(other)


def called_as(function: s.Function, number: int) -> str | None:
    """The variable or field that a call calls: "norm" in ``norm(x)`` and ``self.norm(x)``; None for anything else."""
    call = function.operations[number]
    called = function.operations[call.function] if isinstance(call, s.Call) else None
    return called.name if isinstance(called, (s.Load, s.Attribute)) else None
