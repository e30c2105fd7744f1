from __future__ import annotations

from spmdlint.branch_rule import BranchRule


class DataDependentLoopExit(BranchRule):
    """A loop that makes parallel calls ends when this process's own data do.

    ## What it does

    Finds loops over a process's share of the data, and branches on it, that make parallel calls: a stride of a list
    by the process's number (`files[jax.process_index()::jax.process_count()]`), a shard of a dataset, a split, and the
    lengths, generators and objects made from them; and what the program itself hands on as this process's part, as to
    `jax.make_array_from_process_local_data`, with the exceptions that its own functions raise for it. Also conditions
    on what a `pmap` gives and no reduction made one: each process sees what its own devices say.

    ## Why it matters

    The shares are of different sizes unless the division leaves no remainder. The process with the smallest leaves
    the loop first, and the others wait for it in the next parallel call. It shows at the end of the first epoch.

    ## Example

    ```python
    import jax

    step = jax.pmap(lambda state, batch: state, axis_name="batch")

    def train(state, batches):
        for batch in batches[jax.process_index() :: jax.process_count()]:
            state = step(state, batch)
        return state
    ```

    ## Use instead

    ```python
    import jax

    step = jax.pmap(lambda state, batch: state, axis_name="batch")

    def train(state, batches):
        share = batches[jax.process_index() :: jax.process_count()]
        for number in range(len(batches) // jax.process_count()):
            state = step(state, share[number])
        return state
    ```

    ## Limits

    What an unknown library does with the number of a process is unknown: a loader that is given it is not followed.
    An iterator that is cut at a number of steps (`itertools.islice`) is taken to have as many everywhere.
    Slices whose two ends move together have one length and are not reported. Calls of a bare `jit` count if they take
    what they gave before, as a training step does, in a program that names several processes.
    """

    code = "SPMD303"
    name = "data-dependent-loop-exit"
    hazard = "data"
    way_out = (
        "Make the number of steps the same everywhere: compute it from sizes that all processes know, pad the smaller "
        "shares, or agree on it with multihost_utils.process_allgather before the loop."
    )
