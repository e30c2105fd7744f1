from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.traced_rule import TracedRule

if TYPE_CHECKING:
    from spmdlint.rule import Given, Program


class VaryingProgram(TracedRule):
    """Processes compile different programs for the same call.

    ## What it does

    Finds static arguments (`static_argnums`, `static_argnames`) that differ between processes, and process-specific
    values, such as `jax.process_index()`, a clock or an unseeded random number, that determine the shape of an array
    while JAX traces: `jnp.zeros((rows, width))`. Values that the host has found out about this process, such as
    `memory_stats()`, count if a `jit` with shardings, or a `pmap` whose axis has a name, closes over them in a
    multi-process program; with `--preview`, in any program. Values that do not determine a shape are SPMD509.

    ## Why it matters

    Every process must run the same program. If the programs differ, their collectives need not match: the job hangs, or
    the runtime rejects the program without naming a line.

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

    Only code that a `jit` or a map certainly traces is checked. Values that a function closes over are followed as
    described above.
    """

    code = "SPMD404"
    name = "varying-program"
    several = True
    partly_preview = True
    shapes = True
    then = "each process compiles a different program"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for given in program.varying_statics():
            yield self._static(program, given)
        yield from super().check(program)

    def _static(self, program: Program, found: Given) -> Diagnostic:
        source = found.reason.source
        place = program.place(found.site)
        message = (
            f"The static argument {found.static!r} of {found.call.name} is not the same on every process: "
            f"{source.text} ({program.where(source.site, place.path)}). Each process compiles a different program."
        )
        way_out = (
            "Agree on the value before the call, for example with multihost_utils.process_allgather, or pass it as an "
            "ordinary argument."
        )
        return self.diagnostic(program, place_of=found.site, message=message, way_out=way_out, reason=found.reason)
