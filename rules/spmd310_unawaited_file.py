from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UnawaitedFile(Rule):
    """Every process reads a file that one of them has just written, without waiting for that process.

    ## What it does

    Finds files that are written under a condition on the process index and read after it by all processes, from the
    very same path, with no parallel call in between.

    ## Why it matters

    While one process is still training the tokenizer or downloading the weights, the others already try to read them.
    They find no file, or half of one. If the first process happens to be fast enough, the run succeeds.

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

    The write and the read must be in one function, or in functions and methods of the project that it calls with the
    same arguments. A read inside a `try` is not reported, nor is one after a loop that sleeps or a call that waits,
    even if only its name says so.
    """

    code = "SPMD310"
    name = "unawaited-file"
    several = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.unawaited_files():
            place = program.place(found.site)
            at = program.where(found.made, place.path)
            yield self.finding(
                message=(
                    f"Every process reads this file, but only some of them write it at {at}: nothing makes the others "
                    "wait, so they may get here first."
                ),
                place=place,
                help=(
                    "Synchronize all processes between the two, for example with "
                    "jax.experimental.multihost_utils.sync_global_devices."
                ),
                related=(
                    Related(program.place(found.branch), "This condition is not the same on every process."),
                    Related(program.place(found.made), "The file is written here."),
                ),
            )
