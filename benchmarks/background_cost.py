"""What background mode adds to a call, on this machine; and lockstep, for comparison.

    spmdlint run -n 2 --mode off -- benchmarks/background_cost.py [CALLS]

A function and its twin, which JAX was given while the checks looked away, are called in turn, in changing order, in one
job. The function holds a collective behind a condition that is never true: it is watched like any other, and what is
timed is JAX's dispatch alone, without the network. Prints by number of arguments the median time of a bare call and
the time that the checks add, with a 95 % interval over blocks of calls (bootstrap), over all calls and over the quarter
of the blocks in which the machine was left alone most; then the same for a step of some milliseconds with a real
all-reduce, and what the checks' own threads take of a core meanwhile. Of the step there are several pairs of twins, as
the place of a program in memory alone makes a hundredth of difference there. With SPMDLINT_LEDGER each call is recorded
in mapped memory as well.
"""

import sys
import threading
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import distributed
from jax._src.interpreters import pxla
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from job import take_over

from spmdlint import runtime_checks

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
LOCKSTEP_CALLS = 100
SETTLE = 0.5
BLOCK = 50
PAIRS = 5


def timed(function, arguments, wait):
    began = time.perf_counter()
    made = function(arguments)
    if wait:
        made.block_until_ready()
    return time.perf_counter() - began


def spent_by_threads():
    """The processor time of the checks' own threads so far, in seconds."""
    own = [thread for thread in threading.enumerate() if thread.name.startswith("spmdlint")]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) for thread in own)


def given_to_jax(make, arguments, factory):
    """A function of which JAX has made its program while this factory of fast paths was in place."""
    # Not the factory itself: the checks notice if JAX's own is put back, and are off then.
    usual, pxla.MeshExecutableFastpathData = pxla.MeshExecutableFastpathData, partial(factory)
    function = make()
    for _ in range(3):
        jax.block_until_ready(function(arguments))
    pxla.MeshExecutableFastpathData = usual
    return function


def in_turn(make, arguments, wait, calls):
    """Times of bare calls and of watched ones in microseconds, and the percentage of a core for the checks' threads."""
    untouched, turn = pxla.MeshExecutableFastpathData, distributed.global_state.client
    runtime_checks.enable("background")
    hooked = pxla.MeshExecutableFastpathData
    pairs = []
    for number in range(PAIRS if wait else 1):
        made = {one: given_to_jax(make, arguments, one) for one in (untouched, hooked)[:: 1 if number % 2 else -1]}
        pairs.append((made[untouched], made[hooked]))
    time.sleep(SETTLE)  # what switching on causes is over
    before = sum(runtime_checks.status().calls.values())
    took = np.empty((calls, 2))
    me = jax.process_index()
    if not wait and me:  # one after the other: two cores are too few for two jobs' threads at once
        turn.blocking_key_value_get(f"turn/{len(arguments)}/{me - 1}", 600_000)
    spent, began = spent_by_threads(), time.monotonic()
    for number in range(calls):
        for column in (0, 1) if number % 2 else (1, 0):
            took[number, column] = timed(pairs[number % len(pairs)][column], arguments, wait)
    share = 100 * (spent_by_threads() - spent) / (time.monotonic() - began)
    if not wait:
        turn.key_value_set(f"turn/{len(arguments)}/{me}", "done")
        turn.blocking_key_value_get(f"turn/{len(arguments)}/{jax.process_count() - 1}", 600_000)
    time.sleep(SETTLE)
    assert sum(runtime_checks.status().calls.values()) - before == calls, "not all calls, or not only these, were seen"
    runtime_checks.disable()
    return took[:, 0] * 1e6, took[:, 1] * 1e6, share


def lockstep(make, arguments, wait):
    """Times of calls in lockstep, in microseconds."""
    function = make()
    runtime_checks.enable("lockstep")
    for _ in range(3):
        jax.block_until_ready(function(arguments))
    took = [timed(function, arguments, wait) for _ in range(LOCKSTEP_CALLS)]
    runtime_checks.disable()
    return np.array(took) * 1e6


def middle(sample):
    """The median, with its 95 % interval over blocks of neighbours."""
    rng = np.random.default_rng(0)
    blocks = in_blocks(sample)
    medians = [
        np.median([np.median(blocks[n]) for n in rng.integers(0, len(blocks), len(blocks))]) for _ in range(1000)
    ]
    return np.median(sample), *np.percentile(medians, [2.5, 97.5])


def in_blocks(sample):
    """Neighbours together, what is left over without."""
    return sample[: len(sample) // BLOCK * BLOCK].reshape(-1, BLOCK)


def quietest(bare, watched):
    """Both, for the quarter of the blocks in which the two together took the least: when others left the machine alone.

    The choice does not see which of the two took how much of it.
    """
    together = np.median(in_blocks(bare + watched), axis=1)
    chosen = together <= np.quantile(together, 0.25)
    return in_blocks(bare)[chosen].ravel(), in_blocks(watched)[chosen].ravel()


def compare(words, make, arguments, calls, wait=False):
    bare, watched, share = in_turn(make, arguments, wait, calls)
    slow = lockstep(make, arguments, wait)
    added, low, high = middle(watched - bare)
    usual = np.median(bare)
    calm, calm_watched = quietest(bare, watched)
    least, from_, to = middle(calm_watched - calm)
    if jax.process_index() == 0:
        print(
            f"{words:>24}: bare {usual:8.2f} us, background +{added:.2f} us [{low:.2f}, {high:.2f}] "
            f"({100 * added / usual:.1f} %; in the quietest quarter +{least:.2f} us [{from_:.2f}, {to:.2f}] "
            f"on {np.median(calm):.2f} us), "
            f"lockstep +{np.median(slow) - usual:.0f} us; the checks' threads take {share:.2f} % of a core",
            flush=True,
        )


def main():
    take_over()
    jax.distributed.initialize()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(4, np.float32))

    @partial(shard_map, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    def rarely(v):
        # spmdlint: ignore[SPMD305] the collective is there and never runs: what is timed is the call alone
        return jax.lax.cond(v[0] > 1e9, lambda w: w + jax.lax.psum(w, "data"), lambda w: w + 0 * w, v)

    def dispatch():
        return jax.jit(lambda values: rarely(values[0]))

    for leaves in (1, 10, 100, 1000):
        compare(f"{leaves} arguments", dispatch, [x] * leaves, CALLS)

    weights = jax.device_put(np.eye(260, dtype=np.float32), NamedSharding(mesh, P()))

    def step():
        return jax.jit(lambda values: jnp.sum(values[0]) + jnp.sum(values[1] @ values[1] @ values[1] @ values[1]))

    compare("a step with all-reduce", step, [x, weights], CALLS // 2, wait=True)


main()
