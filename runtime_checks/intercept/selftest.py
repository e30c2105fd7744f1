"""The self-test: whether JAX still tells the checks of every call, tried on a tiny program on one local device.

A layer may be installed and see nothing: a later JAX need not call what it replaces, and other code may replace it
again. So a function of this module is jitted and called a few times, through the same seams as the program's own
functions. It adds 1 to one number on this process's CPU, or on its first device if JAX has no CPU: nothing is
exchanged, nothing waited for. It runs in the thread of the checks, and again from time to time.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.intercept.observer import Known, Observer
from spmdlint.runtime_checks.recording.journal import Journal

CALLS = 4  # the first of which is always off the fast path


@dataclass(slots=True)
class Probe:
    """What the layers see of the calls of a self-test: in Python, and inside the fast path."""

    journal: Journal = field(default_factory=lambda: Journal(Ledger()))
    dispatched: int = 0
    known: Known | None = None

    @property
    def seen(self) -> int:
        """The calls that were seen at all."""
        self.journal.drain()
        return self.dispatched + self.journal.made


def self_test(observer: Observer) -> str | None:
    """Call a tiny program; returns what is wrong in words, or None if every call was seen."""
    import jax
    import numpy as np

    probe = Probe()
    observer.thread.probe = probe
    try:
        value = jax.device_put(np.float32(0), _device())
        plus_one = jax.jit(lambda number: number + 1)
        for _ in range(CALLS):
            plus_one(value)
    finally:
        observer.thread.probe = None
    if probe.seen >= CALLS:
        return None
    return f"of {CALLS} calls of a test program, {probe.seen} were seen"


def _device() -> Any:
    import jax

    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    backends = bridge.backends() if hasattr(bridge, "backends") else {}
    return backends.get("cpu", jax).local_devices()[0]
