from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class VaryingName(Rule):
    """The name of a barrier or checkpoint is not the same on every process.

    ## What it does

    Finds barriers (`multihost_utils.sync_global_devices`) whose name is made from the process index, a clock, the
    system's entropy, the host name or the hash of a string.

    ## Why it matters

    JAX compares the names and stops the job if they differ. Barriers of the coordination service wait for the others
    under a name that no other process uses, until they time out.

    ## Example

    ```python
    import jax
    from jax.experimental import multihost_utils

    def meet():
        multihost_utils.sync_global_devices(f"saved by {jax.process_index()}")
    ```

    ## Use instead

    ```python
    import jax
    from jax.experimental import multihost_utils

    def meet(step):
        multihost_utils.sync_global_devices(f"saved at step {step}")
    ```

    ## Limits

    Names of checkpoints are checked in programs that look like multi-process programs, and with `--preview` in all.
    """

    code = "SPMD308"
    name = "varying-name"
    several = True
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.breaches(self.code):
            source = found.reason.source
            place = program.place(found.call)
            yield self.finding(
                message=(
                    f"The name given to {found.demand.known.name.rsplit('.', 1)[-1]} is not the same on every process: "
                    f"{source.text} ({program.where(source.site, place.path)})."
                ),
                place=place,
                help="The processes never meet. Build the name from values that all of them know, such as the step.",
                related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
                cause=program.cause(found.reason),
            )
