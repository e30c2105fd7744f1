"""NetKet: ``assert_allclose`` of its tests, with an array that has parts on both processes."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from loading import part, start

process = start()
compare = part("test/common.py", ["assert_allclose"], {"jax": jax, "np": np})["assert_allclose"]
mesh = Mesh(np.array(jax.devices()), ("S",))
rows = jax.make_array_from_process_local_data(NamedSharding(mesh, P("S")), np.full(2, float(process)))
compare(rows, np.float32([0, 0, 1, 1]))
print("process", process, "found them close", flush=True)
