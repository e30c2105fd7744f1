"""Resolves an unknown function by its arguments: only a map takes arrays with one row per local device.

A function that takes an array over the devices of several processes computes on all of them. Trainers receive their
step function as a parameter, and the linter often sees no caller: ``p_step(state, shard(batch))``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from spmdlint.analysis.evaluation.values import Frame, Free, Unknown, Values
from spmdlint.program import summary as s

_STEP = re.compile(r"^p_|pmap|parallel|step|update|train|eval")


def unknown_map(frame: Frame, call: s.Call, callees: Values, is_for_all: Callable[[Frame, int], bool]) -> str | None:
    """The name of an unknown function that must be a map over all devices; None otherwise.

    It is named like a training step, and it is passed an array with one row per local device, or one over the devices
    of several processes, as far as ``is_for_all`` knows; or its name alone says so.
    """
    called = frame.code.operations[call.function]
    if not isinstance(called, (s.Load, s.Attribute)) or _STEP.search(called.name) is None:
        return None
    if not all(isinstance(callee, (Unknown, Free)) for callee in callees):
        return None
    found = "pmap" in called.name or any(is_for_all(frame, argument.value) for argument in call.arguments)
    return called.name if found else None
