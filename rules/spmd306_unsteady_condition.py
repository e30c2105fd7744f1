from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spmdlint.branch_rule import BranchRule


class UnsteadyCondition(BranchRule):
    """A parallel call is guarded by a condition on a clock, a random number or the host.

    ## What it does

    Finds branches and `while` loops whose condition comes from a clock (`time.time()`, `datetime.now()`), from entropy
    (`uuid4`, `os.urandom`), from the host name or the process ID, and whose two sides make different parallel calls. A
    handler of `queue.Empty` or of a timeout that skips calls after its `try` counts as such a branch.

    A test for files (`os.path.exists`) also counts

    - if a process broadcasts something on one side of it;
    - if one process creates the file in the same function, because the others may not see it;
    - if it is in a loop that makes parallel calls, or is the condition of one, and the file is the same in every
      iteration, because each process looks at a different time; not if the function itself makes the file.

    With `--preview`, all tests for files and handlers of `OSError` and related exceptions count, also in programs that
    name nothing that only several processes need.

    ## Why it matters

    Two hosts never read the same time: sooner or later one is just before the limit and the other just after it, and
    only one of them makes the call. A file that one host has written may not be visible to another yet.

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

    Only calls that certainly span processes count (`pmap`, `shard_map`, `multihost_utils`, checkpoints); a bare `jit`
    guarded by a clock is not reported. Nor is what a global generator (`random.random()`, `np.random.rand()`) draws, if
    anything in the same program seeds it with what all processes have, whether or not that runs first; files of which
    none imports the other are two programs. If each process seeds it for itself, the draw differs as the seed does.
    """

    code = "SPMD306"
    name = "unsteady-condition"
    several = True
    partly_preview = True
    hazards = ("unsteady",)
    way_out = "Let one process decide and send its decision to the others with multihost_utils.broadcast_one_to_all."
    other_ways_out: ClassVar[Mapping[str, str]] = {
        "signal": (
            "A signal may reach one host only, so that no single process can decide: let all agree on the step with "
            "multihost_utils.reached_preemption_sync_point, or gather the flags of all with process_allgather."
        )
    }
    more_ways_out: ClassVar[Mapping[str, str]] = {"clock": "Or count steps instead of seconds."}
