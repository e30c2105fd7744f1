"""Who says what under which key while processes agree on one call.

Up to a handful of processes everybody reads everybody; in larger groups what was said goes up a binary tree and the
root's word comes down, so that nobody makes more than three reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spmdlint.runtime_checks.store import Store

BLOCK = 64  # calls whose messages are deleted together


class Exchange:
    """The keys of one process; all values are small JSON objects."""

    def __init__(self, store: Store, me: int) -> None:
        self._store = store
        self._me = me
        self._programs_sent: set[str] = set()
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

    def put_history(self, history: dict[str, Any]) -> None:
        """Publish what this process has done so far."""
        self._store.put(f"history/{self._me}", history, replace=True)

    def history(self, process: int) -> dict[str, Any] | None:
        """What another process has published, or None for now."""
        return self._store.get(f"history/{process}")

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
