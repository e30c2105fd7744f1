from __future__ import annotations

from spmdlint.branch_rule import BranchRule


class LoneCheckpoint(BranchRule):
    """Only some processes make, save, restore or wait for a checkpoint.

    ## What it does

    Finds the construction, `save`, `restore`, `wait_until_finished` and `close` of Orbax's managers and
    checkpointers, and Flax's multi-process saving, behind a condition that is not the same on every process.

    ## Why it matters

    These calls meet inside on all processes, also where only one of them writes. Guards on process 0 are often left
    over from a time when a checkpoint was one file. The job hangs in the save, or in the next one.

    ## Example

    ```python
    import jax
    import orbax.checkpoint as ocp

    def save(directory, step, state):
        manager = ocp.CheckpointManager(directory)
        if jax.process_index() == 0:
            manager.save(step, args=ocp.args.StandardSave(state))
    ```

    ## Use instead

    ```python
    import jax
    import orbax.checkpoint as ocp

    def save(directory, step, state):
        manager = ocp.CheckpointManager(directory)
        manager.save(step, args=ocp.args.StandardSave(state))
        if jax.process_index() == 0:
            print("saved", step)
    ```

    ## Limits

    A manager that is told which processes take part (`MultiprocessingOptions(active_processes=...)`) is left alone.
    Behind what is not the number of a process, only programs that speak of several processes are looked at, unless
    with `--preview`.
    """

    code = "SPMD309"
    name = "lone-checkpoint"
    hazard = "checkpoint"
    way_out = "Call it on every process: the library itself lets one of them write."
