from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Divergence, Program


class VaryingCondition(Rule):
    """A parallel call stands behind a condition that is not the same on every process.

    ## What it does

    Finds branches whose condition comes from the process's own number (`jax.process_index()`, a launcher's
    environment variable, a helper, field or property made from them) and that make other parallel calls on one side
    than on the other: in the branch itself, behind an early return, or in functions called from there, in any file.

    ## Why it matters

    Every process must make the same parallel calls in the same order. The processes that skip one go on to their
    next; the others wait for them. The job hangs, or two different calls are paired and the numbers are wrong.

    ## Example

    ```python
    import jax
    from jax.experimental import multihost_utils

    def save(state, step):
        if jax.process_index() == 0:
            everything = multihost_utils.process_allgather(state)
            print("saving", step, everything)
    ```

    ## Use instead

    ```python
    import jax
    from jax.experimental import multihost_utils

    def save(state, step):
        everything = multihost_utils.process_allgather(state)
        if jax.process_index() == 0:
            print("saving", step, everything)
    ```

    ## Limits

    Calls that cannot be resolved are not counted as parallel calls. A branch whose two sides make the same parallel
    calls in the same order is right and is not reported, nor one that ends in an exception on one side. Of the things
    that differ between processes only the process's number is followed yet.
    """

    code = "SPMD301"
    name = "varying-condition"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.divergent_branches():
            yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: Divergence) -> Diagnostic:
        place = program.place(found.call.site)
        branch = program.place(found.branch)
        source = found.reason.source
        at = program.where(found.branch, place.path)
        through = "" if len(found.call.path) == 1 else f" (through {len(found.call.path) - 1} more call(s))"
        more = f", and {len(found.others)} more after it" if found.others else ""
        kept = "the early exit" if found.early_exit else "the condition"
        related = [Related(branch, "This condition is not the same on every process.")]
        related += [Related(program.place(s.site), sentence(s.text)) for s in found.reason.chain()]
        related += [Related(program.place(site), "This leads to the parallel call.") for site in found.call.path[1:]]
        return Diagnostic(
            code=self.code,
            name=self.name,
            severity=self.severity,
            message=(
                f"{found.call.name} is a parallel call{through}, and {kept} at {at} lets only some processes make "
                f"it{more}: {source.text}."
            ),
            place=place,
            help=(
                "The others never join it, and the job hangs or pairs the wrong calls. Make the call on every process "
                "and keep only the local work, such as printing or writing, under the condition; or agree on the "
                "condition first, for example with multihost_utils.broadcast_one_to_all."
            ),
            related=tuple(related),
        )
