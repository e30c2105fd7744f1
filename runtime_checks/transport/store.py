"""The distributed client's key-value store: the one module that touches it.

The client is private to JAX and its methods change between releases, so each is looked up when a store is made. If one
is missing, :class:`StoreLostError` says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeVar

from spmdlint.runtime_checks.records import MAX_VALUE, JobName, read_record
from spmdlint.runtime_checks.transport.bounded import BLOCKED_AFTER, Bounded

MAX_WAIT_MS = 250  # a daemon thread inside a long read aborts the interpreter at exit
METHODS = ("key_value_set", "key_value_try_get", "key_value_dir_get", "key_value_delete", "blocking_key_value_get")
T = TypeVar("T")


class StoreLostError(RuntimeError):
    """The store does not answer, or lacks what the checks need; the message says which."""


def connected_client() -> tuple[Any, int, int] | None:
    """The client of an initialized job with this process's number and the number of processes, or None.

    Call it only after ``jax.distributed.initialize`` has returned: the client is set before it is connected, and a call
    in that gap ends the process.
    """
    from jax._src import distributed

    state = distributed.global_state
    client = getattr(state, "client", None)
    if client is None:
        return None
    return client, int(state.process_id or 0), int(state.num_processes or 1)


class Store:
    """Text values under keys, shared by all processes of the job. Every key is below ``root``."""

    def __init__(self, client: Any, root: str) -> None:
        self._client = client
        self._root = root
        self._bounded = Bounded()
        self.failures = 0  # requests that failed or were given up
        missing = [name for name in METHODS if not hasattr(client, name)]
        if missing:
            raise StoreLostError(
                f"JAX's distributed client has no {' and no '.join(missing)}, so processes cannot be compared; "
                "use a JAX version that the runtime checks know (0.6.1 or newer)."
            )

    def name_of_job(self) -> str:
        """A name on which all processes of a job agree, and which sorts after those of earlier jobs."""
        name = f"{datetime.now(timezone.utc):%Y%m%d_%H%M%S_%f}"
        told = None if self.put("name/job", JobName(name=name)) else self.get("name/job", JobName)
        return name if told is None else told["name"]

    def put(self, key: str, value: Mapping[str, object], *, replace: bool = False) -> bool:
        """Set a key; returns False if it is already set and ``replace`` is False."""
        text = json.dumps(value, separators=(",", ":"))
        if len(text) > MAX_VALUE:
            raise StoreLostError(f"A value of {len(text)} characters is too long for the key-value store.")
        overwrite = {"allow_overwrite": True} if replace else {}
        put = partial(self._client.key_value_set, f"{self._root}/{key}", text, **overwrite)
        return bool(self._request(lambda: [put()], but=("ALREADY_EXISTS",)))

    def get(self, key: str, kind: type[T]) -> T | None:
        text = self._request(lambda: self._client.key_value_try_get(f"{self._root}/{key}"))
        return None if text is None else read_record(text, kind, key)

    def wait(self, key: str, kind: type[T], milliseconds: int) -> T | None:
        """The value of a key as soon as it is set, or None; beyond :data:`MAX_WAIT_MS` only where the key wakes."""
        seconds = milliseconds / 1000
        text = self._request(lambda: self._client.blocking_key_value_get(f"{self._root}/{key}", milliseconds), seconds)
        return None if text is None else read_record(text, kind, key)

    def children(self, key: str, kind: type[T]) -> dict[str, T]:
        """All values below a folder, by the last part of their keys."""
        return {name: read_record(text, kind, f"{key}/{name}") for name, text in self.texts(key).items()}

    def texts(self, key: str) -> dict[str, str]:
        """Like :meth:`children`, but with undecoded values, for callers that read many values repeatedly."""
        pairs = self._request(lambda: self._client.key_value_dir_get(f"{self._root}/{key}"))
        try:
            return {str(name).rsplit("/", 1)[-1]: text for name, text in pairs or ()}
        except (TypeError, ValueError) as error:
            raise StoreLostError("JAX's distributed client lists a folder in a form that is not known.") from error

    def delete(self, key: str) -> None:
        """Delete a key, and the folder of that name."""
        self._request(lambda: self._client.key_value_delete(f"{self._root}/{key}"))

    def _request(
        self,
        request: Callable[[], Any],
        seconds: float = 0.0,
        but: Container[str] = ("NOT_FOUND", "DEADLINE_EXCEEDED"),
    ) -> Any:
        """The result of a request; None if it fails with one of these statuses, the leading word of an error.

        The rest of the text was reworded between releases.
        """
        try:
            return self._bounded.run(request, seconds + BLOCKED_AFTER)
        except Exception as error:
            if str(error).split(":", 1)[0].strip() in but:
                return None
            self.failures += 1
            first = str(error).partition("\n")[0] or type(error).__name__
            raise StoreLostError(f"The job's key-value store does not answer ({first[:200]}).") from error
