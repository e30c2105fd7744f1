from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UnequalMeans(Rule):
    """Means over different numbers of examples are averaged with equal weights.

    ## What it does

    Finds a quotient of two sums over one device's share (a sum of masked losses divided by the sum of the mask), or the
    gradient of one, that `pmean` averages over the devices.

    ## Why it matters

    Each device has a different number of examples, tokens or padding. The mean of the quotients gives a device with
    three tokens the same weight as one with three thousand; the result depends on how the batch was distributed.

    ## Example

    ```python
    import functools

    import jax
    import jax.numpy as jnp

    @functools.partial(jax.pmap, axis_name="batch")
    def evaluate(losses, mask):
        loss = jnp.sum(losses * mask) / jnp.sum(mask)
        return jax.lax.pmean(loss, "batch")
    ```

    ## Use instead

    ```python
    import functools

    import jax
    import jax.numpy as jnp

    @functools.partial(jax.pmap, axis_name="batch")
    def evaluate(losses, mask):
        total = jax.lax.psum(jnp.sum(losses * mask), "batch")
        return total / jax.lax.psum(jnp.sum(mask), "batch")
    ```

    ## Limits

    If all devices always hold the same number of examples, the two are equal; the linter cannot know that.
    """

    code = "SPMD507"
    name = "unequal-means"
    severity = "warning"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.bodies.once("ratio"):
            event = found.event
            place = program.place(event.mark.site)
            at = program.where(event.site, place.path)
            yield self.finding(
                message=(
                    f"This quotient of two sums over this device's share is averaged by {event.name} over "
                    f"{event.axis!r} at {at}: devices with few examples weigh as much as those with many."
                ),
                place=place,
                help=f"Sum both over {event.axis!r} with jax.lax.psum, then divide.",
                related=(
                    *self.leading(program, found.path),
                    Related(program.place(event.site), f"This is the {event.name}."),
                    Related(program.place(found.map), f"The {found.library} binds {event.axis!r}."),
                ),
            )
