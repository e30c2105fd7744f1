from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program

_WHY = {
    "divided": "the size of its batches was divided by {}",
    "part": "its batches are passed on as one process's part of a global array",
    "mapped": "its batches go to the devices of this process only",
}


class UnsharedData(Rule):
    """Every process reads all of the data, although its batches are meant for one process.

    ## What it does

    Finds data sets that are read in batches for one process, in programs in which nothing gives each process data of
    its own. Batches are meant for one process if their size was divided by `jax.process_count()`, if they are passed to
    `jax.make_array_from_process_local_data` or `host_local_array_to_global_array` as its part, or if a `pmap` over all
    devices takes them. Wherever such a program asks for the process index, it compares it with a constant, tells it, or
    makes a key of it.

    ## Why it matters

    Every process goes through the whole data set. With one seed all processes read the same examples at each step, so
    the batch of all of them has each example several times; with a seed of their own they read each example several
    times in an epoch. Nothing fails: the training is as slow and as good as on one process.

    ## Example

    ```python
    import jax
    from torch.utils.data import DataLoader

    def loader(dataset, batch_size):
        jax.distributed.initialize()
        return DataLoader(dataset, batch_size // jax.process_count(), shuffle=True, drop_last=True)
    ```

    ## Use instead

    ```python
    import jax
    from torch.utils.data import DataLoader, Subset

    def loader(dataset, batch_size):
        jax.distributed.initialize()
        count = jax.process_count()
        size = len(dataset) // count
        mine = Subset(dataset, range(jax.process_index() * size, (jax.process_index() + 1) * size))
        return DataLoader(mine, batch_size // count, shuffle=True, drop_last=True)
    ```

    ## Limits

    The whole program is looked at: one place that may choose data by the process, or a library that shares data out,
    and nothing is reported.
    """

    code = "SPMD406"
    name = "unshared-data"
    several = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.unshared_data():
            why = _WHY[found.use].format(found.reason.source.text)
            yield self.finding(
                message=(
                    f"Every process reads all of this data: {why}, but nothing in the program gives each process "
                    "examples of its own."
                ),
                place=program.place(found.site),
                help="Take the examples of one process, by jax.process_index(), before they are put into batches.",
                related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
            )
