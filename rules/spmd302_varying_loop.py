from __future__ import annotations

from spmdlint.branch_rule import BranchRule


class VaryingLoop(BranchRule):
    """A loop that makes parallel calls runs a different number of iterations on each process.

    ## What it does

    Finds `while` loops whose condition comes from the process index, and `for` loops over a `range` whose bounds do, if
    their body makes parallel calls.

    ## Why it matters

    The process that runs more iterations makes calls that no other process joins. It hangs in its last iteration, or
    its calls are paired with the next calls of the others.

    ## Example

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
    from jax.experimental import multihost_utils

    def save_in_parts(parts):
        for part in range(parts):
            multihost_utils.sync_global_devices("saved")
    ```

    ## Limits

    Only bounds that come from the process index are followed. Loops over a process's share of the data are SPMD303.
    """

    code = "SPMD302"
    name = "varying-loop"
    several = True
    hazard = "loop"
    way_out = (
        "Run the same number of iterations on every process, for example the maximum over all processes, and skip only "
        "the local work in iterations for which a process has nothing to do."
    )
