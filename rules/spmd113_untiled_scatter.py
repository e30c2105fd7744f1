from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UntiledScatter(Rule):
    """`psum_scatter` is called without `tiled=True` on a dimension that holds rows.

    ## What it does

    Finds calls of `jax.lax.psum_scatter` without `tiled=True` on an array that has just been given a shape whose
    scattered dimension is a product of data sizes: taken from an array's shape, or named like one, such as
    `batch * length`.

    ## Why it matters

    Without `tiled`, the scattered dimension has one entry for each device of the axis, and is removed from the result.
    If it holds rows, JAX raises as soon as there is more than one device or, if the sizes happen to match, every device
    gets a single row.

    ## Example

    ```python
    import jax

    def own_logits(logits, batch, length, vocab):
        rows = logits.reshape(batch * length, vocab)
        return jax.lax.psum_scatter(rows, "model")

    run = jax.pmap(lambda x: own_logits(x, 8, 128, 1024), axis_name="model")
    ```

    ## Use instead

    ```python
    import jax

    def own_logits(logits, batch, length, vocab):
        rows = logits.reshape(batch * length, vocab)
        return jax.lax.psum_scatter(rows, "model", tiled=True)

    run = jax.pmap(lambda x: own_logits(x, 8, 128, 1024), axis_name="model")
    ```

    ## Limits

    Other shapes are not reported: if one of the factors is not certain to be a data size, the product may well be the
    number of devices.
    """

    code = "SPMD113"
    name = "untiled-scatter"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.untiled_scatters():
            place = program.place(found.site)
            yield self.finding(
                message=(
                    "psum_scatter without tiled=True scatters one entry to each device, but this dimension holds rows: "
                    f"its size is a product ({program.where(found.size, place.path)})."
                ),
                place=place,
                help="Pass tiled=True to give each device its part of the rows, or make the number of devices a "
                "separate dimension: x.reshape(devices, rows // devices, ...).",
                related=(Related(program.place(found.size), "The dimension gets its size here."),),
            )
