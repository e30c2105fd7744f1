from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Edit, Fix, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, Site


class FloatShape(Rule):
    """The shape of an array holds a float.

    ## What it does

    Finds shapes given to `jnp.ones`, `reshape`, `jax.random.normal` and their like in which a number is surely a float:
    it is written as one, or it is the result of a division by `/`.

    ## Why it matters

    Sizes per device come from dividing a batch by the number of devices, and `/` gives a float in Python even where
    nothing remains. JAX raises a TypeError, often only when the job runs on its real devices.

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

    Numbers that come from parameters or from functions are left alone.
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
            why = "it is divided by /" if found.division else "it is written as one"
            at = "" if found.made == found.site else f" at {program.where(found.made, place.path)}"
            yield self.finding(
                message=f"This number of the shape for {found.taker} is a float ({why}{at}): JAX raises a TypeError.",
                place=place,
                help="Divide by // after checking that nothing remains." if found.division else "Write an integer.",
                related=(Related(program.place(found.made), "Here it becomes a float."),),
                fix=_fix(program, found.made),
            )


def _fix(program: Program, made: Site) -> Fix | None:
    """A division without a remainder; whether nothing remains is for a reader to see."""
    between = program.slips.division(made)
    if between is None:
        return None
    start, end = (program.location(made, offset) for offset in between)
    text = " // " if between[1] - between[0] > 1 else "//"
    return Fix("unsafe", "Divide by //.", (Edit(start, end, text),))
