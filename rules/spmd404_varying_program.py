from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Given, Program, Reason, Site, TracedConstant


class VaryingProgram(Rule):
    """Processes compile different programs for one call.

    ## What it does

    Finds static arguments (`static_argnums`, `static_argnames`) that differ between processes, and values of this
    process, such as `jax.process_index()`, a clock or an unseeded random number, that are read while JAX traces and so
    become constants of the program. What the host has found out of this process, such as `memory_stats()`, counts where
    a `jit` with shardings, or a `pmap` whose axis has a name, closes over it, in a program of several processes; with
    `--preview` in any.

    ## Why it matters

    Every process must run the same program. With different ones the collectives in them need not match: the job hangs,
    or the runtime refuses the program without naming a line.

    ## Example

    ```python
    import jax

    @jax.jit
    def noise(key):
        return jax.random.normal(jax.random.fold_in(key, jax.process_index()), (8,))
    ```

    ## Use instead

    ```python
    import jax

    @jax.jit
    def noise(key, number):
        return jax.random.normal(jax.random.fold_in(key, number), (8,))
    ```

    ## Limits

    Only code that a `jit` or a map surely traces is looked at. What a function closes over is followed as said above.
    """

    code = "SPMD404"
    name = "varying-program"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for given in program.varying_statics():
            yield self._static(program, given)
        for constant in program.traced_constants():
            yield self._constant(program, constant)

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
        return self._diagnostic(program, place_of=found.site, message=message, way_out=way_out, reason=found.reason)

    def _constant(self, program: Program, found: TracedConstant) -> Diagnostic:
        source = found.reason.source
        message = (
            f"{found.name} is given a value of this process while JAX traces: {source.text}, so each process compiles "
            "a program of its own."
        )
        way_out = "Compute the value outside and pass it as an argument, or use jax.lax.axis_index inside a map."
        traced = tuple(Related(program.place(site), "This leads to it while JAX traces.") for site in found.way)
        return self._diagnostic(
            program, place_of=found.site, message=message, way_out=way_out, reason=found.reason, more=traced
        )

    def _diagnostic(
        self,
        program: Program,
        *,
        place_of: Site,
        message: str,
        way_out: str,
        reason: Reason,
        more: tuple[Related, ...] = (),
    ) -> Diagnostic:
        steps = tuple(Related(program.place(step.site), sentence(step.text)) for step in reason.chain())
        return Diagnostic(
            code=self.code,
            name=self.name,
            severity=self.severity,
            message=message,
            place=program.place(place_of),
            help=way_out,
            related=(*steps, *more),
        )
