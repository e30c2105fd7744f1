"""distil-whisper: the keys of ``TrainState.replicate`` for the devices, and what a dropout layer makes of them."""

from __future__ import annotations

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import jax_utils
from flax.training import train_state
from flax.training.common_utils import shard_prng_key
from jax.experimental import multihost_utils
from loading import part, start, tell

process = start()
state = part(
    "training/flax/run_finetuning.py",
    ["TrainState"],
    {"train_state": train_state, "jnp": jnp, "flax": flax, "jax_utils": jax_utils, "shard_prng_key": shard_prng_key},
)["TrainState"].create(
    # As main does it: the same seed on every host.
    apply_fn=None,
    params={},
    tx=optax.identity(),
    dropout_rng=jax.random.split(jax.random.PRNGKey(0))[1],
)
keys = state.replicate().dropout_rng
dropped = jax.pmap(lambda key, x: nn.Dropout(0.5, deterministic=False).apply({}, x, rngs={"dropout": key}))
masks = np.asarray(dropped(keys, jnp.ones((jax.local_device_count(), 64))) == 0)
every = np.asarray(multihost_utils.process_allgather(masks))
same = (every[0] == every[1]).sum(axis=1)
for device in range(masks.shape[0]):
    tell(
        f"of 64 units, device {device} of both processes treats alike",
        same[device],
        "about 32",
        right=same[device] < 64,
    )
