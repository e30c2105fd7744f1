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
    "completion": "Iterate over the tasks in the order in which they were started, or sort their results by a key.",
}


class UnorderedSource(OrderedRule):
    """The order of a folder listing, or of tasks that complete, decides what a process gets, numbers or calls.

    ## What it does

    Follows the results of `os.listdir`, `os.scandir`, `glob.glob`, and `iterdir` and `rglob` of paths, through
    functions and files, to slices whose bounds come from the process index and to loops that make a parallel call per
    entry; in multi-process programs (with `--preview`, in all programs), also to dictionaries that number the entries;
    and to the columns of an array over the devices of all processes, or to its rows if each device gets a copy of it.
    Datasets are followed to `.shard(count, index)` and `.skip(start)` in the same way, including those of
    `tf.data.Dataset.list_files`, which shuffles by default, and those that `tensorflow_datasets` reads with
    `shuffle_files=True` and no seed. A listing that went through `sorted(...)` or `.sort()` is safe.

    Also finds loops over `as_completed`, `imap_unordered` and similar functions that make a parallel call for each
    result, shares by process index of results that were collected in that order, and arrays over the devices of all
    processes whose columns are.

    ## Why it matters

    A file system may list a folder in any order, and two hosts may get different orders. The shares then silently
    overlap and leave files out: the model sees some examples twice and some never. Parallel calls along the listing
    pair different files. The number of a class, or of a row in a table, differs between hosts.

    Which task completes first differs between processes as well. They make their parallel calls for different results
    at the same time: they combine values that do not belong together, or hang because the shapes differ.

    ## Example

    ```python
    import os

    import jax

    def my_files(folder):
        names = os.listdir(folder)
        return names[jax.process_index() :: jax.process_count()]
    ```

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
    import os

    import jax

    def my_files(folder):
        names = sorted(os.listdir(folder))
        return names[jax.process_index() :: jax.process_count()]
    ```

    ```python
    import jax

    jax.distributed.initialize()
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")

    def reduce_all(pool, loads):
        running = [pool.submit(load) for load in loads]
        return [total(task.result()) for task in running]
    ```

    ## Limits

    Listings made by other libraries are not known, nor are shares that data loaders other than grain take of a list. A
    share that is recognised only by its variable names (`files[shard_index::num_shards]`) counts if one of the files
    involved looks like part of a multi-process program.

    Queues and callbacks are not followed. Without `--preview`, loops over what has completed are reported only if the
    program names something that is of no use to a single process, such as `jax.distributed.initialize`: in other
    programs the order makes no difference. Calls of a bare `jit` count there if they take their own previous result, as
    a training step does, in a program that looks like a multi-process program.
    """

    code = "SPMD202"
    name = "unordered-source"
    merged = ("listing-order", "SPMD203 completion-order")
    several = True
    partly_preview = True
    listed = "an unsorted listing"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for breach in program.breaches(self.code):
            yield self.argument(program, breach, _WAY_OUT[breach.reason.kind], self._fix(program, breach))
        for numbers in program.numbers("listing"):
            yield self.numbered(program, numbers, _WAY_OUT["listing"], self._fix(program, numbers))
        for found in program.listings():
            if found.reason.kind == "completion":
                yield self._completed(program, found)
            elif found.reason.kind in _WAY_OUT:
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

    def _completed(self, program: Program, found: ListingShare | ListingLoop) -> Diagnostic:
        call = getattr(found, "call", None)
        what = "so the share of each process holds" if call is None else f"so {program.call_name(call)} is called for"
        return self.finding(
            message=(
                f"The order here differs between processes ({found.reason.source.text}), {what} results that the "
                "others do not expect."
            ),
            place=program.place(found.site),
            help=_WAY_OUT["completion"],
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
        )

    def _fix(self, program: Program, found: ListingShare | ListingLoop | ListingNumbers | Breach) -> Fix | None:
        """Sort the listing where it is made, if that is in the file of the finding."""
        source = found.reason.source.site
        if found.reason.kind != "listing":
            return None
        return program.mending.of_listing(source) if source.ref.path == found.site.ref.path else None
