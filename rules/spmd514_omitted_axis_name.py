from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import LeftOut, Program


class OmittedAxisName(Rule):
    """A call leaves a helper's axis name at None, so the helper reduces nothing.

    ## What it does

    Finds calls in a mapped body that leave a helper's `axis_name` at None, so that it skips its reduction, although the
    body reduces over the axis elsewhere, and such calls in a function that takes an `axis_name` itself and never uses
    it.

    ## Why it matters

    The same helper serves one device and many. Without the name it is right on one device only: on many, each has the
    result of its own data, and nothing fails.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp

    def moments(x, axis_name=None):
        mean = jnp.mean(x, axis=0)
        if axis_name is not None:
            mean = jax.lax.pmean(mean, axis_name)
        return mean

    def step(params, x):
        x = x - moments(x)
        grads = jax.grad(lambda p: jnp.mean((x @ p) ** 2))(params)
        return params - 0.1 * jax.lax.pmean(grads, "batch")

    run = jax.pmap(step, axis_name="batch")
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp

    def moments(x, axis_name=None):
        mean = jnp.mean(x, axis=0)
        if axis_name is not None:
            mean = jax.lax.pmean(mean, axis_name)
        return mean

    def step(params, x):
        x = x - moments(x, axis_name="batch")
        grads = jax.grad(lambda p: jnp.mean((x @ p) ** 2))(params)
        return params - 0.1 * jax.lax.pmean(grads, "batch")

    run = jax.pmap(step, axis_name="batch")
    ```

    ## Limits

    A body that reduces nothing over the axis is not reported: its devices may be meant to stay apart.
    """

    code = "SPMD514"
    name = "omitted-axis-name"
    severity = "warning"
    split_from = "SPMD503"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.optional_axes.found():
            yield self._skipped(
                program,
                found.left,
                although=f"the body runs under {found.axis!r} and reduces over it elsewhere",
                way_out=f"Pass {found.left.parameter}={found.axis!r}",
                related=(
                    Related(program.place(found.sibling), f"The body reduces over {found.axis!r} here."),
                    Related(program.place(found.map), "This runs the body."),
                ),
            )
        for left in program.optional_axes.not_handed_on():
            name, parameter = program.function_name(left.site), left.parameter
            yield self._skipped(
                program,
                left,
                although=f"{name}() takes {parameter!r} itself and never uses it",
                way_out=f"Hand it on: {parameter}={parameter}",
            )

    def _skipped(
        self, program: Program, left: LeftOut, although: str, way_out: str, related: tuple[Related, ...] = ()
    ) -> Diagnostic:
        place = program.place(left.site)
        call = f"{left.library} ({program.where(left.collective, place.path)})"
        return self.finding(
            message=f"This leaves {left.parameter!r} at None, so {call} is skipped, although {although}.",
            place=place,
            help=f"{way_out}; otherwise the result is that of one device.",
            related=(Related(program.place(left.collective), "This is skipped."), *related),
        )
