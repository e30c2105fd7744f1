from __future__ import annotations

from spmdlint.branch_rule import BranchRule


class LoneCheckpoint(BranchRule):
    """Only some processes make, save, restore or wait for a checkpoint.

    ## What it does

    Finds the construction, `save`, `restore`, `wait_until_finished` and `close` of Orbax's managers and
    checkpointers, and Flax's multi-process saving, under a condition that is not the same on every process.

    ## Why it matters

    These calls synchronize all processes internally, even if only one of them writes. Guards on process 0 are often
    left over from a time when a checkpoint was a single file. The job hangs in the save, or in the next one.

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

    A manager that is given the participating processes (`MultiprocessingOptions(active_processes=...)`) is not
    reported. Conditions on anything but the process index are checked only in programs that look like multi-process
    programs; with `--preview`, in all.
    """

    code = "SPMD309"
    name = "lone-checkpoint"
    several = True
    partly_preview = True
    hazards = ("checkpoint",)
    way_out = "Call it on every process: the library itself lets one of them write."
