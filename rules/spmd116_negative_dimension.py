from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class NegativeDimension(Rule):
    """A collective is given a dimension that is counted from the end.

    ## What it does

    Finds negative numbers for `scatter_dimension` of `jax.lax.psum_scatter`, and for `split_axis` and `concat_axis` of
    `jax.lax.all_to_all`.

    ## Why it matters

    Before JAX 0.11, these collectives take the number as it is: lowering fails with an error of the compiler that names
    no line of the program. `jax.lax.all_gather` and array functions do count from the end, so that a constant which
    works for one of them is easily passed to the other.

    ## Example

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4,), ("model",))

    def own_columns(x):
        return jax.lax.psum_scatter(x, "model", scatter_dimension=-1, tiled=True)

    run = jax.shard_map(own_columns, mesh=mesh, in_specs=P(), out_specs=P(None, "model"))
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4,), ("model",))

    def own_columns(x):
        return jax.lax.psum_scatter(x, "model", scatter_dimension=x.ndim - 1, tiled=True)

    run = jax.shard_map(own_columns, mesh=mesh, in_specs=P(), out_specs=P(None, "model"))
    ```

    ## Limits

    This is a preview rule (`--preview`), because newer releases of JAX count from the end. Nothing is reported if the
    setting `jax-version` names JAX 0.11 or later.
    """

    code = "SPMD116"
    name = "negative-dimension"
    severity = "warning"
    preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.slips.negative_dimensions(program.jax.oldest):
            short = found.function.rpartition(".")[2]
            yield self.finding(
                message=(
                    f"Before JAX {found.since}, {short} does not count dimensions from the end: {found.parameter} "
                    f"{found.dimension} fails when it is lowered."
                ),
                place=program.place(found.site),
                help=f"Count from the front: x.ndim - {-found.dimension}. If the project needs JAX {found.since} or "
                f'later, say so in the settings: jax-version = "{found.since}".',
            )
