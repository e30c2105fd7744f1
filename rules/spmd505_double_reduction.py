from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


_HELP = {
    "transposed": "Take the mean of the loss inside of the function that is differentiated, and drop this one.",
    "settled": "Reduce the loss inside of the function that is differentiated, and drop this one.",
    "magnified": "Differentiate this device's own loss, or take the mean of the gradients (pmean) here.",
}


class DoubleReduction(Rule):
    """A value is reduced over an axis along which it has been reduced already.

    ## What it does

    Finds a `psum` or `pmean` over an axis, of a value that an earlier `psum` or `pmean` over that axis has made the
    same on all devices, and of gradients in a checked `shard_map`, which JAX has summed already: the derivative by
    a value that is the same on all devices is the sum over them. `psum` of such gradients counts even where nothing is
    known of the loss: they are the same on all devices. Also `psum` of the gradients of a loss that is itself
    a `psum` over that axis, in a `pmap` or an unchecked `shard_map`: the derivative of `psum` is `psum` there. With
    `--preview`, a second reduction that changes nothing, such as `pmean` of a mean, is reported, too.

    ## Why it matters

    `psum` of a sum is too large by the number of devices. `pmean` of gradients that are a sum already leaves the sum:
    the learning rate grows with the mesh. Nothing fails.

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

    Values that have met others since their first reduction are left alone, and so is `psum` of a constant, which counts
    the devices.
    """

    code = "SPMD505"
    name = "double-reduction"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.bodies.met():
            event = found.event
            if event.hazard != "twice" or (event.harmless and not program.preview) or event.site in told:
                continue
            told.add(event.site)
            place = program.place(event.site)
            at = program.where(event.mark.site, place.path)
            if event.mark.fact == "magnified":
                before = (
                    f"the gradients of a loss that psum has summed over it at {at}, and whose derivative sums again"
                )
            elif event.mark.fact == "transposed":
                before = f"gradients that JAX has summed over it at {at}, as it does in a checked {found.library}"
            elif event.mark.fact == "settled":
                before = (
                    f"gradients that are the same along it already, from {at}: in a checked {found.library}, JAX sums "
                    "them where the loss differs, if they are by what all devices share"
                )
            else:
                done = "sum" if event.mark.fact == "summed" else "mean"
                before = f"what is the {done} over it already, from {at}"
            if event.harmless:
                then = "It changes nothing and costs a round of communication."
            elif event.name == "psum":
                then = "The result is too large by the number of devices."
            else:
                then = "They stay a sum, too large by the number of devices for a mean."
            yield Diagnostic(
                code=self.code,
                name=self.name,
                severity="warning" if event.harmless else self.severity,
                message=f"{event.name} over {event.axis!r} of {before}. {then}",
                place=place,
                help=_HELP.get(event.mark.fact, "Reduce it once."),
                related=(
                    Related(program.place(event.mark.site), f"Here it is reduced over {event.axis!r} before."),
                    Related(program.place(found.map), f"The {found.library} binds {event.axis!r}."),
                ),
            )
