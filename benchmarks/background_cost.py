"""What background mode adds to a call, on this machine: off, background and lockstep in turn, in one job.

    spmdlint run -n 2 --mode off -- benchmarks/background_cost.py [CALLS_PER_BLOCK] [BLOCKS]

The function called holds a collective behind a condition that is never true: it is watched like any other, and what
is timed is JAX's dispatch alone, without the network. Prints by number of arguments the median time of a call in
microseconds, and the time added with a 95 % interval over pairs of neighbouring blocks (bootstrap); then the same for
a step of 4 ms with a real all-reduce.
"""

import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from spmdlint import runtime_checks

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
BLOCKS = int(sys.argv[2]) if len(sys.argv) > 2 else 12
LOCKSTEP_CALLS = 60
MODES = ("off", "background", "off", "lockstep")


def block(step, arguments, calls, wait):
    """The median time of a call in one block, in microseconds."""
    took = []
    for _ in range(calls):
        began = time.perf_counter()
        made = step(arguments)
        if wait:
            made.block_until_ready()
        took.append(time.perf_counter() - began)
    jax.block_until_ready(made)
    return float(np.median(took[calls // 10 :])) * 1e6


def compare(words, step, arguments, calls, wait=False):
    """Blocks in turn, with the checks switched on and off in between."""
    rng = np.random.default_rng(0)
    taken = {"off": [], "background": [], "lockstep": []}
    added = {"background": [], "lockstep": []}
    for number in range(len(MODES) * (BLOCKS + 1)):
        mode = MODES[number % len(MODES)]
        runtime_checks.enable(mode)
        many = calls if mode != "lockstep" else LOCKSTEP_CALLS
        took = block(step, arguments, many, wait)
        runtime_checks.disable()
        if number >= len(MODES):
            taken[mode].append(took)
            if mode != "off":
                added[mode].append(took - taken["off"][-1])
    if jax.process_index() != 0:
        return
    bare = np.median(taken["off"])
    print(f"{words}: bare {bare:.1f} us", flush=True)
    for mode, differences in added.items():
        sample = np.array(differences)
        medians = [np.median(rng.choice(sample, len(sample))) for _ in range(2000)]
        low, high = np.percentile(medians, [2.5, 97.5])
        middle = np.median(sample)
        share = 100 * middle / bare
        print(f"    {mode:10} +{middle:.2f} us [{low:.2f}, {high:.2f}], {share:+.1f} %", flush=True)


def main():
    jax.distributed.initialize()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows = NamedSharding(mesh, P("data"))
    x = jax.make_array_from_process_local_data(rows, np.ones(4, np.float32))

    @partial(shard_map, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    def rarely(v):
        return jax.lax.cond(v[0] > 1e9, lambda w: w + jax.lax.psum(w, "data"), lambda w: w + 0 * w, v)

    step = jax.jit(lambda values: rarely(values[0]))
    for leaves in (1, 10, 100, 1000):
        compare(f"{leaves} arguments", step, [x] * leaves, CALLS)

    side = 420
    weights = jax.device_put(np.eye(side, dtype=np.float32), NamedSharding(mesh, P()))
    long = jax.jit(lambda values: jnp.sum(values[0]) + jnp.sum(values[1] @ values[1] @ values[1]))
    compare("a step with a matrix product and an all-reduce", long, [x, weights], CALLS // 3, wait=True)


main()
