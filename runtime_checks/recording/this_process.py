"""What this process knows of itself: its calls so far, and where it is."""

from __future__ import annotations

import sys
import time
from typing import Any

from spmdlint.runtime_checks.calls.frames import Site, main_stack, site_data
from spmdlint.runtime_checks.calls.given import Values
from spmdlint.runtime_checks.calls.ledger import Entry, Ledger, thread_names
from spmdlint.runtime_checks.calls.provenance import Provenance, Unplaced
from spmdlint.runtime_checks.calls.quiet import QuietCalls
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.recording.writing import Recording
from spmdlint.runtime_checks.records import Build, Place, State
from spmdlint.runtime_checks.reporting.report import ProcessReport, reported
from spmdlint.runtime_checks.transport.exchange import Job

RECENT = 8
THREADS = 8  # that are named
COMPILING_AFTER = 5.0  # seconds: from then on, a compilation is worth a word


class ThisProcess:
    """The calls of this process, and what it tells of itself.

    ``layers`` are the layers of interception, "on" or why not. ``journal`` has the calls, and writes them to the
    recording, if there is one. ``racing`` are the names of the threads that
    make calls over one set of processes, if there are several.
    """

    def __init__(self, values: Values | None = None, recording: Recording | None = None) -> None:
        self.ledger = Ledger()
        self.provenance = Provenance()
        self.values = values or Values()
        self.unplaced = Unplaced()
        self.quiet = QuietCalls(self.provenance)
        self.layers: dict[str, str] = {}
        self.racing: set[str] = set()
        self.journal = Journal(self.ledger, recording)
        self._compiling: tuple[str, float] | None = None

    def compiles(self, what: str | None) -> None:
        """Record what the compiler is working on, or None when it is done."""
        self._compiling = None if what is None else (what, time.monotonic())

    @property
    def compiling(self) -> str | None:
        """What the compiler has been working on for some time."""
        held = self._compiling
        return held[0] if held is not None and time.monotonic() - held[1] > COMPILING_AFTER else None

    @property
    def layers_off(self) -> list[str]:
        return sorted(name for name, state in self.layers.items() if state != "on")

    def build(self) -> Build:
        """What this process runs with: of JAX and jaxlib, as far as they are imported."""
        versions = {"python": sys.version.split()[0]}
        for name in ("jax", "jaxlib"):
            module: Any = sys.modules.get(name)
            versions[name] = str(getattr(module, "__version__", "?"))
        return {"versions": versions, "layers": dict(self.layers)}

    def notice_threads(self) -> None:
        """Remember the threads that make calls over one set of processes, if there are several."""
        for group in self.ledger.groups():
            if len(group.threads) > 1 and not self.racing:
                self.racing.update(thread_names(group))

    def where(self) -> State:
        """Where this process is now, for others to read."""
        stack, site = main_stack()
        last = self.ledger.last
        in_call = last is not None and last.site is not None and site is not None and str(site) == str(last.site)
        called = last.program.function if last is not None and (site is None or in_call) else None
        at = site or (last.site if last is not None else None)  # the stack may be unknown
        return {
            **State(),
            **site_data(at, called),
            "state": "late",
            "counts": self.ledger.counts(),
            "stack": stack,
            "place": str(site) if site else None,
            "compiling": self.compiling,
            "index": last.index if last else 0,
            "call": last.placed() if last else None,
        }

    def end_state(self, state: str, site: Site | None, detail: str | None) -> State:
        """How this process ended, for others and for the launcher."""
        self.notice_threads()
        last = self.ledger.last
        place = site_data(site) or (last.placed() if last else Place())
        return {
            **State(),
            **place,
            "state": state,
            "detail": detail,
            "counts": self.ledger.counts(),
            "finals": {group.key: (group.count, f"{group.prefix:x} {group.given:x}") for group in self.ledger.groups()},
            "sizes": {group.key: len(group.processes) for group in self.ledger.groups()},
            "quiet": dict(self.ledger.quiet),
            "unplaced": sorted(self.unplaced.names),
            "threads": sorted(self.racing)[:THREADS],
            "off": self.layers_off,
            "index": last.index if last else 0,
        }

    def report(self, entry: Entry, state: str) -> ProcessReport:
        one = reported(entry.placed(), state)
        one.recent = self.recent(entry)
        return one

    def recent(self, entry: Entry) -> list[Place]:
        """The last calls of the entry's group, oldest first."""
        group = self.ledger.group(entry.program.processes)
        calls = [event for event in self.journal.calls if event.group is group][-RECENT:]
        first = group.count - len(calls) + 1
        return [Entry(first + n, event.program, event.site).placed() for n, event in enumerate(calls)]

    def publish_quiet(self, job: Job) -> None:
        """Publish the last calls without a collective, if there are any, before what others wait for."""
        recent = self.quiet.told(self.ledger.groups(), recent=True)
        if recent:
            job.quiet.say({"calls": recent})
