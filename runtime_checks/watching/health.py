"""Whether the checks themselves are well: the self-test, and numbers that an operator can watch.

The self-test is whether JAX still tells the checks of every call, tried on a tiny program on one local device. A layer
may be installed and see nothing: a later JAX need not call what it replaces, and other code may replace it again. So a
function of this module is jitted and called a few times, through the same seams as the program's own functions. It adds
1 to one number on this process's CPU, or on its first device if JAX has no CPU: nothing is exchanged, nothing waited
for. It runs in the thread of the checks, and again from time to time.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.agreement.setup import devices_are_up
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.intercept.layers import Interception
from spmdlint.runtime_checks.intercept.observer import Observer, Probe
from spmdlint.runtime_checks.records import HealthNumbers

AGAIN = 600.0  # seconds until the self-test is repeated
TESTED = ("dispatch", "every-call")  # the layers that it tests
CALLS = 4  # the first of which is always off the fast path


class Health:
    """The checks of one process. The self-test runs in the watcher thread, and at the latest at the end.

    Whether the layers are still in place is looked at each time, before calls are compared or told to others.
    """

    def __init__(self, parts: Parts, background: Background | None) -> None:
        self._job, self._own, self._checks = parts.job, parts.own, parts.checks
        self._background = background
        self.interception: Interception | None = None  # once the layers are installed
        self.result = "not run yet"
        self._tested_at: float | None = None
        self.looked_at = time.monotonic()

    def look(self) -> None:
        """Run the self-test when it is due; steps aside if the checks turn out to be blind."""
        self.looked_at = now = time.monotonic()
        # Before calls are compared that were not all seen: they would look like a divergence.
        if self._checks.active and self._steps_aside():
            return
        if self._tested_at is not None and now - self._tested_at < AGAIN:
            return
        if not self._checks.active:
            if self._tested_at is None:
                self.result = "not run: the checks are off"  # for good: who waits for a result need not go on
            return
        if self.interception is None or not devices_are_up():
            return
        self._tested_at = now
        off = [name for name in TESTED if self._own.layers.get(name, "on") != "on"]
        if off:
            self.result = f"not run: {', '.join(off)} off"
            return
        try:
            wrong = self_test(self.interception.observer)
        except Exception as error:  # a program may forbid what it needs, such as transfers
            self.result = f"not run: {type(error).__name__}"
            return
        self.result = wrong or "passed"
        if wrong is not None and not self._steps_aside():  # it may have happened during the test
            version = getattr(sys.modules.get("jax"), "__version__", "?")
            self._checks.stand_down(
                f"the runtime checks are off from now on: JAX {version} does not tell them of every call ({wrong}), or "
                "another tool has replaced what they hook into."
            )

    def _steps_aside(self) -> bool:
        """Whether others have removed what the layers replace: the checks are off then."""
        gone = self.interception.put_back() if self.interception is not None else []
        if gone:
            self._checks.stand_down(
                "the runtime checks are off from now on: they are not told of every call, because another tool has put "
                f"back what they hook into ({', '.join(gone)})."
            )
        return bool(gone)

    def numbers(self) -> HealthNumbers:
        background, now = self._background, time.monotonic()
        numbers: HealthNumbers = {
            "self_test": self.result,
            "self_test_age": None if self._tested_at is None else round(now - self._tested_at, 1),
            "watcher_age": round(now - self.looked_at, 1),
            "store_failures": self._job.store.failures,
            "layers_off": self._own.layers_off,
        }
        if background is not None:
            numbers["not_numbered"] = len(background.journal.pending)
            numbers["published_age"] = background.published_age()
        return numbers

    def line(self) -> str:
        job = self._job
        told = {"spmdlint": "health", "process": job.me, "mode": job.options.mode, "watching": self._checks.active}
        return json.dumps({**told, **self.numbers()}) + "\n"


def self_test(observer: Observer) -> str | None:
    """Call a tiny program; returns what is wrong in words, or None if every call was seen."""
    import jax
    import numpy as np

    probe = Probe()
    observer.thread.probe = probe
    try:
        bridge: Any = sys.modules.get("jax._src.xla_bridge")
        backends = bridge.backends() if hasattr(bridge, "backends") else {}
        value = jax.device_put(np.float32(0), backends.get("cpu", jax).local_devices()[0])
        plus_one = jax.jit(lambda number: number + 1)
        for _ in range(CALLS):
            plus_one(value)
    finally:
        observer.thread.probe = None
    if probe.seen >= CALLS:
        return None
    return f"of {CALLS} calls of a test program, {probe.seen} were seen"
