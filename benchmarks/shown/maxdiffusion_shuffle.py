"""MaxDiffusion: what two hosts read in one pass over 64 examples, from the project's own pipeline."""

from __future__ import annotations

import datasets
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax.experimental import multihost_utils
from loading import part, start, tell

process = start()
load = part(
    "src/maxdiffusion/input_pipeline/_tfds_data_processing.py",
    ["load_as_tf_dataset"],
    {"tf": tf, "AUTOTUNE": tf.data.AUTOTUNE},
)["load_as_tf_dataset"]
examples, batch = 64, 4
# As make_tf_iterator does it.
dataset = load(datasets.Dataset.from_dict({"id": list(range(examples))}), 2 * batch, True, 2)
dataset = dataset.shard(num_shards=2, index=process)
read = np.concatenate([each["id"].numpy() for each in dataset.take(examples // (2 * batch))])
every = np.asarray(multihost_utils.process_allgather(jnp.reshape(read, examples // 2))).ravel()
twice = examples - len(set(every.tolist()))
tell(f"of {examples} examples, those that nobody reads are", twice, 0)
