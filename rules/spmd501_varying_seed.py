from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Breach, Program, Reason, Site


class SeedsThatVary(Rule):
    """A seed that must be the same on every process is not.

    ## What it does

    Finds

    - keys of `jax.random` whose seed comes from a clock, the system's entropy, an unseeded generator or the host name;
    - lists, iterators and datasets that each process shuffles with its own seed before it takes its share of them, and
      samplers that do both;
    - data that is split at random without a seed, so that each process has other sets to train and to test with;
    - values drawn from an unseeded generator, and what a list or a loader gives that is shuffled without a seed, where
      `jax.device_put` or a compiled function over all devices takes it for one value;
    - such keys, and keys that contain the process index, for a `jax.jit` whose `out_shardings` are over all devices;
    - in programs for several processes that reduce over a mapped axis, state that is replicated to the devices and that
      was made with a key that contains the process index, or with an unseeded generator; with `--preview`, in all
      programs, and all such keys that `model.init` gets.

    ## Why it matters

    JAX assumes that values made with such a key are the same on every process: parameters, dropout in one global
    program. Each process then holds different values for one array, nothing fails, and the numbers are wrong. Shares of
    lists that were shuffled differently overlap and leave examples out.

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

    Keys count in files that look like part of a multi-process program, and in what such a file calls or imports; in all
    files with `multi-process = "always"` in the configuration, or with `--preview`. A key that the process index is
    folded into is what a process needs for its own noise, and is not reported.
    """

    code = "SPMD501"
    name = "varying-seed"
    several = True
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        broken = set()
        for found in program.breaches(self.code):
            broken.add((found.call, found.reason.source.site))
            yield self._broken(program, found)
        told = set()
        for site, reason in program.own_states():
            told.add(reason.source.site)
            yield self._state(program, site, reason)
        for site, reason in program.own_replicas():
            if reason.source.site not in told and (site, reason.source.site) not in broken:  # what is told already
                yield self._replica(program, site, reason)
        for share in program.shuffled_shares():
            yield self._share(program, share.site, share.reason)

    def _broken(self, program: Program, found: Breach) -> Diagnostic:
        if found.demand.facet == "deal":
            return self._share(program, found.call, found.reason)
        if found.demand.facet == "split":
            what = "Each process splits the data differently"
            way_out = "What one process tests with, another trains on. Pass a seed that is the same on every process."
            return self._diagnostic(program, found.call, found.reason, what, way_out)
        if found.demand.facet != "seed":
            return self._replica(program, found.call, found.reason)
        users = program.shared_seeds.users(found.call)
        more = tuple(Related(program.place(site), "The key is used here.") for site in users)
        what = "The seed of this key is not the same on every process"
        way_out = (
            "Values made with it differ where JAX assumes that they are the same. Take the seed from the "
            "configuration, or agree on one with multihost_utils.broadcast_one_to_all."
        )
        return self._diagnostic(program, found.call, found.reason, what, way_out, more)

    def _state(self, program: Program, site: Site, reason: Reason) -> Diagnostic:
        what = "The parameters are made with a key that is not the same on every process"
        way_out = (
            "Each process then starts from different parameters. Split off the key for the parameters before the "
            "process index is folded in."
        )
        return self._diagnostic(program, site, reason, what, way_out)

    def _replica(self, program: Program, site: Site, reason: Reason) -> Diagnostic:
        what = "Each process passes a different value here, and JAX takes it for the same one on all of them"
        way_out = (
            "The devices then disagree silently. Draw it with a seed that is the same on every process, or "
            "agree on one with multihost_utils.broadcast_one_to_all."
        )
        return self._diagnostic(program, site, reason, what, way_out)

    def _share(self, program: Program, site: Site, shuffle: Reason) -> Diagnostic:
        what = "This is one process's share of data that each process shuffled differently"
        way_out = "The shares overlap and leave elements out. Shuffle with a seed that is the same on every process."
        return self._diagnostic(program, site, shuffle, what, way_out)

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
            cause=program.cause(reason),
        )
