from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import OwnPart, Program


class BadPermutation(Rule):
    """A permutation repeats a source or a destination, or names a device outside the axis.

    ## What it does

    Finds `ppermute` and `pshuffle` calls whose `perm`, written out or made by a comprehension over known values, has
    two pairs with the same source or the same destination. Also reports devices that the axis does not have, if the
    size of the axis is known from the mesh shape of the surrounding map, or if pairs for all devices of the axis lead
    past its end (`(i, i + 1) for i in range(n)`); and permutations that are computed from the index of this process,
    from the number of its own devices although the devices of all processes take part, or from the number of all
    devices although only those along one of several axes do.

    ## Why it matters

    A collective permutation moves at most one value from and to each device; JAX raises otherwise, when it traces the
    call. Each process has to pass the same, complete permutation: with different permutations the job hangs, and
    devices that are left out get zeros.

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

    A permutation that depends on the size of the axis at run time is tried with three to eight devices, and reported if
    it is wrong for all of these sizes. A partial permutation is legal: a device that receives nothing gets zeros.
    Negative numbers are legal as well: JAX counts them from the end of the axis, so `(i, i - 1)` makes a ring.
    """

    code = "SPMD106"
    name = "bad-permutation"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        certain = (*program.specs.permutations(), *program.regions.permutations())
        for found in (*certain, *program.trials.permutations()):
            if found.site in told:
                continue
            told.add(found.site)
            if found.role == "pair":
                message = (
                    "This permutation lists single devices, but ppermute takes (source, destination) pairs: JAX raises "
                    "a TypeError."
                )
                way_out = "Write the pairs: [(i, (i + 1) % n) for i in range(n)]."
            elif isinstance(found.device, str):
                message = (
                    f"All pairs of this permutation have the same {found.role}, {found.device}, for any number of "
                    "devices."
                )
                way_out = "Gather with jax.lax.all_gather and select one, or mask all but one device and sum with psum."
            elif found.tried is not None and found.size is not None:
                message = (
                    f"This permutation has a {found.role} outside the axis for any number of devices "
                    f"(with {found.tried} devices, numbered from 0: {found.device})."
                )
                way_out = (
                    "For a shift without wrap-around, leave out the pairs at the end: for i in range(n - 1); for a "
                    "ring, take the remainder: (i + 1) % n."
                )
            elif found.tried is not None:
                message = (
                    f"Two pairs of this permutation have the same {found.role} for any number of devices "
                    f"(with {found.tried} devices: {found.device})."
                )
                way_out = "Name each device at most once as a source and at most once as a destination."
            elif found.size is None:
                message = f"Two pairs of this permutation have the same {found.role}, {found.device}."
                way_out = "Name each device at most once as a source and at most once as a destination."
            else:
                message = (
                    f"This permutation has the {found.role} {found.device}, but only {found.size} devices take part."
                )
                way_out = f"Use devices from 0 to {found.size - 1}, or compute the pairs from the size of the axis."
            steps = program.written.of_list(found.site)
            yield self.finding(
                message=message,
                place=program.place(found.site),
                help=way_out,
                related=tuple(Related(program.place(step.site), sentence(step.text)) for step in steps),
            )
        for own in program.own_parts:
            if own.what == "permutation" and own.site not in told:
                told.add(own.site)
                yield self._own(program, own)

    def _own(self, program: Program, found: OwnPart) -> Diagnostic:
        place, source = program.place(found.site), found.reason.source
        at = program.where(source.site, place.path)
        if found.varies:
            message = f"This permutation is not the same on every process: {source.text} ({at})."
        elif found.axis is not None:
            message = (
                f"This permutation is for all devices, but only those along {found.axis!r}, one of several axes of the "
                f"mesh, take part: {source.text} ({at})."
            )
        else:
            message = (
                "This permutation covers the devices of one process, but the devices of all processes take part: "
                f"{source.text} ({at})."
            )
        steps = tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain())
        return self.finding(
            message=message,
            place=place,
            help=(
                "Every process needs the complete permutation: compute it from jax.device_count() or "
                "jax.lax.axis_size, not from what one process has."
                if found.axis is None
                else f"Compute it from the size of the axis: jax.lax.axis_size({found.axis!r})."
            ),
            related=steps,
        )
