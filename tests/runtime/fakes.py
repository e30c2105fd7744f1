"""A key-value store in memory with the methods of JAX's distributed client, and jobs of threads over it."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spmdlint.runtime_checks.agreement.joining import Joining, Member
from spmdlint.runtime_checks.background.publishing import Cadence
from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.errors import DivergenceError
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.reporting.report import Report
from spmdlint.runtime_checks.session import Session
from spmdlint.runtime_checks.transport.exchange import Listener
from spmdlint.runtime_checks.transport.store import Store


class FakeClient:
    """All methods that the store uses, with JAX's error texts."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.changed = threading.Condition()

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        with self.changed:
            if key in self.values and not allow_overwrite:
                raise RuntimeError(f"ALREADY_EXISTS: key {key} already exists.")
            self.values[key] = value
            self.changed.notify_all()

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.values, timeout_in_ms / 1000):
                raise RuntimeError("DEADLINE_EXCEEDED: GetKeyValue() timed out")
            return self.values[key]

    def key_value_try_get(self, key: str) -> str:
        with self.changed:
            if key not in self.values:
                raise RuntimeError(f"NOT_FOUND: {key}")
            return self.values[key]

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        with self.changed:
            return [(name, value) for name, value in self.values.items() if name.startswith(key + "/")]

    def key_value_delete(self, key: str) -> None:
        with self.changed:
            for name in [name for name in self.values if name == key or name.startswith(key + "/")]:
                del self.values[name]


def program(function: str, processes: tuple[int, ...], **fields: Any) -> Program:
    return Program(function=function, processes=processes, **{"module": f"module of {function}", **fields})


def call(
    session: Session,
    function: str,
    processes: tuple[int, ...],
    line: int = 1,
    tags: str = "",
    callers: tuple[str, ...] = (),
    source: bool | None = None,
    values: Sequence[Any] = (),
    **fields: Any,
) -> str:
    """Make one parallel call in a session."""
    site = Site("/home/me/train.py", line, "main", callers)
    return session.call(Call(program(function, processes, **fields), site, tags=tags, source=source, values=values))


class Job:
    """Several processes of one job as threads: each runs ``body(session)`` and then tells that it has finished."""

    def __init__(self, count: int, options: Options | None = None, client: Any = None) -> None:
        self.client = client or FakeClient()
        self.options = options or Options(late_after=60)
        self.sessions = [Session(Store(self.client, "job"), me, count, self.options) for me in range(count)]
        self.errors: dict[int, BaseException] = {}

    def run(
        self, body: Callable[[Session], None], within: float = 90, *, steps_aside: bool = False
    ) -> dict[int, BaseException]:
        """Run it to the end; returns what was raised. That checks step aside, and find nothing, has to be expected."""
        threads = [threading.Thread(target=self._one, args=(one, body), daemon=True) for one in self.sessions]
        for thread in threads:
            thread.start()
        limit = time.monotonic() + within
        for thread in threads:
            thread.join(max(0.0, limit - time.monotonic()))
        assert not any(thread.is_alive() for thread in threads), "a process of the job hangs"
        aside = [one for one in self.sessions if not one.checks.active and one.ending.verdict is None]
        assert bool(aside) == steps_aside, [one.checks.why_inactive for one in aside]
        return self.errors

    def _one(self, session: Session, body: Callable[[Session], None]) -> None:
        state = "finished"
        try:
            body(session)
        except Exception as error:
            self.errors[session.me] = error
            state = "raised"
        if session.checks.active and not isinstance(self.errors.get(session.me), DivergenceError):
            session.own.publish_quiet(session.job)
            session.job.put_state(session.own.end_state(state, None, None))


def joining(session: Session, within: float = 60.0, **fields: Any) -> Joining:
    """A process on its way into the checks of its job."""
    mine = Member(**{"token": f"token {session.me}", "version": "1", "mode": session.job.options.mode, **fields})
    return Joining(session.job, mine, within)


class AlwaysDue(Cadence):
    """Publishes and looks at every tick."""

    def published(self, keys: int) -> None:
        return

    def looked(self) -> None:
        return


class Behind:
    """Several processes of one job in background mode, without threads of their own but for listening."""

    def __init__(self, count: int, **options: Any) -> None:
        self.client = FakeClient()
        chosen = Options(mode="background", on_divergence="report", late_after=1e9)
        self.sessions = [
            Session(Store(self.client, "job"), me, count, replace(chosen, **options)) for me in range(count)
        ]
        self.everyone = tuple(range(count))
        self.listeners = []
        for session in self.sessions:
            background = session.background
            assert background is not None
            background.cadence = AlwaysDue(session.me, count)
            assert joining(session).register()
            self.listeners.append(Listener(session.job, functools.partial(self._woken, session)))
        for listener in self.listeners:
            listener.start()

    def _woken(self, session: Session, _word: Mapping[str, Any]) -> None:
        assert session.background is not None
        session.others.answer(calls=session.checks.active)
        session.background.hear()
        session.ending.look()

    def make(self, me: int, function: str, line: int = 1, times: int = 1, **fields: Any) -> None:
        """A process makes calls that are new to it the first time, and on the fast path after that."""
        processes = fields.pop("processes", self.everyone)
        background = self.sessions[me].background
        assert background is not None
        texts = fields.pop("texts", dict)
        called = Call(program(function, processes, **fields), Site("/home/me/train.py", line, "main"), texts=texts)
        background.made(called)
        for _ in range(times - 1):
            background.journal.note(background.journal.event_of(called.program, called.site))

    def tick(self, *processes: int) -> None:
        """What the watching threads do from time to time; first all publish, then who leads compares."""
        for me in processes or self.everyone:
            background = self.sessions[me].background
            assert background is not None
            background.tick()

    def report(self) -> Report | None:
        """The verdict, if there is one after a look of everybody."""
        self.tick()
        self.tick()
        told = [one.ending.verdict for one in self.sessions if one.ending.verdict is not None]
        return max(told, key=lambda verdict: len(verdict.processes), default=None)  # others have it in short

    def stop(self) -> None:
        """End the threads."""
        for listener in self.listeners:
            listener.stop()
