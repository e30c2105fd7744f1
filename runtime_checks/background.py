"""Background mode: calls are recorded as they are made, published by the watching thread, and compared by one process.

Nothing waits for another process. A divergence is found after the fact, also while the main threads hang in it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spmdlint.runtime_checks.call import Call
from spmdlint.runtime_checks.history import History, Row, judge, read_history, row_data
from spmdlint.runtime_checks.ledger import Entry, Group
from spmdlint.runtime_checks.recording import read, read_programs

if TYPE_CHECKING:
    from spmdlint.runtime_checks.recording import Recording
    from spmdlint.runtime_checks.report import Report
    from spmdlint.runtime_checks.session import Session

PUBLISHED = 256  # rows that a process keeps published


class Background:
    """The recording and comparing of one process."""

    def __init__(self, session: Session, recording: Recording | None) -> None:
        self._session = session
        self._recording = recording
        self._rows: deque[list[Any]] = deque(maxlen=PUBLISHED)
        self._known: set[str] = set()
        self._changed = False
        self._lock = threading.Lock()
        self._last: list[Any] | None = None

    def made(self, group: Group, entry: Entry, call: Call) -> None:
        """Record a call before it is dispatched; a program that is new is published before it runs."""
        digest, site = call.program.digest, call.site
        others = {one.key: one.count for one in self._session.ledger.groups() if one is not group}
        filename, line = (site.filename, site.line) if site else (None, None)
        row = Row(entry.index, f"{group.prefix:016x}", digest, call.program.function, filename, line, others)
        data = row_data(group.key, group.processes, row)
        if self._recording is not None:
            self._recording.write(data)
        self._rows.append(data)
        self._changed = True
        if digest not in self._known:
            self._known.add(digest)
            record = {**call.program.decisive(), "static": dict(call.static)}
            record["arguments"] = call.explained(self._session.provenance)
            if self._recording is not None:
                self._recording.write_program(digest, record)
            self._session.exchange.publish_program(digest, record)
            self.publish()

    def publish(self, state: str = "running", end: Mapping[str, Any] | None = None) -> None:
        """Put this process's history where the others can read it."""
        with self._lock:
            self._changed = False
            history = {"state": state, "rows": list(self._rows), "counts": self._session.ledger.counts(), "end": end}
            self._session.exchange.put_history(history)

    def look(self) -> None:
        """For the watching thread: publish what is new; the lowest process that lives compares."""
        if self._changed:
            self.publish()
        session = self._session
        lower = range(session.me)
        if all(session.folder is not None and session.folder.gone(process) is not None for process in lower):
            report = self.judge()
            if report is not None:
                session.ending.declare(report)

    def judge(self) -> Report | None:
        """Compare what is known of all processes."""
        histories = {}
        for process in range(self._session.count):
            history = self._history(process)
            if history is not None:
                histories[process] = history
        return judge(histories, self._program)

    def _history(self, process: int) -> History | None:
        session = self._session
        told = session.exchange.history(process)
        gone = session.folder.gone(process) if session.folder is not None else None
        if told is not None and (gone is None or told.get("state") != "running"):
            history = read_history(str(told.get("state")), list(told.get("rows") or []), told.get("end"))
            history.counts.update({key: int(n) for key, n in dict(told.get("counts") or {}).items()})
            return history
        if gone is None or session.options.run_folder is None:
            return None
        # It died before it could publish its last calls: they are in its recording.
        rows = read(session.options.run_folder / f"{process}.ledger")
        ended = session.ended(process) or {"state": "died"}
        return read_history(str(ended["state"]), rows, ended)

    def _program(self, process: int, digest: str) -> dict[str, Any]:
        found = self._session.exchange.program(process, digest)
        if not found and self._session.options.run_folder is not None:
            found = read_programs(self._session.options.run_folder / f"{process}.ledger").get(digest, {})
        return found
