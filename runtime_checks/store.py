"""The distributed client's key-value store: the one module that touches it.

The client is private to JAX and its methods change between releases, so each is looked up when a store is made.
Missing methods are replaced by others if possible; if a required one is missing, :class:`StoreLostError` says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_WAIT_MS = 250  # a daemon thread inside a long read aborts the interpreter at exit
MAX_VALUE = 8 << 20


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
        missing = [name for name in ("key_value_set", "blocking_key_value_get") if not hasattr(client, name)]
        if missing:
            raise StoreLostError(
                f"JAX's distributed client has no {' and no '.join(missing)}, so processes cannot be compared; "
                "use a JAX version that the runtime checks know (0.6 to 0.12)."
            )

    @property
    def job(self) -> str:
        """A short name of this incarnation of the job, the same on all its processes."""
        return self._root.rpartition("/")[2]

    @property
    def lists(self) -> bool:
        """Whether the client can list a folder, which background mode needs."""
        return hasattr(self._client, "key_value_dir_get")

    def put(self, key: str, value: Mapping[str, Any], *, replace: bool = False) -> bool:
        """Set a key; returns False if it is already set and ``replace`` is False."""
        text = json.dumps(value, separators=(",", ":"))
        if len(text) > MAX_VALUE:
            raise StoreLostError(f"A value of {len(text)} characters is too long for the key-value store.")
        try:
            if replace:
                self._client.key_value_set(f"{self._root}/{key}", text, allow_overwrite=True)
            else:
                self._client.key_value_set(f"{self._root}/{key}", text)
        except Exception as error:
            if _status(error) == "ALREADY_EXISTS":
                return False
            raise _lost(error) from error
        return True

    def get(self, key: str) -> dict[str, Any] | None:
        """The value of a key now, or None."""
        try_get = getattr(self._client, "key_value_try_get", None)
        if try_get is None and not hasattr(self._client, "key_value_dir_get"):
            return self.wait(key, 1)
        if try_get is None:
            # Not a short wait: the service keeps 14 kB for a timed-out wait until the key is set.
            folder, _, name = key.rpartition("/")
            return self.children(folder).get(name)
        try:
            return parse(try_get(f"{self._root}/{key}"))
        except Exception as error:
            if _status(error) in ("NOT_FOUND", "DEADLINE_EXCEEDED"):
                return None
            raise _lost(error) from error

    def wait(self, key: str, milliseconds: int = MAX_WAIT_MS) -> dict[str, Any] | None:
        """The value of a key as soon as it is set, or None after at most :data:`MAX_WAIT_MS`."""
        try:
            return parse(self._client.blocking_key_value_get(f"{self._root}/{key}", min(milliseconds, MAX_WAIT_MS)))
        except Exception as error:
            if _status(error) in ("NOT_FOUND", "DEADLINE_EXCEEDED"):
                return None
            raise _lost(error) from error

    def sleep(self, key: str, seconds: float) -> dict[str, Any] | None:
        """The value of a key, however long it takes; only for a thread that can be woken by setting the key."""
        try:
            return parse(self._client.blocking_key_value_get(f"{self._root}/{key}", int(seconds * 1000)))
        except Exception as error:
            if _status(error) in ("NOT_FOUND", "DEADLINE_EXCEEDED"):
                return None
            raise _lost(error) from error

    def children(self, key: str) -> dict[str, dict[str, Any]]:
        """All values below a folder, by the last part of their keys; {} if the client cannot list."""
        found = {name: parse(text) for name, text in self.texts(key).items()}
        return {name: value for name, value in found.items() if value is not None}

    def texts(self, key: str) -> dict[str, str]:
        """Like :meth:`children`, but with unparsed values, for callers that read many values repeatedly."""
        listing = getattr(self._client, "key_value_dir_get", None)
        if listing is None:
            return {}
        try:
            pairs = listing(f"{self._root}/{key}")
        except Exception as error:
            if _status(error) in ("NOT_FOUND", "DEADLINE_EXCEEDED"):
                return {}
            raise _lost(error) from error
        return {name.rsplit("/", 1)[-1]: text for name, text in pairs}

    def delete(self, key: str) -> None:
        """Delete a key, and the folder of that name. Nothing depends on it, so failure does not matter."""
        remove = getattr(self._client, "key_value_delete", None)
        if remove is None:
            return
        try:
            remove(f"{self._root}/{key}")
        except Exception as error:
            if _status(error) not in ("NOT_FOUND", "DEADLINE_EXCEEDED"):
                raise _lost(error) from error


def parse(text: str) -> dict[str, Any] | None:
    """Parse a value: anything but an object of bounded length counts as absent."""
    if len(text) > MAX_VALUE:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _status(error: Exception) -> str:
    """The leading status word of an error; the rest was reworded between releases."""
    return str(error).split(":", 1)[0].strip()


def _lost(error: Exception) -> StoreLostError:
    first = str(error).partition("\n")[0]
    return StoreLostError(f"The job's key-value store does not answer ({first[:200]}).")
