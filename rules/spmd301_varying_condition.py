from __future__ import annotations

from spmdlint.branch_rule import BranchRule


class VaryingCondition(BranchRule):
    """A parallel call stands behind a condition that is not the same on every process.

    ## What it does

    Finds branches whose condition comes from the process's own number (`jax.process_index()`, a launcher's
    environment variable, a helper, field or property made from them) and that make other parallel calls on one side
    than on the other: in the branch itself, behind an early return, or in functions called from there, in any file.

    ## Why it matters

    Every process must make the same parallel calls in the same order. The processes that skip one go on to their
    next; the others wait for them. The job hangs, or two different calls are paired and the numbers are wrong.

    ## Example

    ```python
    import jax
    from jax.experimental import multihost_utils

    def save(state, step):
        if jax.process_index() == 0:
            everything = multihost_utils.process_allgather(state)
            print("saving", step, everything)
    ```

    ## Use instead

    ```python
    import jax
    from jax.experimental import multihost_utils

    def save(state, step):
        everything = multihost_utils.process_allgather(state)
        if jax.process_index() == 0:
            print("saving", step, everything)
    ```

    ## Limits

    Calls that cannot be resolved are not counted as parallel calls. A branch whose two sides make the same parallel
    calls in the same order is right and is not reported, nor one that ends in an exception on one side. Other things
    that differ between processes (clocks, files) have rules of their own.
    """

    code = "SPMD301"
    name = "varying-condition"
    hazard = "condition"
    way_out = (
        "Make the call on every process and keep only the local work, such as printing or writing, under the "
        "condition;"
        "or agree on the condition first, for example with multihost_utils.broadcast_one_to_all."
    )
