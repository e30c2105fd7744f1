from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Edit, Fix, Place
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, UseOfRemoved


class RemovedApi(Rule):
    """The program uses a JAX name that the configured version no longer has.

    ## What it does

    Compares imports and uses with a table of the names that JAX has removed: the old locations of meshes, specs and
    shardings, `xmap`, `jax.tree_map`, `device_put_sharded`, `host_callback` and the like, and parameters such as
    `check_rep`. The setting `jax-version` says which version counts; the default is the newest.

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

    Only names that multi-device programs use are in the table, and only those that were removed: names that are newer
    than the configured version are not. A use that is guarded by a test of the version or by
    `hasattr`, or that is in a `try` that catches the error, is not reported.
    """

    code = "SPMD602"
    name = "removed-api"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.removed_names():
            place = program.place(found.site)
            since = ".".join(map(str, found.removed.since))
            if found.parameter_of:
                message = f"{found.parameter_of} has no parameter {found.written!r} in JAX {since} and later."
            elif found.removed.name == found.written:
                message = f"{found.written} does not exist in JAX {since} and later."
            else:
                message = f"{found.written} does not exist: {found.removed.name} is gone in JAX {since} and later."
            yield self.finding(
                message=message,
                place=place,
                help=f"Use {found.removed.use} instead, or set jax-version to the version that the program runs on.",
                fix=_fix(found, place),
            )


def _fix(found: UseOfRemoved, place: Place) -> Fix | None:
    if not found.in_place:
        return None
    use = found.removed.use
    return Fix("safe", f"Replace it with {use}.", (Edit(place.start, place.end, use),))
