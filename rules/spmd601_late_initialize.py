from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class LateInitialize(Rule):
    """JAX's backend is already running when `jax.distributed.initialize` is called.

    ## What it does

    Finds calls of `jax.distributed.initialize` that come after JAX has computed something or has been asked for its
    devices: in the same function, in a function called earlier, at module level, or in a module imported earlier.

    ## Why it matters

    The first array, random key or query for the devices starts the backend, for this process alone. `initialize` then
    raises on every process or, if an old version of JAX lets it pass, each host trains on its own.

    ## Example

    ```python
    import jax

    def main():
        print("devices:", jax.device_count())
        jax.distributed.initialize()

    main()
    ```

    ## Use instead

    ```python
    import jax

    def main():
        jax.distributed.initialize()
        print("devices:", jax.device_count())

    main()
    ```

    ## Limits

    Only work that is certainly done first counts, not code in a branch that cannot be decided. A call whose error is
    caught is not reported. Neither is a program that never calls `initialize`: its launcher may.
    """

    code = "SPMD601"
    name = "late-initialize"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.starting.late():
            place = program.place(found.initialize.path[-1])
            at = program.where(found.work.path[-1], place.path)
            work = found.work.name
            related = [Related(program.place(found.work.path[-1]), f"{work}() starts JAX's backend.")]
            related += [Related(program.place(site), "This leads to it.") for site in found.work.path[-2::-1]]
            related += [
                Related(program.place(site), "This leads to initialize.") for site in found.initialize.path[:-1]
            ]
            yield self.finding(
                message=f"{found.initialize.name} comes too late: {work}() at {at} has already started JAX's backend.",
                place=place,
                help="Call it first in the program, before anything computes or asks for devices, and before importing "
                "modules that do.",
                related=tuple(related),
            )
