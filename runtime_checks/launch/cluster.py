"""A process's side of a rehearsal: ``jax.distributed.initialize()`` finds the launcher's service."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any

from spmdlint.runtime_checks.options import PROCESS_VARIABLE

COORDINATOR = "SPMDLINT_COORDINATOR"
COUNT = "SPMDLINT_PROCESS_COUNT"
LAUNCHER = "SPMDLINT_LAUNCHER"
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
    _use_launchers_service()


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
