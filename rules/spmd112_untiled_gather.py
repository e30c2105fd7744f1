from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UntiledGather(Rule):
    """`process_allgather` is given an array over the devices of all processes, without `tiled=True`.

    ## What it does

    Finds calls of `multihost_utils.process_allgather` without `tiled=True` whose argument is cut along an axis of a
    mesh over all devices: made by `jax.device_put` or `jax.make_array_from_...` with such a sharding, or the result of
    a `jit` or `shard_map` that says so. And those in a branch that is taken only where the array's
    `is_fully_addressable` is false, and those whose result is reshaped to the shape of the array that was gathered.

    ## Why it matters

    Without `tiled`, the arrays of the processes are stacked along a new axis. Of an array that all processes hold
    together there is only one, so JAX raises on several processes; on one process it stacks, and the code behind it
    finds an axis more.

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

    Only arrays count whose sharding and mesh are known for sure, or that the program has asked, and calls whose `tiled`
    is left out or written as false. An axis of the mesh that lies within one process does not cut an array between
    processes; the linter does not know the sizes.
    """

    code = "SPMD112"
    name = "untiled-gather"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.untiled_gathers():
            place = program.place(found.site)
            at = program.where(found.made, place.path)
            axes = ", ".join(map(repr, found.axes))
            fact = f"and {found.reader} without tiled=True cannot stack it: on several processes JAX raises."
            mend = "Pass tiled=True: then every process gets the whole array, without another axis."
            if axes:
                said = f"The array made at {at} is cut along {axes} over the devices of all processes"
                made = "The array is made here."
            elif found.reshaped:
                said = f"{found.reader} without tiled=True stacks what all processes have"
                fact = f"and {at} gives that the shape of one of them: on several processes this raises."
                made = "It is reshaped here."
                mend = (
                    "Pass tiled=True if all processes hold this array together: then each gets the whole of it. If "
                    "each has one of its own, take a row of what is gathered, or their mean."
                )
            else:
                said = f"The condition at {at} says that this array has parts on other processes"
                made = "It is asked here."
            yield self.finding(
                message=f"{said}, {fact}",
                place=place,
                help=mend,
                related=(Related(program.place(found.made), made),),
            )
