from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UntiledGather(Rule):
    """`process_allgather` or `all_gather` is called without `tiled=True` where the parts belong together.

    ## What it does

    Finds calls of `multihost_utils.process_allgather` without `tiled=True` whose argument is sharded along an axis of a
    mesh over all devices: made by `jax.device_put` or `jax.make_array_from_...` with such a sharding, or returned by a
    `jit` or `shard_map` that declares it. Also finds calls in a branch that is taken only if the array's
    `is_fully_addressable` is false.

    In the body of a `shard_map`, finds matrices whose rows a spec splits, and which are gathered by
    `jax.lax.all_gather` without `tiled=True` and then multiplied by from the left.

    ## Why it matters

    Without `tiled`, the arrays of the processes are stacked along a new axis. A global array exists only once, so there
    is nothing to stack: from JAX 0.8 on, it raises if there are several processes. (A program that uses names which
    were gone by then is told with `--preview` only.) On a single process the new axis is added, and the code after it
    gets one axis too many. The parts of a matrix that `all_gather` stacks are likewise a batch of matrices, each with
    too few rows for the product.

    ## Example

    ```python
    import jax
    from jax.experimental import multihost_utils
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    rows = NamedSharding(mesh, P("data"))

    def logits_on_every_host(local):
        logits = jax.make_array_from_process_local_data(rows, local)
        return multihost_utils.process_allgather(logits)
    ```

    ## Use instead

    ```python
    import jax
    from jax.experimental import multihost_utils
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    rows = NamedSharding(mesh, P("data"))

    def logits_on_every_host(local):
        logits = jax.make_array_from_process_local_data(rows, local)
        return multihost_utils.process_allgather(logits, tiled=True)
    ```

    ## Limits

    Only arrays whose sharding and mesh are known for certain, or whose addressability the program tests, are checked,
    and only calls that omit `tiled` or write it as false. A mesh axis that lies within one process does not split an
    array between processes; the linter does not know the sizes.
    """

    code = "SPMD112"
    name = "untiled-gather"
    several = True
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._of_processes(program)
        for met in program.bodies.once("piled"):
            place = program.place(met.event.mark.site)
            product = program.place(met.event.site)
            yield self.finding(
                message=(
                    f"all_gather without tiled=True stacks the parts of this matrix's rows along a new axis, but "
                    f"{program.where(met.event.site, place.path)} multiplies by the whole matrix."
                ),
                place=place,
                help="Pass tiled=True to put the rows together.",
                related=(
                    Related(product, "The product is here."),
                    Related(program.place(met.map), f"The {met.library} binds {met.event.axis!r}."),
                ),
            )

    def _of_processes(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.untiled_gathers():
            place = program.place(found.site)
            at = program.where(found.made, place.path)
            axes = ", ".join(map(repr, found.axes))
            fact = f"and {found.reader} without tiled=True cannot stack it: with several processes, JAX raises."
            mend = "Pass tiled=True: every process then gets the whole array, without an extra axis."
            if axes:
                said = f"The array made at {at} is sharded along {axes} over the devices of all processes"
                made = "The array is made here."
            elif found.spans:
                said = f"The array made at {at} is over the devices of all processes"
                made = "The array is made here."
            else:
                said = f"The condition at {at} says that this array has parts on other processes"
                made = "This is tested here."
            yield self.finding(
                message=f"{said}, {fact}",
                place=place,
                help=mend,
                related=(Related(program.place(found.made), made),),
            )
