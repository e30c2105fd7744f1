"""Transformer Engine: the rank that ``get_mesh_axis_rank_host`` gives to a process with two devices."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh
from loading import part, start, tell

process = start()
rank = part("transformer_engine/jax/sharding.py", ["get_mesh_axis_rank_host"], {"jax": jax, "np": np})
mesh = Mesh(np.array(jax.devices()), ("cp",))
own = sorted(int(np.argwhere(mesh.devices == device)[0, 0]) for device in jax.local_devices())
given = rank["get_mesh_axis_rank_host"]("cp", mesh)
tell("the rank is", given, " or ".join(map(str, own)), right=given in own)
