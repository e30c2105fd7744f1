"""dalle-mini: four further evaluation splits, of one to four batches, in the order of a set of their names.

``Dataset`` reads them, and ``run_evaluation`` of the training script goes through them, with a small evaluation step.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import datasets
import flax
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow
import pyarrow.parquet
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from loading import SCRATCH, part, start, tell

process = start()
mesh = Mesh(np.array(jax.devices()), ("batch",))
logged = {}


def load_dataset(path, *, data_files, streaming, use_auth_token):
    """As datasets did it when it still knew use_auth_token."""
    return datasets.load_dataset(path, data_files=data_files, streaming=streaming)


def evaluate(state, batch):
    """The mean of the whole batch."""
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("batch")), np.asarray(batch["labels"]))
    return jax.jit(jnp.mean, out_shardings=NamedSharding(mesh, P()))(whole)


columns = ["input_ids", "attention_mask", "labels", "decoder_input_ids"]
for value, (split, rows) in enumerate({"validation": 2, "coco": 2, "laion": 4, "pexels": 6, "unsplash": 8}.items()):
    folder = SCRATCH / str(process) / split
    folder.mkdir(parents=True)
    table = pyarrow.table({name: np.full(rows, 10.0 * value) for name in columns})
    pyarrow.parquet.write_table(table, folder / "part.parquet")
data = part(
    "src/dalle_mini/data.py",
    ["Dataset"],
    {
        "dataclass": dataclass,
        "field": field,
        "Path": Path,
        "jax": jax,
        "jnp": jnp,
        "np": np,
        "load_dataset": load_dataset,
        "random": np.random,
        "Dataset": datasets.Dataset,
    },
)["Dataset"]
run_evaluation = part(
    "tools/train/train.py",
    ["run_evaluation"],
    {
        "jax": jax,
        "jnp": jnp,
        "time": time,
        "freeze": flax.core.freeze,
        "tqdm": lambda batches, **more: batches,
        "training_args": SimpleNamespace(do_eval=True, mp_devices=1),
        "use_vmap_trick": False,
        "state": None,
        "dataset": data(str(SCRATCH / str(process)), multi_eval_ds=True, seed_dataset=0),
        "p_eval_step": evaluate,
        "eval_batch_size_per_step": 2,
        "eval_batch_size_per_node": 1,
        "len_eval_dataset": None,
        "epoch": 0,
        "num_epochs": 1,
        "epochs": SimpleNamespace(write=lambda text: None),
        "metrics_logger": SimpleNamespace(
            log=lambda metrics, prefix: logged.update({prefix: float(metrics["loss"])}), log_time=lambda *more: None
        ),
    },
)["run_evaluation"]
run_evaluation()
expected = {"coco": 10.0, "laion": 20.0, "pexels": 30.0, "unsplash": 40.0, "eval": 0.0}
tell("the losses are", {name: round(logged[name], 1) for name in expected}, expected)
multihost_utils.sync_global_devices("end")
