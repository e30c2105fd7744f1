from __future__ import annotations

from spmdlint.branch_rule import BranchRule


class VaryingCondition(BranchRule):
    """A parallel call is guarded by a condition that is not the same on every process.

    ## What it does

    Finds branches whose condition comes from the process index (`jax.process_index()`, a launcher's environment
    variable, or a helper, field or property made from them) and whose two sides make different parallel calls: in the
    branch itself, in a case of a `match`, after an early return or an exit of the process without an error
    (`sys.exit(0)`), or in functions called from there, in any file. Reading a property counts as calling it.

    Also finds

    - tests for whether this process owns anything, which may be false on some processes, if the guarded calls need
      every process;
    - calls of a function that such a condition chose, such as a reporter that does nothing on all processes but one;
    - parallel calls in the block of a context manager that waits for the others before the block on some processes and
      after it on the others.

    ## Why it matters

    Every process must make the same parallel calls in the same order. The processes that skip a call go on to their
    next one, while the others wait for them. The job hangs, or two different calls are paired and the numbers are
    wrong.

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

    Calls that cannot be resolved are not counted as parallel calls. A gather with `tiled=True` of an array that is
    whole on every process already exchanges nothing; the linter does not know which arrays are, and reports it. A
    branch whose two sides make the same parallel calls in the same order is correct and is not reported, nor is one
    that ends in an exception on one side before a call. Of the operations outside compiled functions, only those count
    that certainly combine data of all processes (`jnp.mean(x)`, `x.mean()` or `(2 * x).sum()` of an array that the
    same function has made by `jax.make_array_from_process_local_data`, or put onto all devices), and `jax.device_put`
    onto all devices. Other things that differ between processes (clocks, files) have their own rules. Conditions that
    are computed from what the fields of several classes keep are reported with `--preview` only.
    """

    code = "SPMD301"
    name = "varying-condition"
    several = True
    partly_preview = True
    hazards = ("condition",)
    way_out = (
        "Make the call on every process and keep only the local work, such as printing or writing, under the "
        "condition; or agree on the condition first, for example with multihost_utils.broadcast_one_to_all."
    )
