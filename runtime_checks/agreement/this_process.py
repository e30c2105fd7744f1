"""What this process knows of itself: its calls so far, and where it is."""

from __future__ import annotations

import inspect
import sys
import time
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site, main_stack, site_data
from spmdlint.runtime_checks.calls.given import Values, given_digest
from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.calls.provenance import Provenance, Unplaced
from spmdlint.runtime_checks.calls.quiet import QuietCalls
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.recording.writing import Recording
from spmdlint.runtime_checks.records import Answer, Build, HistoryRecord, Place, ProgramRecord, Question, State
from spmdlint.runtime_checks.transport.exchange import Job
from spmdlint.runtime_checks.transport.packing import pack

THREADS = 8  # that are named
COMPILING_AFTER = 5.0  # seconds: from then on, a compilation is worth a word
PROGRAMS, ARGUMENTS = 1024, 50_000  # limits on the explanations that are kept


class ThisProcess:
    """The calls of this process, and what it tells of itself.

    ``layers`` are the layers of interception, "on" or why not. ``journal`` has the calls, and writes them to the
    recording, if there is one. ``racing`` are the names of the threads that
    make calls over one set of processes, if there are several. ``state`` and ``end`` are how it is, and how it ended.
    """

    def __init__(self, values: Values | None = None, recording: Recording | None = None) -> None:
        self.ledger = Ledger()
        self.provenance = Provenance()
        self.values = values or Values()
        self.unplaced = Unplaced()
        self.quiet = QuietCalls(self.provenance)
        self.layers: dict[str, str] = {}
        self.racing: set[str] = set()
        self.agreed: dict[str, int] = {}  # the last call of a program that was given the same values on all processes
        self.journal = Journal(self.ledger, recording)
        self.end = State()  # empty while it runs
        self._compiling: tuple[str, float] | None = None
        self._explained: OrderedDict[str, ProgramRecord] = OrderedDict()
        self._kept = 0  # arguments in the kept explanations
        self._modules: dict[str, weakref.WeakMethod[Callable[[], Mapping[str, str]]]] = {}

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
                self.racing.update(group.thread_names())

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

    def explain(self, program: Program, call: Call) -> None:
        """Keep what explains a program, for other processes and in the recording."""
        record = call.record()
        self._explained[program.digest] = record
        if program.module is not None and inspect.ismethod(call.texts):
            self._modules[program.digest] = weakref.WeakMethod(call.texts)  # as long as the executable lives
        self._kept += len(record["arguments"] or ())
        while len(self._explained) > PROGRAMS or self._kept > ARGUMENTS:
            oldest, dropped = self._explained.popitem(last=False)
            self._modules.pop(oldest, None)
            self._kept -= len(dropped["arguments"] or ())
        self.journal.explain(program, lambda: record)

    def explained(self, digest: str) -> ProgramRecord:
        return self._explained.get(digest, ProgramRecord())

    def told(self, question: Question) -> Answer:
        """The answer to a question about the calls of this process, as far as it is known."""
        answer = Answer()
        if "history" in question:
            self.journal.drain()
            answer["history"] = self.history(question["history"])
        if "program" in question:
            answer["program"] = self.explained(question["program"])
        if "given" in question:
            answer["given"] = self.values.told(self.journal.given.get(question["given"], {}))
        if "texts" in question:
            reference = self._modules.get(question["texts"])
            read = reference() if reference is not None else None
            answer["texts"] = dict(read()) if read is not None else {}
        return answer

    def history(self, many: int) -> HistoryRecord:
        """The last calls, for another process to compare: a table of events, and places in it."""
        calls = list(self.journal.calls)[-many:]
        places = {event: place for place, event in enumerate(dict.fromkeys(calls))}
        groups = self.ledger.groups()
        return {
            "end": self.end,
            "members": {group.key: list(group.processes) for group in groups},
            "groups": {group.key: (group.count, group.prefix) for group in groups},
            "table": [event.record() for event in places],
            "calls": pack(array("H", [places[event] for event in calls]).tobytes()),
            "given": [(key, at, given_digest(given)) for (key, at), given in list(self.journal.given.items())[-many:]],
            "quiet": self.quiet.told(groups),
        }

    def publish_quiet(self, job: Job) -> None:
        """Publish the last calls without a collective, if there are any, before what others wait for."""
        recent = self.quiet.told(self.ledger.groups(), recent=True)
        if recent:
            job.quiet.say(recent)
