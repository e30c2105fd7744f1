from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class DroppedReduction(Rule):
    """The result of a reduction over devices is not used.

    ## What it does

    Finds collectives in traced code (`psum`, `pmean`, `psum_scatter`, `all_gather`, ...) whose result is not stored, or
    is stored under a name that is not read afterwards. On the host, finds calls of functions that only reduce their
    arguments over the devices, such as one that averages the running statistics of all replicas, if the result is
    stored under a name that is not read any more, and the function goes on with what was to be reduced, or with what it
    made of it. A call that is only timed, or made to compile the program, is none of these. Also finds reductions and
    gatherings of mpi4jax, and those of mpi4py that return what they compute (`comm.allreduce`, not `comm.Allreduce`),
    if nothing uses the result.

    ## Why it matters

    JAX's arrays are immutable: a collective does not change its argument, and without a use of its result the compiler
    removes it. What was meant to be the sum over all devices remains the part of one of them, and nothing raises.

    ## Example

    ```python
    import jax

    def step(params, grads):
        jax.lax.pmean(grads, "batch")
        return params - 0.1 * grads

    run = jax.pmap(step, axis_name="batch")
    ```

    ## Use instead

    ```python
    import jax

    def step(params, grads):
        grads = jax.lax.pmean(grads, "batch")
        return params - 0.1 * grads

    run = jax.pmap(step, axis_name="batch")
    ```

    ## Limits

    A name that starts with an underscore, or that a nested function reads, is not reported; on the host, a call whose
    result is not stored at all is not reported either: it may be a barrier. Nor is a call on the host if only other
    functions use what it was to reduce, such as a field of an object.
    """

    code = "SPMD511"
    name = "dropped-reduction"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.regions.dropped():
            place = program.place(found.site)
            stored = f"is stored in {found.name!r}, which is not read afterwards"
            lost = stored if found.name else "is not used by anything"
            then = (
                "What is used afterwards is what each device, or each process, had before"
                if found.on_host
                else "A collective does not change its argument, so every device goes on with its own part"
            )
            yield self.finding(
                message=f"The result of {found.function}, a reduction over devices, {lost}. {then}.",
                place=place,
                help="Store the result under the name that is used afterwards, or remove the call.",
            )
