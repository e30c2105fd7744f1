from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import OwnPart, Program


class BadAxisGroups(Rule):
    """The `axis_index_groups` of a collective do not partition its axis.

    ## What it does

    Finds `axis_index_groups` that contain a device twice, leave one out, or have a different number of devices than the
    axis, if its size is known from the shape of the mesh. Also finds groups that are computed from the index of this
    process, or from the number of its own devices although the devices of all processes take part, and groups of
    different sizes for collectives that need equal ones.

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

    Groups that depend on the number of devices at run time are tried with sizes from three to eight, and reported if
    two of them overlap for all of these. The axis size of a `pmap` comes from its argument and is not known.
    """

    code = "SPMD107"
    name = "bad-axis-groups"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in (*program.specs.groups(), *program.regions.groups(), *program.trials.groups()):
            if found.site in told:
                continue
            told.add(found.site)
            if found.tried is not None:
                message = (
                    "Two of the axis_index_groups contain the same device, whatever their size "
                    f"(with size {found.tried}: device {found.repeated})."
                )
            elif found.repeated is not None:
                message = f"The axis_index_groups contain device {found.repeated} twice."
            elif found.missing is not None:
                message = f"The axis_index_groups leave out device {found.missing}."
            elif found.uneven is not None:
                few, many = found.uneven
                message = (
                    f"The axis_index_groups have different sizes ({few} and {many}), but this collective needs "
                    "equal ones."
                )
            else:
                message = f"The axis_index_groups contain {found.count} devices, but the axis has {found.size}."
            steps = program.written.of_list(found.site)
            yield self.finding(
                message=message,
                place=program.place(found.site),
                help="Put every device of the axis in exactly one group; compute the groups from the size of the axis.",
                related=tuple(Related(program.place(step.site), sentence(step.text)) for step in steps),
            )
        for own in program.own_parts:
            if own.what == "groups" and own.site not in told:
                told.add(own.site)
                yield self._own(program, own)

    def _own(self, program: Program, found: OwnPart) -> Diagnostic:
        place, source = program.place(found.site), found.reason.source
        at = program.where(source.site, place.path)
        if found.varies:
            message = f"These axis_index_groups are not the same on every process: {source.text} ({at})."
        elif found.axis is not None:
            message = (
                f"These axis_index_groups are for all devices, but only those along {found.axis!r}, one of several "
                f"axes of the mesh, take part: {source.text} ({at})."
            )
        else:
            message = (
                "These axis_index_groups cover the devices of one process, but the devices of all processes take "
                "part: "
                f"{source.text} ({at})."
            )
        steps = tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain())
        return self.finding(
            message=message,
            place=place,
            help=(
                "Every process needs the complete groups: compute them from jax.device_count() or jax.lax.axis_size, "
                "not from what one process has."
                if found.axis is None
                else f"Compute them from the size of the axis: jax.lax.axis_size({found.axis!r})."
            ),
            related=steps,
        )
