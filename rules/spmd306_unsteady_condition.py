from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spmdlint.branch_rule import BranchRule


class UnsteadyCondition(BranchRule):
    """A parallel call stands behind a condition on a clock, a random number or the host.

    ## What it does

    Finds branches and `while` loops whose condition comes from a clock (`time.time()`, `datetime.now()`), from entropy
    (`uuid4`, `os.urandom`), from the host's name or the process's id, and that make other parallel calls on one side
    than on the other. A handler of `queue.Empty` or of a timeout that leaves out calls behind its `try` is such a
    branch. So is a test of files (`os.path.exists`) on one side of which a process broadcasts something, or for a file
    that one process makes in the same function: the others may not see it. And so is one in a loop that makes parallel
    calls, for a file that is the same in every round: each process looks at a time of its own. With `--preview`, all
    tests of files and handlers of `OSError` and its kin count.

    ## Why it matters

    Two hosts never read the same time: sooner or later one is just before the limit and the other just after it, and
    only one makes the call. A file that one host has written may not be visible to another yet.

    ## Example

    ```python
    import time

    import jax
    from jax.experimental import multihost_utils

    def maybe_sync(last):
        if time.time() - last > 600:
            multihost_utils.sync_global_devices("every ten minutes")
    ```

    ## Use instead

    ```python
    import time

    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    def maybe_sync(last):
        due = multihost_utils.broadcast_one_to_all(np.asarray(time.time() - last > 600))
        if due:
            multihost_utils.sync_global_devices("every ten minutes")
    ```

    ## Limits

    Only calls that surely span processes count (`pmap`, `shard_map`, `multihost_utils`, checkpoints); a bare `jit`
    behind a clock is not reported.
    """

    code = "SPMD306"
    name = "unsteady-condition"
    hazard = "unsteady"
    way_out = "Let one process decide and tell the others: multihost_utils.broadcast_one_to_all of the condition."
    more_ways_out: ClassVar[Mapping[str, str]] = {"clock": "Or count steps in place of seconds."}
