from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Edit, Fix, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, Site


class FloatShape(Rule):
    """The shape of an array contains a float.

    ## What it does

    Finds shapes passed to `jnp.ones`, `reshape`, `jax.random.normal` and similar functions in which a size is certainly
    a float: it is written as one, or it is the result of a division with `/`.

    ## Why it matters

    Sizes per device come from dividing a batch by the number of devices, and `/` gives a float in Python even if there
    is no remainder. JAX raises a TypeError, often only when the job runs on its real devices.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp

    def per_device(batch):
        n = jax.local_device_count()
        return jnp.zeros((n, 128 / n))
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp

    def per_device(batch):
        n = jax.local_device_count()
        return jnp.zeros((n, 128 // n))
    ```

    ## Limits

    Sizes that come from parameters or from functions are not checked.
    """

    code = "SPMD405"
    name = "float-shape"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.slips.float_shapes():
            if found.site in told:
                continue
            told.add(found.site)
            place = program.place(found.site)
            why = "it is divided with /" if found.division else "it is written as one"
            at = "" if found.made == found.site else f" at {program.where(found.made, place.path)}"
            yield self.finding(
                message=f"This size in the shape for {found.taker} is a float ({why}{at}): JAX raises a TypeError.",
                place=place,
                help="Divide with // after checking that there is no remainder."
                if found.division
                else "Write an integer.",
                related=(Related(program.place(found.made), "It becomes a float here."),),
                fix=_fix(program, found.made),
            )


def _fix(program: Program, made: Site) -> Fix | None:
    """Replace / with //; the reader has to check that there is no remainder."""
    between = program.slips.division(made)
    if between is None:
        return None
    start, end = (program.location(made, offset) for offset in between)
    text = " // " if between[1] - between[0] > 1 else "//"
    return Fix("unsafe", "Divide with //.", (Edit(start, end, text),))
