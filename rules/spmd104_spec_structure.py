from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class SpecStructure(Rule):
    """The specs of a `shard_map` fit another number of arguments or results than its function has.

    ## What it does

    Compares a tuple of `in_specs` with the positional parameters of the mapped function, and a tuple of `out_specs`
    with the tuple that the function returns, or with the one array where that is certain. `partial`, `jit` and wrappers
    that pass everything on are seen through. A tuple of `in_axes` of `pmap` and `vmap` is held against the parameters,
    and against what calls pass by position.

    ## Why it matters

    JAX raises when the function is traced. After a parameter was added, the message is about pytree prefixes and not
    about the parameter.

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

    One spec for all arguments, parameters with defaults, `*args` and prefixes of pytrees are legal and are not
    reported; inside the tuple no structure is compared.
    """

    code = "SPMD104"
    name = "spec-structure"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.specs.structure():
            if (found.site, found.parameter) in told:
                continue
            told.add((found.site, found.parameter))
            due = str(found.least) if found.least == found.most else f"{found.least} to {found.most}"
            name = "the lambda" if found.function == "<lambda>" else found.function
            if found.single:
                fact = f"{name} returns one array and no tuple"
            elif found.results:
                fact = f"{name} returns a tuple of {due}"
            else:
                fact = f"{name} takes {due} argument{'' if due == '1' else 's'}"
            one = "axis" if found.parameter == "in_axes" else "spec"
            many = "axes" if found.parameter == "in_axes" else "specs"
            given = f"{found.given} {one if found.given == 1 else many}"
            yield self.finding(
                message=f"{found.parameter} holds {given}, but {fact}.",
                place=program.place(program.written.argument(found.site, found.parameter) or found.site),
                help=f"Give one {one} for each, or a single {one} without a tuple for all of them.",
                related=tuple(Related(program.place(at), "It returns here.") for at in found.returns),
            )
