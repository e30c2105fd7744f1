from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class VaryingPredicate(Rule):
    """A collective runs in a JAX loop or branch whose predicate differs between devices.

    ## What it does

    Determines along which mesh axes the values in the bodies of `shard_map` and `pmap` vary. Reports a collective in a
    `lax.while_loop`, a `lax.cond`, a `lax.switch`, or a `lax.fori_loop` with a traced bound, if the predicate or bound
    varies along an axis that the collective communicates over: the devices that have to meet there do not reach it
    equally often. Of the arguments of a `pmap`, only those count that certainly hold data, not copies of a model or a
    step counter.

    ## Why it matters

    The device that leaves the loop first no longer takes part, and the others wait for it. JAX's own check does not
    look at predicates.

    ## Example

    ```python
    import functools

    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4,), ("x",))

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def solve(b):
        def body(carry):
            x, _ = carry
            step = b - x * jax.lax.pmean(jnp.mean(x), "x")
            return x + step, jnp.max(jnp.abs(step))

        return jax.lax.while_loop(lambda carry: carry[1] > 1e-3, body, (b, jnp.max(b)))[0]
    ```

    ## Use instead

    ```python
    import functools

    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4,), ("x",))

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def solve(b):
        def body(carry):
            x, _ = carry
            step = b - x * jax.lax.pmean(jnp.mean(x), "x")
            return x + step, jax.lax.pmax(jnp.max(jnp.abs(step)), "x")

        first = jax.lax.pmax(jnp.max(b), "x")
        return jax.lax.while_loop(lambda carry: carry[1] > 1e-3, body, (b, first))[0]
    ```

    ## Limits

    Under `vmap`, both sides of a branch run, so nothing is reported there. Predicates that come from unknown functions,
    and collectives inside libraries, are not checked.
    """

    code = "SPMD305"
    name = "varying-predicate"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.bodies.met():
            event = found.event
            if event.hazard != "predicate" or event.mark.site in told:
                continue
            told.add(event.mark.site)
            place = program.place(event.site)
            at = program.where(event.mark.site, place.path)
            related = [Related(program.place(event.mark.site), "This predicate differs between the devices.")]
            if event.origin is not None and event.origin != event.mark.site:
                related.append(Related(program.place(event.origin), f"It varies along {event.axis!r} from here on."))
            related.append(Related(program.place(found.map), f"The {found.library} binds {event.axis!r}."))
            yield self.finding(
                message=(
                    f"{event.name} communicates over {event.axis!r}, but the devices along {event.axis!r} make it "
                    f"a different number of times: the predicate at {at} varies along {event.axis!r}, so some wait for "
                    "others that never reach it."
                ),
                place=place,
                help=_way_out(event.axis),
                related=tuple(related),
            )


def _way_out(axis: str) -> str:
    return (
        f"Let all devices make the same decision: reduce the value behind the predicate over {axis!r} "
        "(pmax, pmin, psum), or move the collective out of the loop or branch."
    )
