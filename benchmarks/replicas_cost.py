"""How long ``check_replicas`` takes for large replicated arrays, on this machine.

    spmdlint run -n 2 --mode off -- benchmarks/replicas_cost.py [MEGABYTES] [MODE]

Prints the time of a check of that many megabytes in 16 arrays, the first one, which compiles, and the median of nine.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from job import take_over

from spmdlint import runtime_checks

MEGABYTES = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
MODE = sys.argv[2] if len(sys.argv) > 2 else "background"
ARRAYS = 16


def main():
    take_over()
    jax.distributed.initialize()
    whole = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P())
    size = MEGABYTES * 2**20 // 4 // ARRAYS
    make = jax.jit(lambda: [jnp.full(size, number, "float32") for number in range(ARRAYS)], out_shardings=whole)
    weights = jax.block_until_ready(make())
    runtime_checks.enable(MODE)
    took = []
    for _ in range(10):
        began = time.perf_counter()
        runtime_checks.check_replicas(weights)
        took.append(time.perf_counter() - began)
    runtime_checks.disable()
    if jax.process_index() == 0:
        print(f"{MEGABYTES} MB, {MODE}: first {took[0]:.2f} s, then {np.median(took[1:]):.2f} s")


main()
