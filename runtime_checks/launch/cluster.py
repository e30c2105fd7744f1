"""A process's side of a rehearsal: ``jax.distributed.initialize()`` finds the launcher's service."""

from __future__ import annotations

import ctypes
import functools
import inspect
import os
import re
import signal
import sys
from typing import Any

from spmdlint.runtime_checks.options import PROCESS_VARIABLE

COORDINATOR = "SPMDLINT_COORDINATOR"
COUNT = "SPMDLINT_PROCESS_COUNT"
LAUNCHER = "SPMDLINT_LAUNCHER"
DEVICES = "JAX_NUM_CPU_DEVICES"  # of JAX: it counts more than the flag of XLA
_PR_SET_PDEATHSIG = 1
_WHERE = ("coordinator_address", "num_processes", "process_id", "cluster_detection_method", "coordinator_bind_address")
"""The parameters of ``jax.distributed.initialize`` that say which job a process joins, and as which process."""


def die_with_launcher() -> None:
    """Ask the kernel to end this process when its launcher dies for any reason (Linux)."""
    launcher = os.environ.get(LAUNCHER)
    if not launcher or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(launcher):
        os._exit(1)  # it died before the request


def join_cluster() -> None:
    """Let JAX's cluster detection find the launcher; does nothing outside a launcher."""
    if COORDINATOR not in os.environ:
        return
    from jax._src import clusters

    class Rehearsal(clusters.ClusterEnv):  # type: ignore[misc]
        """The processes that ``spmdlint run`` has started on this machine."""

        name = "spmdlint"

        @classmethod
        def is_env_present(cls) -> bool:
            return COORDINATOR in os.environ

        @classmethod
        def get_coordinator_address(cls, *_args: Any, **_named: Any) -> str:
            return os.environ[COORDINATOR]

        @classmethod
        def get_process_count(cls) -> int:
            return int(os.environ[COUNT])

        @classmethod
        def get_process_id(cls) -> int:
            return int(os.environ[PROCESS_VARIABLE])

        @classmethod
        def get_local_process_id(cls) -> int | None:
            return None  # every process sees its own CPU devices

    # First in the list: the launcher may itself run inside a Slurm or Open MPI job.
    types = clusters.ClusterEnv._cluster_types
    types.remove(Rehearsal)
    types.insert(0, Rehearsal)
    _use_launchers_numbers()
    _use_launchers_service()


def _use_launchers_numbers() -> None:
    """Leave out where the program says it belongs: in the real job these arguments differ from process to process."""
    from jax._src import distributed

    real = distributed.State.initialize
    signature = inspect.signature(real)

    @functools.wraps(real)
    def initialize(state: Any, *args: Any, **named: Any) -> Any:
        given = signature.bind(state, *args, **named).arguments
        _say_which(given.get("process_id"), given.get("num_processes"))
        _say_how_many_devices()
        kept = {name: value for name, value in given.items() if name not in _WHERE}
        return real(kept.pop("self"), **kept)

    distributed.State.initialize = initialize


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


def _use_launchers_service() -> None:
    from jax._src import distributed

    runtime: Any = distributed._jax if hasattr(distributed, "_jax") else distributed.xla_extension
    count, address = int(os.environ[COUNT]), os.environ[COORDINATOR]
    real_service, real_client = runtime.get_distributed_runtime_service, runtime.get_distributed_runtime_client

    def get_service(bind_address: str, num_nodes: int, *args: Any, **named: Any) -> Any:
        if num_nodes != count:
            return real_service(bind_address, num_nodes, *args, **named)
        return _ServiceElsewhere()

    def get_client(given: str, *args: Any, **named: Any) -> Any:
        ours = distributed.global_state.num_processes == count
        return real_client(address if ours else given, *args, **named)

    runtime.get_distributed_runtime_service = get_service
    runtime.get_distributed_runtime_client = get_client
