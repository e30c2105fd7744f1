from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class RepeatedAxis(Rule):
    """An axis appears twice in a mesh, or in the spec of one array.

    ## What it does

    Finds axis names that appear twice in the `axis_names` of a mesh, or twice in one `PartitionSpec` that
    `NamedSharding` or `shard_map` uses with a mesh.

    ## Why it matters

    A mesh axis can shard only one dimension of an array: JAX raises when the sharding is made. A mesh that has the same
    name twice loses an axis; some versions of JAX do not complain until the first computation over it.

    ## Example

    ```python
    import jax
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))
    square = NamedSharding(mesh, P("model", "model"))
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))
    square = NamedSharding(mesh, P("data", "model"))
    ```

    ## Limits

    A spec of logical names, which a library maps to mesh axes later, may repeat a name. A spec that is not visibly used
    with a mesh is therefore reported only if a mesh of the program has the axis.
    """

    code = "SPMD103"
    name = "repeated-axis"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in (*program.specs.repeated(), *program.regions.added_again()):
            if (found.site, found.axis) in told:
                continue
            told.add((found.site, found.axis))
            if found.what == "mesh":
                message = f"The mesh has two axes named {found.axis!r}."
                way_out = "Give each axis of the mesh a different name."
            elif found.adds is not None:
                at = program.where(found.adds, program.place(found.site).path)
                message = (
                    f"The spec names the axis {found.axis!r}, over which the {found.what.rsplit('.', 1)[-1]} at {at} "
                    "already shards the mapped dimension."
                )
                way_out = "Remove the axis from the spec: the map adds it in front."
            else:
                message = f"The spec shards two dimensions of one array over the axis {found.axis!r}."
                way_out = "Shard one dimension over it, and use None or another axis for the other dimension."
            yield self.finding(
                message=message,
                place=program.place(found.site),
                help=way_out,
            )
