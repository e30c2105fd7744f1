"""tpu-inference: one psum for each axis of a set of names, while JAX traces.

The mesh has three axes that all shard what is contracted; each process takes the set in the order of its own hashes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from loading import part, start, tell


def xla_quantized_batched_matmul(x, w_q, w_s, dimension_numbers, quantize_activation):
    """The project's own, without the quantization of activations: these are exact."""
    return jax.lax.dot_general(x, w_q, dimension_numbers) * w_s


class ShardingAxisName:
    ATTN_DATA = None


process = start()
linear = part(
    "tpu_inference/layers/common/linear.py",
    ["_parse_einsum_dims", "sharded_quantized_batched_matmul"],
    {
        "jax": jax,
        "jnp": jnp,
        "P": P,
        "Mesh": Mesh,
        "NamedSharding": NamedSharding,
        "ShardingAxisName": ShardingAxisName,
        "xla_quantized_batched_matmul": xla_quantized_batched_matmul,
    },
)
mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("data", "expert", "model"))
x = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
w = np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3)
spec = P("data", "expert", "model", None)
weights = jax.make_array_from_callback(w.shape, NamedSharding(mesh, spec), lambda index: w[index])
result = jax.jit(
    lambda x, w: linear["sharded_quantized_batched_matmul"](x, w, jnp.ones(3), "TNHK,NHKD->TD", spec, mesh=mesh),
    out_shardings=NamedSharding(mesh, P()),
)(x, weights)
expected = np.einsum("TNHK,NHKD->TD", x, w)
tell("the product is", np.asarray(result).ravel().tolist(), expected.ravel().tolist())
