from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class BadAxisGroups(Rule):
    """The `axis_index_groups` of a collective do not split its axis.

    ## What it does

    Finds `axis_index_groups` that hold a device twice, leave one out, or hold another number of devices than the axis
    has, where its size is known from the shape of the mesh.

    ## Why it matters

    Every device of the axis has to be in exactly one group. Groups that were written for eight devices fail, or reduce
    over the wrong devices, when the job runs on sixteen.

    ## Example

    ```python
    import jax

    def halves(x):
        return jax.lax.psum(x, "i", axis_index_groups=[[0, 1], [1, 2]])

    summed = jax.pmap(halves, axis_name="i")
    ```

    ## Use instead

    ```python
    import jax

    def halves(x):
        return jax.lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]])

    summed = jax.pmap(halves, axis_name="i")
    ```

    ## Limits

    Groups that depend on the number of devices at run time are not evaluated. The size of a `pmap`'s axis is that of
    its argument and is not known.
    """

    code = "SPMD107"
    name = "bad-axis-groups"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in (*program.specs.groups(), *program.regions.groups()):
            if found.site in told:
                continue
            told.add(found.site)
            if found.repeated is not None:
                message = f"The axis_index_groups hold device {found.repeated} twice."
            elif found.missing is not None:
                message = f"The axis_index_groups leave out device {found.missing}."
            else:
                message = f"The axis_index_groups hold {found.count} devices, but the axis has {found.size}."
            yield Diagnostic(
                code=self.code,
                name=self.name,
                severity=self.severity,
                message=message,
                place=program.place(found.site),
                help="Put every device of the axis into exactly one group; compute the groups from the axis' size.",
            )
