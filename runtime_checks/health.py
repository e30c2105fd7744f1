"""Whether the checks themselves are well: the self-test, and numbers that an operator can watch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spmdlint.runtime_checks import preflight

if TYPE_CHECKING:
    from spmdlint.runtime_checks.session import Session

AGAIN = 600.0  # seconds until the self-test is repeated
TESTED = ("dispatch", "every-call")  # the layers that it tests


class Health:
    """The checks of one process. The self-test runs in the watcher thread, and at the latest at the end.

    Whether the layers are still in place is looked at each time, before calls are compared or told to others.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.test: Callable[[], str | None] | None = None  # set with the layers: what is wrong, None if nothing
        self.put_back: Callable[[], list[str]] = list  # set with the layers: what others have removed of them
        self.result = "not run yet"
        self._tested_at: float | None = None
        self.looked_at = time.monotonic()

    def look(self) -> None:
        """Run the self-test when it is due; steps aside if the checks turn out to be blind."""
        self.looked_at = now = time.monotonic()
        if self._session.active and (gone := self.put_back()):
            # Before calls are compared that were not all seen: they would look like a divergence.
            self._session.stand_down(
                "the runtime checks are off from now on: they are not told of every call, because another tool has put "
                f"back what they hook into ({', '.join(gone)})."
            )
            return
        if self._tested_at is not None and now - self._tested_at < AGAIN:
            return
        session = self._session
        if self.test is None or not session.active or not preflight.devices_are_up():
            return
        self._tested_at = now
        off = [name for name in TESTED if session.layers.get(name, "on") != "on"]
        if off:
            self.result = f"not run: {', '.join(off)} off"
            return
        try:
            wrong = self.test()
        except Exception as error:  # a program may forbid what it needs, such as transfers
            self.result = f"not run: {type(error).__name__}"
            return
        self.result = wrong or "passed"
        if wrong is not None:
            version = getattr(sys.modules.get("jax"), "__version__", "?")
            session.stand_down(
                f"the runtime checks are off from now on: JAX {version} does not tell them of every call ({wrong}), or "
                "another tool has replaced what they hook into."
            )

    def numbers(self) -> dict[str, Any]:
        """Numbers to watch; times are in seconds."""
        session, now = self._session, time.monotonic()
        numbers: dict[str, Any] = {
            "self_test": self.result,
            "self_test_age": None if self._tested_at is None else round(now - self._tested_at, 1),
            "watcher_age": round(now - self.looked_at, 1),
            "store_failures": session.exchange.store.failures,
            "layers_off": sorted(name for name, state in session.layers.items() if state != "on"),
        }
        background = session.background
        if background is not None:
            numbers["not_numbered"] = len(background.journal.pending)
            numbers["published_age"] = background.published_age()
        return numbers
