from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spmdlint.branch_rule import BranchRule

_SAME_NUMBER = (
    "Run the same number of iterations on every process, for example the maximum over all processes, and skip only the "
    "local work in iterations for which a process has nothing to do."
)


class VaryingLoop(BranchRule):
    """A loop that makes parallel calls runs a different number of iterations on each process.

    ## What it does

    Finds

    - `while` loops whose condition comes from the process index, and `for` loops over a `range` whose bounds do, if
      their body makes parallel calls;
    - loops over a process's share of the data, and branches on it, that make parallel calls: a strided slice of a list
      by the process index (`files[jax.process_index()::jax.process_count()]`), a shard of a dataset, a split, a part
      that a library deals to the process (TensorFlow Datasets, SeqIO, Grain, Hugging Face's datasets), and the lengths,
      generators and objects made from them, also where a handler finds out that an iterator has ended. Data that the
      program itself passes on as this process's part, as to `jax.make_array_from_process_local_data`, counts as well,
      and so do exceptions that the program's own functions raise because of it;
    - conditions on the output of a `pmap` that no reduction has made the same on all devices: each process sees only
      the results of its own devices.

    ## Why it matters

    The process that leaves the loop first makes no more calls, and the others wait for it in the next one, or their
    calls are paired with its later ones. Shares of the data have different sizes unless the division leaves no
    remainder. This shows only at the end of the first epoch.

    ## Example

    ```python
    import jax

    step = jax.pmap(lambda state, batch: state, axis_name="batch")

    def train(state, batches):
        for batch in batches[jax.process_index() :: jax.process_count()]:
            state = step(state, batch)
        return state
    ```

    ```python
    import jax
    from jax.experimental import multihost_utils

    def save_in_parts(parts):
        for part in range(jax.process_index(), parts, jax.process_count()):
            multihost_utils.sync_global_devices("saved")
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

    ```python
    import jax
    from jax.experimental import multihost_utils

    def save_in_parts(parts):
        for part in range(parts):
            multihost_utils.sync_global_devices("saved")
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
    name = "varying-loop"
    merged = ("SPMD302", "data-dependent-loop-exit")
    several = True
    hazards = ("loop", "data")
    way_out = (
        "Make the number of steps the same on every process: compute it from sizes that all processes know, pad the "
        "smaller shares, or agree on it with multihost_utils.process_allgather before the loop."
    )
    other_ways_out: ClassVar[Mapping[str, str]] = {"identity": _SAME_NUMBER, "group": _SAME_NUMBER}
