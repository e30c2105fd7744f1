from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, Reason, Site


class ProcessHash(Rule):
    """A random key is made from `hash()` of a string, or from `id()`.

    ## What it does

    Finds `jax.random.key`, `PRNGKey` and `fold_in` calls whose seed comes from `hash()` of a string or from `id()`.
    Also finds loops, and arguments of compiled functions, whose order comes from such numbers.

    ## Why it matters

    Python seeds string hashes anew in every process, and addresses differ between processes. A key that was meant to
    belong to a name is different on each process, and in each run: parameters differ where they should be equal, and no
    run can be reproduced.

    ## Example

    ```python
    import jax

    def key_for(key, name):
        return jax.random.fold_in(key, hash(name) % 2**31)
    ```

    ## Use instead

    ```python
    import zlib

    import jax

    def key_for(key, name):
        return jax.random.fold_in(key, zlib.crc32(name.encode()))
    ```

    ## Limits

    `hash()` of numbers is the same on every process. A value whose type is not known counts as a string if it is
    written as one, if it is called a name, a path or a key, or if it is the sum of such a value and another.
    """

    code = "SPMD508"
    name = "process-hash"
    several = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._orders(program)
        for found in program.breaches(self.code):
            if found.demand.facet != "seed":
                effect = (
                    f"The order of this is different in every process, and it is passed to {found.demand.call_name}"
                )
                yield self._order(program, found.site, found.reason, effect)
                continue
            source = found.reason.source
            place = program.place(found.call)
            yield self.finding(
                message=(
                    f"This key is different in every process: {source.text} ({program.where(source.site, place.path)})."
                ),
                place=place,
                help="Use a hash that does not depend on the process, such as zlib.crc32 of the encoded string.",
                related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
                cause=program.cause(found.reason),
            )

    def _orders(self, program: Program) -> Iterator[Diagnostic]:
        for loop in program.set_loops():
            if loop.reason.kind == "hash":
                effect = f"The order of this loop is different in every process, and {loop.what} runs inside it"
                yield self._order(program, loop.iterable, loop.reason, effect)

    def _order(self, program: Program, site: Site, reason: Reason, effect: str) -> Diagnostic:
        source, place = reason.source, program.place(site)
        return self.finding(
            message=f"{effect}: {source.text} ({program.where(source.site, place.path)}).",
            place=place,
            help="Sort by something that is the same on every process, such as a name or a number.",
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in reason.chain()),
            cause=program.cause(reason),
        )
