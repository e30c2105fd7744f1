"""The job as one process reaches it: the keys and messages by which processes agree, and the files of a launcher."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.records import (
    Answer,
    Aside,
    Details,
    Message,
    Nothing,
    PreflightRecord,
    ProgramRecord,
    Question,
    QuietRecord,
    State,
    WaitRecord,
    Word,
)
from spmdlint.runtime_checks.transport.bounded import OWN
from spmdlint.runtime_checks.transport.runfolder import RunFolder
from spmdlint.runtime_checks.transport.store import MAX_WAIT_MS, Store, StoreLostError

KEPT_VALUES = 32
BLOCK = 64  # calls whose messages are deleted together
PAUSES = (0.0, 0.5, 0.5)  # seconds before each round of waking those for which the store did not answer
WAIT = 300.0  # seconds of one wait; longer in a large job, because each wait costs the service something
WAIT_OF_EACH = 0.3
STOPS_WITHIN = 5.0  # seconds for the thread to end; one that never returns from the store is left behind
PAUSE = 2.0  # seconds after the store did not answer
T = TypeVar("T", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class Slots(Generic[T]):
    """The records of one kind, below one folder of the store; ``at`` are the further parts of a key."""

    store: Store
    me: int
    folder: str
    kind: type[T]

    def _key(self, at: tuple[object, ...]) -> str:
        return "/".join([self.folder, *map(str, at)])

    def put(self, record: T, *at: object, replace: bool = True) -> bool:
        """Publish a record; returns False if there is one, and ``replace`` is False."""
        return self.store.put(self._key(at), record, replace=replace)

    def say(self, record: T, *at: object) -> None:
        """Publish this process's record: the last part of the key is its number."""
        self.put(record, *at, self.me)

    def get(self, *at: object) -> T | None:
        return self.store.get(self._key(at), self.kind)

    def wait(self, *at: object, milliseconds: int = MAX_WAIT_MS) -> T | None:
        """A record as soon as it is there, or None after some time."""
        return self.store.wait(self._key(at), self.kind, min(milliseconds, MAX_WAIT_MS))

    def all(self, *at: object) -> dict[int, T]:
        """The records of all processes, by their numbers."""
        found = self.store.children(self._key(at), self.kind)
        return {int(name): record for name, record in found.items() if name.isdigit()}


class Job:
    """One process of a job, with the keys by which it reaches the others; all values are small JSON objects.

    ``folder`` reaches the launcher, None if there is none. ``wake_watcher`` wakes this process's own watcher thread,
    once there is one.
    """

    def __init__(self, store: Store, me: int, count: int, options: Options) -> None:
        self.store = store
        self.me = me
        self.count = count
        self.options = options
        self.folder = RunFolder(options.run_folder) if options.run_folder else None
        self.wake_watcher: Callable[[], object] = lambda: None
        self._state_lock = threading.Lock()
        self._died = False
        self._programs_sent: set[str] = set()
        self._values: deque[str] = deque()
        self._programs_read: dict[str, ProgramRecord] = {}
        self._calls = Slots(store, me, "call", Message)
        self._programs = Slots(store, me, "program", ProgramRecord)
        self.details = Slots(store, me, "detail", Details)  # all that explains a call that differs, by group and number
        self.quiet = Slots(
            store, me, "quiet", dict[str, list[QuietRecord]]
        )  # the last calls without a collective, by group
        self.waits = Slots(store, me, "wait", WaitRecord)  # the processes that wait, for whom and where
        self.states = Slots(store, me, "state", State)  # how processes ended
        self.preflights = Slots(store, me, "preflight", PreflightRecord)
        self.questions = Slots(store, me, "question", Question)  # by who is asked, and who asks
        self.answers = Slots(store, me, "answer", Answer)  # by who asked, and who answers
        self.aside = Slots(store, me, "aside", Aside)  # "job": the checks are over, without a verdict

    def say(self, group: str, index: int, message: Message) -> None:
        """Publish to the group which call this process is about to make."""
        self._calls.put(message, group, self.me, index // BLOCK, index)

    def hear(self, group: str, index: int, process: int, milliseconds: int) -> Message | None:
        """The message of another process at a position, or None for now."""
        return self._calls.wait(group, process, index // BLOCK, index, milliseconds=milliseconds)

    def forget(self, group: str, index: int) -> None:
        """After agreement on ``index``: delete this process's messages that all processes have passed."""
        if index % BLOCK == 1 and index > BLOCK:
            self.store.delete(f"call/{group}/{self.me}/{index // BLOCK - 1}")

    def publish_program(self, digest: str, record: ProgramRecord) -> None:
        """Publish the record behind a digest, once: it is the same on all processes that have it."""
        if digest not in self._programs_sent:
            self._programs.put(record, digest, replace=False)
            self._programs_sent.add(digest)
        if record.get("value") is not None:
            # Each asserted value is new, so only the last ones are kept.
            self._values.append(digest)
            if len(self._values) > KEPT_VALUES:
                old = self._values.popleft()
                if old not in self._values:
                    self._programs_sent.discard(old)
                    self.store.delete(f"program/{old}")

    def program(self, digest: str) -> ProgramRecord:
        """The record behind a digest of another process; {} if it cannot be read."""
        if digest not in self._programs_read:
            self._programs_read[digest] = self._programs.wait(digest) or {}
        return self._programs_read[digest]

    def put_state(self, state: State) -> None:
        """Publish how this process ended; that it died is the last that is said of it, whatever another thread says."""
        with self._state_lock:
            died = state.get("state") == "died"
            self._died = self._died or died
            if died or not self._died:
                self.states.say(state)

    def put_sample(self, group: str, sample: Mapping[str, object]) -> None:
        """Publish this process's position, for the process that compares a group."""
        self.store.put(f"now/{group}/{self.me}", sample, replace=True)

    def samples(self, group: str) -> dict[int, str]:
        """The positions in a group, not yet parsed: most are unchanged since the last look."""
        return {int(name): text for name, text in self.store.texts(f"now/{group}").items() if name.isdigit()}

    def asked(self) -> dict[int, Question]:
        """The questions of other processes to this one; each is returned once."""
        asked = self.questions.all(self.me)
        for asker in asked:
            self.store.delete(f"question/{self.me}/{asker}")
        return asked

    def wake(self, process: int, word: Word | None = None) -> None:
        """Wake another process's listener thread; a later message may replace this one, but the wake-up is not lost."""
        self.store.put(f"word/{process}", word or Word(), replace=True)

    def sleep(self, seconds: float) -> Word | None:
        """Wait to be woken; returns the message, or None after ``seconds``."""
        word = None
        try:
            word = self.store.wait(f"word/{self.me}", Word, int(seconds * 1000))
            if word is None:
                self.wake(self.me)  # releases the memory that the service keeps for the wait
        finally:
            self.store.delete(f"word/{self.me}")
        return word

    def mark(self, word: str) -> bool:
        """Say to all that a process is "aborting", or that the job is "over", as all agree; returns if it is new."""
        return self.store.put(f"{word}/job", Nothing())

    def marked(self, word: str) -> bool:
        return self.store.get(f"{word}/job", Nothing) is not None

    @property
    def others(self) -> list[int]:
        return [process for process in range(self.count) if process != self.me]

    def wake_others(self, word: Word) -> None:
        """Wake the listener threads of all others, several times where the store does not answer."""
        left = self.others
        for pause in PAUSES:
            time.sleep(pause if left else 0.0)
            for process in list(left):
                with suppress(StoreLostError):
                    self.wake(process, word)
                    left.remove(process)

    def wake_all(self) -> None:
        """Wake the listener threads of all others and this process's watcher thread: they look at once."""
        self.wake_others({})
        self.wake_watcher()

    def gone(self, process: int) -> int | None:
        """The exit status of a process that a launcher saw end; None while it runs, or without a launcher."""
        told = None if self.folder is None else self.folder.ended.get(process)
        return None if told is None else told["status"]

    def recording_of(self, process: int) -> Path | None:
        """The recording that a process left to its launcher before it ended; None while it runs."""
        return None if self.folder is None or self.gone(process) is None else self.folder.recording(process)


class Listener:
    """Calls ``on_word`` in its own thread whenever this process is woken, with the message, so that nobody has to poll.

    The service keeps the memory of a wait until the key is set, even when the wait has timed out. So the key is set and
    deleted after each time-out. Time-outs are rare, because each costs the service something, and there may be a
    thousand processes. The messages themselves are under other keys, and are read after the wake-up.
    """

    def __init__(self, job: Job, on_word: Callable[[Word], None]) -> None:
        self._job = job
        self._wait = max(WAIT, job.count * WAIT_OF_EACH)
        self._on_word = on_word
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{OWN}listen", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread: a thread that is in a read when the interpreter exits aborts it."""
        self._stop.set()
        limit = time.monotonic() + STOPS_WITHIN
        while self._thread.is_alive() and time.monotonic() < limit:
            try:
                self._job.wake(self._job.me)
            except Exception:
                time.sleep(0.05)
            self._thread.join(1.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            word: Word | None
            try:
                word = self._job.sleep(self._wait)
            except Exception:
                word = {}  # a message may have come meanwhile: it is read when the store is back
                self._stop.wait(PAUSE)
            if word is not None and not self._stop.is_set():
                self._on_word(word)
