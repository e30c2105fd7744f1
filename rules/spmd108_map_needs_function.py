from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Fix
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import MissingFunction, Program


class MapNeedsFunction(Rule):
    """`pmap` or `vmap` is called without the function to map.

    ## What it does

    Finds calls of `jax.pmap` and `jax.vmap` that pass only keywords, as in `@jax.pmap(axis_name="i")`. `jax.jit`,
    `jax.shard_map` and `jax.smap` accept that form; `pmap` and `vmap` do not.

    ## Why it matters

    The decorator line raises `TypeError` when the module is imported.

    ## Example

    ```python
    import jax

    @jax.pmap(axis_name="i")
    def normalise(x):
        return x / jax.lax.psum(x, "i")
    ```

    ## Use instead

    ```python
    import functools

    import jax

    @functools.partial(jax.pmap, axis_name="i")
    def normalise(x):
        return x / jax.lax.psum(x, "i")
    ```

    ## Limits

    A call with `*args` or `**kwargs` may pass the function that way and is not reported.
    """

    code = "SPMD108"
    name = "map-needs-function"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.specs.missing_functions():
            if found.site in told:
                continue
            told.add(found.site)
            short = found.library.rsplit(".", 1)[-1]
            keywords = "".join(f", {name}=..." for name in found.keywords)
            yield self.finding(
                message=f"{found.library} needs the function to map as an argument; this call raises a TypeError.",
                place=program.place(found.site),
                fix=self._fix(program, found),
                help=f"As a decorator, write functools.partial({found.library}{keywords}) instead of {short}.",
            )

    def _fix(self, program: Program, found: MissingFunction) -> Fix | None:
        change = program.edits.as_partial(found.site)
        return Fix("unsafe", "Use functools.partial.", change=change) if change is not None else None
