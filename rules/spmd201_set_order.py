from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, SetLoop


_WAY_OUT = {"mesh": "Sort them: sorted(..., key=lambda device: device.id)."}


class SetOrder(Rule):
    """The order of a set decides the order of parallel calls, or what JAX traces.

    ## What it does

    Finds iterations over sets (literals, `set()`, comprehensions, set operators and methods, sets returned by other
    functions and files, and what is listed from them) whose body makes a parallel call, splits a key of random numbers,
    or is traced by JAX; collectives over a tuple of axis names that was listed from a set, and a `PartitionSpec` that
    cuts one dimension along such a tuple; dimensions that traced code lists by a set of names, as for `dot_general`;
    maps that a loop over names of axes puts around one another; an `optax.chain` of parts in set order; a process's
    share of a list in set order; and, with `--preview`, meshes of devices that come out of a set, as
    `sharding.device_set` is.

    ## Why it matters

    Python seeds the hashes of strings anew in every process, so each process visits the elements in an order of its
    own. The processes then make their parallel calls in different orders, or compile different programs: the job
    hangs, or pairs the wrong values and goes on.

    ## Example

    ```python
    import jax

    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")

    def reduce_all(shards):
        return [total(shards[name]) for name in set(shards)]
    ```

    ## Use instead

    ```python
    import jax

    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")

    def reduce_all(shards):
        return [total(shards[name]) for name in sorted(shards)]
    ```

    ## Limits

    Sets of numbers have one order on all processes and are not reported. Neither is what does not depend on order:
    membership, `len`, `sum`, `any`, `sorted`, building another set or a dictionary that JAX is given (it sorts the
    keys). Lists and dictionaries that a loop over a set fills are followed to where they are iterated over. In files
    that say nothing of several processes, calls of a bare `jit` and checkpoints count with `--preview` only.
    """

    code = "SPMD201"
    name = "set-order"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for loop in program.set_loops():
            # Of a set of devices nobody sees whether it is that of an array on one device.
            if loop.reason.kind != "hash" and (loop.sink != "mesh" or program.preview):
                yield self._diagnostic(program, loop)

    def _diagnostic(self, program: Program, loop: SetLoop) -> Diagnostic:
        place = program.place(loop.iterable)
        if loop.sink == "parallel call":
            then = f"so the processes make the parallel calls of this loop ({loop.what}) in different orders"
            effect = "They hang, or combine values that do not belong together."
        elif loop.sink == "traced program":
            then = f"and {loop.what} runs inside it while JAX traces, so the processes compile different programs"
            effect = "They hang, or combine values that do not belong together."
        elif loop.sink == "random keys":
            then = f"and {loop.what} hands out keys in that order, so each name gets another key on every process"
            effect = "What is drawn with the keys differs where it should be one value."
        elif loop.sink in ("argument", "composition", "dimensions"):
            return self._argument(program, loop)
        elif loop.sink == "share":
            return self._share(program, loop)
        elif loop.sink == "mesh":
            then = f"so the devices of this {loop.what} stand in another order on every process"
            effect = "Every process then has another mesh, and the same program moves data between other devices."
        elif loop.sink == "nesting":
            then = f"so the maps over these axes ({loop.what}) are nested in another order on every process"
            effect = "The processes compile different programs."
        else:
            then = f"so {loop.what} names its axes in another order on every process"
            effect = "The processes compile different programs."
        related = [Related(program.place(step.site), sentence(step.text)) for step in loop.reason.chain()]
        if loop.call is not None:
            related.insert(0, Related(program.place(loop.call.site), "This call is made once per element."))
        return self.finding(
            message=f"This is iterated over in the order of a set, which differs between processes, {then}.",
            place=place,
            help=f"{effect} {_WAY_OUT.get(loop.sink, 'Iterate over sorted(...) of it.')}",
            related=tuple(related),
            # Devices cannot be compared, so sorted() alone is no way out for a mesh.
            fix=program.mending.of_set(loop.iterable) if loop.sink != "mesh" else None,
        )

    def _argument(self, program: Program, loop: SetLoop) -> Diagnostic:
        source = loop.reason.source
        place = program.place(loop.iterable)
        where = program.where(source.site, place.path)
        effect = "Element by element the processes combine what does not belong together."
        if loop.sink == "composition":
            effect = "The processes compile different programs, and a checkpoint of one does not fit the other."
        if loop.sink == "dimensions":
            effect = "The processes compile different programs."
        return self.finding(
            message=(
                f"The elements that {loop.what} gets come in the order of a set, which differs between processes "
                f"({where})."
            ),
            place=place,
            help=f"{effect} Build it over sorted(...).",
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in loop.reason.chain()),
            # What lists dimensions is more than the set.
            fix=program.mending.of_set(loop.iterable) if loop.sink != "dimensions" else None,
        )

    def _share(self, program: Program, loop: SetLoop) -> Diagnostic:
        source = loop.reason.source
        place = program.place(loop.iterable)
        where = program.where(source.site, place.path)
        return self.finding(
            message=f"This is one process's share of a list in set order, which differs between processes ({where}).",
            place=place,
            help="The shares overlap and leave elements out. Sort the list before it is shared out, with sorted(...).",
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in loop.reason.chain()),
            fix=program.mending.of_set(loop.iterable),
        )
