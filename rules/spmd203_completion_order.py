from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.ordered_rule import OrderedRule

if TYPE_CHECKING:
    from spmdlint.rule import ListingLoop, ListingShare, Program

_WAY_OUT = "Iterate over the tasks in the order in which they were started, or sort their results by a key."


class CompletionOrder(OrderedRule):
    """Parallel calls are made in the order in which tasks happen to complete.

    ## What it does

    Finds loops over `as_completed`, `imap_unordered` and similar functions that make a parallel call for each result,
    shares by process index of results that were collected in that order, and arrays over the devices of all processes
    whose columns are.

    ## Why it matters

    Which task completes first differs between processes. The processes make their parallel calls for different results
    at the same time: they combine values that do not belong together, or hang because the shapes differ.

    ## Example

    ```python
    from concurrent import futures

    import jax

    jax.distributed.initialize()
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")

    def reduce_all(pool, loads):
        running = [pool.submit(load) for load in loads]
        return [total(done.result()) for done in futures.as_completed(running)]
    ```

    ## Use instead

    ```python
    import jax

    jax.distributed.initialize()
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")

    def reduce_all(pool, loads):
        running = [pool.submit(load) for load in loads]
        return [total(task.result()) for task in running]
    ```

    ## Limits

    Queues and callbacks are not followed. Without `--preview`, loops are reported only if the program names something
    that is of no use to a single process, such as `jax.distributed.initialize`: in other programs the order makes no
    difference. Calls of a bare `jit` count if they take their own previous result, as a training step does, in a
    program that looks like a multi-process program.
    """

    code = "SPMD203"
    name = "completion-order"
    several = True
    partly_preview = True
    kept = "the order of completion"
    listed = "what is completed"
    mend = _WAY_OUT

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for breach in program.breaches(self.code):
            yield self.argument(program, breach)
        for found in program.listings():
            if found.reason.kind == "completion":
                yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: ListingShare | ListingLoop) -> Diagnostic:
        call = getattr(found, "call", None)
        what = "so the share of each process holds"
        if call is not None:
            what = f"so {program.call_name(call)} is called for"
        return self.finding(
            message=(
                f"The order here differs between processes ({found.reason.source.text}), {what} results that the "
                "others do not expect."
            ),
            place=program.place(found.site),
            help=_WAY_OUT,
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
        )
