from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Given, Program


class RaggedBatch(Rule):
    """A parallel call is given batches whose size is not the same on every process.

    ## What it does

    Finds batches of a process's own part of the data that are made without dropping the remainder, and parts of data
    that was batched before it was divided, if such batches are passed to a parallel call.

    ## Why it matters

    The parts differ by a few rows, so the last batch has a different size on each process, or only one process has a
    short batch. The processes compile different programs for it, and their collectives wait for one another: the job
    hangs at the end of the first epoch.

    ## Example

    ```python
    import jax
    import tensorflow as tf

    step = jax.pmap(lambda p, x: p - jax.lax.pmean(x.mean(), "batch"), axis_name="batch")

    def train(params, rows, steps):
        data = tf.data.Dataset.from_tensor_slices(rows)
        batches = iter(data.shard(jax.process_count(), jax.process_index()).batch(128))
        for _ in range(steps):
            params = step(params, next(batches).numpy())
        return params
    ```

    ## Use instead

    ```python
    import jax
    import tensorflow as tf

    step = jax.pmap(lambda p, x: p - jax.lax.pmean(x.mean(), "batch"), axis_name="batch")

    def train(params, rows, steps):
        data = tf.data.Dataset.from_tensor_slices(rows)
        mine = data.shard(jax.process_count(), jax.process_index()).repeat()
        batches = iter(mine.batch(128, drop_remainder=True))
        for _ in range(steps):
            params = step(params, next(batches).numpy())
        return params
    ```

    ## Limits

    This is a preview rule (`--preview`): the number of rows may divide evenly, which the program alone does not show. A
    loop over the part itself, which makes a different number of steps on each process, is reported as SPMD303.
    """

    code = "SPMD402"
    name = "ragged-batch"
    several = True
    preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.short_batches():
            yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: Given) -> Diagnostic:
        place = program.place(found.site)
        cause = found.cause or found.reason
        return self.finding(
            message=(
                f"The batches passed to {found.call.name}, a parallel call, do not have the same size on every "
                f"process: {cause.text} ({program.where(cause.site, place.path)})."
            ),
            place=place,
            help=(
                "The processes compile different programs for them. Drop the remainder (drop_remainder=True, "
                "drop_last=True), repeat the data before batching it, or pad to a size that all processes know and "
                "mask the padding."
            ),
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
        )
