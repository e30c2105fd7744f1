"""What lockstep adds to a call, on this machine: with and without the checks in turn, in one job.

    spmdlint run -n 2 --mode off -- benchmarks/lockstep_cost.py [CALLS_PER_BLOCK] [BLOCKS]

Prints the median time of a call that makes one small all-reduce, in microseconds, by the number of its arguments, and
the added time with a 95 % interval over the pairs of blocks (bootstrap).
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

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
BLOCKS = int(sys.argv[2]) if len(sys.argv) > 2 else 20


def block(step, arguments):
    """The median time of a call in one block, in microseconds."""
    took = []
    for _ in range(CALLS):
        began = time.perf_counter()
        step(arguments).block_until_ready()
        took.append(time.perf_counter() - began)
    return float(np.median(took[CALLS // 10 :])) * 1e6


def main():
    take_over()
    jax.distributed.initialize()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows = NamedSharding(mesh, P("data"))
    rng = np.random.default_rng(0)
    for leaves in (1, 10, 100, 1000, 5000):
        arguments = [jax.make_array_from_process_local_data(rows, np.ones(4, np.float32)) for _ in range(leaves)]
        step = jax.jit(lambda values: jnp.sum(values[0]))
        bare, checked = [], []
        for number in range(2 * BLOCKS + 2):
            on = number % 2 == 1
            if on:
                runtime_checks.enable("lockstep")
            took = block(step, arguments)
            if on:
                runtime_checks.disable()
            if number > 1:
                (checked if on else bare).append(took)
        added = np.array(checked) - np.array(bare)
        means = [np.median(rng.choice(added, len(added))) for _ in range(2000)]
        low, high = np.percentile(means, [2.5, 97.5])
        if jax.process_index() == 0:
            print(
                f"{leaves:5} leaves: bare {np.median(bare):7.0f} us, lockstep {np.median(checked):7.0f} us, "
                f"added {np.median(added):6.0f} us [{low:.0f}, {high:.0f}]",
                flush=True,
            )


main()
