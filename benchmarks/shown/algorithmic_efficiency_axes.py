"""AlgoPerf: the first training step of the LAMB baseline, on a small workload."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
from loading import importable, start

importable("algorithms/archived_paper_baselines/lamb/jax", absent=["algoperf"])

import submission  # noqa: E402 - from the checkout

process = start()
params = jnp.ones((jax.local_device_count(), 4))


class Workload:
    """As much of one as a step asks for."""

    param_shapes, metrics_logger, step_hint = SimpleNamespace(shape_tuple=(4,)), None, 10

    def model_fn(self, params, batch, state, *more, **options):
        return batch["inputs"] @ params, state

    def loss_fn(self, logits_batch, **more):
        return {"summed": logits_batch.sum(), "n_valid_examples": logits_batch.size}


workload = Workload()
wanted = SimpleNamespace(
    learning_rate=0.1,
    warmup_factor=0.1,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    one_minus_beta1=0.1,
    weight_decay=0.0,
    dropout_rate=0.1,
)
state = submission.init_optimizer_state(workload, params, {}, wanted, jax.random.PRNGKey(0))
batch = {name: jnp.ones((jax.local_device_count(), 2, 4)) for name in ("inputs", "targets")}
submission.update_params(workload, params, None, {}, wanted, batch, None, state, [], 0, jax.random.PRNGKey(0))
print("process", process, "made a step", flush=True)
