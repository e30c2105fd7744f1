"""The calls of a process: recorded before the dispatch, numbered at once in lockstep and later in background mode.

Recording a call appends an existing object; a new object is made when a program is called from a line for the first
time. In background mode, the watcher thread numbers, hashes and finds source lines.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from traceback import walk_stack
from types import CodeType, FrameType
from typing import Any, Protocol

from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site, line_of, site_data, user_frame
from spmdlint.runtime_checks.calls.given import REMEMBERED, Given, given_digest
from spmdlint.runtime_checks.calls.ledger import Entry, Group, Ledger, extend
from spmdlint.runtime_checks.calls.recent import Recent
from spmdlint.runtime_checks.owners import owner_of
from spmdlint.runtime_checks.recording.writing import Line, Recording
from spmdlint.runtime_checks.records import EventRecord, ProgramRecord

WINDOW = 16384  # calls that are kept
LIMIT = 1 << 20  # recorded calls that are not yet numbered; beyond this, the count is lost
EVENTS = 8192  # events remembered by origin
ASSERTED = 64  # the same for asserted values, most of which are new


class Hook(Protocol):
    """Something of the fast path through which calls are recorded."""

    def stop(self, ask: Callable[[], None]) -> None:
        """Call ``ask`` before each call from now on."""

    def retire(self) -> None:
        """Record nothing from now on."""


class Event:
    """A program called from one line in one thread; every call of it is this one object.

    The line is the instruction ``lasti`` of ``code``, if that is the user's, with calls ``through`` library code in
    between. ``name`` is that of the thread, which may end before its calls are numbered. A call from ``code`` at the
    instruction ``expected`` is assumed to be this one without checking its thread.
    """

    __slots__ = (
        "_site", "code", "digest", "expected", "group", "lasti", "name", "number", "program", "thread", "through",
        "user",
    )  # fmt: skip

    def __init__(self, program: Program, group: Group, thread: int, site: Site | None = None) -> None:
        self.program = program
        self.group = group
        self.thread = thread
        self.name = threading.current_thread().name
        self.digest = int(program.digest, 16)
        self.number = 0  # its number in the recording
        self.code: CodeType | None = None
        self.lasti = self.expected = -1
        self.through: tuple[CodeType, ...] = ()
        self.user: tuple[CodeType, int] | None = None
        self._site = site

    @property
    def site(self) -> Site | None:
        if self._site is None and self.user is not None:
            code, lasti = self.user
            self._site = Site(code.co_filename, line_of(code, lasti), code.co_name)
        return self._site

    @property
    def aside(self) -> bool:
        """Whether it is called in another thread than the main one."""
        return self.thread != threading.main_thread().ident

    def record(self) -> EventRecord:
        """The event in the form for other processes and for recordings."""
        program = self.program
        about = EventRecord(group=self.group.key, digest=program.digest)
        told: EventRecord = {**about, **site_data(self.site, program.function)}
        if program.identified:
            told["defined_at"] = program.defined_at
        if self.aside:
            told["aside"] = True
        return told

    def is_called_by(self, frame: FrameType | None) -> bool:
        """Whether this frame comes from the line."""
        for code in self.through:
            if frame is None or frame.f_code is not code:
                return False
            frame = frame.f_back
        return frame is not None and frame.f_lasti == self.lasti and frame.f_code is self.code


@dataclass(slots=True)
class ValuedCall:
    """One call of an event, with the tags of what it is given from the host."""

    event: Event
    given: Given

    @property
    def number(self) -> int:
        return self.event.number


class Journal:
    """The recorded calls of a process. ``on_stop`` is called in the calling thread once the journal is stopped.

    ``overrun`` is whether some calls were lost because they came faster than they could be counted.
    """

    def __init__(self, ledger: Ledger, recording: Recording | None = None) -> None:
        self.pending: deque[Event | ValuedCall] = deque(maxlen=LIMIT)
        self.hooks: weakref.WeakSet[Hook] = weakref.WeakSet()
        self.overrun = False
        self.calls: deque[Event] = deque(maxlen=WINDOW)
        self.given: Recent[tuple[str, int], Given] = Recent(REMEMBERED)
        self.made = 0
        self._ledger = ledger
        self._recording = recording
        self.on_stop: Callable[[], None] = lambda: None
        self.stopped = self.retired = False
        self.in_barrier: Callable[[], bool] = lambda: False  # which is recorded by its name, and its program is not
        self.failed: Callable[[Exception], object] = lambda _error: None  # a call could not be recorded
        self._events: Recent[tuple[Any, ...], Event] = Recent(EVENTS)
        self._asserted: Recent[tuple[Any, ...], Event] = Recent(ASSERTED)
        self._written: Recent[str, None] = Recent(EVENTS)  # programs with a record in the recording
        self._written_values: Recent[str, None] = Recent(ASSERTED)  # the same of asserted values
        self._lock = threading.RLock()
        self._main = threading.main_thread().ident
        keep = self.pending.append
        self.note: Callable[[Event | ValuedCall], None] = (
            keep if recording is None else recording.recorder(self._lock, keep)
        )

    def stop(self) -> None:
        """From now on each call runs ``on_stop`` first."""
        if not self.stopped:
            self.stopped = True
            for hook in list(self.hooks):
                hook.stop(self.on_stop)

    def retire(self) -> None:
        """Record no more calls: programs that stay on the fast path keep their hooks, which do nothing then."""
        self.retired = True
        for hook in list(self.hooks):
            hook.retire()

    def note_slowly(self, event: Event | ValuedCall) -> None:
        """Record a call that is not on the fast path."""
        if self.stopped:
            self.on_stop()
        self.note(event)

    def event_at(self, program: Program, frame: FrameType) -> Event:
        """The event of a program called by a frame in this thread."""
        thread = threading.get_ident()
        found = user_frame(frame)
        user = (found.f_code, found.f_lasti) if found is not None else None
        key = (program.digest, program.processes, user and (id(user[0]), user[1]), thread)
        event = self._events.get(key)
        if event is None:
            event = Event(program, self._ledger.group(program.processes), thread)
            event.user = user
            if found is not None and owner_of(found.f_code.co_filename) == "user":
                event.code, event.lasti = found.f_code, found.f_lasti
                between = takewhile(lambda each: each[0] is not found, walk_stack(frame))
                event.through = tuple(each.f_code for each, _ in between)
            self._add(self._events, key, event)
        return event

    def event_to_come(self, program: Program) -> Event:
        """The placeholder for a program without a recorded call."""
        return Event(program, self._ledger.group(program.processes), 0)

    def expect(self, event: Event, frame: FrameType) -> Event:
        """The event of a call by a frame of the program of its previous event; it is then expected again.

        Only for the main thread, and until the calls are numbered the next time: then the caller is looked up again.
        """
        thread = threading.get_ident()
        if thread != event.thread or not event.is_called_by(frame):
            event = self.event_at(event.program, frame)
        if thread == self._main and not event.through:
            event.expected = event.lasti
        return event

    def event_of(self, program: Program, site: Site | None) -> Event:
        """The event of a program called from a known line in this thread."""
        thread = threading.get_ident()
        key = (program.digest, program.processes, site, thread)
        known = self._events if program.value is None else self._asserted
        event = known.get(key)
        if event is None:
            event = Event(program, self._ledger.group(program.processes), thread, site)
            self._add(known, key, event)
        return event

    def _add(self, known: Recent[tuple[Any, ...], Event], key: tuple[Any, ...], event: Event) -> None:
        """Remember an event, and write it to the recording."""
        with self._lock:
            known[key] = event
        if self._recording is not None:
            event.number = self._recording.add_event(event.record(), event.group.processes)

    def explain(self, program: Program, record: Callable[[], ProgramRecord]) -> None:
        """Write what is known of a program to the recording, before its first event; nothing if it is there."""
        if self._recording is None:
            return
        written = self._written if program.value is None else self._written_values
        with self._lock:
            known = program.digest in written
            written[program.digest] = None
        if not known:
            told = record()
            # Each asserted value is new: its leaves would soon fill the file.
            self._recording.write_program(
                program.digest, {**told, "arguments": []} if program.value is not None else told
            )

    def write(self, line: Line) -> None:
        """Write a line to the recording, if there is one, that is not about a call."""
        if self._recording is not None:
            self._recording.write(line)

    def drain(self) -> bool:
        """Number the recorded calls; returns whether there were any."""
        with self._lock:
            pending = self.pending
            self.overrun = self.overrun or len(pending) == LIMIT
            calls = [pending.popleft() for _ in range(len(pending))]
            if not calls:
                return False
            batch = [call.event if isinstance(call, ValuedCall) else call for call in calls]
            events = set(batch)
            groups = {event.group for event in events}
            for event in events:
                event.group.threads.setdefault(event.thread, event.name)
                event.expected = -1
            for group in groups:
                mine = [n for n, event in enumerate(batch) if event.group is group]
                prefixes = extend(group.prefix, group.count, [batch[n].digest for n in mine])
                given = self._given(group, [calls[n] for n in mine])
                if group.trail is not None:
                    group.trail.put(group.count, prefixes, given)
                group.count += len(mine)
                group.prefix, group.given = int(prefixes[-1]), int(given[-1])
            self.calls.extend(batch)
            self.made += len(batch)
            last = batch[-1]
            self._ledger.last = Entry(last.group.count, last.program, last.site)
            if self._recording is not None:
                ends = {group.key: (group.count, group.prefix) for group in self._ledger.groups()}
                self._recording.checkpoint(self.made, ends)
            return True

    def _given(self, group: Group, calls: Sequence[Event | ValuedCall]) -> Any:
        """Remember what calls are given; the digest of all that was given until each of them."""
        valued = {place: call for place, call in enumerate(calls) if isinstance(call, ValuedCall)}
        if not valued:
            return [group.given] * len(calls)
        digests = [0] * len(calls)
        for place, call in valued.items():
            digests[place] = given_digest(call.given)
            self.given[group.key, group.count + 1 + place] = call.given
        return extend(group.given, group.count, digests)
