from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


_ENTRIES = {
    "in_axes": ("axis", "axes"),
    "in_specs": ("spec", "specs"),
    "out_specs": ("spec", "specs"),
    "in_shardings": ("sharding", "shardings"),
    "out_shardings": ("sharding", "shardings"),
}


class SpecStructure(Rule):
    """The number of specs of a `shard_map` does not match the arguments or results of its function.

    ## What it does

    Compares a tuple of `in_specs` with the positional parameters of the mapped function, and a tuple of `out_specs`
    with the tuple that the function returns, or with a single array where that is certain. It looks through `partial`,
    `jit` and wrappers that pass on all their arguments. A tuple of `in_axes` of `pmap` and `vmap` is compared with the
    parameters, and with the positional arguments of the calls; tuples of `in_shardings` and `out_shardings` of `jit`
    are compared as those of `shard_map`.

    ## Why it matters

    JAX raises when the function is traced. If the cause is a parameter that was added, the message is about pytree
    prefixes and does not mention the parameter.

    ## Example

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def scale(x, factor):
        return x * factor

    scaled = jax.shard_map(scale, mesh=mesh, in_specs=(P("data"),), out_specs=P("data"))
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def scale(x, factor):
        return x * factor

    scaled = jax.shard_map(scale, mesh=mesh, in_specs=(P("data"), P()), out_specs=P("data"))
    ```

    ## Limits

    A single spec for all arguments, parameters with defaults, `*args` and pytree prefixes are legal and are not
    reported. The structure of the individual arguments is not compared.
    """

    code = "SPMD104"
    name = "spec-structure"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.specs.structure():
            wrapped = found.wrapped
            key = (found.site, found.parameter, wrapped)
            if key in told:
                continue
            told.add(key)
            due = str(found.least) if found.least == found.most else f"{found.least} to {found.most}"
            name = "the lambda" if found.function == "<lambda>" else found.function
            if found.single:
                fact = f"{name} returns a single array, not a tuple"
            elif found.results:
                fact = f"{name} returns a tuple of {due}"
            else:
                more = (
                    f" besides the {found.bound} that {'is' if found.bound == 1 else 'are'} bound"
                    if found.bound
                    else ""
                )
                fact = f"{name} takes {due} argument{'' if due == '1' else 's'}{more}"
            one, many = _ENTRIES[found.parameter]
            given = f"{found.given} {one if found.given == 1 else many}"
            used = program.written.argument(found.site, found.parameter) or found.site
            place = program.place((wrapped.given if wrapped is not None else None) or used)
            yield self.finding(
                message=f"{found.parameter} has {given}, but {fact}.",
                place=place,
                help=f"Give one {one} for each, or a single {one} for all of them, without a tuple.",
                related=(
                    *(Related(program.place(at), "The function returns here.") for at in found.returns),
                    *self.wrapped(program, wrapped, place, used),
                ),
                through=wrapped.name if wrapped is not None else "",
            )
