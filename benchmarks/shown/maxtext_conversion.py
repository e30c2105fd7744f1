"""MaxText: ``from_pretrained`` waits for all processes only where the converted checkpoint is not there yet.

Process 1 comes five seconds later than process 0, which converts; the conversion is a small one of ours that makes the
folder. What follows it, the making of the model, is left out.
"""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace

import jax
import jax.experimental.multihost_utils
import jax.numpy as jnp
from etils import epath
from loading import SCRATCH, part, start, tell


class ConfigIsReadyError(Exception):
    """The end of what is shown of the function."""


def convert(command, **given):
    (SCRATCH / "0" / "items").mkdir(parents=True)


def end(config):
    raise ConfigIsReadyError


process = start()
creation = part(
    "src/maxtext/utils/model_creation_utils.py",
    ["from_pretrained"],
    {
        "jax": jax,
        "os": os,
        "sys": sys,
        "epath": epath,
        "get_token": lambda: "",
        "MODEL_MODE_TRAIN": "train",
        "max_logging": SimpleNamespace(log=print, warning=print),
        "verify_and_sync_scan_layers": end,
        "subprocess": SimpleNamespace(run=convert, CalledProcessError=OSError),
        "pyconfig": SimpleNamespace(HyperParameters=lambda config: config),
    },
)
config = SimpleNamespace(
    convert_checkpoint_if_possible=True,
    load_parameters_path="",
    base_output_directory=str(SCRATCH),
    hf_access_token="-",
    model_name="small",
    scan_layers=True,
    checkpoint_storage_use_ocdbt=True,
    checkpoint_storage_use_zarr3=True,
)
config.model_copy = lambda update: config
time.sleep(5 * process)
try:
    creation["from_pretrained"](config)
except ConfigIsReadyError:
    print("process", process, "has its configuration", flush=True)
# What follows on all processes.
total = jax.experimental.multihost_utils.process_allgather(jnp.float32(1)).sum()
tell("the number of processes is", float(total), 2.0)
