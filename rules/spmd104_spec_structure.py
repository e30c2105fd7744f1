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
    """Specs do not match what they are for: the function's arguments, the dimensions of an array, or the mesh.

    ## What it does

    Compares a tuple of `in_specs` with the positional parameters of the mapped function, and a tuple of `out_specs`
    with the tuple that the function returns, or with a single array where that is certain. It looks through `partial`,
    `jit` and wrappers that pass on all their arguments. A tuple of `in_axes` of `pmap` and `vmap` is compared with the
    parameters, and with the positional arguments of the calls; tuples of `in_shardings` and `out_shardings` of `jit`
    are compared as those of `shard_map`.

    Finds axis names that appear twice in one `PartitionSpec` that `NamedSharding` or `shard_map` uses with a mesh, or
    twice in the `axis_names` of a mesh.

    Finds outputs of a `shard_map` that are a single number on each device, such as a loss or the mean of all elements,
    and that have a spec with at least one entry, such as `P("data")`. It follows the number through arithmetic,
    reductions over devices, and the project's functions.

    ## Why it matters

    JAX raises when the function is traced. If the cause is a parameter that was added, the message is about pytree
    prefixes and does not mention the parameter.

    A mesh axis can shard only one dimension of an array. A mesh that has the same name twice loses an axis; some
    versions of JAX do not complain until the first computation over it.

    A spec names the dimensions of an array, and a number has none. Code that was written for `pmap`, which stacks the
    numbers of the devices, often meets this when it is ported.

    ## Example

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def scale(x, factor):
        return x * factor

    scaled = jax.shard_map(scale, mesh=mesh, in_specs=(P("data"),), out_specs=P("data"))
    ```

    ```python
    import jax
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))
    square = NamedSharding(mesh, P("model", "model"))
    ```

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def error(x, y):
        return jnp.mean((x - y) ** 2)

    run = jax.shard_map(error, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
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

    ```python
    import jax
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))
    square = NamedSharding(mesh, P("data", "model"))
    ```

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def error(x, y):
        return jax.lax.pmean(jnp.mean((x - y) ** 2), "data")

    run = jax.shard_map(error, mesh=mesh, in_specs=P("data"), out_specs=P())
    ```

    ## Limits

    A single spec for all arguments, parameters with defaults, `*args` and pytree prefixes are legal and are not
    reported. The structure of the individual arguments is not compared.

    A spec of logical names, which a library maps to mesh axes later, may repeat a name. A spec that is not visibly used
    with a mesh is therefore reported only if a mesh of the program has the axis.

    Only outputs that certainly have no dimensions count. The number of dimensions of an array is not known.
    """

    code = "SPMD104"
    name = "spec-structure"
    merged = ("SPMD103 repeated-axis", "SPMD115 spec-rank")

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._unlike_the_function(program)
        yield from self._repeated(program)
        yield from self._of_numbers(program)

    def _unlike_the_function(self, program: Program) -> Iterator[Diagnostic]:
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

    def _repeated(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.specs.repeated():
            if (found.site, found.axis) in told:
                continue
            told.add((found.site, found.axis))
            if found.what == "mesh":
                message = f"The mesh has two axes named {found.axis!r}."
                way_out = "Give each axis of the mesh a different name."
            else:
                message = f"The spec shards two dimensions of one array over the axis {found.axis!r}."
                way_out = "Shard one dimension over it, and use None or another axis for the other dimension."
            yield self.finding(
                message=message,
                place=program.place(found.site),
                help=way_out,
            )

    def _of_numbers(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.bodies.met():
            spec, wrapped = found.event.site, found.wrapped
            if found.event.hazard != "scalar" or (found.map, spec, wrapped) in told:
                continue
            told.add((found.map, spec, wrapped))
            used = spec if spec.ref == found.map.ref else program.written.argument(found.map, "out_specs")
            if wrapped is not None:
                used = spec if program.is_inside(spec, wrapped.place) else wrapped.place
            output = f"An output of {wrapped.name if wrapped is not None else f'this {found.library}'}"
            place = program.place(used or found.map)
            yield self.finding(
                message=(
                    f"{output} is a single number on each device, so it has no dimension that its spec could name: JAX "
                    "raises."
                ),
                place=place,
                help="Reduce it over the devices and pass P(), or give it a dimension, as in x[None], to get one entry "
                "for each device.",
                related=(
                    *([Related(program.place(spec), "The spec is made here.")] if used != spec else []),
                    *self.wrapped(program, wrapped, place),
                    *([Related(program.place(found.map), "The map is made here.")] if used is not None else []),
                ),
                through=wrapped.name if wrapped is not None else "",
            )
