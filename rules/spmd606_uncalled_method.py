from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Edit, Fix
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UncalledMethod(Rule):
    """A method of an array is used as if it were a field.

    ## What it does

    Finds `x.devices` of a JAX array that is passed to `len`, `list`, `set`, `print` and similar functions without being
    called.

    ## Why it matters

    `devices` looks like a field, even in tutorials, but is a method: `len(x.devices)` raises, and `print(x.devices)`
    prints a method instead of the devices that hold the array.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp

    x = jax.pmap(jnp.sin)(jnp.ones(4))
    print(x.devices)
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp

    x = jax.pmap(jnp.sin)(jnp.ones(4))
    print(x.devices())
    ```

    ## Limits

    Only arrays that are visibly made by JAX count.
    """

    code = "SPMD606"
    name = "uncalled-method"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.slips.uncalled():
            place = program.place(found.site)
            yield self.finding(
                message=f"{found.name} is a method of arrays, but it is not called here.",
                place=place,
                help=f"Call it: {found.name}().",
                fix=Fix("safe", f"Call {found.name}.", (Edit(place.end, place.end, "()"),)),
            )
