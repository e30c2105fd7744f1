"""One job as one process sees it: everything between the first watched call and the end."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.background import Background
from spmdlint.runtime_checks.bounded import BlockedError, is_own_thread
from spmdlint.runtime_checks.call import Call
from spmdlint.runtime_checks.ending import Ending, write_error
from spmdlint.runtime_checks.errors import ChecksFailedError
from spmdlint.runtime_checks.exchange import Exchange
from spmdlint.runtime_checks.frames import Site, main_stack
from spmdlint.runtime_checks.guard import Guard
from spmdlint.runtime_checks.health import Health
from spmdlint.runtime_checks.joining import Decision, Joining, close_door
from spmdlint.runtime_checks.journal import Journal
from spmdlint.runtime_checks.ledger import Entry, Group, Ledger, thread_names
from spmdlint.runtime_checks.listener import wake_many
from spmdlint.runtime_checks.lockstep import Lockstep
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.printable import plain
from spmdlint.runtime_checks.provenance import Provenance, Unplaced
from spmdlint.runtime_checks.quiet import QuietCalls
from spmdlint.runtime_checks.recording import Recording
from spmdlint.runtime_checks.records import QuietRecord, UnknownRecordError, Where
from spmdlint.runtime_checks.report import ProcessReport, Report, reported
from spmdlint.runtime_checks.runfolder import RunFolder
from spmdlint.runtime_checks.sentences import ended_word, racing_threads, undecided
from spmdlint.runtime_checks.setup import Setup
from spmdlint.runtime_checks.store import Store, StoreLostError
from spmdlint.runtime_checks.waiting import StoodDownError, WaitedEnoughError

ANSWER_WITHIN = 1.5  # seconds for a process to answer a query for its position
RECENT = 8
MAX_NOTES = 100
LONGEST_REASON = 600
ASIDE = "aside"  # the state of a process that continues without checks


class Session:
    """The checks of one initialized job in one process.

    Interception runs ``call`` before a dispatch. Everything that other threads touch is either immutable or guarded by
    the ledger's locks.
    """

    def __init__(self, store: Store, me: int, count: int, options: Options) -> None:
        self.me = me
        self.count = count
        self.options = options
        self.active = True
        self.why_inactive = "a divergence was reported"
        self.broken: str | None = None
        self.joining: Joining | None = None
        self.retire: Callable[[], object] = lambda: None
        self.guard = Guard(self.failed)
        self.ledger = Ledger()
        self.provenance = Provenance()
        self.unplaced = Unplaced()
        self.quiet = QuietCalls(self.provenance)
        self.exchange = Exchange(store, me)
        self.ending = Ending(store, me, count, options, self._complete)
        self.folder = RunFolder(options.run_folder) if options.run_folder else None
        folder = options.ledger or (options.run_folder if options.mode == "background" else None)
        if folder is not None or options.mode == "background":
            store.name_job()
        recording = _recording(folder / f"{me}.ledger", store.job) if folder else None
        self._record = Journal(Ledger(), recording, lambda: None) if recording and options.mode == "lockstep" else None
        self.wake_watcher: Callable[[], object] = lambda: None
        self.background = Background(self, recording) if options.mode == "background" else None
        self.layers: dict[str, str] = {}
        self.notes: list[str] = []
        self.lockstep = Lockstep(self)
        self._questions = 0
        self._noted: set[str] = set()
        self._asserted: dict[str, int] = {}
        self.setup = Setup(self)
        self.health = Health(self)

    def call(self, call: Call, within: float | None = None) -> str:
        """Agree on a call before it is dispatched; returns the name from which its outputs' tags are made.

        ``within`` bounds the wait in seconds: after it the call continues unchecked.
        """
        self.raise_if_broken()
        return self.guard.run(self._call, call, within) or ""

    def _call(self, call: Call, within: float | None) -> str:
        program = call.program
        if not self.active:
            self.retire()
            return ""
        if not program.communicates:
            self._note_quiet(call)
            return f"{program.digest}/{call.tags}"
        if self.background is not None:
            self.background.made(call)
            return ""
        group = self.ledger.group(program.processes)
        if threading.get_ident() not in group.threads:
            group.threads.add(threading.get_ident())  # before it waits for its turn: the threads race for that
            if len(group.threads) > 1:
                self.note(racing_threads({self.me: thread_names(group)}))
        with group.lock:
            entry = group.append(program, call.site)
            self.unplaced.look(call)
            self.ledger.last = entry
            if self._record is not None:
                self._record.explain(program, lambda: call.record(self.provenance))
                self._record.note(self._record.event_of(program, call.site))
                self._record.drain()
            if self.active:
                self._unless_over(lambda: self.lockstep.agree(group, entry, call, within))
        return f"{group.key}/{entry.index}"

    def _note_quiet(self, call: Call) -> None:
        """Count a call that is not compared, and keep where it was made."""
        self.ledger.note_quiet(call.program)
        if call.program.undecided:
            self.note(undecided(call.program.function))
            return  # it may have communicated, and then explains nothing
        group = self.ledger.group(call.program.processes)
        if self.background is None:
            self.quiet.note(group, call, group.count, each=True)
        elif not self.quiet.knows(group, call):
            self.journal.drain()  # only now is the count known; a later call takes the fast path and is not seen
            self.quiet.note(group, call, group.count, each=False)

    def is_due(self, name: str, every: int) -> bool:
        """Whether a value that is asserted only every N-th time is compared now."""
        asserted = self._asserted[name] = self._asserted.get(name, -1) + 1
        return asserted % every == 0

    def _unless_over(self, agree: Callable[[], None]) -> None:
        """Agree on a call once all have joined; not if the checks come to their end meanwhile."""
        try:
            if not self.joins(wait=True):
                return
            self.setup.publish()
            agree()
        except (StoodDownError, WaitedEnoughError):
            return

    def joins(self, *, wait: bool = False) -> bool:
        """Whether all processes are known to be checked; steps aside if it is decided that none is."""
        joining = self.joining
        if joining is None:
            return self.active
        decision = joining.wait() if wait else joining.look()
        return decision is not None and self.follow(decision)

    def follow(self, decision: Decision) -> bool:
        """Act on the decision of the job about its checks; returns whether it is checked."""
        self.joining = None
        if not decision.checked:
            words = f"the runtime checks are off in all processes: {decision.reason}. {decision.advice}"
            self.stand_down(words, tell=False)
        return decision.checked

    def failed(self, error: Exception) -> None:
        """The checks themselves failed: a rehearsal must not be reported as clean, and a job must not be harmed."""
        if isinstance(error, StoreLostError | UnknownRecordError | BlockedError):
            self.stand_down(f"the checks are off from now on. {error}")
            return
        words = f"The runtime checks failed with an internal error ({type(error).__name__}: {str(error)[:300]})"
        self.stand_down(f"{words}; they are off from now on.")

    def stand_down(self, reason: str, *, tell: bool = True) -> None:
        """Stop comparing, say why once, and tell the others, which would wait for this process.

        A rehearsal must not be reported as clean: it fails. Raises :class:`ChecksFailedError` there, but in a thread
        of the checks the next call raises it.
        """
        if not self.active:
            return
        self.active = False
        self.why_inactive = plain(reason, LONGEST_REASON)
        write_error(f"spmdlint: {self.why_inactive}\n")
        if self.options.rehearsal:
            self.broken = f"{self.why_inactive} Run with --mode off, and report this if it is not expected."
            if self.background is not None:
                self.background.journal.stop()
        if tell:
            self._tell_aside()
        if not is_own_thread():
            self.raise_if_broken()

    def _tell_aside(self) -> None:
        """Tell the others; where one way does not work, another may."""
        joining, reason = self.joining, f"process {self.me} continues without checks: {self.why_inactive}"
        ways: list[Callable[[], object]] = [
            lambda: self.exchange.put_state(self.end_state(ASIDE, None, self.why_inactive)),
            lambda: self.exchange.put_aside(reason),
        ]
        if joining is not None:
            ways.insert(0, lambda: close_door(self.exchange.store, reason))
        if self.background is not None:
            ways.append(self.wake_all)
        folder = self.folder
        if folder is not None:
            ways.append(lambda: folder.put_state(self.me, self.end_state(ASIDE, None, self.why_inactive)))
        for way in ways:
            with suppress(Exception):
                way()

    def raise_if_broken(self) -> None:
        """In a rehearsal: the checks failed, so the program must not go on as if it were checked."""
        if self.broken is not None:
            raise ChecksFailedError(self.broken)

    def warn(self, text: str) -> None:
        """Keep a remark, and report it at once."""
        if text not in self._noted and len(self._noted) < MAX_NOTES:
            write_error(f"spmdlint: {text}\n")
        self.note(text)

    def note(self, text: str) -> None:
        """Keep a remark for the report, once."""
        if text not in self._noted and len(self._noted) < MAX_NOTES:
            self._noted.add(text)
            self.notes.append(text)

    def declare(self, report: Report) -> None:
        """Declare a verdict to all processes and act on it; returns only under the policy "report"."""
        self.ending.declare(report)
        self._act()

    def proclaim(self, report: Report) -> None:
        """Declare a verdict from a thread other than the main one; the threads that make calls act on it."""
        self.ending.declare(report)
        self.wake_all()

    def wake_all(self) -> None:
        """Wake the listener threads of all others and this process's watcher thread; a verdict is reported at once."""
        others = [process for process in range(self.count) if process != self.me]
        wake_many(self.exchange, others, self.ending.word())
        self.wake_watcher()

    @property
    def journal(self) -> Journal:
        """The journal for calls on the fast path."""
        assert self.background is not None
        return self.background.journal

    def heed_verdict(self) -> None:
        """Act on a verdict that another process declared, if there is one."""
        if self.ending.look() is not None:
            self._act()

    def _act(self) -> None:
        self.ending.act()
        self.active = False
        raise StoodDownError

    def await_verdict(self) -> dict[str, Any] | None:
        """For processes that wait for another to declare: None so far (:meth:`heed_verdict` does not return)."""
        time.sleep(0.05)
        return None

    def interrupted(self) -> bool:
        """Whether the launcher forwards an interrupt, which reaches processes at different times."""
        return self.folder is not None and self.folder.marked("interrupted")

    def ended(self, process: int) -> dict[str, Any] | None:
        """How another process ended: its state and counts, or None while it runs."""
        told = self.exchange.state(process)
        if told is not None:
            return {**told, "counts": dict(told.get("counts") or {})}
        status = self.folder.gone(process) if self.folder else None
        if status is None:
            return None
        told = self.exchange.state(process)  # it may have published, and then ended, between the two looks
        if told is not None:
            return {**told, "counts": dict(told.get("counts") or {})}
        heard = self.lockstep.last_heard(process)
        detail = f"killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
        counts = {group.key: min(group.count, int(heard.get("index") or 0)) for group in self.ledger.groups()}
        return {**heard, "state": "finished" if status == 0 else "died", "detail": detail, "counts": counts}

    def ended_among(self, processes: Iterable[int]) -> dict[int, dict[str, Any]]:
        """How those of some processes ended that did: one request, as most run."""
        told = self.exchange.states() if self.exchange.store.lists else None
        folder, found = self.folder, {}
        for process in processes:
            unknown = told is None or process in told or (folder is not None and folder.gone(process) is not None)
            state = self.ended(process) if unknown else None
            if state is not None:
                found[process] = state
        return found

    def ended_report(self, process: int, state: dict[str, Any]) -> ProcessReport:
        """An ended process, for a report."""
        one = reported(state, ended_word(state))
        one.detail = state.get("detail")
        one.stack = state.get("stack")
        if one.line is None:
            heard = self.lockstep.last_heard(process)
            one.function, one.filename, one.line = heard.get("function"), heard.get("filename"), heard.get("line")
        return one

    def own_report(self, entry: Entry, state: str) -> ProcessReport:
        """The report on this process."""
        one = reported(entry.placed(), state)
        one.recent = self.recent(entry)
        return one

    def position(self, process: int, group: Group, entry: Entry) -> ProcessReport:
        """Where another process is, as asked through the store: at the same call, or late with its stack."""
        message = self.exchange.hear(group.key, entry.index, process, 20)
        if message is not None:
            return reported(message, "waiting")
        answer = self.ask_stack(process)
        one = reported({**self.lockstep.last_heard(process), **(answer or {})}, "late" if answer else "unknown")
        if answer is not None:
            one.index = answer.get("counts", {}).get(group.key, 0)
            one.stack = answer.get("stack")
        return one

    def quiet_of(self, group: Group) -> dict[int, list[QuietRecord]]:
        """The last calls without a collective of all processes of a group that have published them."""
        found = {self.me: self.quiet.recent([group]).get(group.key, [])}
        for process in group.processes:
            if process != self.me and (told := self.exchange.quiet(process).get(group.key)):
                found[process] = told
        return found

    def put_quiet(self) -> None:
        """Publish such calls of this process, if there are any, before what others wait for."""
        recent = self.quiet.recent(self.ledger.groups())
        if recent:
            self.exchange.put_quiet(recent)

    def recent(self, entry: Entry) -> list[dict[str, Any]]:
        """The last calls of the entry's group, oldest first."""
        group = self.ledger.group(entry.program.processes)
        if self.background is not None:
            calls = [event for event in self.journal.calls if event.group is group][-RECENT:]
            first = group.count - len(calls) + 1
            return [Entry(first + n, event.program, event.site).placed() for n, event in enumerate(calls)]
        return [one.placed() for one in list(group.ring)[-RECENT:]]

    def ask_stack(self, process: int) -> Where | None:
        """Where another process is now: its watcher thread answers, unless the process is stopped."""
        self._questions += 1
        before = self.exchange.stack(process)
        self.exchange.ask_stack(process, self.me * 1_000_000 + self._questions)
        limit = time.monotonic() + ANSWER_WITHIN
        while time.monotonic() < limit:
            answer = self.exchange.stack(process)
            if answer is not None and (before is None or answer.get("number") != before.get("number")):
                return answer  # maybe to another process, which asked at the same time
            time.sleep(0.05)
        return None

    def whereabouts(self, process: int) -> Where | None:
        """Where another process is now, in either mode; None if it does not answer."""
        if self.background is not None:
            return self.background.leader.asking.ask([process], {"stack": True}).get(process, {}).get("where")
        return self.ask_stack(process)

    def lives(self, process: int) -> bool:
        """Whether the checks of another process answer."""
        if self.background is not None:
            return bool(self.background.leader.asking.ask([process], {}))
        return self.ask_stack(process) is not None

    def health_line(self) -> str:
        """The health of the checks in this process, as one line of JSON."""
        told = {"spmdlint": "health", "process": self.me, "mode": self.options.mode, "watching": self.active}
        return json.dumps({**told, **self.health.numbers()}) + "\n"

    def where(self) -> dict[str, Any]:
        """Where this process is now, for others to read."""
        stack, site = main_stack()
        last = self.ledger.last
        in_call = last is not None and last.site is not None and site is not None and str(site) == str(last.site)
        function = site.function if site is not None and not in_call else None
        at = site or (last.site if last is not None else None)  # the stack may be unknown
        return {
            "counts": self.ledger.counts(),
            "stack": stack,
            "place": str(site) if site else None,
            "index": last.index if last else 0,
            "function": function or (last.program.function if last else None),
            "filename": at.filename if at else None,
            "line": at.line if at else None,
            "callers": list(at.callers) if at else [],
            "uncounted": self.quiet.places(self.ledger.groups()),
        }

    def record_end(self, state: Mapping[str, Any]) -> None:
        """Write how this process ended to its recording, if all its calls are there."""
        journal = self._record if self.background is None else self.background.journal
        if journal is not None and self.active and self.ending.verdict is None:
            journal.end(state)

    def end_state(self, state: str, site: Site | None, detail: str | None) -> dict[str, Any]:
        """How this process ended, for others and for the launcher."""
        last = self.ledger.last
        place = site or (last.site if last else None)
        return {
            "state": state,
            "detail": detail,
            "counts": self.ledger.counts(),
            "finals": {group.key: [group.count, f"{group.prefix:x}"] for group in self.ledger.groups()},
            "sizes": {group.key: len(group.processes) for group in self.ledger.groups()},
            "quiet": dict(self.ledger.quiet),
            "unplaced": sorted(self.unplaced.names),
            "off": sorted(name for name, words in self.layers.items() if words != "on"),
            "undecided": dict(self.ledger.undecided),
            "index": last.index if last else 0,
            "function": site.function if site else (last.program.function if last else None),
            "filename": place.filename if place else None,
            "line": place.line if place else None,
            "callers": list(place.callers) if place else [],
        }

    def _complete(self, report: Report) -> None:
        """Add the fields that every report has."""
        jax: Any = sys.modules.get("jax")
        jaxlib: Any = sys.modules.get("jaxlib")
        report.versions = {
            "python": sys.version.split()[0],
            "jax": getattr(jax, "__version__", "?"),
            "jaxlib": getattr(jaxlib, "__version__", "?"),
        }
        report.layers = dict(self.layers)
        report.notes = [*report.notes, *self.notes]


def _recording(path: Path, job: str) -> Recording | None:
    """The recording of the last calls; a full disk costs the recording, never the job."""
    try:
        return Recording(path, job)
    except OSError as error:
        write_error(f"spmdlint: the calls of this process are not recorded: {path}: {error.strerror}.\n")
        return None
