from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class FalseReplication(Rule):
    """A spec says that a value is the same on all devices, and it is not.

    ## What it does

    Types the bodies of `shard_map` over the axes of the mesh, as JAX's `check_vma` does, through functions, branches
    and loops. Reports an output that varies along an axis which its out spec does not name: on every way through the
    body, or on one of two. So does an output of a `pmap` under `out_axes=None`. And an argument whose spec names no
    axis, and that comes of the number of the process.

    ## Why it matters

    With the check on, JAX raises, on the cluster, when that way is first traced. With `check_vma=False` it believes the
    spec and takes the copy of one device; the other shares are lost.

    ## Example

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def scaled(x):
        return x / jax.lax.pmax(x.max(), "data")

    run = jax.shard_map(scaled, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def scaled(x):
        return x / jax.lax.pmax(x.max(), "data")

    run = jax.shard_map(scaled, mesh=mesh, in_specs=P("data"), out_specs=P("data"), check_vma=False)
    ```

    ## Limits

    Under the check, a map over the mesh of the context is reported with `--preview` only: an axis of it may be of size
    one. Specs that are not known in full, and what unknown functions compute, are left alone. Where branches compare
    with a number or None, as questions for the number of devices do, the ways are not told apart.
    """

    code = "SPMD504"
    name = "false-replication"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._outputs(program)
        yield from self._arguments(program)

    def _arguments(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.own_arguments():
            place, source = program.place(found.site), found.reason.source
            yield self.finding(
                message=(
                    f"The spec says that this argument of the {found.library} is the same on all devices, but every "
                    f"process gives its own: {source.text} ({program.where(source.site, place.path)})."
                ),
                place=place,
                help=(
                    "JAX takes it to be one value. Name the axis in the spec and put a row for each device into a "
                    "global array, or take jax.lax.axis_index inside."
                ),
                related=(
                    *(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
                    Related(program.place(found.spec), "This spec names no axis."),
                ),
            )

    def _outputs(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.bodies.unreduced():
            if found.spec is None or (found.share and not found.checked) or (found.map, found.axis) in told:
                continue
            if found.checked and found.ambient and not program.preview:
                continue
            told.add((found.map, found.axis))
            place = program.place(found.spec)
            way = " on one way through it" if found.mixed else ""
            says = "out_axes=None says" if found.spec == found.map else "The spec says"
            if found.checked:
                then = "JAX raises, unless only a branch's predicate varies, which its check does not count"
            else:
                why = "" if found.spec == found.map else ", because the check is off"
                then = f"JAX takes the copy of one device{why}"
            related = [Related(program.place(found.map), f"The {found.library} of {found.body!r}.")]
            if found.returned is not None:
                related.append(Related(program.place(found.returned), "This is what it returns."))
            if found.origin is not None:
                text = "This way gives" if found.mixed else "From here it is"
                related.insert(0, Related(program.place(found.origin), f"{text} what varies along {found.axis!r}."))
            yield self.finding(
                message=(
                    f"{says} that this output of {found.body!r} is the same on all devices along "
                    f"{found.axis!r}, but it varies{way}: {then}."
                ),
                place=place,
                help=f"Reduce it over {found.axis!r} (psum, pmean, all_gather), or name the axis in the out spec.",
                related=tuple(related),
            )
