from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Given, Program


class LocalShape(Rule):
    """A parallel call is given an array whose shape is not the same on every process.

    ## What it does

    Follows the shapes of arrays that are passed to parallel calls back to sizes that differ between processes: the
    length of a process's share of the data, a listing, the longest example of the local batch (a tokenizer, a
    `padded_batch` without `padded_shapes` or `bucket_by_sequence_length` may pad to it), a random choice, or the
    process index itself, also through the project's own generators and iterators. Arrays that are made with one written
    size on some processes and with another on the others count too, whether one call is given either of them, or each
    arm of a branch makes the same call. Does the same for the structure of trees: None, or an empty container, on some
    processes where others pass a value.

    With `--preview`, also finds batches of a process's own part of the data that are made without dropping the
    remainder, and parts of data that was batched before it was divided: the parts differ by a few rows, so the last
    batch has a different size on each process, or only one process has a short batch.

    ## Why it matters

    JAX compiles a function anew for every shape. Processes that pass different shapes run different programs, and their
    collectives wait for one another, or combine values that do not match: the job hangs or computes garbage. A tree
    without leaves makes no collective at all.

    ## Example

    ```python
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    def gather(rows):
        mine = rows[jax.process_index() :: jax.process_count()]
        return multihost_utils.process_allgather(np.stack(mine))
    ```

    ## Use instead

    ```python
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    def gather(rows):
        size = -(-len(rows) // jax.process_count())
        mine = rows[jax.process_index() :: jax.process_count()]
        padded = np.zeros((size, *rows[0].shape))
        padded[: len(mine)] = mine
        return multihost_utils.process_allgather(padded)
    ```

    ## Limits

    Calls of a bare `jit` count if they take their own previous result, as a training step does, in a program that looks
    like a multi-process program; the longest example of a batch counts in such programs. With `--preview`, both count
    in every program, and so do the sizes of listings and of values that are called local by name. Batches with a
    remainder are in preview because the number of rows may divide evenly, which the program alone does not show. A loop
    over the part itself, which makes a different number of steps on each process, is reported as SPMD303.
    """

    code = "SPMD401"
    name = "local-shape"
    merged = ("SPMD402 ragged-batch",)
    several = True
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.varying_shapes():
            yield self._diagnostic(program, found)
        for found in program.short_batches():
            yield self._short(program, found)

    def _diagnostic(self, program: Program, found: Given) -> Diagnostic:
        source = found.cause or found.reason.cause
        place = program.place(found.site)
        what = "structure" if found.structure else "shape"
        mend = (
            "Some processes pass nothing where others pass a value, and JAX maps such a call over the leaves that "
            "exist. Give every process a value with the same structure, shape and dtype, such as zeros where it has "
            "none."
        )
        sizes = (
            "The processes compile or run different programs. Pad to a size that all processes know, drop the "
            "remainder, or agree on the size first, for example with multihost_utils.process_allgather."
        )
        shapes = f", but {found.shapes}" if found.shapes and not found.structure else ""
        related = [Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()]
        if found.other is not None:
            related.append(Related(program.place(found.other), "The other processes make the call here."))
        return self.finding(
            message=(
                f"The {what} of this argument of {found.call.name}, a parallel call, is not the same on every process"
                f"{shapes}: {source.text} ({program.where(source.site, place.path)})."
            ),
            place=place,
            help=mend if found.structure else sizes,
            related=tuple(related),
        )

    def _short(self, program: Program, found: Given) -> Diagnostic:
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
