from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class NonlinearBeforeReduction(Rule):
    """A non-linear function is applied to one device's share before the reduction.

    ## What it does

    Finds a gradient, a sum or a mean of one device's share of the data that passes through a norm, a clip, a square
    root, an exponential, the update of an optimizer such as `optax.adam`, or the like, and is only then reduced by
    `psum` or `pmean`; and the `std` or `var` of this device's rows, if the mean of the same rows is taken next to it.
    Also finds a bias that is added to this device's part of a matrix product before `psum` sums the parts.

    ## Why it matters

    The mean of clipped gradients is not the clipped mean, and the root of a mean is not the mean of roots. All devices
    agree on the wrong number, so no check of replicas notices it, and the result depends on the number of devices.

    ## Example

    ```python
    import functools

    import jax
    import jax.numpy as jnp

    @functools.partial(jax.pmap, axis_name="batch")
    def step(w, x):
        grads = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        grads = grads / jnp.maximum(1.0, jnp.linalg.norm(grads))
        return w - 0.1 * jax.lax.pmean(grads, "batch")
    ```

    ## Use instead

    ```python
    import functools

    import jax
    import jax.numpy as jnp

    @functools.partial(jax.pmap, axis_name="batch")
    def step(w, x):
        grads = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        grads = jax.lax.pmean(grads, "batch")
        return w - 0.1 * grads / jnp.maximum(1.0, jnp.linalg.norm(grads))
    ```

    ## Limits

    Some authors intend it: a mean of norms as a metric, clipping per replica. Per-example gradients (`vmap` of `grad`)
    are not reported; nor is the `std` of a whole array, without an axis, which is often only a metric.
    """

    code = "SPMD506"
    name = "nonlinear-before-reduction"
    severity = "warning"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.bodies.once("bent", "added"):
            event = found.event
            biased = event.hazard == "added"
            place = program.place(event.mark.site)
            at = program.where(event.site, place.path)
            message = (
                f"A non-linear function is applied to this device's share along {event.axis!r} before {event.name} "
                f"at {at} reduces it: the result is not that of the whole batch, and depends on the number of devices."
            )
            help_ = f"Reduce over {event.axis!r} first, and apply the function to the result."
            if biased:
                message = (
                    f"This adds a value that is the same on all devices along {event.axis!r} to each device's part of "
                    f"a product, and the {event.name} at {at} sums both: the bias is counted once per device."
                )
                help_ = f"Add it after the {event.name}, or on one device only."
            yield self.finding(
                message=message,
                place=place,
                help=help_,
                related=(
                    *self.leading(program, found.path),
                    Related(program.place(event.site), f"This is the {event.name}."),
                    Related(program.place(found.map), f"The {found.library} binds {event.axis!r}."),
                ),
            )
