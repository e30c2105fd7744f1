from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Edit, Fix, Place
from spmdlint.releases import dotted
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, UseOfAbsent


class RemovedApi(Rule):
    """The program uses a JAX name that the configured version does not have: it is gone, or not there yet.

    ## What it does

    Compares imports and uses with two tables. One has the names that JAX has removed and that programs for several
    devices use: the old locations of meshes, specs and shardings, `xmap`, `jax.tree_map`, `device_put_sharded`,
    `host_callback` and the like, and parameters such as `check_rep`. The other has the names and parameters that JAX
    has added since 0.4.20, such as `jax.shard_map`, as they were measured with each release. The setting `jax-version`
    says which version counts. The default is what the dependencies in the project's `pyproject.toml` allow: a name is
    reported if the newest release that they allow does not have it any more, or the oldest does not have it yet.
    Without an upper bound, as in `jax>=0.4.30`, the newest is the newest of all, and what is missing in the oldest is
    reported only with `--preview`, as few keep such a bound up to date.

    ## Why it matters

    The hosts of a job are upgraded one image at a time. Code that still imports on the machine where it was written
    raises on the cluster, or on some of its hosts, while the others wait for them.

    ## Example

    ```python
    import jax
    from jax.experimental import PartitionSpec as P

    def scaled(params, factor):
        return jax.tree_map(lambda leaf: leaf * factor, params)
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import PartitionSpec as P

    def scaled(params, factor):
        return jax.tree.map(lambda leaf: leaf * factor, params)
    ```

    ## Limits

    A use that is guarded by a test of the version or by `hasattr`, or that is in a `try` that catches the error, is not
    reported, nor one in a function that is only used under such a guard, nor a name that the project itself sets. Of
    removed names, only those are in the table that programs for several devices use.
    """

    code = "SPMD602"
    name = "removed-api"
    partly_preview = True
    many = "Set jax-version to the JAX that the program runs on."

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.absent_names():
            place = program.place(found.site)
            use = found.change.instead(program.jax.oldest)
            yield self.finding(
                message=_too_new(found, program.jax.told) if found.change.added else _gone(found),
                place=place,
                help=_help(found, use),
                fix=_fix(found, use, place),
            )


def _gone(found: UseOfAbsent) -> str:
    since = dotted(found.change.since)
    if found.parameter_of:
        return f"{found.parameter_of} has no parameter {found.written!r} in JAX {since} and later."
    if found.change.name == found.written:
        return f"{found.written} does not exist in JAX {since} and later."
    return f"{found.written} does not exist: {found.change.name} is gone in JAX {since} and later."


def _too_new(found: UseOfAbsent, oldest: str) -> str:
    since = f"came with JAX {dotted(found.change.since)}"
    if found.parameter_of:
        return f"The parameter {found.written!r} of {found.parameter_of} {since}, and {oldest}."
    if found.change.name == found.written:
        return f"{found.written} {since}, and {oldest}."
    return f"{found.written} does not exist yet: {found.change.name} {since}, and {oldest}."


def _help(found: UseOfAbsent, use: str) -> str:
    if not found.change.added:
        if not use:
            return (
                f"Use {found.change.use} in newer versions, or set jax-version to the version that the program runs on."
            )
        return f"Use {use} instead, or set jax-version to the version that the program runs on."
    if use:
        return f"Use {use} in older versions, or set jax-version to the oldest version that the program runs on."
    return "Test for it with hasattr, or set jax-version to the oldest version that the program runs on."


def _fix(found: UseOfAbsent, use: str, place: Place) -> Fix | None:
    if not found.in_place or not use:
        return None
    return Fix("safe", f"Replace it with {use}.", (Edit(place.start, place.end, use),))
