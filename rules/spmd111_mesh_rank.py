from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class MeshRank(Rule):
    """A mesh has more or fewer axis names than its devices have dimensions.

    ## What it does

    Compares the number of names of a `Mesh` with the dimensions of the array of devices that it is given, where the
    shape is written out (`reshape`, `create_device_mesh`, a plain list of devices), and that of `jax.make_mesh` with
    its sizes.

    ## Why it matters

    JAX raises when the mesh is made, which is often the first thing that happens on the expensive machines. An axis
    that is added to the names and not to the shape is the usual cause.

    ## Example

    ```python
    import jax
    import numpy as np
    from jax.sharding import Mesh

    devices = np.asarray(jax.devices()).reshape(-1, 2)
    mesh = Mesh(devices, ("replica", "data", "model"))
    ```

    ## Use instead

    ```python
    import jax
    import numpy as np
    from jax.sharding import Mesh

    devices = np.asarray(jax.devices()).reshape(1, -1, 2)
    mesh = Mesh(devices, ("replica", "data", "model"))
    ```

    ## Limits

    Shapes and names that are put together at run time are not followed.
    """

    code = "SPMD111"
    name = "mesh-rank"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.mesh_ranks():
            if found.site in told:
                continue
            told.add(found.site)
            names = ", ".join(map(repr, found.names))
            many = f"{len(found.names)} name{'' if len(found.names) == 1 else 's'} ({names})"
            what = "The shape of this mesh has" if found.by_shape else "The devices of this mesh have"
            dimensions = f"{found.dimensions} dimension{'' if found.dimensions == 1 else 's'}"
            yield self.finding(
                message=f"{what} {dimensions}, but it has {many}.",
                place=program.place(found.site),
                help="Give each dimension one name: reshape the devices, with a dimension of size 1 for an axis that "
                "is not used, or drop the name.",
            )
