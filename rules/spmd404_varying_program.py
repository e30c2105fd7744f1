from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.traced_rule import TracedRule

if TYPE_CHECKING:
    from spmdlint.rule import Given, Program


class VaryingProgram(TracedRule):
    """Processes compile different programs for one call.

    ## What it does

    Finds static arguments (`static_argnums`, `static_argnames`) that differ between processes, and values of this
    process, such as `jax.process_index()`, a clock or an unseeded random number, that decide the shape of an array
    while JAX traces: `jnp.zeros((rows, width))`. What the host has found out of this process, such as `memory_stats()`,
    counts where a `jit` with shardings, or a `pmap` whose axis has a name, closes over it, in a program of several
    processes; with `--preview` in any. Values that decide no shape are SPMD509.

    ## Why it matters

    Every process must run the same program. With different ones the collectives in them need not match: the job hangs,
    or the runtime refuses the program without naming a line.

    ## Example

    ```python
    import jax

    @jax.jit
    def padded(x):
        return jax.numpy.zeros((8 + jax.process_index(), 4)).at[: x.shape[0]].set(x)
    ```

    ## Use instead

    ```python
    import jax

    @jax.jit
    def padded(x):
        return jax.numpy.zeros((8 + jax.process_count(), 4)).at[: x.shape[0]].set(x)
    ```

    ## Limits

    Only code that a `jit` or a map surely traces is looked at. What a function closes over is followed as said above.
    """

    code = "SPMD404"
    name = "varying-program"
    shapes = True
    then = "each process compiles a program of its own"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for given in program.varying_statics():
            yield self._static(program, given)
        yield from super().check(program)

    def _static(self, program: Program, found: Given) -> Diagnostic:
        source = found.reason.source
        place = program.place(found.site)
        message = (
            f"The static argument {found.static!r} of {found.call.name} is not the same on every process: "
            f"{source.text} ({program.where(source.site, place.path)}). Each process compiles a program of its own."
        )
        way_out = (
            "Agree on the value before the call, for example by multihost_utils.process_allgather, or pass it as an "
            "ordinary argument."
        )
        return self.diagnostic(program, place_of=found.site, message=message, way_out=way_out, reason=found.reason)
