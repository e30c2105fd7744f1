from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.branch_rule import BranchRule
from spmdlint.diagnostics import Diagnostic, Related, sentence

if TYPE_CHECKING:
    from spmdlint.rule import Program, Turn


class VaryingCondition(BranchRule):
    """A parallel call stands behind a condition that is not the same on every process.

    ## What it does

    Finds branches whose condition comes from the process's own number (`jax.process_index()`, a launcher's
    environment variable, a helper, field or property made from them) and that make other parallel calls on one side
    than on the other: in the branch itself, a case of a `match`, behind an early return or an exit of the process
    without an error (`sys.exit(0)`), or in functions called from there, in any file; to read a property is to call
    it. A list of what a process owns may be empty on some processes, so code that asks for that counts, where all
    processes have to make the calls behind it. So are calls of a function that such a condition chose: a reporter
    that does nothing on all processes but one.
    Also a parallel call in the block of a context manager that waits for the others before it on some processes and
    after it on the others.

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
    calls in the same order is right and is not reported, nor one that ends in an exception on one side before a call.
    Of the operations outside of compiled functions, those count that surely bring together what the processes hold
    (`jnp.mean` of an array made by `jax.make_array_from_process_local_data`), and `jax.device_put` onto all devices.
    Other things that differ between processes (clocks, files) have rules of their own.
    """

    code = "SPMD301"
    name = "varying-condition"
    hazard = "condition"
    way_out = (
        "Make the call on every process and keep only the local work, such as printing or writing, under the "
        "condition; or agree on the condition first, for example with multihost_utils.broadcast_one_to_all."
    )

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from super().check(program)
        for turn in program.turns():
            yield self._in_turn(program, turn)

    def _in_turn(self, program: Program, found: Turn) -> Diagnostic:
        place = program.place(found.call.site)
        at = program.where(found.branch, place.path)
        ways = [Related(program.place(found.manager), "The block is entered here.")]
        ways += [Related(program.place(found.branch), "This decides who waits before the block, and who after it.")]
        ways += [Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()]
        ways += [Related(program.place(site), "This leads to the parallel call.") for site in found.call.path[1:]]
        return self.finding(
            message=(
                f"{found.call.name} is a parallel call, and the processes come to it in turn: {found.name} has some of "
                f"them wait before this block and the others after it ({at})."
            ),
            place=place,
            help=(
                "Those in the block wait for a call that the others make after it, and the job hangs or pairs the "
                "wrong calls. Make the call behind the block."
            ),
            related=tuple(ways),
        )
