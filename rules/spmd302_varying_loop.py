from __future__ import annotations

from spmdlint.branch_rule import BranchRule


class VaryingLoop(BranchRule):
    """A loop that makes parallel calls runs another number of rounds on each process.

    ## What it does

    Finds `while` loops whose condition, and `for` loops over a `range` whose bounds, come from the process's own
    number, and that make parallel calls in their body.

    ## Why it matters

    The process that runs more rounds makes calls that nobody joins. It hangs in its last round, or pairs its calls with
    the next ones of the others.

    ## Example

    ```python
    import jax
    from jax.experimental import multihost_utils

    def save_in_parts(parts):
        for part in range(jax.process_index(), parts, jax.process_count()):
            multihost_utils.sync_global_devices(f"part {part}")
    ```

    ## Use instead

    ```python
    import jax
    from jax.experimental import multihost_utils

    def save_in_parts(parts):
        for part in range(parts):
            multihost_utils.sync_global_devices(f"part {part}")
    ```

    ## Limits

    Loops over data of different lengths are not followed yet: only bounds that come from the process's number are.
    """

    code = "SPMD302"
    name = "varying-loop"
    hazard = "loop"
    way_out = (
        "Run the same number of rounds on every process, for example up to the maximum over all processes, and leave "
        "out only the local work in rounds that a process has nothing for."
    )
