"""Whether the job itself is the same everywhere: devices, versions, flags, source files.

There is no rendezvous: each process publishes its record when its devices are up, and compares it with those it finds.
Differences that change programs are a verdict. Differing source files are a remark: it may be only a comment.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.frames import owner_of

FIELDS = {
    "devices": "the number of local devices",
    "kind": "the kind of device",
    "jax": "the version of jax",
    "jaxlib": "the version of jaxlib",
    "python": "the version of Python",
    "flags": "XLA_FLAGS",
}
MAX_SOURCES = 400
MAX_SOURCE_BYTES = 4 << 20
# Flags that only name output places, or that the number of devices already covers.
_HARMLESS_FLAG = re.compile(r"dump|_dir=|_path=|_file=|_to=|cache|profile|force_host_platform_device_count")


def devices_are_up() -> bool:
    """Whether this process has initialized its devices; this check never initializes them, and never waits.

    While JAX initializes them, which may take until all processes do so, it holds a lock that its own check waits for.
    """
    bridge = sys.modules.get("jax._src.xla_bridge")
    lock = getattr(bridge, "_backend_lock", None)
    if lock is not None:
        if not lock.acquire(blocking=False):
            return False
        lock.release()
    check = getattr(bridge, "backends_are_initialized", None)
    return bool(check is not None and check())


def record() -> dict[str, Any]:
    """The record of this process; call it only when its devices are up."""
    import jax
    import jaxlib

    local = jax.local_devices()
    return {
        "devices": len(local),
        "kind": local[0].device_kind if local else "none",
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "python": ".".join(map(str, sys.version_info[:2])),
        "flags": meaningful_flags(os.environ),
        "sources": _sources(),
    }


def meaningful_flags(environment: Mapping[str, str]) -> list[str]:
    """The flags that may change programs, sorted."""
    words = " ".join(environment.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")).split()
    return _meaningful(words)


def meaningful_options(overrides: Iterable[tuple[str, Any]]) -> list[str]:
    """The same for the options of one compilation, by name."""
    return _meaningful(f"{name}={value}" for name, value in overrides)


def _meaningful(words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if not _HARMLESS_FLAG.search(word))


def _sources() -> dict[str, str]:
    """Digests of the loaded source files next to the script or below it, by relative path."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if not script:
        return {}
    folder = Path(script).resolve().parent
    found: dict[str, str] = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or not path.endswith(".py") or owner_of(path) != "user":
            continue
        file = Path(path).resolve()
        if file.is_relative_to(folder) and len(found) < MAX_SOURCES:
            try:
                if file.stat().st_size <= MAX_SOURCE_BYTES:
                    digest = hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()
                    found[str(file.relative_to(folder))] = digest
            except OSError:
                continue
    return found


def difference(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """A difference between two records that changes programs: in words, with both sides."""
    for name, words in FIELDS.items():
        if name in mine and name in theirs and mine[name] != theirs[name]:
            return words, _side(mine[name]), _side(theirs[name])
    return None


def different_sources(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """The source files that both have loaded and that differ."""
    left, right = dict(mine.get("sources") or {}), dict(theirs.get("sources") or {})
    return sorted(path for path in left.keys() & right.keys() if left[path] != right[path])


def _side(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return str(value)
