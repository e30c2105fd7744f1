from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, Reason, ShuffledShare, Site, VaryingSeed


class SeedsThatVary(Rule):
    """A seed that has to be the same on every process is not.

    ## What it does

    Finds keys of `jax.random` whose seed comes from a clock, the system's entropy, an unseeded generator or the host's
    name; lists, iterators and data sets that every process shuffles with a seed of its own before it takes its share of
    them, and samplers that do both; what an unseeded generator drew and `jax.device_put` puts on all devices alike;
    and, with `--preview`, keys with the process's number in them that `model.init` makes the parameters with, and state
    from an unseeded generator that is replicated to the devices of each process.

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
        for site, reason in program.own_replicas():
            yield self._replica(program, site, reason)
        for share in program.shuffled_shares():
            yield self._share(program, share)

    def _seed(self, program: Program, found: VaryingSeed) -> Diagnostic:
        users = tuple(Related(program.place(site), "The key goes here.") for site in found.users)
        what = "The seed of this key is not the same on every process"
        way_out = (
            "What is made with it differs where JAX takes it to be one value. Take the seed from the "
            "configuration, or agree on one with multihost_utils.broadcast_one_to_all."
        )
        return self._diagnostic(program, found.site, found.reason, what, way_out, users)

    def _state(self, program: Program, found: VaryingSeed) -> Diagnostic:
        what = "The parameters are made with a key that is not the same on every process"
        way_out = (
            "Every process then starts from other parameters. Split off the key for the parameters before the "
            "number of the process is folded in."
        )
        return self._diagnostic(program, found.site, found.reason, what, way_out)

    def _replica(self, program: Program, site: Site, reason: Reason) -> Diagnostic:
        what = "Every process replicates a value of its own"
        way_out = (
            "JAX takes it to be one value on all devices. Draw it with a seed that is the same on every process, or "
            "agree on one with multihost_utils.broadcast_one_to_all."
        )
        return self._diagnostic(program, site, reason, what, way_out)

    def _share(self, program: Program, found: ShuffledShare) -> Diagnostic:
        what = "This is one process's share of what every process shuffled in its own way"
        way_out = "The shares overlap and leave elements out. Shuffle with a seed that is the same on every process."
        return self._diagnostic(program, found.site, found.shuffle, what, way_out)

    def _diagnostic(
        self, program: Program, site: Site, reason: Reason, what: str, way_out: str, more: tuple[Related, ...] = ()
    ) -> Diagnostic:
        source = reason.source
        place = program.place(site)
        steps = (Related(program.place(step.site), sentence(step.text)) for step in reason.chain())
        return self.finding(
            message=f"{what}: {source.text} ({program.where(source.site, place.path)}).",
            place=place,
            help=way_out,
            related=(*steps, *more),
        )
