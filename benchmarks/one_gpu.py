"""`spmdlint run` with CUDA devices on a machine with one GPU: every process has it to itself, as far as NCCL knows.

    python benchmarks/one_gpu.py -n 2 --mode background -- program.py
    XLA_FLAGS=--xla_gpu_shard_autotuning=false python benchmarks/one_gpu.py -n 2 -- program.py

NCCL refuses two ranks on one device of one host. It tells hosts apart by NCCL_HOSTID, so each process passes for one of
a host of its own, and they talk through sockets. Collectives are slow, as the processes take turns on the device.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from spmdlint.cli import main
from spmdlint.runtime_checks.options import PROCESS_VARIABLE

_start = subprocess.Popen.__init__


def _start_on_gpu(self: Any, *words: Any, env: Mapping[str, str] | None = None, **named: Any) -> None:
    if env is not None and PROCESS_VARIABLE in env:
        env = {
            **env,
            "JAX_PLATFORMS": "cuda",
            "NCCL_HOSTID": f"host{env[PROCESS_VARIABLE]}",
            "NCCL_SOCKET_IFNAME": "lo",
            "NCCL_IB_DISABLE": "1",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
    _start(self, *words, env=env, **named)


if __name__ == "__main__":
    subprocess.Popen.__init__ = _start_on_gpu  # type: ignore[method-assign]
    sys.exit(main(["run", *sys.argv[1:]]))
