from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import BadGroups, BadPermutation, Breach, Program, Reason, Site

_ONCE = "Name each device at most once as a source and at most once as a destination."


class BadAxisIndices(Rule):
    """The permutation or the groups that a collective is given name devices twice, or others than its axis has.

    ## What it does

    Finds `ppermute` and `pshuffle` calls whose `perm`, written out or made by a comprehension over known values, has
    two pairs with the same source or the same destination. Also reports devices that the axis does not have, if the
    size of the axis is known from the mesh shape of the surrounding map, or if pairs for all devices of the axis lead
    past its end (`(i, i + 1) for i in range(n)`).

    Finds `axis_index_groups` that contain a device twice, leave one out, or have a different number of devices than the
    axis, if its size is known from the shape of the mesh.

    Also finds permutations and groups that are computed from what differs between processes, such as the index of this
    one.

    ## Why it matters

    A collective permutation moves at most one value from and to each device; JAX raises otherwise, when it traces the
    call. Each process has to pass the same, complete permutation: with different permutations the job hangs, and
    devices that are left out get zeros.

    Every device of the axis has to be in exactly one group. Groups that were written for eight devices fail, or reduce
    over the wrong devices, when the job runs on sixteen.

    ## Example

    ```python
    import jax

    def shift(x):
        return jax.lax.ppermute(x, "i", perm=[(0, 1), (1, 2), (2, 1)])

    shifted = jax.pmap(shift, axis_name="i")
    ```

    ```python
    import jax

    def halves(x):
        return jax.lax.psum(x, "i", axis_index_groups=[[0, 1], [1, 2]])

    summed = jax.pmap(halves, axis_name="i")
    ```

    ## Use instead

    ```python
    import jax

    def shift(x):
        return jax.lax.ppermute(x, "i", perm=[(0, 1), (1, 2), (2, 0)])

    shifted = jax.pmap(shift, axis_name="i")
    ```

    ```python
    import jax

    def halves(x):
        return jax.lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]])

    summed = jax.pmap(halves, axis_name="i")
    ```

    ## Limits

    What depends on the size of the axis at run time is tried with three to eight devices. A permutation is reported if
    it is wrong for all of these sizes, and groups if two of them overlap for all of them. The axis size of a `pmap`
    comes from its argument and is not known. A partial permutation is legal: a device that receives nothing gets zeros.
    Negative numbers are legal as well: JAX counts them from the end of the axis, so `(i, i - 1)` makes a ring.
    """

    code = "SPMD106"
    name = "bad-axis-indices"
    merged = ("bad-permutation", "SPMD107 bad-axis-groups")

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for site, (message, way_out), steps in self._found(program):
            if site not in told:
                told.add(site)
                related = tuple(Related(program.place(step.site), sentence(step.text)) for step in steps)
                yield self.finding(message=message, place=program.place(site), help=way_out, related=related)

    def _found(self, program: Program) -> Iterator[tuple[Site, tuple[str, str], Iterable[Reason]]]:
        """What is wrong, the words about it, and the steps that lead to it; what is certain comes first."""
        for known in (program.specs, program.regions, program.trials):
            for permutation in known.permutations():
                yield permutation.site, _of_permutation(permutation), program.written.of_list(permutation.site)
            for groups in known.groups():
                yield groups.site, _of_groups(groups), program.written.of_list(groups.site)
        for found in program.breaches(self.code):
            yield found.call, _of_one_process(program, found), found.reason.chain()


def _of_permutation(found: BadPermutation) -> tuple[str, str]:
    """What is wrong with a permutation, and the way out."""
    if found.role == "pair":
        return (
            (
                "This permutation lists single devices, but ppermute takes (source, destination) pairs: JAX raises a "
                "TypeError."
            ),
            "Write the pairs: [(i, (i + 1) % n) for i in range(n)].",
        )
    if isinstance(found.device, str):
        return (
            f"All pairs of this permutation have the same {found.role}, {found.device}, for any number of devices.",
            "Gather with jax.lax.all_gather and select one, or mask all but one device and sum with psum.",
        )
    if found.tried is not None and found.size is not None:
        return (
            (
                f"This permutation has a {found.role} outside the axis for any number of devices (with {found.tried} "
                f"devices, numbered from 0: {found.device})."
            ),
            (
                "For a shift without wrap-around, leave out the pairs at the end: for i in range(n - 1); for a ring, "
                "take the remainder: (i + 1) % n."
            ),
        )
    if found.tried is not None:
        return (
            (
                f"Two pairs of this permutation have the same {found.role} for any number of devices "
                f"(with {found.tried} devices: {found.device})."
            ),
            _ONCE,
        )
    if found.size is None:
        return f"Two pairs of this permutation have the same {found.role}, {found.device}.", _ONCE
    return (
        f"This permutation has the {found.role} {found.device}, but only {found.size} devices take part.",
        f"Use devices from 0 to {found.size - 1}, or compute the pairs from the size of the axis.",
    )


def _of_groups(found: BadGroups) -> tuple[str, str]:
    """What is wrong with groups, and the way out."""
    if found.tried is not None:
        message = (
            "Two of the axis_index_groups contain the same device, whatever their size "
            f"(with size {found.tried}: device {found.repeated})."
        )
    elif found.repeated is not None:
        message = f"The axis_index_groups contain device {found.repeated} twice."
    elif found.missing is not None:
        message = f"The axis_index_groups leave out device {found.missing}."
    else:
        message = f"The axis_index_groups contain {found.count} devices, but the axis has {found.size}."
    return message, "Put every device of the axis in exactly one group; compute the groups from the size of the axis."


def _of_one_process(program: Program, found: Breach) -> tuple[str, str]:
    """What is wrong with what is made from values of one process, and the way out."""
    permutes = found.demand.parameter == found.demand.known.permutation
    what, them = ("This permutation is", "it") if permutes else ("These axis_index_groups are", "them")
    source = found.reason.source
    why = f"{source.text} ({program.where(source.site, program.place(found.site).path)})"
    return f"{what} not the same on every process: {why}.", (
        f"Every process needs the complete {'permutation' if permutes else 'groups'}: compute {them} from "
        "jax.device_count() or jax.lax.axis_size, not from what one process has."
    )
