"""brax: PPO training with checkpoints, on a small environment. The first checkpoint is saved by process 0 alone."""

from __future__ import annotations

import functools

from loading import SCRATCH, importable, start

importable()

from brax import envs  # noqa: E402 - from the checkout
from brax.training.agents.ppo import networks, train  # noqa: E402 - from the checkout

process = start()
train.train(
    environment=envs.get_environment("fast"),
    num_timesteps=64,
    num_evals=2,
    episode_length=8,
    num_envs=4,
    batch_size=4,
    num_minibatches=1,
    unroll_length=4,
    num_updates_per_batch=1,
    num_eval_envs=4,
    network_factory=functools.partial(
        networks.make_ppo_networks, policy_hidden_layer_sizes=(4,), value_hidden_layer_sizes=(4,)
    ),
    save_checkpoint_path=str(SCRATCH / "checkpoints"),
    progress_fn=lambda step, metrics: print("process", process, "is at step", step, flush=True),
)
print("process", process, "has trained", flush=True)
