"""Whether the checks themselves are well: the self-test, and numbers that an operator can watch."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.agreement.setup import devices_are_up
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.records import HealthNumbers

AGAIN = 600.0  # seconds until the self-test is repeated
TESTED = ("dispatch", "every-call")  # the layers that it tests


class Health:
    """The checks of one process. The self-test runs in the watcher thread, and at the latest at the end.

    Whether the layers are still in place is looked at each time, before calls are compared or told to others.
    """

    def __init__(self, parts: Parts, background: Background | None) -> None:
        self._job, self._own, self._checks = parts.job, parts.own, parts.checks
        self._background = background
        self.test: Callable[[], str | None] | None = None  # set with the layers: what is wrong, None if nothing
        self.put_back: Callable[[], list[str]] = list  # set with the layers: what others have removed of them
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
        if self.test is None or not self._checks.active or not devices_are_up():
            return
        self._tested_at = now
        off = [name for name in TESTED if self._own.layers.get(name, "on") != "on"]
        if off:
            self.result = f"not run: {', '.join(off)} off"
            return
        try:
            wrong = self.test()
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
        gone = self.put_back()
        if gone:
            self._checks.stand_down(
                "the runtime checks are off from now on: they are not told of every call, because another tool has put "
                f"back what they hook into ({', '.join(gone)})."
            )
        return bool(gone)

    def numbers(self) -> HealthNumbers:
        """The numbers as they are now."""
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
        """The health of the checks in this process, as one line of JSON."""
        job = self._job
        told = {"spmdlint": "health", "process": job.me, "mode": job.options.mode, "watching": self._checks.active}
        return json.dumps({**told, **self.numbers()}) + "\n"
