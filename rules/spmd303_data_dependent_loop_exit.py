from __future__ import annotations

from spmdlint.branch_rule import BranchRule


class DataDependentLoopExit(BranchRule):
    """A loop that makes parallel calls ends when this process runs out of its own data.

    ## What it does

    Finds loops over a process's share of the data, and branches on it, that make parallel calls: a strided slice of a
    list by the process index (`files[jax.process_index()::jax.process_count()]`), a shard of a dataset, a split, a part
    that a library deals to the process (TensorFlow Datasets, SeqIO, Grain, Hugging Face's datasets), and the lengths,
    generators and objects made from them, also where a handler finds out that an iterator has ended. Data that the
    program itself passes on as this process's part, as to `jax.make_array_from_process_local_data`, counts as well, and
    so do exceptions that the program's own functions raise because of it. Also finds conditions on the output of a
    `pmap` that no reduction has made the same on all devices: each process sees only the results of its own devices.

    ## Why it matters

    The shares have different sizes unless the division leaves no remainder. The process with the smallest share leaves
    the loop first, and the others wait for it in the next parallel call. This shows only at the end of the first epoch.

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

    What an unknown library does with the process index is not known: a loader that receives it is not followed. An
    iterator that is cut off after a number of steps (`itertools.islice`) is assumed to have that many on every process.
    Slices whose two ends move together have the same length and are not reported. Calls of a bare `jit` count if they
    take their own previous result, as a training step does, in a program that looks like a multi-process program; not
    if that program calls `jax.distributed.initialize` and none of its own files names a mesh or a global array, so that
    all its arrays seem to be those of one process. `spmdlint explain` then says that the call is local.
    """

    code = "SPMD303"
    name = "data-dependent-loop-exit"
    several = True
    hazard = "data"
    way_out = (
        "Make the number of steps the same on every process: compute it from sizes that all processes know, pad the "
        "smaller shares, or agree on it with multihost_utils.process_allgather before the loop."
    )
