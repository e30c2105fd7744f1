from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UnawaitedFile(Rule):
    """Every process reads a file that one of them has just made, and nobody waits for that one.

    ## What it does

    Finds files that are written under a condition on the number of the process and read behind it by all, from the
    very same path, with no parallel call in between.

    ## Why it matters

    While one process still trains the tokenizer or downloads the weights, the others are at the reading already. They
    find no file, or half of one; in the runs in which the one is fast enough all is well.

    ## Example

    ```python
    import jax
    import numpy as np

    def statistics(path, rows):
        if jax.process_index() == 0:
            np.save(path, rows.mean(axis=0))
        return np.load(path)
    ```

    ## Use instead

    ```python
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    def statistics(path, rows):
        if jax.process_index() == 0:
            np.save(path, rows.mean(axis=0))
        multihost_utils.sync_global_devices("statistics")
        return np.load(path)
    ```

    ## Limits

    Writing and reading must stand in one function, or in functions of the project that it hands the path to. What is
    read in a `try` is not reported, nor is what stands behind a loop that sleeps or a call that waits.
    """

    code = "SPMD310"
    name = "unawaited-file"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.unawaited_files():
            place = program.place(found.site)
            at = program.where(found.made, place.path)
            yield self.finding(
                message=(
                    f"Every process reads this file, which only some of them make at {at}: nothing makes the others "
                    "wait, so they may come here first."
                ),
                place=place,
                help=(
                    "Let all processes meet between the two, for example in "
                    "jax.experimental.multihost_utils.sync_global_devices."
                ),
                related=(
                    Related(program.place(found.branch), "This condition is not the same on every process."),
                    Related(program.place(found.made), "The file is made here."),
                ),
            )
