from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, Unreduced


class FalseReplication(Rule):
    """A spec says that a value is the same on all devices, but it is not.

    ## What it does

    Determines along which mesh axes the values in the bodies of `shard_map` vary, as JAX's `check_vma` does, through
    functions, branches and loops. Reports an output that varies along an axis that its out spec does not name: on every
    path through the body, or on one of two. With the check on, the result of `all_gather` varies too. Also reports such
    an output of a `pmap` under `out_axes=None`, and values of a process's own, such as its index, where the program
    says that there is one value: as an argument whose spec names no axis; under a sharding that names none, in
    `make_array_from_callback`, `make_array_from_process_local_data` or `host_local_array_to_global_array`; and as an
    argument of a compiled function over the devices of all processes.

    ## Why it matters

    With the check on, JAX raises, on the cluster, when that path is first traced. With `check_vma=False`, it trusts the
    spec and takes the copy of one device; the other shards are lost.

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

    With the check on, a map over the mesh of the context is reported only with `--preview`: an axis of it may have size
    one. Specs that are not fully known, and the results of unknown functions, are not checked. If branches compare with
    a number or None, as tests for the number of devices do, their paths are not distinguished.
    """

    code = "SPMD504"
    name = "false-replication"
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._outputs(program)
        yield from self._arguments(program)

    def _arguments(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.breaches(self.code):
            if found.site in told:
                continue
            told.add(found.site)
            place, source = program.place(found.site), found.reason.source
            name = found.demand.known.name.rpartition(".")[2]
            says = f"The spec says that this argument of the {name} is the same on all devices"
            if found.demand.facet == "argument":
                says = "A compiled function over the devices of all processes takes this argument for one value"
            elif found.layout is None:
                says = f"All processes have to pass the same value for this argument of {name}"
            layout = found.layout
            yield self.finding(
                message=(
                    f"{says}, but each process passes its own: {source.text} "
                    f"({program.where(source.site, place.path)})."
                ),
                place=place,
                help=(
                    "JAX assumes that it is one value, and compares it in device_put at most. Make it the same on "
                    "every process, for example with multihost_utils.broadcast_one_to_all; or name the axis in the "
                    "spec and put a row for each device into a global array."
                ),
                related=(
                    *(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
                    *([Related(program.place(layout), "This spec names no axis.")] if layout is not None else ()),
                ),
            )

    def _outputs(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.bodies.unreduced():
            wrapped = found.wrapped
            key = (found.map, found.axis, wrapped.made if wrapped is not None else None)
            if found.spec is None or (found.share and not found.checked) or key in told:
                continue
            if found.checked and found.ambient and not program.preview:
                continue
            told.add(key)
            place = program.place(found.spec)
            way = " on one path through it" if found.mixed else ""
            says = "out_axes=None says" if found.spec == found.map else "The spec says"
            if found.gathered:
                yield self._gathered(program, found)
                continue
            if found.checked:
                then = "JAX raises, unless only a branch's predicate varies, which its check ignores"
            else:
                why = "" if found.spec == found.map else ", because the check is off"
                then = f"JAX takes the copy of one device{why}"
            related = [Related(program.place(found.map), f"This is the {found.library} of {found.body!r}.")]
            if found.returned is not None:
                related.append(Related(program.place(found.returned), "It is returned here."))
            related += self.wrapped(program, wrapped, place)
            if found.origin is not None:
                text = "This path gives a value that varies" if found.mixed else "From here on, it varies"
                related.insert(0, Related(program.place(found.origin), f"{text} along {found.axis!r}."))
            yield self.finding(
                message=(
                    f"{says} that this output of {found.body!r} is the same on all devices along "
                    f"{found.axis!r}, but it varies{way}: {then}."
                ),
                place=place,
                help=f"Reduce it over {found.axis!r} (psum, pmean), or name the axis in the out spec.",
                related=tuple(related),
                through=wrapped.name if wrapped is not None else "",
            )

    def _gathered(self, program: Program, found: Unreduced) -> Diagnostic:
        """A gathered output, whose copies agree although JAX's check does not know it."""
        assert found.spec is not None
        related = [Related(program.place(found.map), f"This is the {found.library} of {found.body!r}.")]
        if found.origin is not None:
            related.insert(0, Related(program.place(found.origin), "This gathers it."))
        related += self.wrapped(program, found.wrapped, program.place(found.spec))
        return self.finding(
            message=(
                f"The spec says that this output of {found.body!r} is the same on all devices along {found.axis!r}, "
                "but JAX's check takes the result of all_gather as varying: JAX raises when it traces the call."
            ),
            place=program.place(found.spec),
            help=(
                "Turn the check off for this map (check_vma=False, check_rep=False before JAX 0.7), or name the axis "
                "in the out spec and gather outside of it."
            ),
            related=tuple(related),
            through=found.wrapped.name if found.wrapped is not None else "",
        )
