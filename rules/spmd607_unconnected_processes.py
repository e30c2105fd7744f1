from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class UnconnectedProcesses(Rule):
    """A program asks which process it is, but nothing connects the processes.

    ## What it does

    Finds programs (files with a test of `__name__`) that ask for `jax.process_index()` or `jax.process_count()`, or
    call `multihost_utils`, directly or in what they call, while no file of the project calls
    `jax.distributed.initialize` or anything like it. There is one finding for a project, at the first question.

    ## Why it matters

    On hosts with GPUs or CPUs each process then hears that it is process 0 of 1. Nothing fails: every process reads all
    data, trains alone and writes the files that process 0 is meant to write. On Cloud TPU the processes find one
    another without the call, but Orbax' checkpoints and the health checks of the job need it there as well.

    ## Example

    ```python
    import jax

    def main():
        if jax.process_index() == 0:
            print("processes:", jax.process_count())

    if __name__ == "__main__":
        main()
    ```

    ## Use instead

    ```python
    import jax

    def main():
        jax.distributed.initialize()
        if jax.process_index() == 0:
            print("processes:", jax.process_count())

    if __name__ == "__main__":
        main()
    ```

    ## Limits

    A launcher outside the project may connect the processes; a comment on the line says so to the next reader as well.
    Libraries, which have no program of their own, are not reported.
    """

    code = "SPMD607"
    name = "unconnected-processes"
    preview = True
    several = True
    of_whole = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.unconnected():
            place = program.place(found.asked)
            count = len(found.others)
            more = f" and {count} more program{'s' if count > 1 else ''}" if count else ""
            yield self.finding(
                message=(
                    f"{found.name} is asked here for {found.program.name}{more}, but nothing in the project calls "
                    "jax.distributed.initialize: except on Cloud TPU, each process takes itself for the only one."
                ),
                place=place,
                help="Call jax.distributed.initialize() first thing in the program, before JAX is asked for anything.",
            )
