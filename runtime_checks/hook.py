"""The process-wide hook: the one place for everything that ``enable`` installs."""

from __future__ import annotations

import atexit
import os
import secrets
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any

from spmdlint._version import __version__
from spmdlint.runtime_checks.agreement.joining import Joining, Member, close_door
from spmdlint.runtime_checks.calls.frames import Site, raising_site, site_data, user_site
from spmdlint.runtime_checks.ending.closing import Outcome
from spmdlint.runtime_checks.errors import ChecksFailedError, DivergenceError, Guard
from spmdlint.runtime_checks.intercept.execution import ran_before
from spmdlint.runtime_checks.intercept.layers import Interception, layers_of
from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import Patches, module, need
from spmdlint.runtime_checks.options import INTERRUPTED_STATUS, Options, launched_process, too_many, unsupported
from spmdlint.runtime_checks.owners import hide_frames, without_runner
from spmdlint.runtime_checks.recording.writing import Line
from spmdlint.runtime_checks.records import State, UnknownRecordError
from spmdlint.runtime_checks.reporting.printing import plain, write_error
from spmdlint.runtime_checks.reporting.sentences import LEFT
from spmdlint.runtime_checks.session import Session
from spmdlint.runtime_checks.transport.exchange import Listener
from spmdlint.runtime_checks.transport.runfolder import RunFolder
from spmdlint.runtime_checks.transport.store import Store, StoreLostError, connected_client
from spmdlint.runtime_checks.watching.demand import Demand
from spmdlint.runtime_checks.watching.watcher import Watcher

ROOT = "spmdlint"
CHECKS_FAILED_STATUS = 1  # in a rehearsal; what an exception that is not caught gives


class Hook:
    """What is installed in this process: nothing, a wait for ``jax.distributed.initialize``, or a session."""

    def __init__(self, options: Options, generation: int) -> None:
        self.options = options
        self.session: Session | None = None
        self.why_idle = "jax.distributed.initialize has not been called"
        self._watcher: Watcher | None = None
        self._running = ExitStack()  # what ends with the session
        self._demand: Demand | None = None
        self.guard = Guard(self._failed)
        self._lifetime = Patches(self.guard)
        self._outcome = Outcome()
        self._exiting: tuple[object, Site | None, int] | None = None
        self._generation = generation
        self._jobs = 0
        self._pid = os.getpid()
        self._store: Store | None = None
        self._process_number = 0
        self._folder = RunFolder(options.run_folder) if options.run_folder else None
        self._process = launched_process()
        self._stopped = False
        self._own_hook = self._excepthook
        self._previous_hook: Callable[[type[BaseException], BaseException, TracebackType | None], Any] | None = None

    def start(self) -> None:
        """Start: at once if the job is initialized, otherwise as soon as it is."""
        import jax

        too_old = unsupported(getattr(jax, "__version__", None))
        if too_old is not None:  # nothing is installed: what an old JAX has in the places of the hooks is not known
            self._give_up(too_old)
            return
        self._follow_lifetime()
        self._demand = Demand(self.options.report_signal)
        if self._previous_hook is None:
            self._previous_hook, sys.excepthook = sys.excepthook, self._own_hook
        if connected_client() is not None:
            self._activate()

    def stop(self) -> None:
        """Remove everything from this process; processes that still wait for it learn that it has ended.

        Raises :class:`DivergenceError`, and removes nothing, if a divergence is proven that is to be raised.
        """
        if self.session is None:
            if self._jobs == 0:
                self._tell_launcher(State(state="disabled"))  # there were no checks from the beginning
        elif self.session.checks.active:
            self.guard.run(self.session.closing.close, Outcome("disabled", user_site(sys._getframe(1))))
        self.guard.run(self._deactivate, "disable() was called")
        self._lifetime.undo()
        self._stopped = True  # what others have wrapped around our hooks passes on from now on
        if self._previous_hook is not None and sys.excepthook is self._own_hook:
            sys.excepthook = self._previous_hook

    def _tell_launcher(self, state: State) -> None:
        """Let the launcher know how it is, where no session does."""
        if self._folder is not None and self._process is not None:
            self._folder.states.put(self._process, state)

    def left(self, code: object, site: Site | None) -> None:
        """The program ends by ``sys.exit``, which no exception hook sees."""
        if isinstance(code, int) or code is None:
            status = f"exit status {code}" if code else None
            self._outcome = Outcome("finished", site, f"{LEFT} ({status or 'exit status 0'})" if site else status)
        else:
            told = plain(str(code), 300) if self.options.rehearsal else "exit status 1"
            self._outcome = Outcome("finished", site, f"{LEFT} ({told})")

    def _exits(self, code: object = None, *_: object) -> None:
        """The program calls ``sys.exit``: if it makes no call after this, that is how it ends."""
        if os.getpid() == self._pid and threading.current_thread() is threading.main_thread():
            self._exiting = (code, user_site(sys._getframe(1)), self._calls_made())

    def _calls_made(self) -> int:
        session = self.session
        if session is None:
            return 0
        session.own.journal.drain()
        return sum(session.own.ledger.counts().values())

    def _ended_by(self, error: BaseException, trace: TracebackType | None) -> Outcome:
        """The end by an exception. In a job its text stays where it was raised: it may hold what is secret.

        Whoever interrupts a job reaches its processes at different times. In a rehearsal, its launcher is interrupted.
        """
        name, text, rehearsal = type(error).__name__, plain(str(error), 300), self.options.rehearsal
        state = "interrupted" if isinstance(error, KeyboardInterrupt) and not rehearsal else "raised"
        return Outcome(state, raising_site(trace), f"{name}: {text}" if text and rehearsal else name)

    def _follow_lifetime(self) -> None:
        try:
            state = need(module("jax._src.distributed"), "State")
            self._lifetime.around(state, "initialize", self._tell_joining, self._activate)
            if not self.options.rehearsal:  # the runner sees it there
                self._lifetime.around(sys, "exit", before=self._exits)
            self._lifetime.around(state, "shutdown", self._close)
        except Exception as error:  # a seam that is missing, or another one than it was
            write_error(f"spmdlint: the runtime checks cannot hook into jax.distributed: {error}.\n")

    def _failed(self, error: Exception) -> None:
        """A failure outside the session, or of the session."""
        if self.session is not None:
            self.session.checks.failed(error)
        elif isinstance(error, StoreLostError | UnknownRecordError):
            self._give_up(str(error))
        elif isinstance(error, ModuleNotFoundError) and error.name == "jax":
            self._give_up("JAX is not installed in this environment: pip install 'spmdlint[runtime]'.")
        else:
            self._give_up(f"They failed with an internal error ({type(error).__name__}: {str(error)[:300]}).")

    def _tell_joining(self, *_args: Any, **_named: Any) -> None:
        """Let the launcher see the processes that wait here for one that has already ended."""
        if self._folder is not None and self._process is not None:
            self._folder.joining.put(self._process, site_data(user_site(sys._getframe(1))))

    def _activate(self, *_args: Any, **_named: Any) -> None:
        connected = connected_client()
        if connected is None or self.session is not None:
            return
        client, me, count = connected
        if self._folder is not None:
            self._folder.joined.put(me, {})
        self._process_number = me
        if count == 1:
            self.why_idle = "the job has one process"
            return
        too_large = too_many(self.options.mode, count, 'mode="background"')
        if too_large is not None:
            self._give_up(too_large)
            return
        self._jobs += 1
        self._store = store = Store(client, f"{ROOT}/{self._generation}.{self._jobs}")
        session = Session(store, me, count, self.options)
        # Later, what ran was watched, and may differ after a divergence.
        past = ran_before() if (self._generation, self._jobs) == (1, 1) else ()
        layers = layers_of(self.options.mode, self.options.checkpoints)
        interception = Interception(Observer(session, session.own, session.background), layers)
        self._running.callback(session.own.journal.retire)
        self._running.callback(interception.remove)
        session.own.layers = interception.state
        session.own.journal.write({**Line(), **session.own.build()})
        if session.background is None:
            # Not in background mode: in the middle of a call on the fast path, JAX holds a layout of this package.
            session.retire = interception.remove
        session.health.interception = interception
        for name, state in session.own.layers.items():
            if state != "on":
                write_error(f"spmdlint: a layer of the runtime checks is off: {name}: {state}.\n")
        member = self._member(session, past)
        session.checks.joining = joining = Joining(session.job, member, self.options.join_within)
        self.session = session
        if not joining.register():
            # A restarted process has no past to compare, so the checks are over for all.
            self.why_idle = "this process was restarted within the job"
            session.checks.stand_down(f"process {me} was restarted within the job, so its calls cannot be compared.")
            return
        self._demand = self._demand or Demand(self.options.report_signal)
        self._watcher = watcher = Watcher(session.parts, session.background, session.health, self._demand)
        session.job.wake_watcher = watcher.wake
        self._running.callback(watcher.stop)
        if session.background is not None:
            listener = Listener(session.job, watcher.told)
            self._running.callback(listener.stop)
            listener.start()
        watcher.start()
        atexit.unregister(self._close)
        atexit.register(self._close)

    def _member(self, session: Session, past: tuple[str, ...]) -> Member:
        options, site = self.options, user_site(sys._getframe(1))
        return Member(
            token=secrets.token_hex(6),
            version=__version__,
            mode=options.mode,
            policy=options.on_divergence,
            values=f"{options.values}:{options.values_every}{',checkpoints' * options.checkpoints}",
            off=tuple(session.own.layers_off),
            past=past,
            site=site.path if site is not None else "",
        )

    def _give_up(self, reason: str) -> None:
        self.why_idle = reason
        if self._store is not None:
            with suppress(Exception):
                close_door(self._store, f"those of process {self._process_number} cannot start. {reason}")
        if self.options.rehearsal:
            raise ChecksFailedError(f"The runtime checks cannot start. {reason}")
        write_error(f"spmdlint: the runtime checks are off. {reason}\n")

    def _excepthook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        told = False
        with suppress(KeyboardInterrupt):  # a second one: what ends the program is still shown
            told = self._make_ready(error, trace)
        if self._previous_hook is not None and not told:
            self._previous_hook(kind, error, error.__traceback__)

    def _make_ready(self, error: BaseException, trace: TracebackType | None) -> bool:
        """Note what ends the program, and leave what is ours out of it; returns whether that was all to tell."""
        self.guard.run(self._note_outcome, error, trace)
        if isinstance(error, DivergenceError) and self.session is not None:
            # The report is the message; a traceback through JAX's internals adds nothing.
            self.guard.run(self.session.ending.tell, uncaught=True)
            return True
        error.__traceback__ = self.guard.run(without_runner, trace) or trace
        if not isinstance(error, ChecksFailedError):
            self.guard.run(hide_frames, error)
        return False

    def _note_outcome(self, error: BaseException, trace: TracebackType | None) -> None:
        if os.getpid() == self._pid and not self._stopped and threading.current_thread() is threading.main_thread():
            self._outcome = found = self._ended_by(error, trace)
            if self.session is None:
                self._tell_launcher({**State(state=found.state, detail=found.detail), **site_data(found.site)})

    def _close(self, *_args: Any, **_named: Any) -> None:
        """The end of the job in this process; does not return if it has diverged."""
        session = self.session
        if session is None or os.getpid() != self._pid:
            return
        if self._watcher is not None:
            self.guard.run(self._watcher.wait_for_abort)
        try:
            if session.checks.active:
                self.guard.run(lambda: session.closing.close(self._ended()))
            session.checks.raise_if_broken()
        except KeyboardInterrupt:  # while it waits for the others: it does not any more
            session.ending.flush()
            os._exit(INTERRUPTED_STATUS)
        except ChecksFailedError as error:
            write_error(f"spmdlint: {error}\n")
            session.ending.flush()
            os._exit(CHECKS_FAILED_STATUS)
        finally:
            self.guard.run(self._deactivate, "the job has been shut down")

    def _ended(self) -> Outcome:
        """How the program ended; if it replaced the exception hook, by the exception that Python itself remembers."""
        error = getattr(sys, "last_value", None)
        if self._outcome.state == "finished" and isinstance(error, BaseException):
            return self._ended_by(error, error.__traceback__)
        if self._outcome == Outcome() and self._exiting is not None and self._exiting[2] == self._calls_made():
            self.left(*self._exiting[:2])
        return self._outcome

    def _deactivate(self, why: str) -> None:
        self._running.close()
        if self._demand is not None:
            self._demand.stop()
        self._demand = self._watcher = self.session = None
        self.why_idle = why
