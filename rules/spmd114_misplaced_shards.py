from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class MisplacedShards(Rule):
    """A collective or a spec takes an array to be split along another dimension, or in another order, than it is.

    ## What it does

    Follows in the body of a `shard_map` which dimension of an array each axis splits: the specs say it of arguments,
    and `psum_scatter`, `all_gather` and `all_to_all` with `tiled=True` change it. Reports a collective that puts the
    parts together along a different dimension, such as an `all_to_all` that repeats the first one where it should
    reverse it, and an output whose spec names the axis at a different dimension. Also reports a `psum` or `pmean` over
    an axis that splits a dimension, if the spec of the output says that the axis still splits it.

    Also looks inside every `shard_map` for collectives whose result depends on the order of their axes (`all_gather`,
    `axis_index`, `psum_scatter`, `all_to_all`, `ppermute`, ...) and that name the axes of one of its specs in a
    different order from the spec.

    ## Why it matters

    The parts are put together in the wrong place. The result has the wrong shape or, if dimensions happen to fit,
    wrong contents: rows of different examples next to one another. JAX checks which axes an output varies over, but not
    along which dimension.

    `P(("data", "model"))` numbers the shards with "data" as the slow axis. Gathering over `("model", "data")`
    concatenates them in a different order: the program runs, but its rows are shuffled.

    ## Example

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("model",))

    def project(x, kernel):
        return jax.lax.psum_scatter(x @ kernel, "model", scatter_dimension=0, tiled=True)

    run = jax.shard_map(
        project, mesh=mesh, in_specs=(P(None, "model"), P("model", None)), out_specs=P(None, "model")
    )
    ```

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))

    def whole(x):
        return jax.lax.all_gather(x, ("model", "data"), tiled=True)

    gathered = jax.shard_map(whole, mesh=mesh, in_specs=P(("data", "model")), out_specs=P(), check_vma=False)
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("model",))

    def project(x, kernel):
        return jax.lax.psum_scatter(x @ kernel, "model", scatter_dimension=1, tiled=True)

    run = jax.shard_map(
        project, mesh=mesh, in_specs=(P(None, "model"), P("model", None)), out_specs=P(None, "model")
    )
    ```

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))

    def whole(x):
        return jax.lax.all_gather(x, ("data", "model"), tiled=True)

    gathered = jax.shard_map(whole, mesh=mesh, in_specs=P(("data", "model")), out_specs=P(), check_vma=False)
    ```

    ## Limits

    What a spec splits along the first dimension may be a separate array for each device, which may go anywhere; only
    what the body itself has split there is checked. Dimensions are known until the array is reshaped, transposed or
    indexed. Dimensions counted from the last, several axes at once, and collectives without `tiled=True` are not
    followed.

    Reductions (`psum`, `pmean`, ...) do not depend on the order of their axes, and no order of theirs is reported; nor
    is one in a `shard_map` whose specs name the axes in both orders.
    """

    code = "SPMD114"
    name = "misplaced-shards"
    merged = ("wrong-dimension", "SPMD110 axis-order")

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._misplaced(program)
        yield from self._in_another_order(program)
        for found in program.bodies.once("overlaid", at="operation"):
            event = found.event
            place = program.place(event.site)
            yield self.finding(
                message=(
                    f"This adds up parts that {event.axis!r} splits between the devices: the spec of the output says "
                    f"that each device along {event.axis!r} has a part of its own "
                    f"({program.where(event.mark.site, place.path)}), but now all of them have the same sum."
                ),
                place=place,
                help=(
                    f"Reduce only over the axes along which each device has a share of every element, not over "
                    f"{event.axis!r}; or remove {event.axis!r} from the spec of the output."
                ),
                related=(
                    Related(program.place(event.mark.site), "The spec is made here."),
                    *self.leading(program, found.path),
                    Related(program.place(found.map), f"The {found.library} binds {event.axis!r}."),
                ),
            )

    def _in_another_order(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.regions.axis_orders():
            if found.site in told:
                continue
            told.add(found.site)
            place = program.place(found.site)
            at = program.where(found.spec, place.path)
            yield self.finding(
                message=f"{found.collective} names {found.axes}, but the spec at {at} shards over {found.specified}.",
                place=place,
                help=f"Use the same order in both places; the spec uses {found.specified}.",
                related=(Related(program.place(found.spec), "This spec determines the order of the shards."),),
                severity="warning",
            )

    def _misplaced(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.bodies.once("misplaced", at="operation"):
            event = found.event
            assert event.dimensions is not None
            said, split = event.dimensions
            place = program.place(event.site)
            if event.name:
                message = (
                    f"{event.name} puts together the parts of dimension {said}, but {event.axis!r} splits "
                    f"dimension {split} of this array."
                )
                advice = f"Name dimension {split}; after an all_to_all, its split and concat axes change places."
            elif event.origin == event.site:
                message = (
                    f"This splits dimension {split} of an output over {event.axis!r}, but the spec of the output says "
                    f"that {event.axis!r} splits dimension {said} ({program.where(event.mark.site, place.path)})."
                )
                advice = f"Split dimension {said}, or name {event.axis!r} at dimension {split} of the spec."
            else:
                message = (
                    f"The spec says that {event.axis!r} splits dimension {said} of this output, but it splits "
                    f"dimension {split}."
                )
                advice = f"Name {event.axis!r} at dimension {split} of the spec, or split dimension {said} in the body."
            began = event.mark.site
            text = "The spec is made here." if event.origin == event.site else "It is split here."
            yield self.finding(
                message=message,
                place=place,
                help=advice,
                related=(
                    *([Related(program.place(began), text)] if began != event.site else []),
                    *self.leading(program, found.path),
                    Related(program.place(found.map), f"The {found.library} binds {event.axis!r}."),
                ),
            )
