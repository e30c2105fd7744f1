from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


_HELP = {
    "transposed": "Take the mean of the loss inside the differentiated function, and remove this reduction.",
    "settled": "Reduce the loss inside the differentiated function, and remove this reduction.",
    "magnified": "Differentiate this device's own loss, or take the mean of the gradients (pmean) here.",
}


class DoubleReduction(Rule):
    """A value is reduced over an axis over which it has already been reduced.

    ## What it does

    Finds a `psum` or `pmean` over an axis of

    - a value that an earlier `psum` or `pmean` over that axis has made the same on all devices;
    - gradients in a `shard_map` with the check on, which JAX has already summed: the derivative with respect to a value
      that is the same on all devices is the sum over them. `psum` of such gradients is reported even if nothing is
      known about the loss, because they are the same on all devices.

    Also finds `psum` of the gradients of a loss that is itself a `psum` over that axis, in a `pmap` or in a `shard_map`
    with the check off: the derivative of `psum` is `psum` there. With `--preview`, a second reduction that changes
    nothing, such as `pmean` of a mean, is also reported.

    ## Why it matters

    `psum` of a sum is too large by a factor of the number of devices. `pmean` of gradients that are already a sum
    leaves the sum: the learning rate grows with the mesh. Nothing fails.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def total(x):
        local = jax.lax.psum(x.sum(), "data")
        return jax.lax.psum(local, "data")

    run = jax.shard_map(total, mesh=mesh, in_specs=P("data"), out_specs=P())
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def total(x):
        return jax.lax.psum(x.sum(), "data")

    run = jax.shard_map(total, mesh=mesh, in_specs=P("data"), out_specs=P())
    ```

    ## Limits

    Values that have been combined with others since their first reduction are not reported, nor is `psum` of a
    constant, which counts the devices.
    """

    code = "SPMD505"
    name = "double-reduction"
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.bodies.once("twice", at="operation", harmless=program.preview):
            event = found.event
            place = program.place(event.site)
            at = program.where(event.mark.site, place.path)
            if event.mark.fact == "magnified":
                before = (
                    f"the gradients of a loss that psum has summed over it at {at}, and whose derivative sums again"
                )
            elif event.mark.fact == "transposed":
                before = (
                    f"gradients that JAX has already summed over it at {at}, as it does in a {found.library} with the "
                    "check on"
                )
            elif event.mark.fact == "settled":
                before = (
                    f"gradients that are already the same along it, from {at}: in a {found.library} with the check on, "
                    "JAX sums the gradient of a replicated value if the loss varies"
                )
            else:
                done = "sum" if event.mark.fact == "summed" else "mean"
                before = f"a value that is already the {done} over it, from {at}"
            if event.harmless:
                then = "It changes nothing and costs a round of communication."
            elif event.name == "psum":
                then = "The result is too large by a factor of the number of devices."
            else:
                then = "They remain a sum, too large for a mean by a factor of the number of devices."
            yield Diagnostic(
                code=self.code,
                name=self.name,
                severity="warning" if event.harmless else self.severity,
                message=f"{event.name} over {event.axis!r} of {before}. {then}",
                place=place,
                help=_HELP.get(event.mark.fact, "Reduce it once."),
                related=(
                    Related(program.place(event.mark.site), f"It is first reduced over {event.axis!r} here."),
                    Related(program.place(found.map), f"The {found.library} binds {event.axis!r}."),
                ),
            )
