from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Fix, Related, sentence
from spmdlint.ordered_rule import OrderedRule

if TYPE_CHECKING:
    from spmdlint.rule import Breach, ListingLoop, ListingNumbers, ListingShare, Program

_WAY_OUT = {
    "listing": "Sort the listing with sorted(...) where it is made.",
    "shuffled": "Take the share first and shuffle it afterwards, or pass a seed that all processes share, such as "
    "ReadConfig(shuffle_seed=...).",
}


class ListingOrder(OrderedRule):
    """An unsorted folder listing is divided between processes, numbered, or looped over with parallel calls.

    ## What it does

    Follows the results of `os.listdir`, `os.scandir`, `glob.glob`, and `iterdir` and `rglob` of paths, through
    functions and files, to slices whose bounds come from the process index and to loops that make a parallel call per
    entry; in multi-process programs (with `--preview`, in all programs), also to dictionaries that number the entries;
    and to the columns of an array over the devices of all processes, or to its rows if each device gets a copy of it.
    Datasets are followed to `.shard(count, index)` and `.skip(start)` in the same way, including those of
    `tf.data.Dataset.list_files`, which shuffles by default, and those that `tensorflow_datasets` reads with
    `shuffle_files=True` and no seed. A listing that went through `sorted(...)` or `.sort()` is safe.

    ## Why it matters

    A file system may list a folder in any order, and two hosts may get different orders. The shares then silently
    overlap and leave files out: the model sees some examples twice and some never. Parallel calls along the listing
    pair different files. The number of a class, or of a row in a table, differs between hosts.

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

    Listings made by other libraries are not known, nor are shares that data loaders other than grain take of a list. A
    share that is recognised only by its variable names (`files[shard_index::num_shards]`) counts if one of the files
    involved looks like part of a multi-process program.
    """

    code = "SPMD202"
    name = "listing-order"
    several = True
    partly_preview = True
    kept = "the order of a listing"
    listed = "an unsorted listing"
    mend = _WAY_OUT["listing"]

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for breach in program.breaches(self.code):
            yield self.argument(program, breach, _WAY_OUT[breach.reason.kind], self._fix(program, breach))
        for numbers in program.numbers("listing"):
            yield self.numbered(program, numbers, self.mend, self._fix(program, numbers))
        for found in program.listings():
            if found.reason.kind in ("listing", "shuffled"):
                yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: ListingShare | ListingLoop) -> Diagnostic:
        steps = found.reason.chain()
        related = [Related(program.place(step.site), sentence(step.text)) for step in steps]
        source = found.reason.source.text
        share = getattr(found, "share", None)
        if share is not None:
            listed = (
                "an unsorted listing" if found.reason.kind == "listing" else "data that each process shuffles by itself"
            )
            message = f"This is one process's share of {listed}: {source}, and another host may see a different order."
            related += [Related(program.place(step.site), sentence(step.text)) for step in share.chain()]
            effect = "The shares may overlap and leave files out."
        else:
            name = program.call_name(found.call)  # type: ignore[union-attr]  # a loop if it is not a share
            message = f"This loop over an unsorted listing makes the parallel call {name} for each entry: {source}."
            effect = "The processes may make the calls for different files at the same time."
        return self.finding(
            message=message,
            place=program.place(found.site),
            help=f"{effect} {_WAY_OUT[found.reason.kind]}",
            related=tuple(related),
            fix=self._fix(program, found),
            cause=program.cause(found.reason),
        )

    def _fix(self, program: Program, found: ListingShare | ListingLoop | ListingNumbers | Breach) -> Fix | None:
        """Sort the listing where it is made, if that is in the file of the finding."""
        source = found.reason.source.site
        if found.reason.kind != "listing":
            return None
        return program.mending.of_listing(source) if source.ref.path == found.site.ref.path else None
