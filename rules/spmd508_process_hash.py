from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class ProcessHash(Rule):
    """A key of random numbers is made from `hash()` of a string, or from `id()`.

    ## What it does

    Finds `jax.random.key`, `PRNGKey` and `fold_in` whose seed comes from `hash()` of a string or from `id()`,
    and loops and arguments of compiled functions in the order of such numbers.

    ## Why it matters

    Python seeds the hashes of strings anew in every process, and an address is a process's own. The key that was meant
    to belong to a name is another one on every process, and in every run: parameters differ where they should be equal,
    and no run can be repeated.

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

    `hash()` of numbers is the same everywhere. Of a value without a type it is a string if it is written as one, or
    called a name, a path or a key.
    """

    code = "SPMD508"
    name = "process-hash"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._orders(program)
        for found in program.seeds.seeds():
            if found.reason.kind != "hash":
                continue
            source = found.reason.source
            place = program.place(found.site)
            yield self.finding(
                message=(
                    f"This key is another one in every process: {source.text} "
                    f"({program.where(source.site, place.path)})."
                ),
                place=place,
                help="Use a hash that does not depend on the process, such as zlib.crc32 of the encoded string.",
                related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
            )

    def _orders(self, program: Program) -> Iterator[Diagnostic]:
        for loop in program.set_loops():
            if loop.reason.kind == "hash":
                source = loop.reason.source
                place = program.place(loop.iterable)
                effect = (
                    f"This comes in another order in every process, and {loop.what} is given it"
                    if loop.sink == "argument"
                    else f"The order of this loop is another one in every process, and {loop.what} runs inside it"
                )
                yield self.finding(
                    message=f"{effect}: {source.text} ({program.where(source.site, place.path)}).",
                    place=place,
                    help="Sort by something that all processes know alike, such as a name or a number.",
                    related=tuple(
                        Related(program.place(step.site), sentence(step.text)) for step in loop.reason.chain()
                    ),
                    fix=program.mending.without_key(source.site) if source.site.ref.path == place.path else None,
                )
