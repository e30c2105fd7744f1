"""A process's side of a rehearsal: it joins the launcher's job, ends with it, and says where it is before it joins.

It may then be in a download, say, or at a lock. No thread of the checks runs there yet that could answer, and the
program may fork. So Python's own handler of faults writes the stack of every thread when a signal comes, even while a
lock or a library blocks them all.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import inspect
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.options import PROCESS_VARIABLE
from spmdlint.runtime_checks.owners import owner_of
from spmdlint.runtime_checks.records import State

COORDINATOR = "SPMDLINT_COORDINATOR"
COUNT = "SPMDLINT_PROCESS_COUNT"
LAUNCHER = "SPMDLINT_LAUNCHER"
DEVICES = "JAX_NUM_CPU_DEVICES"  # of JAX: it counts more than the flag of XLA
ASKED_BY = signal.SIGURG  # a signal that does nothing to a process that does not answer it
MAX_READ = 1 << 20
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_PR_SET_PDEATHSIG = 1


def die_with_launcher() -> None:
    """Ask the kernel to end this process when its launcher dies for any reason (Linux)."""
    launcher = os.environ.get(LAUNCHER)
    if not launcher or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(launcher):
        os._exit(1)  # it died before the request


def join_cluster() -> None:
    """Let ``jax.distributed.initialize`` join the launcher's job; does nothing outside a launcher.

    What the program says of where it belongs is left out: in the real job that differs from process to process. Nothing
    is detected, as the launcher may itself run inside a Slurm or Open MPI job.
    """
    if COORDINATOR not in os.environ:
        return
    from jax._src import distributed

    real = distributed.State.initialize
    signature = inspect.signature(real)

    @functools.wraps(real)
    def initialize(state: Any, *args: Any, **named: Any) -> Any:
        given = signature.bind(state, *args, **named).arguments
        _say_which(given.get("process_id"), given.get("num_processes"))
        _say_how_many_devices()
        given.pop("coordinator_bind_address", None)
        where = {
            "coordinator_address": os.environ[COORDINATOR],
            "num_processes": int(os.environ[COUNT]),
            "process_id": int(os.environ[PROCESS_VARIABLE]),
            "cluster_detection_method": "deactivate",
        }
        return real(given.pop("self"), **{**given, **where})

    distributed.State.initialize = initialize
    runtime: Any = distributed._jax if hasattr(distributed, "_jax") else distributed.xla_extension
    count, make = int(os.environ[COUNT]), runtime.get_distributed_runtime_service

    def get_service(bind_address: str, num_nodes: int, *args: Any, **named: Any) -> Any:
        return _ServiceElsewhere() if num_nodes == count else make(bind_address, num_nodes, *args, **named)

    runtime.get_distributed_runtime_service = get_service


def _say_which(process: object, count: object) -> None:
    """Tell the user if the program would join as another process, or with another number of them."""
    ours, all_ours = os.environ[PROCESS_VARIABLE], os.environ[COUNT]
    if (process is not None and str(process) != ours) or (count is not None and str(count) != all_ours):
        asked = f"process {process if process is not None else '?'} of {count if count is not None else '?'}"
        sys.stderr.write(
            f"spmdlint: jax.distributed.initialize() was called for {asked}; in this rehearsal it is process {ours} of "
            f"{all_ours}.\n"
        )


def _say_how_many_devices() -> None:
    """Tell the user, once for the run, which number of devices counts if the program asks for another one."""
    import jax

    ours, name = os.environ.get(DEVICES), "jax_num_cpu_devices"
    found = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    counts = str(getattr(jax.config, name, ours))
    if os.environ[PROCESS_VARIABLE] != "0" or ours is None:
        return
    if counts != ours:
        sys.stderr.write(
            f"spmdlint: each process has {counts} CPU devices, as the program's {name} says; --devices-per-process "
            f"({ours}) has no effect on that.\n"
        )
    elif found is not None and found[1] != ours:
        sys.stderr.write(
            f"spmdlint: each process has {ours} CPU device{'' if ours == '1' else 's'}, as --devices-per-process says "
            f"(default: 1); XLA_FLAGS={found[0]} has no effect on that.\n"
        )


class _ServiceElsewhere:
    """Stands for the coordination service in process 0; the real one lives in the launcher and outlives it."""

    elsewhere = True

    def shutdown(self) -> None:
        """Leave the launcher's service alone."""


def answer_in(folder: Path, process: int) -> None:
    """From now on, write the stack of this process into the folder of the run when it is asked for."""
    # It stays open: there is no other time to open it.
    faulthandler.register(ASKED_BY, _file(folder, process).open("wb"), all_threads=True, chain=False)


def answer_of(folder: Path, process: int) -> State | None:
    """Where the main thread of a process was when it was asked; None if it has not answered."""
    try:
        with _file(folder, process).open("rb") as file:
            text = file.read(MAX_READ).decode(errors="replace")
    except OSError:
        return None
    # The main thread comes last, and of each thread the innermost frame first.
    last = re.split(r"^(?:Current thread|Thread) ", text, flags=re.M)[-1]
    frames = [found.groups() for line in last.splitlines() if (found := _FRAME.match(line))]
    shown = [frame for frame in frames[::-1] if owner_of(frame[0]) != "inside"]
    if not shown:
        return None
    filename, line, function = next((one for one in shown[::-1] if owner_of(one[0]) == "user"), shown[-1])
    stack = [f"{file}:{number} in {name}" for file, number, name in shown]
    return {**State(state="late", stack=stack), "filename": filename, "line": int(line), "function": function}


def _file(folder: Path, process: int) -> Path:
    return folder / f"stack.{process}"
