from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class ShadowedAxis(Rule):
    """A map binds an axis name that is already bound by a map around it.

    ## What it does

    Finds maps (`pmap`, `vmap(axis_name=...)`, `shard_map`, ...) inside a map that binds the same name: passed to it
    directly, or called from its function.

    ## Why it matters

    Inside, the name refers to the inner axis only: a `psum` that is meant to sum over the devices sums over the rows of
    one device, and nothing raises.

    ## Example

    ```python
    import jax

    def loss(x):
        return jax.lax.pmean(x, "batch")

    step = jax.pmap(jax.vmap(loss, axis_name="batch"), axis_name="batch")
    ```

    ## Use instead

    ```python
    import jax

    def loss(x):
        return jax.lax.pmean(x, ("devices", "batch"))

    step = jax.pmap(jax.vmap(loss, axis_name="batch"), axis_name="devices")
    ```

    ## Limits

    This is a preview rule (`--preview`): it also reports names that are shadowed on purpose.
    """

    code = "SPMD105"
    name = "shadowed-axis"
    severity = "warning"
    preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.regions.shadowed():
            if (found.site, found.axis) in told:
                continue
            told.add((found.site, found.axis))
            place = program.place(found.site)
            library, outer = (name.rsplit(".", 1)[-1] for name in (found.library, found.outer_library))
            around = f"the {outer} at {program.where(found.outer, place.path)}"
            yield self.finding(
                message=f"This {library} binds the axis name {found.axis!r}, which {around} already binds.",
                place=place,
                help="Give the two axes different names, and name the intended one in each collective.",
                related=(Related(program.place(found.outer), f"The {outer} binds {found.axis!r} here."),),
            )
