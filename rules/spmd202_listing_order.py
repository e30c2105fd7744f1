from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Fix, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import ListingLoop, ListingNumbers, ListingShare, Program

_WAY_OUT = {
    "listing": "Sort the listing where it is made, with sorted(...).",
    "shuffled": "Take the share first and shuffle behind it, or pass a seed that all processes share, such as "
    "ReadConfig(shuffle_seed=...).",
}


class ListingOrder(Rule):
    """Each process takes its share of a folder's listing, numbers it, or calls along it, without sorting it.

    ## What it does

    Follows the results of `os.listdir`, `os.scandir`, `glob.glob` and paths' `iterdir` and `rglob` to slices whose
    bounds come from the process's number, and to loops that make a parallel call per entry, through functions and
    files; and to dictionaries that number the entries, in programs for several processes (with `--preview`, in all).
    The same for `.shard(count, index)` and `.skip(start)` of data sets, of `tf.data.Dataset.list_files`, which shuffles
    unless it is told not to, and of what `tensorflow_datasets` reads with `shuffle_files=True` and no seed.
    `sorted(...)` and `.sort()` end it.

    ## Why it matters

    A file system lists a folder in any order it likes, and two hosts may get two orders. The shares then overlap and
    leave files out, quietly: the model sees some examples twice and some never. Parallel calls along the listing
    pair different files. The number of a class, or of a row in a table, is another one on every host.

    ## Example

    ```python
    import os

    import jax

    def my_files(folder):
        names = os.listdir(folder)
        return names[jax.process_index() :: jax.process_count()]
    ```

    ## Use instead

    ```python
    import os

    import jax

    def my_files(folder):
        names = sorted(os.listdir(folder))
        return names[jax.process_index() :: jax.process_count()]
    ```

    ## Limits

    Listings by other libraries are not known, nor shares that a data loader takes of a list that it is given. A share
    by its names (`files[shard_index::num_shards]`) counts where a file that belongs to it speaks of several processes.
    """

    code = "SPMD202"
    name = "listing-order"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.listings():
            if found.reason.kind in ("listing", "shuffled"):
                yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: ListingShare | ListingLoop | ListingNumbers) -> Diagnostic:
        steps = found.reason.chain()
        related = [Related(program.place(step.site), sentence(step.text)) for step in steps]
        source = found.reason.source.text
        share, kept = getattr(found, "share", None), getattr(found, "kept", None)
        if kept is not None:
            message = f"Names are numbered by their place in an unsorted listing: {source}."
            related.append(Related(program.place(kept), "The numbers are kept here."))
            effect = "The same number stands for another name on every host, and nothing tells."
        elif share is not None:
            listed = "an unsorted listing" if found.reason.kind == "listing" else "what every process mixes by itself"
            message = f"This is one process's share of {listed}: {source}, and another host may see another order."
            related += [Related(program.place(step.site), sentence(step.text)) for step in share.chain()]
            effect = "The shares may overlap and leave files out."
        else:
            name = found.call.name  # type: ignore[union-attr]  # a loop, where it is no share
            message = f"This loop over an unsorted listing makes the parallel call {name} per entry: {source}."
            effect = "The processes may make the calls for different files at the same time."
        return self.finding(
            message=message,
            place=program.place(found.site),
            help=f"{effect} {_WAY_OUT[found.reason.kind]}",
            related=tuple(related),
            fix=self._fix(program, found),
        )

    def _fix(self, program: Program, found: ListingShare | ListingLoop | ListingNumbers) -> Fix | None:
        """Sorted where it is listed, if that is in the file of the finding."""
        source = found.reason.source.site
        if found.reason.kind != "listing":
            return None
        return program.mending.of_listing(source) if source.ref.path == found.site.ref.path else None
