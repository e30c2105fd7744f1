"""What a called object is called in the source."""

from __future__ import annotations

from spmdlint.program import summary as s


def called_as(function: s.Function, number: int) -> str | None:
    """The variable or field that a call calls: "norm" in ``norm(x)`` and ``self.norm(x)``; None for anything else."""
    call = function.operations[number]
    called = function.operations[call.function] if isinstance(call, s.Call) else None
    return called.name if isinstance(called, (s.Load, s.Attribute)) else None
