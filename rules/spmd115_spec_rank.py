from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class SpecRank(Rule):
    """A spec has entries for the dimensions of an output that has none.

    ## What it does

    Finds outputs of a `shard_map` that are a single number on each device, such as a loss or the mean of all elements,
    and that have a spec with at least one entry, such as `P("data")`. It follows the number through arithmetic,
    reductions over devices, and the project's functions.

    ## Why it matters

    A spec names the dimensions of an array. A number has none, so JAX raises when the function is traced. Code that was
    written for `pmap`, which stacks the numbers of the devices, often meets this when it is ported.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def error(x, y):
        return jnp.mean((x - y) ** 2)

    run = jax.shard_map(error, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def error(x, y):
        return jax.lax.pmean(jnp.mean((x - y) ** 2), "data")

    run = jax.shard_map(error, mesh=mesh, in_specs=P("data"), out_specs=P())
    ```

    ## Limits

    Only values that certainly have no dimensions count. The number of dimensions of an array is not known.
    """

    code = "SPMD115"
    name = "spec-rank"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        seen = set()
        for found in program.bodies.met():
            spec, wrapped = found.event.site, found.wrapped
            if found.event.hazard != "scalar" or (found.map, spec, wrapped) in seen:
                continue
            seen.add((found.map, spec, wrapped))
            used = spec if spec.ref == found.map.ref else program.written.argument(found.map, "out_specs")
            if wrapped is not None:
                used = spec if program.is_inside(spec, wrapped.place) else wrapped.place
            output = f"An output of {wrapped.name if wrapped is not None else f'this {found.library}'}"
            place = program.place(used or found.map)
            yield self.finding(
                message=(
                    f"{output} is a single number on each device, so it has no dimension that its spec could name: JAX "
                    "raises."
                ),
                place=place,
                help="Reduce it over the devices and pass P(), or give it a dimension, as in x[None], to get one entry "
                "for each device.",
                related=(
                    *([Related(program.place(spec), "The spec is made here.")] if used != spec else []),
                    *self.wrapped(program, wrapped, place),
                    *([Related(program.place(found.map), "The map is made here.")] if used is not None else []),
                ),
                through=wrapped.name if wrapped is not None else "",
            )
