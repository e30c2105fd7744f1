from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class RepeatedDevice(Rule):
    """A map or a mesh is given the same device twice.

    ## What it does

    Checks hand-written lists of devices for `pmap(devices=...)`, `Mesh` and `make_mesh`, and finds those that contain a
    device more than once.

    ## Why it matters

    A device runs one shard. JAX makes such a mesh, but raises at its first use with an error about lengths.

    ## Example

    ```python
    import jax
    import numpy as np
    from jax.sharding import Mesh

    first = jax.devices()[0]
    mesh = Mesh(np.array([first, first, first, first]).reshape(2, 2), ("rows", "columns"))
    ```

    ## Use instead

    ```python
    import jax
    import numpy as np
    from jax.sharding import Mesh

    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("rows", "columns"))
    ```

    ## Limits

    Devices that are given by anything but their position in `jax.devices()` or `jax.local_devices()` are not compared.
    """

    code = "SPMD605"
    name = "repeated-device"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.repeated_devices():
            library = found.library.rpartition(".")[2]
            yield self.finding(
                message=f"A device appears more than once among those of this {library}.",
                place=program.place(found.site),
                help="List each device once, as in jax.devices()[:4]. To try a mesh without the real devices, set "
                "XLA_FLAGS=--xla_force_host_platform_device_count=4.",
                related=(Related(program.place(found.user), f"The {library} is made here."),),
            )
