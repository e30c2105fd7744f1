from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class ManualAxisConstraint(Rule):
    """A sharding constraint names an axis that the `shard_map` around it makes manual.

    ## What it does

    Follows the calls from every `shard_map` down to `with_sharding_constraint` and compares the axes of its spec with
    those that the `shard_map` binds.

    ## Why it matters

    Inside a `shard_map`, the code works on one shard: nothing is left to shard over the axes that the `shard_map`
    binds. JAX raises when it traces the function. The usual cause is a layer that was written for `jit` and is now
    called from a `shard_map`.

    ## Example

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))

    def layer(x):
        return jax.lax.with_sharding_constraint(x * 2, P("data"))

    mapped = jax.shard_map(layer, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))

    def layer(x):
        return jax.lax.with_sharding_constraint(x * 2, P("model"))

    mapped = jax.shard_map(layer, mesh=mesh, in_specs=P("data"), out_specs=P("data"), axis_names={"data"})
    ```

    ## Limits

    Meshes, specs and calls that are not known for certain are not followed.
    """

    code = "SPMD109"
    name = "manual-axis-constraint"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.regions.manual_constraints():
            if found.site in told:
                continue
            told.add(found.site)
            place = program.place(found.site)
            library = found.library.rsplit(".", 1)[-1]
            around = f"the {library} at {program.where(found.map, place.path)}"
            yield self.finding(
                message=f"This constrains the sharding over {found.axis!r}, which is manual inside {around}.",
                place=place,
                help=f"Remove {found.axis!r} from the spec, or from the axis_names of the {library}.",
                related=(Related(program.place(found.map), f"The {library} makes {found.axis!r} manual here."),),
            )
