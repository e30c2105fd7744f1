from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program

_WORDS = {
    "splits": "splits a key for the devices of this",
    "draws": "draws rows for the devices of this",
    "puts": "puts a key on devices of this",
}


class SharedKey(Rule):
    """All devices draw the same random numbers for data that differs between them.

    ## What it does

    In the body of a `shard_map`, finds random numbers drawn from a key that the specs (or the closure) make the same on
    every device, if they

    - are added to, multiplied with or used to select from sharded values, as noise and dropout are; or
    - leave the body under a spec that says that each device has its own part, as chains and initial weights do.

    In the body of a `pmap`, they count if `in_axes`, a closure or `replicate` gives all devices the same key, and the
    values that they are combined with are certainly data and not a copy of a model.

    Also finds keys that are split, or numbers that are drawn, for the devices of this process and then selected by
    `axis_index`, which counts the devices of all processes; and keys or rows passed to a `pmap`, themselves or in a
    state, that are split or drawn for the devices of this process from a key that is the same on every process, such as
    one from a parameter called seed, and such keys that are put on a device of this process. The latter count in
    programs that mention processes; with `--preview`, in all.

    ## Why it matters

    All shards get the same noise: a batch of 1,024 over 128 devices sees eight dropout masks. Nothing fails; the model
    is a little worse.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def dropout(key, x):
        keep = jax.random.bernoulli(key, 0.9, x.shape)
        return jnp.where(keep, x / 0.9, 0.0)

    run = jax.shard_map(dropout, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def dropout(key, x):
        key = jax.random.fold_in(key, jax.lax.axis_index("data"))
        keep = jax.random.bernoulli(key, 0.9, x.shape)
        return jnp.where(keep, x / 0.9, 0.0)

    run = jax.shard_map(dropout, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))
    ```

    ## Limits

    A single random number is not reported: one for all devices is often intended. Neither are random matrices that data
    is multiplied with by `@`, or numbers drawn by a library.
    """

    code = "SPMD502"
    name = "shared-key"
    partly_preview = True
    severity = "warning"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._drawn(program)
        yield from self._clamped(program)
        yield from self._split_alike(program)

    def _clamped(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.global_indices():
            place = program.place(found.site)
            yield self.finding(
                message=(
                    f"The number of rows made at {program.where(found.split, place.path)} is that of this process's "
                    "devices, but axis_index counts the devices of all processes: beyond the first process, JAX clamps "
                    "the index, and all devices there get the last row."
                ),
                place=place,
                help="Fold the index into one key instead: jax.random.fold_in(key, jax.lax.axis_index(...)).",
                related=(
                    Related(program.place(found.place), "This is an index among the devices of all processes."),
                    Related(program.place(found.split), "The rows are made here, for the devices of this process."),
                ),
            )

    def _split_alike(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.shared_splits():
            place = program.place(found.site)
            made, *way = found.key.chain()
            yield self.finding(
                message=(
                    f"This {_WORDS[found.does]} process, but every process makes the same key at "
                    f"{program.where(made.site, place.path)}: devices of different processes draw the same numbers."
                ),
                place=place,
                help="Fold in the process index first: jax.random.fold_in(key, jax.process_index()).",
                related=(
                    Related(program.place(made.site), "The key is made here, and is the same on every process."),
                    *(Related(program.place(step.site), sentence(step.text)) for step in way),
                    Related(program.place(found.given), "This passes them to the devices."),
                ),
            )

    def _drawn(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.bodies.once("shared", "stacked"):
            event = found.event
            place = program.place(event.mark.site)
            at = program.where(event.site, place.path)
            meet = "combine them" if event.site == event.mark.site else f"combine them at {at}"
            where = f"{meet} with values that differ between devices"
            joined = "They are combined with sharded values here."
            if event.hazard == "stacked":
                where = f"the spec at {at} concatenates them, as if each device had drawn its own"
                joined = "This spec says that each device has its own part."
            derived = (event.origin,) if event.origin is not None else ()
            given = program.place(program.cut_at(found.map))
            yield self.finding(
                message=f"All devices along {event.axis!r} draw the same random numbers here, and {where}.",
                place=place,
                help=f"Derive a key for each device: jax.random.fold_in(key, jax.lax.axis_index({event.axis!r})).",
                related=(
                    *self.leading(program, found.path),
                    *(
                        Related(program.place(site), "The key is derived here, the same on all devices.")
                        for site in derived
                    ),
                    Related(program.place(event.site), joined),
                    Related(given, f"The {found.library} gives all devices the same key."),
                ),
            )
