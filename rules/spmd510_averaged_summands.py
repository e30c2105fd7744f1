from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class AveragedSummands(Rule):
    """Partial products of a sharded matrix product are averaged instead of summed.

    ## What it does

    Finds products in the body of a `shard_map` (`@`, `jnp.dot`, `jnp.matmul`, `jnp.einsum`) that sum over a dimension
    which the spec of an argument splits over an axis, and that `pmean` then reduces over this axis.

    ## Why it matters

    Each device holds a slice of the dimension, so its product is one summand of the whole. The mean of the summands is
    the result divided by the number of devices: the layer shrinks as the mesh grows, and nothing raises.

    ## Example

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("model",))

    def layer(x, kernel):
        return jax.lax.pmean(x @ kernel, "model")

    run = jax.shard_map(layer, mesh=mesh, in_specs=(P(None, "model"), P("model", None)), out_specs=P())
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("model",))

    def layer(x, kernel):
        return jax.lax.psum(x @ kernel, "model")

    run = jax.shard_map(layer, mesh=mesh, in_specs=(P(None, "model"), P("model", None)), out_specs=P())
    ```

    ## Limits

    The layout of an argument is known from its spec until it is reshaped or transposed. Sums over a dimension that
    comes first in all operands of an einsum, or over the rows of a transposed matrix, are over examples, which may well
    be averaged; they are not reported, and neither is a product that is divided before it is reduced.
    """

    code = "SPMD510"
    name = "averaged-summands"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.bodies.once("contracted", at="operation"):
            event = found.event
            place = program.place(event.site)
            product = program.place(event.mark.site)
            yield self.finding(
                message=(
                    f"The product at {program.where(event.mark.site, place.path)} sums over a dimension that is split "
                    f"over {event.axis!r}, so each device has one summand, and {event.name} divides their sum by the "
                    "number of devices."
                ),
                place=place,
                help=f"Sum the parts: jax.lax.psum(..., {event.axis!r}).",
                related=(
                    Related(product, f"This sums over a dimension that is split over {event.axis!r}."),
                    *self.leading(program, found.path),
                    Related(program.place(found.map), f"The {found.library} binds {event.axis!r}."),
                ),
            )
