"""big_vision: ``main`` of the UViM trainer, where the loss is not a number in the second of ten steps.

The model, the task and the data are small ones of ours; so are the names of JAX that newer releases do not have.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
from loading import importable, start

importable()
for name in ("map", "structure", "leaves", "flatten", "unflatten"):
    setattr(jax, f"tree_{name}", getattr(jax.tree, name))

from big_vision.trainers.proj.uvim import train  # noqa: E402 - from the checkout


class Model(nn.Module):
    @nn.compact
    def __call__(self, images, labels, train=False):
        return nn.Dense(32)(images).reshape(-1, 4, 8)

    def encode(self, images):
        return None, {"code": jnp.zeros_like(images, int)}


def module(name, **content):
    """A module of ours among theirs."""
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(content)


def batches():
    for step in range(1, 11):
        images = np.ones((jax.local_device_count(), 2, 4), np.float32)
        yield {"image": images * (np.nan if step == 2 else 1)}


process = start()
module("big_vision.models.small", Model=Model)
module(
    "big_vision.trainers.small",
    input_pp=lambda batch, config: {"images": batch["image"]},
    predict_outputs=lambda logits, **more: logits,
)
element = SimpleNamespace(shape=(2, 4), dtype=SimpleNamespace(as_numpy_dtype=np.float32))
train.ds_core.get = lambda **given: SimpleNamespace(get_tfdata=lambda ordered: None, total_examples=40)
train.input_pipeline.make_for_train = lambda **given: SimpleNamespace(element_spec={"image": element})
train.input_pipeline.start_input_pipeline = lambda data, prefetch: batches()
config = ml_collections.ConfigDict(
    {
        "input": {"batch_size": 2 * jax.device_count(), "data": {}},
        "pp_modules": [],
        "total_steps": 10,
        "model_name": "small",
        "model": {},
        "oracle": {"task": "small", "model_name": "small", "model": {}},
        "optax_name": "scale",
        "optax": {"step_size": -1.0},
        "lr": 0.1,
        "schedule": {"decay_type": "cosine"},
        "log_training_steps": 1,
        "evals": {},
    }
)
train.FLAGS = SimpleNamespace(config=config, workdir=None)
train.flags.FLAGS = SimpleNamespace(cleanup=False)
measured = train.u.BigVisionMetricWriter.measure


def tell(self, name, value):
    if process == 0 and name == "training_loss":
        print("step", self.step, "loss", float(value), flush=True)
    return measured(self, name, value)


train.u.BigVisionMetricWriter.measure = tell
train.main([])
print("process", process, "is done", flush=True)
