"""Reads of environment variables: ``os.environ["RANK"]``, ``os.environ.get("RANK")``, ``os.getenv("RANK")``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

GETTERS = frozenset(names("environment_getters"))
_MAPPING = "os.environ"


def variable_read(ev: Evaluator, frame: Frame, operation: s.Operation) -> int | None:
    """The operand that names the environment variable an operation reads; None if it reads none."""
    if isinstance(operation, s.Subscript):
        bases = ev.value(frame, operation.base)
        return operation.index if any(isinstance(b, External) and b.name == _MAPPING for b in bases) else None
    if isinstance(operation, s.Call) and operation.arguments:
        callee = ev.callee(frame, operation)
        reads = isinstance(callee, External) and callee.name in GETTERS
        return operation.arguments[0].value if reads else None
    return None
