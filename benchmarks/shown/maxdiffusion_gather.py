"""MaxDiffusion: the weights that one process cannot put on its devices are gathered from all processes.

Process 1 runs out of memory at the first of two weights; the others' transfers succeed.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import flax
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from loading import part, start, tell

process = start()
refused = []


def put(x, sharding):
    """The project's own, on a process whose memory is full at first."""
    if process == 1 and not refused:
        refused.append(x)
        raise MemoryError("out of memory while trying to allocate 8.00G")
    return utils["device_put_replicated"](x, sharding)


utils = part("src/maxdiffusion/max_utils.py", ["device_put_replicated"], {"jax": jax})
pipeline = part(
    "src/maxdiffusion/pipelines/wan/wan_pipeline.py",
    ["put_params_into_state"],
    {
        "jax": jax,
        "flax": flax,
        "P": P,
        "Mesh": Mesh,
        "NamedSharding": NamedSharding,
        "time": time,
        "device_put_replicated": put,
        "max_logging": SimpleNamespace(log=print),
    },
)
mesh = Mesh(np.array(jax.devices()), ("data",))
sharding = NamedSharding(mesh, P())
names = [("blocks", 0, "kernel"), ("blocks", 1, "kernel")]
params = flax.traverse_util.unflatten_dict({name: np.ones((2, 2), np.float32) for name in names})
state = {name: SimpleNamespace(value=None) for name in names}
pipeline["put_params_into_state"](state, params, {name: SimpleNamespace(value=sharding) for name in names}, mesh)
print(process, "has its weights", flush=True)
# The first step of the pipeline, on all processes.
rows = multihost_utils.host_local_array_to_global_array(np.ones((1, 2), np.float32), mesh, P("data"))
tell("the sum is", float(jax.jit(jnp.sum)(rows)), 4.0)
