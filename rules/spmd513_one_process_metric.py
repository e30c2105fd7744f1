from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class OneProcessMetric(Rule):
    """A number that some processes report covers the rows of their own devices only.

    ## What it does

    Finds numbers that come from the rows of a process's own devices (outputs of a `pmap`, `addressable_shards`) and
    that only some processes report: write, log or print, under a condition or through an object that was made with one
    (`just_logging=jax.process_index() > 0`). A report that also tells the process index is not meant.

    ## Why it matters

    A metric computed on process 0 covers the examples of process 0: with 64 processes, one in 64 of those that were
    evaluated. Nothing fails, and the number changes with the number of processes.

    ## Example

    ```python
    import jax
    import numpy as np

    squared_errors = jax.jit(lambda params, rows, labels: (rows @ params - labels) ** 2)

    def report(params, rows, labels, write):
        errors = squared_errors(params, rows, labels)
        error = np.mean([np.mean(shard.data) for shard in errors.addressable_shards])
        if jax.process_index() == 0:
            write({"error": error})
    ```

    ## Use instead

    ```python
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    squared_errors = jax.jit(lambda params, rows, labels: (rows @ params - labels) ** 2)

    def report(params, rows, labels, write):
        errors = squared_errors(params, rows, labels)
        error = np.mean(multihost_utils.process_allgather(errors, tiled=True))
        if jax.process_index() == 0:
            write({"error": error})
    ```

    ## Limits

    Only numbers whose way from the devices to the report is known are reported.
    """

    code = "SPMD513"
    name = "one-process-metric"
    several = True
    severity = "warning"
    split_from = "SPMD503"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.local_numbers():
            place = program.place(found.site)
            source = program.where(found.reason.source.site, place.path)
            chain = found.reason.chain()
            steps = [Related(program.place(step.site), sentence(step.text)) for step in chain]
            yield self.finding(
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
                    *(Related(program.place(other), "It is reported here as well.") for other in found.also),
                ),
            )
