"""One process of a chaos campaign: runs schedules one after the other and writes down what the checks said.

chaos_job.py SCHEDULES.json RESULTS_FOLDER          many schedules in lockstep, each with checks of its own
chaos_job.py SCHEDULE.json --alone [TROUBLE]        one schedule, under the launcher's checks

TROUBLE is what befalls the checks themselves: a "slow" store, one that is "refusing" for a while, a process that is
"stopped" and continued, a "clock" that jumps.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import distributed
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from spmdlint import runtime_checks

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map


class LostError(Exception):
    """What the fault "raise" raises."""


def array(group, size, dtype, spec):
    mesh = Mesh(np.array([jax.devices()[p] for p in group]), ("d",))
    sharding = NamedSharding(mesh, P(None, "d") if spec else P("d"))
    held = np.ones((size * len(group),) * 2, dtype)
    return jax.make_array_from_callback(held.shape, sharding, lambda index: held[index])


def summed_with(bias):
    def summed(x):
        return jnp.sum(x) + bias

    return jax.jit(summed)


SUMMED = {bias: summed_with(bias) for bias in (0.0, 1.0)}


@jax.jit
def greatest(x):
    return jnp.max(x)


@partial(jax.jit, static_argnames="k")
def scaled(x, k):
    return jnp.sum(x) * k


def reduced(x):
    return jax.lax.psum(jnp.sum(x), "d")


def mapped(x):
    return jax.jit(shard_map(reduced, mesh=x.sharding.mesh, in_specs=x.sharding.spec, out_specs=P()))(x)


def make(step):
    """Make one parallel call; returns its value, which only agreement makes right."""
    if step["op"] == "barrier":
        multihost_utils.sync_global_devices(step["name"])
        return None
    x = array(step["group"], step["size"], step["dtype"], step["spec"])
    if step["op"] == "summed":
        return float(SUMMED[step["bias"]](x))
    if step["op"] == "scaled":
        return float(scaled(x, step["k"]))
    return float({"greatest": greatest, "mapped": mapped}[step["op"]](x))


def run(schedule):
    me = jax.process_index()
    for step in schedule["steps"][me]:
        if step["op"] == "raise":
            raise LostError
        if step["op"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        make(step)


def trouble(kind, seed):
    """Make life hard for the checks, and for nobody else."""
    rng = random.Random(seed * 10 + jax.process_index())
    if kind == "stopped" and jax.process_index() == seed % 2:
        command = f"sleep {rng.random():.2f}; kill -STOP {os.getpid()}; sleep 1.5; kill -CONT {os.getpid()}"
        subprocess.Popen(["/bin/sh", "-c", command])
    if kind == "clock":
        shift = rng.choice([-1e6, 1e6])
        real = time.time
        time.time = lambda: real() + shift
    if kind in ("slow", "refusing"):
        client = type(distributed.global_state.client)
        until = time.monotonic() + 3
        for name in [name for name in dir(client) if "key_value" in name]:
            setattr(client, name, troubled(getattr(client, name), kind, rng, until))


def troubled(method, kind, rng, until):
    def called(self, key, *args, **named):
        if str(key).startswith("spmdlint"):
            if kind == "slow":
                time.sleep(rng.random() * 0.4)
            elif time.monotonic() < until and rng.random() < 0.7:
                raise RuntimeError("UNAVAILABLE: not now")
        return method(self, key, *args, **named)

    return called


def alone():
    """One schedule; a fault may end this process in any way."""
    (schedule,) = json.loads(Path(sys.argv[1]).read_text())
    jax.distributed.initialize()
    trouble(sys.argv[3] if len(sys.argv) > 3 else None, schedule["seed"])
    run(schedule)


def main():
    schedules, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    jax.distributed.initialize()
    os.environ.pop("SPMDLINT_RUNTIME_CHECKS")  # of --mode off, which overrules the program
    with (folder / f"{jax.process_index()}.jsonl").open("w") as out:
        for schedule in schedules:
            runtime_checks.enable("lockstep", on_divergence="raise")
            result = {"seed": schedule["seed"], "verdict": "clean"}
            try:
                run(schedule)
            except runtime_checks.DivergenceError as error:
                report = error.report
                result = {"seed": schedule["seed"], **report.as_data()}
            except Exception as error:  # whatever it is, the campaign judges it
                result = {"seed": schedule["seed"], "verdict": "error", "message": repr(error)[:400]}
            runtime_checks.disable()
            out.write(json.dumps(result) + "\n")
            out.flush()


if __name__ == "__main__":
    if sys.argv[2] == "--alone":
        alone()
    else:
        main()
