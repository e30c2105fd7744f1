"""The keys and messages by which processes agree."""

from __future__ import annotations

import threading
from collections import deque

from spmdlint.runtime_checks.records import (
    Answer,
    Aside,
    Ask,
    Details,
    Message,
    Nothing,
    PreflightRecord,
    ProgramRecord,
    Question,
    QuietRecord,
    QuietRecords,
    SampleRecord,
    State,
    WaitRecord,
    Where,
    Word,
)
from spmdlint.runtime_checks.transport.store import Store

KEPT_VALUES = 32
BLOCK = 64  # calls whose messages are deleted together


class Exchange:
    """The keys of one process; all values are small JSON objects."""

    def __init__(self, store: Store, me: int) -> None:
        self.store = store
        self._me = me
        self._state_lock = threading.Lock()
        self._died = False
        self._programs_sent: set[str] = set()
        self._values: deque[str] = deque()
        self._programs_read: dict[str, ProgramRecord] = {}

    def say(self, group: str, index: int, message: Message) -> None:
        """Publish to the group which call this process is about to make."""
        self.store.put(f"call/{group}/{self._me}/{index // BLOCK}/{index}", message, replace=True)

    def hear(self, group: str, index: int, process: int, milliseconds: int) -> Message | None:
        """The message of another process at a position, or None for now."""
        return self.store.wait(f"call/{group}/{process}/{index // BLOCK}/{index}", Message, milliseconds)

    def arrived(self, group: str, index: int, process: int) -> bool:
        """Whether another process has announced its call at a position."""
        return self.store.get(f"call/{group}/{process}/{index // BLOCK}/{index}", Message) is not None

    def forget(self, group: str, index: int) -> None:
        """After agreement on ``index``: delete this process's messages that all processes have passed."""
        if index % BLOCK == 1 and index > BLOCK:
            self.store.delete(f"call/{group}/{self._me}/{index // BLOCK - 1}")

    def publish_program(self, digest: str, record: ProgramRecord) -> None:
        """Publish the record behind a digest, once: it is the same on all processes that have it."""
        if digest not in self._programs_sent:
            self.store.put(f"program/{digest}", record)
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
            self._programs_read[digest] = self.store.wait(f"program/{digest}", ProgramRecord) or {}
        return self._programs_read[digest]

    def put_details(self, group: str, index: int, details: Details) -> None:
        """Publish everything that explains this process's call, after a difference was seen."""
        self.store.put(f"detail/{group}/{index}/{self._me}", details, replace=True)

    def details(self, group: str, index: int, process: int) -> Details | None:
        """The explanation of another process's call, or None for now."""
        return self.store.wait(f"detail/{group}/{index}/{process}", Details)

    def put_quiet(self, calls: dict[str, list[QuietRecord]]) -> None:
        """Publish the last calls of this process that have no collective, for one that waits in such a function."""
        self.store.put(f"quiet/{self._me}", QuietRecords(calls=calls), replace=True)

    def quiet(self, process: int) -> dict[str, list[QuietRecord]]:
        """The last calls without a collective that another process has published."""
        return (self.store.get(f"quiet/{process}", QuietRecords) or {}).get("calls", {})

    def begin_wait(self, record: WaitRecord) -> None:
        """Publish that this process waits, for which process and where."""
        self.store.put(f"wait/{self._me}", record, replace=True)

    def waits(self) -> dict[int, WaitRecord]:
        """The processes that wait, each with the process it waits for and where."""
        return {int(name): value for name, value in self.store.children("wait", WaitRecord).items() if name.isdigit()}

    def put_state(self, state: State) -> None:
        """Publish how this process ended; that it died is the last that is said of it, whatever another thread says."""
        with self._state_lock:
            died = state.get("state") == "died"
            self._died = self._died or died
            if died or not self._died:
                self.store.put(f"state/{self._me}", state, replace=True)

    def state(self, process: int) -> State | None:
        """How another process ended; None while it runs."""
        return self.store.get(f"state/{process}", State)

    def put_preflight(self, record: PreflightRecord) -> None:
        """Publish how this process was set up."""
        self.store.put(f"preflight/{self._me}", record, replace=True)

    def preflight(self, process: int) -> PreflightRecord | None:
        """How another process was set up, or None for now."""
        return self.store.get(f"preflight/{process}", PreflightRecord)

    def put_sample(self, folder: str, sample: SampleRecord) -> None:
        """Publish this process's position, for the process that compares a folder."""
        self.store.put(f"{folder}/{self._me}", sample, replace=True)

    def samples(self, folder: str) -> dict[int, str]:
        """The samples in a folder, not yet parsed: most are unchanged since the last look."""
        return {int(name): text for name, text in self.store.texts(folder).items() if name.isdigit()}

    def put_question(self, process: int, question: Question) -> None:
        """Ask another process, which then has to be woken."""
        self.store.put(f"question/{process}/{self._me}", question, replace=True)

    def questions(self) -> dict[int, Question]:
        """The questions of other processes to this one; each is returned once."""
        asked = self.store.children(f"question/{self._me}", Question)
        for name in asked:
            self.store.delete(f"question/{self._me}/{name}")
        return {int(name): question for name, question in asked.items() if name.isdigit()}

    def put_answer(self, asker: int, answer: Answer) -> None:
        """Answer a question."""
        self.store.put(f"answer/{asker}/{self._me}", answer, replace=True)

    def answer(self, process: int) -> Answer | None:
        """Another process's last answer to this one."""
        return self.store.get(f"answer/{self._me}/{process}", Answer)

    def wake(self, process: int, word: Word | None = None) -> None:
        """Wake another process's listener thread; a later message may replace this one, but the wake-up is not lost."""
        self.store.put(f"word/{process}", word or Word(), replace=True)

    def wake_self(self) -> None:
        """Wake this process's own listener thread."""
        self.wake(self._me)

    def sleep(self, seconds: float) -> Word | None:
        """Wait to be woken; returns the message, or None after ``seconds``."""
        word = None
        try:
            word = self.store.sleep(f"word/{self._me}", Word, seconds)
            if word is None:
                self.wake_self()  # releases the memory that the service keeps for the wait
        finally:
            self.store.delete(f"word/{self._me}")
        return word

    def put_aside(self, told: Aside) -> None:
        """Publish that the checks of this job are over, without a verdict."""
        self.store.put("aside/job", told)

    def aside(self) -> Aside | None:
        """The message that the checks are over, if there is one."""
        return self.store.get("aside/job", Aside)

    def put_ending(self) -> None:
        """Publish that the job cannot go on, and ends."""
        self.store.put("ending/job", Nothing(), replace=True)

    def is_ending(self) -> bool:
        """Whether a process has found that the job cannot go on."""
        return self.store.get("ending/job", Nothing) is not None

    def put_abort(self) -> bool:
        """Publish that a process is being aborted; returns whether it is the first one."""
        return self.store.put("abort/job", Nothing())

    def is_aborting(self) -> bool:
        """Whether a process has published that it is being aborted; how it ended was published before."""
        return self.store.get("abort/job", Nothing) is not None

    def put_over(self) -> None:
        """Publish that all have ended, and agree."""
        self.store.put("over/job", Nothing(), replace=True)

    def over(self) -> bool:
        """Whether all have ended, and agree."""
        return self.store.get("over/job", Nothing) is not None

    def states(self) -> dict[int, State]:
        """How the processes that have ended did so."""
        return {int(name): value for name, value in self.store.children("state", State).items() if name.isdigit()}

    def ask_stack(self, process: int, number: int) -> None:
        """Ask a process for the Python stack of its main thread."""
        self.store.put(f"ask/{process}", Ask(number=number), replace=True)

    def asked(self) -> Ask | None:
        """A request for this process's stack, if there is one."""
        return self.store.get(f"ask/{self._me}", Ask)

    def put_stack(self, answer: Where) -> None:
        """Answer such a request."""
        self.store.put(f"stack/{self._me}", answer, replace=True)

    def stack(self, process: int) -> Where | None:
        """The last answer of another process to such a request."""
        return self.store.get(f"stack/{process}", Where)
