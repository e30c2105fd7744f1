from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.ordered_rule import OrderedRule

if TYPE_CHECKING:
    from spmdlint.rule import Program, SetLoop


_WAY_OUT = {"mesh": "Sort the devices: sorted(..., key=lambda device: device.id)."}


class SetOrder(OrderedRule):
    """The order of a set determines the order of parallel calls, or what JAX traces.

    ## What it does

    Finds code that depends on the iteration order of a set (literals, `set()`, comprehensions, set operators and
    methods, sets returned by other functions and files, values annotated as `set[str]`, and lists made of these):

    - loops whose body makes a parallel call, also one that the element looks up, as in `losses[name](x)`, splits a
      random key, or is traced by JAX;
    - collectives over a tuple of axis names made from a set, and a `PartitionSpec` that shards one dimension along such
      a tuple;
    - dimensions that traced code lists from a set of names, as for `dot_general`;
    - an `optax.chain` whose parts are in set order;
    - a process's share of a list in set order;
    - an array over the devices of all processes whose columns are in set order, or whose rows are if each device gets a
      copy of it: each process's own rows may be in any order;
    - in multi-process programs, dictionaries that number the elements of a set, as for the words of a vocabulary;
    - with `--preview`, meshes of devices that come from a set, such as `sharding.device_set`.

    ## Why it matters

    Python seeds string hashes anew in every process, so each process visits the elements in a different order. The
    processes then make their parallel calls in different orders, or compile different programs: the job hangs, or
    pairs the wrong values and goes on.

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

    Sets of numbers have the same order on all processes and are not reported. Neither is code that does not depend on
    the order: membership, `len`, `sum`, `any`, `sorted`, building another set or a dictionary that is passed to JAX
    (which sorts the keys). Lists and dictionaries that are filled in a loop over a set are followed to where they are
    iterated over. In files that name nothing of several processes, calls of a bare `jit` and checkpoints count with
    `--preview`.
    """

    code = "SPMD201"
    name = "set-order"
    several = True
    partly_preview = True
    listed = "a set"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.breaches(self.code):
            told.add((found.call.ref, found.reason.source.site))
            mend = f"Build it from {program.mending.sorting(found.site)}."
            yield self.argument(program, found, mend, program.mending.of_set(found.site))
        for numbers in program.numbers("set"):
            told.add((numbers.site.ref, numbers.reason.source.site))
            mend = f"Number the elements of {program.mending.sorting(numbers.site)}."
            yield self.numbered(program, numbers, mend, program.mending.of_set(numbers.site))
        for loop in program.set_loops():
            if (loop.site.ref, loop.reason.source.site) in told:
                continue
            # Whether a set of devices is that of an array on one device cannot be known.
            if loop.reason.kind != "hash" and (loop.sink != "mesh" or program.preview):
                yield self._diagnostic(program, loop)

    def _diagnostic(self, program: Program, loop: SetLoop) -> Diagnostic:
        place = program.place(loop.iterable)
        if loop.sink == "parallel call":
            then = f"so the processes make the parallel calls of this loop ({loop.what}) in different orders"
            effect = "The job hangs, or combines values that do not belong together."
        elif loop.sink == "traced program":
            then = f"and {loop.what} runs in the loop while JAX traces, so the processes compile different programs"
            effect = "The job hangs, or combines values that do not belong together."
        elif loop.sink == "random keys":
            then = f"and {loop.what} hands out keys in that order, so each name gets a different key on each process"
            effect = "Values that should be the same on every process are drawn with different keys."
        elif loop.sink == "dimensions":
            return self._dimensions(program, loop)
        elif loop.sink == "share":
            return self._share(program, loop)
        elif loop.sink == "mesh":
            then = f"so the devices of this {loop.what} are in a different order on each process"
            effect = (
                "Each process then has a different mesh, and the same program moves data between different devices."
            )
        else:
            then = f"so {loop.what} names its axes in a different order on each process"
            effect = "The processes compile different programs."
        sorting = program.mending.sorting(loop.iterable)
        related = [Related(program.place(step.site), sentence(step.text)) for step in loop.reason.chain()]
        if loop.call is not None:
            related.insert(0, Related(program.place(loop.call.site), "This call is made once per element."))
        return self.finding(
            message=f"This is iterated over in the order of a set, which differs between processes, {then}.",
            place=place,
            help=f"{effect} {_WAY_OUT.get(loop.sink) or f'Iterate over {sorting} instead.'}",
            related=tuple(related),
            # Devices cannot be compared, so sorted() alone does not fix a mesh.
            fix=program.mending.of_set(loop.iterable) if loop.sink != "mesh" else None,
            cause=program.cause(loop.reason),
        )

    def _dimensions(self, program: Program, loop: SetLoop) -> Diagnostic:
        place = program.place(loop.iterable)
        where = program.where(loop.reason.source.site, place.path)
        return self.finding(
            message=(
                f"The elements passed to {loop.what} are in the order of a set, which differs between processes "
                f"({where})."
            ),
            place=place,
            help=(f"The processes compile different programs. Build it from {program.mending.sorting(loop.iterable)}."),
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in loop.reason.chain()),
            cause=program.cause(loop.reason),
        )

    def _share(self, program: Program, loop: SetLoop) -> Diagnostic:
        source = loop.reason.source
        place = program.place(loop.iterable)
        where = program.where(source.site, place.path)
        return self.finding(
            message=f"This is one process's share of a list in set order, which differs between processes ({where}).",
            place=place,
            help="The shares overlap and leave elements out. Sort the list with sorted(...) before it is divided.",
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in loop.reason.chain()),
            fix=program.mending.of_set(loop.iterable),
            cause=program.cause(loop.reason),
        )
