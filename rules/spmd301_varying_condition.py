from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.branch_rule import BranchRule
from spmdlint.diagnostics import Diagnostic, Related, sentence

if TYPE_CHECKING:
    from spmdlint.rule import Program, Turn


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

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from super().check(program)
        for turn in program.turns():
            yield self._in_turn(program, turn)

    def _in_turn(self, program: Program, found: Turn) -> Diagnostic:
        place, name = program.place(found.call.site), program.call_name(found.call)
        at = program.where(found.branch, place.path)
        ways = [Related(program.place(found.manager), "The block is entered here.")]
        ways += [
            Related(
                program.place(found.branch), "This decides which processes wait before the block and which after it."
            )
        ]
        ways += [Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()]
        ways += [Related(program.place(site), "This leads to the parallel call.") for site in found.call.path[1:]]
        return self.finding(
            message=(
                f"{name} is a parallel call, but the processes reach it in turn: {found.name} makes some of "
                f"them wait before this block and the others after it ({at})."
            ),
            place=place,
            help=(
                "The processes in the block wait for a call that the others make after it, so the job hangs or pairs "
                "the wrong calls. Make the call after the block."
            ),
            related=tuple(ways),
        )
