from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class MeshRank(Rule):
    """A mesh has more or fewer axis names than its device array has dimensions.

    ## What it does

    Compares the number of axis names of a `Mesh` with the number of dimensions of its device array, if the shape is
    written out (`reshape`, `create_device_mesh`, a plain list of devices), and the number of names of `jax.make_mesh`
    with the number of its sizes.

    ## Why it matters

    JAX raises when the mesh is made, which is often the first thing that happens on the expensive machines. The usual
    cause is an axis that was added to the names but not to the shape.

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

    Shapes and names that are built at run time are not followed.
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
            many = f"{len(found.names)} axis name{'' if len(found.names) == 1 else 's'} ({names})"
            what = "The shape of this mesh has" if found.by_shape else "The devices of this mesh have"
            dimensions = f"{found.dimensions} dimension{'' if found.dimensions == 1 else 's'}"
            yield self.finding(
                message=f"{what} {dimensions}, but the mesh has {many}.",
                place=program.place(found.site),
                help="Give each dimension exactly one name: reshape the devices, with a dimension of size 1 for an "
                "unused axis, or remove the name.",
            )
