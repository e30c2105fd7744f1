from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UnaddressableRead(Rule):
    """The host reads the whole of an array of which it holds only a part.

    ## What it does

    Finds NumPy functions, `jax.device_get`, `tolist()`, `item()`, `float()`, `list()` and loops on an array that is
    sharded along an axis of a mesh over all devices, in a multi-process program. The array is made by `jax.device_put`
    or `jax.make_array_from_...` with such a sharding, or returned by a `jit` or `shard_map` that declares it. Where a
    function reads its argument, the calls are reported that pass it such an array.

    ## Why it matters

    On one process this works. On several, JAX raises: the other parts are on devices that this process cannot address.

    ## Example

    ```python
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    rows = NamedSharding(mesh, P("data"))

    def mean(local):
        batch = jax.make_array_from_process_local_data(rows, local)
        print("process", jax.process_index(), "of", jax.process_count())
        return np.mean(batch)
    ```

    ## Use instead

    ```python
    import jax
    import numpy as np
    from jax.experimental import multihost_utils
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    rows = NamedSharding(mesh, P("data"))

    def mean(local):
        batch = jax.make_array_from_process_local_data(rows, local)
        print("process", jax.process_index(), "of", jax.process_count())
        return np.mean(multihost_utils.process_allgather(batch, tiled=True))
    ```

    ## Limits

    Only arrays whose sharding and mesh are known for certain count. A mesh axis that lies within one process does not
    split an array between processes; the linter does not know the sizes. Tests, by their name, are left out: most run
    on one process. Under Pathways, one process addresses all devices and nothing raises.
    """

    code = "SPMD603"
    name = "unaddressable-read"
    several = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.whole_reads():
            place = program.place(found.site)
            at = program.where(found.made, place.path)
            axes = ", ".join(map(repr, found.axes))
            reads = found.reader
            if found.path:
                reads = f"this call passes it to {found.reader} ({program.where(found.path[-1], place.path)}), which"
            related = [Related(program.place(found.made), "The array is made here.")]
            related += [Related(program.place(site), "This leads to the read.") for site in found.path[:-1]]
            related += [Related(program.place(site), "It is read here.") for site in found.path[-1:]]
            yield self.finding(
                message=(
                    f"The array made at {at} is sharded along {axes} over the devices of all processes, and "
                    f"{reads} reads all of it: with several processes, JAX raises."
                ),
                place=place,
                help="Gather it first with multihost_utils.process_allgather, reduce it under jit, or read its "
                "addressable_shards.",
                related=tuple(related),
            )
