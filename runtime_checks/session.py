"""One job as one process sees it, between the first watched call and the end: what it is made of, and each call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from spmdlint.runtime_checks.agreement.checks import Checks, StoodDownError
from spmdlint.runtime_checks.agreement.declared import Ending
from spmdlint.runtime_checks.agreement.lockstep import Agreement
from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.agreement.setup import Setup
from spmdlint.runtime_checks.agreement.this_process import ThisProcess
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.given import Values
from spmdlint.runtime_checks.calls.ledger import Entry
from spmdlint.runtime_checks.ending.closing import Closing
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.recording.writing import Recording, folder_of, forget_old
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.sentences import racing_threads, undecided
from spmdlint.runtime_checks.transport.exchange import Job
from spmdlint.runtime_checks.transport.store import Store
from spmdlint.runtime_checks.watching.health import Health


class Session:
    """The checks of one initialized job in one process: it makes their parts, and gives each what it needs.

    Interception runs ``call`` before a dispatch. Everything that other threads touch is either immutable or guarded by
    the ledger's locks. ``retire`` takes this process's calls back to JAX's own path.
    """

    def __init__(self, store: Store, me: int, count: int, options: Options) -> None:
        self.me = me
        self.count = count
        self.retire: Callable[[], object] = lambda: None
        self.job = job = Job(store, me, count, options)
        self.own = own = ThisProcess(
            Values(options.values, options.local_values, options.values_every), _recording(job)
        )
        self.checks = checks = Checks(job, own)
        self.ending = ending = Ending(job, own, checks)
        self.others = others = OtherProcesses(job, own)
        self.parts = parts = Parts(job, own, others, checks, ending, Setup(job, checks))
        self.guard = checks.guard
        self.provenance = own.provenance
        self.background = Background(parts) if options.mode == "background" else None
        self.health = Health(parts, self.background)
        self.closing = Closing(parts, self.background, self.health.look)
        self._asserted: dict[str, int] = {}

    def call(self, call: Call, within: float | None = None) -> str:
        """Agree on a call before it is dispatched; returns the name from which its outputs' tags are made.

        ``within`` bounds the wait in seconds: after it the call continues unchecked.
        """
        self.checks.raise_if_broken()
        return self.guard.run(self._call, call, within) or ""

    def _call(self, call: Call, within: float | None) -> str:
        own, program = self.own, call.program
        if not self.checks.active:
            self.retire()
            return ""
        if not program.communicates:
            self._note_quiet(call)
            return f"{program.digest}/{call.tags}"
        if self.background is not None:
            self.background.made(call)
            return ""
        group = own.ledger.group(program.processes)
        if threading.get_ident() not in group.threads:  # before it waits for its turn: the threads race for that
            group.threads[threading.get_ident()] = threading.current_thread().name
            if len(group.threads) > 1:
                own.racing.update(group.thread_names())
                self.checks.note(racing_threads({self.me: group.thread_names()}))
        with group.lock:
            own.unplaced.look(call)
            own.journal.explain(program, call.record)
            own.journal.note(own.journal.event_of(program, call.site))
            own.journal.drain()
            entry = Entry(group.count, program, call.site)
            with suppress(StoodDownError):
                if self.checks.joins(wait=True):
                    self.parts.setup.publish()
                    Agreement(self.parts, group, entry, call, within).reach()
        return f"{group.key}/{entry.index}"

    def _note_quiet(self, call: Call) -> None:
        """Count a call that is not compared, and keep where it was made."""
        own = self.own
        if call.program.undecided:
            self.checks.note(undecided(call.program.function))
            return  # it may have communicated, and then explains nothing
        own.ledger.quiet[call.program.function] += 1
        group = own.ledger.group(call.program.processes)
        own.journal.drain()  # only then is the count known
        own.quiet.note(group, call, group.count, each=self.background is None)  # there, most take the fast path, unseen

    def is_due(self, name: str, every: int) -> bool:
        """Whether a value that is asserted only every N-th time is compared now."""
        asserted = self._asserted[name] = self._asserted.get(name, -1) + 1
        return asserted % every == 0


def _recording(job: Job) -> Recording | None:
    """The recording of the last calls, if there is a folder; a full disk costs the recording, never the job."""
    own, ledger = job.folder, job.options.ledger
    folder = own.folder if own is not None else None
    if ledger is not None:
        folder = folder_of(ledger, job.store.name_of_job())
    if folder is None:
        return None
    path = folder / f"{job.me}.ledger"
    try:
        if own is not None:
            own.link_recording(job.me, path)
        recording = Recording(path)
        if ledger is not None:
            forget_old(ledger)
        return recording
    except OSError as error:
        write_error(f"spmdlint: the calls of this process are not recorded: {path}: {error.strerror}.\n")
        return None
