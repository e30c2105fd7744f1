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

from spmdlint.runtime_checks.agreement.checks import Checks
from spmdlint.runtime_checks.owners import owner_of
from spmdlint.runtime_checks.records import PreflightRecord
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report, diverged
from spmdlint.runtime_checks.reporting.sentences import first_of
from spmdlint.runtime_checks.transport.bounded import BoundedLock
from spmdlint.runtime_checks.transport.exchange import Job

MAX_SOURCES = 400
# Flags that only name output places, or that the number of devices already covers.
_HARMLESS_FLAG = re.compile(r"dump|_dir=|_path=|_file=|_to=|cache|profile|force_host_platform_device_count")
MAX_TOLD = 5  # source files named in one line


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


def record() -> PreflightRecord:
    """The record of this process; call it only when its devices are up."""
    import jax
    import jaxlib

    local = jax.local_devices()
    facts = {
        "the number of local devices": str(len(local)),
        "the kind of device": local[0].device_kind if local else "none",
        "the version of jax": jax.__version__,
        "the version of jaxlib": jaxlib.__version__,
        "the version of Python": ".".join(map(str, sys.version_info[:2])),
        "XLA_FLAGS": " ".join(meaningful_flags(os.environ)) or "none",
    }
    return {"facts": facts, "sources": _sources()}


def meaningful_flags(environment: Mapping[str, str]) -> list[str]:
    """The flags that may change programs, sorted."""
    words = " ".join(environment.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")).split()
    return meaningful(words)


def meaningful(words: Iterable[str]) -> list[str]:
    """The same of flags, or of options of one compilation, each as "name=value"."""
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
                digest = hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()
                found[str(file.relative_to(folder))] = digest
            except OSError:
                continue
    return found


def unlike(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """What both processes tell, and is not the same."""
    return [name for name, told in mine.items() if theirs.get(name, told) != told]


class Setup:
    """The preflight record of this process, and those it was compared with. Also used from the watcher thread."""

    def __init__(self, job: Job, checks: Checks) -> None:
        self._job = job
        self._checks = checks
        self._mine: PreflightRecord | None = None
        self._compared = {job.me}
        self._lock = BoundedLock()

    @property
    def compared(self) -> bool:
        return len(self._compared) > 1

    def publish(self) -> None:
        """Publish this process's record, once its devices are up."""
        with self._lock:
            if self._mine is None and devices_are_up():
                self._mine = record()
                self._job.preflights.say(self._mine)

    def compare_with(self, process: int) -> Report | None:
        """A report if this process and another were set up differently; None if not, or if the other's is unknown."""
        self.publish()
        if self._mine is None or process in self._compared:
            return None
        theirs = self._job.preflights.get(process)
        if theirs is None:
            return None
        self._compared.add(process)
        me, named = self._job.me, f"process {self._job.me} and process {process}"
        paths = sorted(unlike(self._mine["sources"], theirs.get("sources") or {}))
        for path in paths:  # no verdict, because only a comment may differ
            self._checks.note(f"{path} differs between {named}.")
        if paths:
            write_error(f"spmdlint: source files of {named} differ: {first_of(paths, MAX_TOLD)}.\n")
        facts = {me: self._mine["facts"], process: theirs.get("facts") or {}}
        for words in unlike(facts[me], facts[process]):
            told = {number: each[words] for number, each in facts.items()}
            parties = {number: ProcessReport("running", detail=f"{words}: {side}") for number, side in told.items()}
            message = "; ".join(f"process {number}: {side}" for number, side in told.items())
            return diverged("setup", f"{words} differs: {message}.", None, parties)
        return None
