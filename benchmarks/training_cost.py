"""What the checks add to a step of the training loop in fixtures/training, on this machine.

    spmdlint run -n 2 --devices-per-process 2 --mode off -- benchmarks/training_cost.py [MODE] [BLOCKS]

Blocks of steps without and with the checks in turn, in one job. Prints the median time of a step, and what the calling
thread spends of its processor on it, which a busy machine disturbs less; with the differences of neighbouring blocks
and their 95 % intervals (bootstrap).
"""

import sys
import time
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh

from spmdlint import runtime_checks

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures" / "training"))
from job import take_over
from train import batches, initial_state, train_step

MODE = sys.argv[1] if len(sys.argv) > 1 else "background"
BLOCKS = int(sys.argv[2]) if len(sys.argv) > 2 else 40
STEPS = 50


def block(state, data):
    """The median time of a step in one block, and the calling thread's part of it, in milliseconds."""
    took = []
    for _ in range(STEPS):
        tokens = next(data)
        began, busy = time.perf_counter(), time.thread_time()
        state, loss = train_step(state, tokens)
        loss.block_until_ready()
        took.append((time.perf_counter() - began, time.thread_time() - busy))
    return state, 1e3 * np.median(took[5:], axis=0)


def main():
    take_over()
    jax.distributed.initialize()
    mesh = Mesh(np.array(jax.devices()).reshape(jax.process_count(), -1), ("data", "model"))
    data = batches(mesh, 8, seed=0)
    rng, bare, checked = np.random.default_rng(0), [], []
    with jax.set_mesh(mesh):
        state = initial_state(mesh, jax.random.key(0))
        leaves = len(jax.tree.leaves(state))
        for number in range(2 * BLOCKS + 2):
            if number % 2:
                runtime_checks.enable(MODE)
            state, took = block(state, data)
            if number % 2:
                runtime_checks.disable()
            if number > 1:
                (checked if number % 2 else bare).append(took)
    added = np.array(checked) - np.array(bare)
    for column, words in enumerate(("a step", "the calling thread")):
        one, usual = added[:, column], np.median(np.array(bare)[:, column])
        low, high = np.percentile([np.median(rng.choice(one, len(one))) for _ in range(2000)], [2.5, 97.5])
        if jax.process_index() == 0:
            print(
                f"{leaves} arrays, {len(one) * STEPS} steps, {words}: bare {usual:.2f} ms, "
                f"{MODE} {np.median(one):+.3f} ms [{low:+.3f}, {high:+.3f}] ({100 * np.median(one) / usual:+.1f} %)",
                flush=True,
            )


main()
