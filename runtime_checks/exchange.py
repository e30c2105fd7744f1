"""Who says what under which key while processes agree on one call.

Up to a handful of processes everybody reads everybody; in larger groups what was said goes up a binary tree and the
root's word comes down, so that nobody makes more than three reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from spmdlint.runtime_checks.store import Store

KEPT_VALUES = 32
BLOCK = 64  # calls whose messages are deleted together


class Exchange:
    """The keys of one process; all values are small JSON objects."""

    def __init__(self, store: Store, me: int) -> None:
        self._store = store
        self._me = me
        self._programs_sent: set[str] = set()
        self._values: deque[str] = deque()
        self._programs_read: dict[tuple[int, str], dict[str, Any]] = {}

    def say(self, group: str, index: int, message: dict[str, Any]) -> None:
        """Tell the group which call this process is about to make."""
        self._store.put(f"call/{group}/{self._me}/{index // BLOCK}/{index}", message, replace=True)

    def hear(self, group: str, index: int, process: int, milliseconds: int) -> dict[str, Any] | None:
        """What another process said at a position, or None for now."""
        return self._store.wait(f"call/{group}/{process}/{index // BLOCK}/{index}", milliseconds)

    def forget(self, group: str, index: int) -> None:
        """After agreement on ``index``: drop this process's messages that everybody has passed."""
        if index % BLOCK == 1 and index > BLOCK:
            self._store.delete(f"call/{group}/{self._me}/{index // BLOCK - 1}")
            self._store.delete(f"up/{group}/{self._me}/{index // BLOCK - 1}")
            self._store.delete(f"down/{group}/{self._me}/{index // BLOCK - 1}")

    def publish_program(self, digest: str, record: dict[str, Any]) -> None:
        """Lay down what a digest stands for, once."""
        if digest not in self._programs_sent:
            self._store.put(f"program/{self._me}/{digest}", record, replace=True)
            self._programs_sent.add(digest)
        if record.get("value") is not None:
            # Each value that is asserted is new: only the last ones stay.
            self._values.append(digest)
            if len(self._values) > KEPT_VALUES:
                old = self._values.popleft()
                if old not in self._values:
                    self._programs_sent.discard(old)
                    self._store.delete(f"program/{self._me}/{old}")

    def program(self, process: int, digest: str) -> dict[str, Any]:
        """What another process's digest stands for; {} where it can't be read."""
        key = (process, digest)
        if key not in self._programs_read:
            self._programs_read[key] = self._store.wait(f"program/{process}/{digest}") or {}
        return self._programs_read[key]

    def put_details(self, group: str, index: int, details: dict[str, Any]) -> None:
        """Lay down all that explains this process's call, once a difference was seen."""
        self._store.put(f"detail/{group}/{index}/{self._me}", details, replace=True)

    def details(self, group: str, index: int, process: int) -> dict[str, Any] | None:
        """What explains another process's call, or None for now."""
        return self._store.wait(f"detail/{group}/{index}/{process}")

    def up(self, group: str, index: int, process: int, message: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Read a child's word for its subtree, or say this process's."""
        key = f"up/{group}/{process}/{index // BLOCK}/{index}"
        if message is None:
            return self._store.wait(key)
        self._store.put(key, message, replace=True)
        return None

    def down(self, group: str, index: int, root: int, message: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Read the root's word, or say it."""
        key = f"down/{group}/{root}/{index // BLOCK}/{index}"
        if message is None:
            return self._store.wait(key)
        self._store.put(key, message, replace=True)
        return None

    def begin_wait(self, record: dict[str, Any]) -> None:
        """Tell everybody that this process waits, for whom and where."""
        self._store.put(f"wait/{self._me}", record, replace=True)

    def waits(self) -> dict[int, dict[str, Any]]:
        """Who said last that it waits, for whom and where."""
        return {int(name): value for name, value in self._store.children("wait").items() if name.isdigit()}

    def put_state(self, state: dict[str, Any]) -> None:
        """Tell how this process ended."""
        self._store.put(f"state/{self._me}", state, replace=True)

    def state(self, process: int) -> dict[str, Any] | None:
        """How another process ended, None while it runs."""
        return self._store.get(f"state/{process}")

    def put_preflight(self, record: dict[str, Any]) -> None:
        """Tell how this process was set up."""
        self._store.put(f"preflight/{self._me}", record, replace=True)

    def preflight(self, process: int) -> dict[str, Any] | None:
        """How another process was set up, or None for now."""
        return self._store.get(f"preflight/{process}")

    def put_sample(self, folder: str, sample: dict[str, Any]) -> None:
        """Publish where this process is, for who compares a folder."""
        self._store.put(f"{folder}/{self._me}", sample, replace=True)

    def samples(self, folder: str) -> dict[int, str]:
        """The samples in a folder, not yet parsed: most are those of the last look."""
        return {int(name): text for name, text in self._store.texts(folder).items() if name.isdigit()}

    def put_question(self, process: int, question: dict[str, Any]) -> None:
        """Ask another process; it has to be woken for it."""
        self._store.put(f"question/{process}/{self._me}", question, replace=True)

    def questions(self) -> dict[int, dict[str, Any]]:
        """What others ask of this process; each question is given once."""
        asked = self._store.children(f"question/{self._me}")
        for name in asked:
            self._store.delete(f"question/{self._me}/{name}")
        return {int(name): question for name, question in asked.items() if name.isdigit()}

    def put_answer(self, asker: int, answer: dict[str, Any]) -> None:
        """Answer a question."""
        self._store.put(f"answer/{asker}/{self._me}", answer, replace=True)

    def answer(self, process: int) -> dict[str, Any] | None:
        """Another process's last answer to this one."""
        return self._store.get(f"answer/{self._me}/{process}")

    def wake(self, process: int, word: Mapping[str, Any] | None = None) -> None:
        """Wake another process's listening thread; the word may be lost to a later one, but not that it is woken."""
        self._store.put(f"word/{process}", word or {}, replace=True)

    def wake_self(self) -> None:
        """Wake one's own."""
        self.wake(self._me)

    def sleep(self, seconds: float) -> dict[str, Any] | None:
        """Wait to be woken, and give the word with which one is, or None after so many seconds."""
        word = self._store.sleep(f"word/{self._me}", seconds)
        if word is None:
            self.wake_self()  # which releases what the service keeps for the wait
        self._store.delete(f"word/{self._me}")
        return word

    def register(self, token: str) -> bool:
        """Say that this process is there; False where one of its number has been before."""
        return self._store.put(f"member/{self._me}", {"token": token})

    def put_aside(self, reason: str) -> None:
        """Tell all that the checks of this job are over, without a verdict."""
        self._store.put("aside/job", {"reason": reason})

    def aside(self) -> dict[str, Any] | None:
        """Whether somebody told so."""
        return self._store.get("aside/job")

    def put_over(self) -> None:
        """Tell all that all have ended, and agree."""
        self._store.put("over/job", {}, replace=True)

    def over(self) -> bool:
        """Whether all have ended, and agree."""
        return self._store.get("over/job") is not None

    def states(self) -> dict[int, dict[str, Any]]:
        """How all those ended that have."""
        return {int(name): value for name, value in self._store.children("state").items() if name.isdigit()}

    def ask_stack(self, process: int, number: int) -> None:
        """Ask a process for the Python stack of its main thread."""
        self._store.put(f"ask/{process}", {"from": self._me, "number": number}, replace=True)

    def asked(self) -> dict[str, Any] | None:
        """A question for this process's stack, if one was put."""
        return self._store.get(f"ask/{self._me}")

    def put_stack(self, answer: dict[str, Any]) -> None:
        """Answer such a question."""
        self._store.put(f"stack/{self._me}", answer, replace=True)

    def stack(self, process: int) -> dict[str, Any] | None:
        """The last answer of another process."""
        return self._store.get(f"stack/{process}")


def tree(members: Sequence[int], me: int) -> tuple[list[int], bool]:
    """The children of a process in the binary tree over its group, and whether it is the root."""
    place = list(members).index(me)
    return [members[child] for child in (2 * place + 1, 2 * place + 2) if child < len(members)], place == 0
