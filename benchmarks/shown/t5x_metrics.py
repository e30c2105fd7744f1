"""t5x: ``InteractiveModel._compute_metrics`` ends in a barrier that all processes but the first leave out."""

from __future__ import annotations

import jax.numpy as jnp
from jax.experimental import multihost_utils
from loading import importable, start, tell

importable(absent=["airio", "jestimator"])

from t5x import interactive_model  # noqa: E402 - from the checkout

process = start()
metrics = interactive_model.InteractiveModel._compute_metrics(None, ["a"], ["a"], [], [], [], [], [])
print("metrics", metrics, flush=True)
# What an interactive session does next, on all processes.
tell("the mean of 0 and 1 is", float(multihost_utils.process_allgather(jnp.float32(process)).mean()), 0.5)
