from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class AxisOrder(Rule):
    """A collective names several axes in a different order from the spec that shards the array over them.

    ## What it does

    Looks inside every `shard_map` for collectives whose result depends on the order of their axes (`all_gather`,
    `axis_index`, `psum_scatter`, `all_to_all`, `ppermute`, ...) and that name the axes of one of its specs in a
    different order from the spec.

    ## Why it matters

    `P(("data", "model"))` numbers the shards with "data" as the slow axis. Gathering over `("model", "data")`
    concatenates them in a different order: the program runs, but its rows are shuffled.

    ## Example

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))

    def whole(x):
        return jax.lax.all_gather(x, ("model", "data"), tiled=True)

    gathered = jax.shard_map(whole, mesh=mesh, in_specs=P(("data", "model")), out_specs=P(), check_vma=False)
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))

    def whole(x):
        return jax.lax.all_gather(x, ("data", "model"), tiled=True)

    gathered = jax.shard_map(whole, mesh=mesh, in_specs=P(("data", "model")), out_specs=P(), check_vma=False)
    ```

    ## Limits

    Reductions (`psum`, `pmean`, ...) do not depend on the order and are never reported. A `shard_map` whose specs name
    the axes in both orders is not reported either.
    """

    code = "SPMD110"
    name = "axis-order"
    severity = "warning"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.regions.axis_orders():
            if found.site in told:
                continue
            told.add(found.site)
            place = program.place(found.site)
            at = program.where(found.spec, place.path)
            yield self.finding(
                message=f"{found.collective} names {found.axes}, but the spec at {at} shards over {found.specified}.",
                place=place,
                help=f"Use the same order in both places; the spec uses {found.specified}.",
                related=(Related(program.place(found.spec), "This spec determines the order of the shards."),),
            )
