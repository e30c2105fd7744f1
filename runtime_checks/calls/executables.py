"""What an executable does, for programs that were loaded: no lowered module is known of them.

XLA compiles one module alike on hosts that are alike, so the compiled module can stand for the lowered one there. GPUs
are left out: XLA chooses among their kernels by measuring, on each host.
"""

from __future__ import annotations

import functools
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.calls.modules import digest

MEASURED = ("gpu", "cuda", "rocm")
_FIRST = re.compile(r"^(?:%|ENTRY )", re.M)
# What follows is no part of the program: source lines, and how the backend divides the work on this host.
_ASIDE = re.compile(r", (?:metadata|backend_config)=.*")


def compiled_texts(executable: Any) -> list[str] | None:
    """The modules of an executable as XLA has compiled them (HLO text), None for a runtime without access to them."""
    try:
        return [one.to_string() for one in executable.hlo_modules()]
    except Exception:  # whatever a backend raises
        return None


def identity_of_executable(executable: Any, texts: Sequence[str] | None) -> str | None:
    """A short name for what an executable does, equal on hosts that are alike; None if that cannot be said."""
    backend = getattr(getattr(executable, "client", None), "platform", None)
    if texts is None or backend is None or backend in MEASURED:
        return None
    return f"{_host()}/{digest(chr(0).join(map(canonical_compiled, texts)))}"


def canonical_compiled(text: str) -> str:
    """A compiled module without source lines and tables of them, which differ if it was stored in between."""
    head, _, rest = text.partition("\n")
    first = _FIRST.search(rest)
    return f"{head}\n{_ASIDE.sub('', rest[first.start() if first is not None else 0 :])}"


def comparable(one: str, other: str) -> bool:
    """Whether two identities come from hosts that are alike."""
    return one.partition("/")[0] == other.partition("/")[0]


@functools.cache
def _host() -> str:
    """What XLA looks at when it compiles for this host's CPU."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return digest(f"{platform.machine()} {cores} {flags}")[:8]
