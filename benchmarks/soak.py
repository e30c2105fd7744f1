"""A two-process loop for as long as you like: do memory and the key-value store stay as they are.

    spmdlint run -n 2 --mode off -- benchmarks/soak.py --minutes 60

Prints once a minute the resident memory of each process, and how many keys and characters the checks hold in the store.
Ends with status 1 where any of them has grown by more than a tenth since the warm-up.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import distributed
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from job import take_over

from spmdlint import runtime_checks

STEPS = 400  # of some 15 ms: ten rounds are about a minute


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--minutes", type=float, default=60)
    ask.add_argument("--mode", default="background")
    given = ask.parse_args()
    take_over()
    jax.distributed.initialize()
    runtime_checks.enable(given.mode)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows = NamedSharding(mesh, P("data"))
    step = jax.jit(lambda w, x: w + 1e-6 * jnp.sum(x))
    weights, seen, number = jnp.zeros(()), [], 0
    for minute in range(max(2, int(given.minutes))):
        for _ in range(10):
            for _ in range(STEPS):
                x = jax.make_array_from_process_local_data(rows, np.full(2, number % 7, np.float32))
                weights = step(weights, x)
                number += 1
                runtime_checks.assert_equal(weights, "weights", every=25)
                time.sleep(0.01)
            multihost_utils.sync_global_devices("round")
        keys = distributed.global_state.client.key_value_dir_get("spmdlint")
        held = (resident(), len(keys), sum(len(key) + len(value) for key, value in keys))
        seen.append(held)
        words = f"memory {held[0]:.0f} MB, store {held[1]} keys with {held[2]} characters"
        print(f"minute {minute + 1}: process {jax.process_index()}, {number} steps: {words}", flush=True)
    early = seen[min(2, len(seen) - 1)]
    latest = map(min, zip(*seen[-3:], strict=True))  # at the end another process may have said that it has ended
    grown = [now > 1.1 * then for then, now in zip(early, latest, strict=True)]
    print(f"process {jax.process_index()}: {'grown' if any(grown) else 'not grown'}", flush=True)
    runtime_checks.disable()
    sys.exit(int(any(grown)))


main()
