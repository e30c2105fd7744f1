from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class FirstRow(Rule):
    """The first device's row of a metric is used as the metric of all devices.

    ## What it does

    Finds sums and means that each device of a `pmap` has of its own data, of which the host takes the first row
    (`loss[0]`, `unreplicate(metrics)`), although the body never reduces them over the axis.

    ## Why it matters

    The number covers the examples of one device. It looks like the metric of the whole batch, is as noisy as that of a
    batch many times smaller, and nothing fails.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp

    def evaluate(params, batch):
        return jnp.mean((batch["x"] @ params - batch["y"]) ** 2)

    p_evaluate = jax.pmap(evaluate, axis_name="batch")

    def report(params, batch):
        loss = p_evaluate(params, batch)
        print(loss[0])
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp

    def evaluate(params, batch):
        return jax.lax.pmean(jnp.mean((batch["x"] @ params - batch["y"]) ** 2), "batch")

    p_evaluate = jax.pmap(evaluate, axis_name="batch")

    def report(params, batch):
        loss = p_evaluate(params, batch)
        print(loss[0])
    ```

    ## Limits

    Only a `pmap` that names its axis is checked. What an unknown function computes is not known to be a sum or a mean.
    """

    code = "SPMD512"
    name = "first-row"
    split_from = "SPMD503"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.one_rows():
            related = [Related(program.place(found.map), f"The {found.library} returns a row for each device.")]
            if found.origin is not None:
                related.insert(0, Related(program.place(found.origin), "It is computed here, from one device's data."))
            what = f"{found.part}" if found.part else "metric"
            yield self.finding(
                message=(
                    f"This uses the first device's {what} as that of all: it is a sum or mean of one device's data, "
                    f"and the body never reduces it over {found.axis!r}."
                ),
                place=program.place(found.site),
                help=f"Reduce it in the body: jax.lax.pmean(..., {found.axis!r}) for a mean, jax.lax.psum for a sum.",
                related=tuple(related),
            )
