"""What ran before the checks were on: programs that span processes and have been executed.

A process that enables the checks later than others has run some that they have not.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

from spmdlint.runtime_checks.intercept.observer import devices_of

MOST = 64  # names
FORGOTTEN = "programs that JAX has dropped"


def ran_before() -> tuple[str, ...]:
    """The names of the programs over several processes that this process has made ready to execute, sorted.

    The last one is :data:`FORGOTTEN` if this process has compiled programs that are no more, such as that of a function
    made for one call: they may have spanned processes.
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
    return (*sorted(names)[:MOST], *([FORGOTTEN] if _has_forgotten(pxla) else ()))


def _has_forgotten(pxla: Any) -> bool:
    """Whether JAX's cache of compiled programs has lost some, which it does with the functions that they are of."""
    counts = getattr(getattr(pxla, "_cached_compilation", None), "cache_info", None)
    if counts is None:
        return False
    found = counts()
    return bool(found.misses > found.currsize)
