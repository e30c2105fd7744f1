from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UnaveragedStatistics(Rule):
    """Running statistics are kept for each device and never averaged.

    ## What it does

    Finds running statistics (`batch_stats`) that a `pmap` keeps for each device and that nothing in the program
    averages.

    ## Why it matters

    Each device evaluates with the statistics of its own rows, and a checkpoint holds those of the first device. The
    model that is evaluated is not the one that was trained, and nothing fails.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp

    def train_step(state, images, targets):
        def loss_fn(params):
            variables = {"params": params, "batch_stats": state.batch_stats}
            out, new = state.apply_fn(variables, images, train=True, mutable=["batch_stats"])
            return jnp.mean((out - targets) ** 2), new["batch_stats"]

        grads, batch_stats = jax.grad(loss_fn, has_aux=True)(state.params)
        return state.apply_gradients(grads=jax.lax.pmean(grads, "x"), batch_stats=batch_stats)

    p_train_step = jax.pmap(train_step, axis_name="x")
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp

    def train_step(state, images, targets):
        def loss_fn(params):
            variables = {"params": params, "batch_stats": state.batch_stats}
            out, new = state.apply_fn(variables, images, train=True, mutable=["batch_stats"])
            return jnp.mean((out - targets) ** 2), new["batch_stats"]

        grads, batch_stats = jax.grad(loss_fn, has_aux=True)(state.params)
        return state.apply_gradients(grads=jax.lax.pmean(grads, "x"), batch_stats=batch_stats)

    def average(batch_stats):
        return jax.lax.pmean(batch_stats, "x")

    p_average = jax.pmap(average, axis_name="x")
    p_train_step = jax.pmap(train_step, axis_name="x")

    def evaluate(state, images):
        state = state.replace(batch_stats=p_average(state.batch_stats))
        return state.apply_fn({"params": state.params, "batch_stats": state.batch_stats}, images)
    ```

    ## Limits

    Normalisation layers of which nobody knows whether they reduce over the axis are not reported.
    """

    code = "SPMD515"
    name = "unaveraged-statistics"
    severity = "warning"
    split_from = "SPMD503"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.own_statistics():
            yield self.finding(
                message=(
                    "These running statistics come from one device's rows, and nothing in the program averages them: "
                    "each device evaluates with its own, and a checkpoint holds those of the first device."
                ),
                place=program.place(found.site),
                help=(
                    "Pass axis_name to the normalisation layers, or average the statistics before they are used "
                    "outside training: jax.pmap(lambda x: jax.lax.pmean(x, axis), axis)."
                ),
                related=(
                    Related(program.place(found.asked), "The model returns them here."),
                    Related(program.place(found.map), "This runs the body on every device."),
                ),
            )
