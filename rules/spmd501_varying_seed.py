from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, ShuffledShare, VaryingSeed


class SeedsThatVary(Rule):
    """A seed that has to be the same on every process is not.

    ## What it does

    Finds keys of `jax.random` whose seed comes from a clock, the system's entropy, an unseeded generator or the host's
    name; lists that every process shuffles with a seed of its own before it takes its share of them; and, with
    `--preview`, keys with the process's number in them that `model.init` makes the parameters with.

    ## Why it matters

    What is made with such a key is taken to be the same everywhere: parameters, dropout under one global program. Each
    process then holds other values for one array, nothing fails, and the numbers are wrong. Shares of lists that were
    shuffled differently overlap and leave examples out.

    ## Example

    ```python
    import time

    import jax

    def make_state():
        key = jax.random.key(time.time_ns())
        return jax.process_count(), jax.random.normal(key, (8,))
    ```

    ## Use instead

    ```python
    import time

    import jax
    from jax.experimental import multihost_utils

    def make_state():
        key = jax.random.key(multihost_utils.broadcast_one_to_all(time.time_ns()))
        return jax.process_count(), jax.random.normal(key, (8,))
    ```

    ## Limits

    Keys count in files that say that they are for several processes; with `--preview`, in all. A key that the process's
    number is folded into is what one needs for noise of one's own, and is not reported.
    """

    code = "SPMD501"
    name = "varying-seed"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.seeds.seeds():
            if found.reason.kind != "hash":
                yield self._seed(program, found)
        for found in program.seeds.states():
            yield self._state(program, found)
        for share in program.seeds.shares():
            yield self._share(program, share)

    def _seed(self, program: Program, found: VaryingSeed) -> Diagnostic:
        source = found.reason.source
        place = program.place(found.site)
        return Diagnostic(
            code=self.code,
            name=self.name,
            severity=self.severity,
            message=(
                f"The seed of this key is not the same on every process: {source.text} "
                f"({program.where(source.site, place.path)})."
            ),
            place=place,
            help=(
                "What is made with it differs where JAX takes it to be one value. Take the seed from the "
                "configuration, or agree on one with multihost_utils.broadcast_one_to_all."
            ),
            related=(
                *(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
                *(Related(program.place(site), "The key goes here.") for site in found.users),
            ),
        )

    def _state(self, program: Program, found: VaryingSeed) -> Diagnostic:
        source = found.reason.source
        place = program.place(found.site)
        return Diagnostic(
            code=self.code,
            name=self.name,
            severity=self.severity,
            message=(
                "The parameters are made with a key that is not the same on every process: "
                f"{source.text} ({program.where(source.site, place.path)})."
            ),
            place=place,
            help=(
                "Every process then starts from other parameters. Split off the key for the parameters before the "
                "number of the process is folded in."
            ),
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
        )

    def _share(self, program: Program, found: ShuffledShare) -> Diagnostic:
        source = found.shuffle.source
        place = program.place(found.site)
        return Diagnostic(
            code=self.code,
            name=self.name,
            severity=self.severity,
            message=(
                "This is one process's share of a list that every process shuffled in its own way: "
                f"{source.text} ({program.where(source.site, place.path)})."
            ),
            place=place,
            help="The shares overlap and leave elements out. Shuffle with a seed that is the same on every process.",
            related=tuple(Related(program.place(step.site), sentence(step.text)) for step in found.shuffle.chain()),
        )
