from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import ListingLoop, ListingNumbers, ListingShare, Program


class CompletionOrder(Rule):
    """Parallel calls are made in the order in which tasks happen to be done.

    ## What it does

    Finds loops over `as_completed`, `imap_unordered` and the like that make a parallel call for each result, and shares
    by the process's number of what was collected in that order.

    ## Why it matters

    Which task is done first is another one on every process. The processes make their parallel calls for different
    results at the same time: what is combined does not belong together, or has different shapes and hangs.

    ## Example

    ```python
    from concurrent import futures

    import jax

    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")

    def reduce_all(pool, loads):
        running = [pool.submit(load) for load in loads]
        return [total(done.result()) for done in futures.as_completed(running)]
    ```

    ## Use instead

    ```python
    import jax

    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")

    def reduce_all(pool, loads):
        running = [pool.submit(load) for load in loads]
        return [total(task.result()) for task in running]
    ```

    ## Limits

    Queues and callbacks are not followed. Calls of a bare `jit` count if they take what they gave before, as a training
    step does, in a program that names several processes.
    """

    code = "SPMD203"
    name = "completion-order"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.listings():
            if found.reason.kind == "completion":
                yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: ListingShare | ListingLoop | ListingNumbers) -> Diagnostic:
        call = getattr(found, "call", None)
        what = f"so {call.name} is called for" if call is not None else "so the share of each process holds"
        return self.finding(
            message=(
                f"The order here is another one on every process ({found.reason.source.text}), {what} what the others "
                "do not expect."
            ),
            place=program.place(found.site),
            help="Go over the tasks in the order in which they were started, or sort their results by a key.",
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
        )
