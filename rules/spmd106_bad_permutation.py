from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class BadPermutation(Rule):
    """A permutation sends two values to one place, or one value twice.

    ## What it does

    Finds `ppermute` and `pshuffle` whose `perm` is written out and has two pairs with the same source or the same
    destination.

    ## Why it matters

    A collective permutation moves at most one value from and to each device. JAX raises when it is traced.

    ## Example

    ```python
    import jax

    def shift(x):
        return jax.lax.ppermute(x, "i", perm=[(0, 1), (1, 2), (2, 1)])

    shifted = jax.pmap(shift, axis_name="i")
    ```

    ## Use instead

    ```python
    import jax

    def shift(x):
        return jax.lax.ppermute(x, "i", perm=[(0, 1), (1, 2), (2, 0)])

    shifted = jax.pmap(shift, axis_name="i")
    ```

    ## Limits

    Permutations that are computed are not evaluated. A partial permutation is legal: what receives nothing gets zeros.
    """

    code = "SPMD106"
    name = "bad-permutation"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.specs.permutations():
            if found.site in told:
                continue
            told.add(found.site)
            yield Diagnostic(
                code=self.code,
                name=self.name,
                severity=self.severity,
                message=f"Two pairs of this permutation have the {found.role} {found.repeated}.",
                place=program.place(found.site),
                help="Name each device at most once as a source and at most once as a destination.",
            )
