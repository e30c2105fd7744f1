from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import LeftOut, Program

_MORE = 8
"""The maximum number of further places that a finding points to."""


class MissingReduction(Rule):
    """A gradient or a metric of one device's data is used as if it were that of all devices.

    ## What it does

    Determines along which mesh axes the values in the bodies of `shard_map` and `pmap` vary, through functions,
    `jax.grad` and loops. Finds

    - in a `shard_map`, a gradient, or a sum or mean over sharded data, that leaves the body under an out spec that says
      that it is the same on all devices, with the check off and no `psum` or `pmean` on the way;
    - in a `pmap` that names its axis, gradients that are applied to parameters without a reduction, and sums or means
      that each device has of its own data and of which the host takes the first row (`loss[0]`,
      `unreplicate(metrics)`);
    - in a `vmap` that names its axis, inside such a `pmap`, gradients that are applied without a reduction over that
      axis, although the body reduces other gradients over it;
    - numbers that come from the rows of a process's own devices (outputs of a `pmap`, `addressable_shards`) and that
      only some processes report: a metric computed on process 0 covers the examples of process 0;
    - calls in a mapped body that leave a helper's `axis_name` at None, so that it reduces nothing, although the body
      reduces elsewhere, and such calls in a function that takes an `axis_name` itself and never uses it;
    - running statistics (`batch_stats`) that a `pmap` keeps for each device and that nothing in the program averages.

    ## Why it matters

    Every device continues with its own numbers. The replicas drift apart, or the result is that of one shard, and JAX
    takes whichever copy comes first. Nothing fails.

    ## Example

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def loss(w, x):
        return jnp.mean((x @ w) ** 2)

    def step(w, x):
        return w - 0.1 * jax.grad(loss)(w, x)

    run = jax.shard_map(step, mesh=mesh, in_specs=(P(), P("data")), out_specs=P(), check_vma=False)
    ```

    ## Use instead

    ```python
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((8,), ("data",))

    def loss(w, x):
        return jnp.mean((x @ w) ** 2)

    def step(w, x):
        grads = jax.lax.pmean(jax.grad(loss)(w, x), "data")
        return w - 0.1 * grads

    run = jax.shard_map(step, mesh=mesh, in_specs=(P(), P("data")), out_specs=P(), check_vma=False)
    ```

    ## Limits

    What an unknown function computes, such as an optimizer of a library, is not known to vary, except for a function of
    single examples under `vmap`. Along an axis that is named after members, agents or seeds, every device is assumed to
    train its own model. With the check on, JAX raises by itself; that is SPMD504. A `pmap` does not say which of its
    arguments are copies of one value: those that the body differentiates with respect to, applies as a model's
    variables, or returns for the next step count as copies.
    """

    code = "SPMD503"
    name = "missing-reduction"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._in_bodies(program)
        yield from self._on_the_host(program)
        yield from self._of_one_process(program)
        yield from self._left_out(program)
        yield from self._kept_apart(program)

    def _kept_apart(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.own_statistics():
            yield Diagnostic(
                code=self.code,
                name=self.name,
                severity="warning",
                message=(
                    "These running statistics come from one device's rows, and nothing in the program averages them: "
                    "each device evaluates with its own, and a checkpoint holds those of the first device."
                ),
                place=program.place(found.site),
                help=(
                    "Pass axis_name to the normalisation layers, or average the statistics before they are used "
                    "outside training: jax.pmap(lambda x: jax.lax.pmean(x, axis), axis)."
                ),
                related=(
                    Related(program.place(found.asked), "The model returns them here."),
                    Related(program.place(found.map), "This runs the body on every device."),
                ),
            )

    def _left_out(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.optional_axes.found():
            yield self._skipped(
                program,
                found.left,
                although=f"the body runs under {found.axis!r} and reduces over it elsewhere",
                way_out=f"Pass {found.left.parameter}={found.axis!r}",
                related=(
                    Related(program.place(found.sibling), f"The body reduces over {found.axis!r} here."),
                    Related(program.place(found.map), "This runs the body."),
                ),
            )
        for left in program.optional_axes.not_handed_on():
            name, parameter = program.function_name(left.site), left.parameter
            yield self._skipped(
                program,
                left,
                although=f"{name}() takes {parameter!r} itself and never uses it",
                way_out=f"Hand it on: {parameter}={parameter}",
            )

    def _skipped(
        self, program: Program, left: LeftOut, although: str, way_out: str, related: tuple[Related, ...] = ()
    ) -> Diagnostic:
        place = program.place(left.site)
        call = f"{left.library} ({program.where(left.collective, place.path)})"
        return Diagnostic(
            code=self.code,
            name=self.name,
            severity="warning",
            message=f"This leaves {left.parameter!r} at None, so {call} is skipped, although {although}.",
            place=place,
            help=f"{way_out}; otherwise the result is that of one device.",
            related=(Related(program.place(left.collective), "This is skipped."), *related),
        )

    def _of_one_process(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.local_numbers():
            place = program.place(found.site)
            source = program.where(found.reason.source.site, place.path)
            chain = found.reason.chain()
            steps = [Related(program.place(step.site), sentence(step.text)) for step in chain]
            yield Diagnostic(
                code=self.code,
                name=self.name,
                severity="warning",
                message=(
                    "The value reported here is computed from the rows of this process's devices only (from "
                    f"{source}), and the condition at {program.where(found.guard, place.path)} lets only some "
                    "processes report it."
                ),
                place=place,
                help="Gather it first on all processes: jax.experimental.multihost_utils.process_allgather.",
                related=(
                    *steps[:6],
                    Related(program.place(found.guard), "This condition is not the same on every process."),
                ),
            )

    def _on_the_host(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.one_rows():
            related = [Related(program.place(found.map), f"The {found.library} returns a row for each device.")]
            if found.origin is not None:
                related.insert(0, Related(program.place(found.origin), "It is computed here, from one device's data."))
            what = f"{found.part}" if found.part else "metric"
            yield self.finding(
                message=(
                    f"This uses the first device's {what} as that of all: it is a sum or mean of one device's data, "
                    f"and the body never reduces it over {found.axis!r}."
                ),
                place=program.place(found.site),
                help=f"Reduce it in the body: jax.lax.pmean(..., {found.axis!r}) for a mean, jax.lax.psum for a sum.",
                related=tuple(related),
            )

    def _in_bodies(self, program: Program) -> Iterator[Diagnostic]:
        for share in program.bodies.shares():
            found = share.first
            what = "the gradient" if found.gradient is not None else "a sum or mean"
            way = "On one path through the body, " if found.mixed else ""
            if found.spec == found.map:
                ends = f"leaves {found.body!r} under out_axes=None, which says that it is the same on all devices"
            elif found.spec is not None:
                ends = f"leaves {found.body!r} under an out spec that says that it is the same on all devices"
            else:
                ends = f"is applied in {found.body!r}"
            more = f" (and {len(share.others)} more like it)" if share.others else ""
            owner = "this device's share" if found.sibling is None else "one row of the vmap"
            message = f"{way}{what} of {owner} along {found.axis!r} {ends}, and nothing reduces it{more}."
            related = [Related(program.place(found.map), f"The {found.library} runs the body.")]
            if found.sibling is not None:
                related.insert(0, Related(program.place(found.sibling), "Another gradient is reduced over it here."))
            if found.spec is not None and found.spec != found.map:
                related.append(Related(program.place(found.spec), f"This spec does not name {found.axis!r}."))
            if found.origin is not None:
                related.append(Related(program.place(found.origin), f"It varies along {found.axis!r} from here on."))
            related += [Related(program.place(each), "So does this value.") for each in share.others[:_MORE]]
            way_out = f"Reduce it first: jax.lax.pmean(..., {found.axis!r}) for a mean, jax.lax.psum for a sum."
            if found.reduced_loss is not None:
                related.insert(1, Related(program.place(found.reduced_loss), "The loss is reduced here."))
                way_out = (
                    "The reduction of the loss does not reduce the gradient: each device takes the derivative by its "
                    f"own copy of the parameters, and gets that of its own share. {way_out}"
                )
            yield self.finding(
                message=message[0].upper() + message[1:],
                place=program.place(share.site),
                help=way_out,
                related=tuple(related),
            )
