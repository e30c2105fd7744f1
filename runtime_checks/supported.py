"""The releases of JAX that the runtime checks work with."""

from __future__ import annotations

import re

OLDEST_JAX = "0.6.1"  # the lower bound of the extra "runtime", as a test asserts: a clone may have no metadata to read


def unsupported(version: str | None) -> str | None:
    """The sentence on a JAX that is too old; None if it is not, or if its version is not known."""
    numbers = _numbers(version or "")
    if len(numbers) < 2 or numbers >= _numbers(OLDEST_JAX):
        return None
    return f"JAX {version} is not supported; {OLDEST_JAX} or newer is needed."


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
