from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class RepeatedInitialize(Rule):
    """`jax.distributed.initialize` is called twice, in a loop, or by only some processes.

    ## What it does

    Finds a call of `jax.distributed.initialize` that certainly follows another one without a `shutdown` between them,
    one that a loop repeats, and one under a condition that is not the same on every process.

    ## Why it matters

    The second call raises. If only some processes make the call, they wait for the others until it times out.

    ## Example

    ```python
    import jax

    def setup():
        jax.distributed.initialize()

    def main():
        setup()
        jax.distributed.initialize()

    main()
    ```

    ## Use instead

    ```python
    import jax

    def setup():
        if not jax.distributed.is_initialized():
            jax.distributed.initialize()

    def main():
        setup()
        setup()

    main()
    ```

    ## Limits

    A call in a branch that cannot be decided, such as a test of whether the call is needed, does not count. Retries
    that leave their loop at the first success are recognised.
    """

    code = "SPMD604"
    name = "repeated-initialize"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.starting.repeated():
            again = found.again
            place = program.place(again.path[-1])
            related = [Related(program.place(site), "This leads to it.") for site in again.path[:-1]]
            if found.first is not None:
                at = program.where(found.first.path[-1], place.path)
                same = found.first.path[-1] == again.path[-1]
                what = "is called twice on the same path" if same else f"has already been called at {at}"
                steps = [*found.first.path, again.path[0]] if same else found.first.path
                related = [Related(program.place(site), "JAX is initialized here.") for site in steps] + related
            elif found.reason is not None and found.branch is not None:
                at = program.where(found.branch, place.path)
                what = f"is called by only some processes, because of the condition at {at}"
                what += f": {found.reason.source.text}"
                related += [Related(program.place(found.branch), "This condition is not the same on every process.")]
                related += [Related(program.place(s.site), sentence(s.text)) for s in found.reason.chain()]
            else:
                what = "is called again in every iteration of a loop"
            yield self.finding(
                message=f"{again.name} {what}.",
                place=place,
                help="Call it once on every process, at the start of the program; jax.distributed.is_initialized() "
                "tells whether it has been called.",
                related=tuple(related),
            )
