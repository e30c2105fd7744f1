from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class VaryingName(Rule):
    """The name by which processes meet is not the same on every process.

    ## What it does

    Finds barriers (`multihost_utils.sync_global_devices`) whose name is made from the process's number, a clock, the
    system's entropy, the host's name or the hash of a string, or with a counter that only some processes advance.

    ## Why it matters

    JAX compares the names and stops the job where they differ; barriers of the coordination service wait for the others
    under a name that nobody else uses, until they time out.

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

    Names of checkpoints are looked at in programs that speak of several processes, and with `--preview` in all.
    """

    code = "SPMD308"
    name = "varying-name"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.seeds.labels():
            source = found.reason.source
            place = program.place(found.site)
            yield self.finding(
                message=(
                    f"The name given to {found.function.rsplit('.', 1)[-1]} is not the same on every process: "
                    f"{source.text} ({program.where(source.site, place.path)})."
                ),
                place=place,
                help="The processes never meet. Make the name from what all of them know, such as the step.",
                related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
            )
