"""What ran before the checks were on: programs that span processes and have been executed."""

from __future__ import annotations

import gc
import sys
from typing import Any

from spmdlint.runtime_checks.intercept.observer import devices_of

MOST = 64  # names


def ran_before() -> tuple[str, ...]:
    """The names of the programs over several processes that this process has made ready to execute, sorted.

    A process that enables the checks later than others has run some that they have not.
    """
    pxla: Any = sys.modules.get("jax._src.interpreters.pxla")
    kind = getattr(pxla, "ExecuteReplicated", None)
    if kind is None:
        return ()
    names = {
        str(getattr(one, "name", "?"))
        for one in gc.get_objects()
        if type(one) is kind and len({device.process_index for device in devices_of(one)}) > 1
    }
    return tuple(sorted(names)[:MOST])
