from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Fix, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import AxisNotInMesh as Found
    from spmdlint.rule import Program


class AxisNotInMesh(Rule):
    """A partition spec names an axis that its mesh does not have.

    ## What it does

    Compares the axes of every `PartitionSpec` in a `NamedSharding`, in the `in_specs` and `out_specs` of a `shard_map`
    and in a `with_sharding_constraint` with the axes of the mesh that it is used with, across functions and files. In a
    table of specs, every row has to fit. Under `shard_map(axis_names=...)` only those axes may be named. Where no mesh
    is given, it is taken to be one of those that the program sets with `jax.set_mesh`, if all of them are known.

    ## Why it matters

    JAX raises when the sharding is made, on the cluster. Often the name is right, and the mesh is not the one that the
    author had in mind.

    ## Example

    ```python
    import jax
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))
    rows = NamedSharding(mesh, P("batch", None))
    ```

    ## Use instead

    ```python
    import jax
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))
    rows = NamedSharding(mesh, P("data", None))
    ```

    ## Limits

    Meshes and specs that are not known for certain (from a configuration, or from a function that nothing calls) are
    not compared, nor is code in a branch that cannot be decided.
    """

    code = "SPMD102"
    name = "axis-not-in-mesh"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.specs.not_in_mesh():
            if (found.site, found.axis) in told:
                continue
            told.add((found.site, found.axis))
            place = program.place(found.site)
            has = ", ".join(repr(name) for name in sorted(found.mesh.names)) or "no axes"
            near = get_close_matches(found.axis, sorted(found.mesh.names), n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            user = found.library.rsplit(".", 1)[-1]
            at = program.where(found.user, place.path)
            use = Related(program.place(found.user), f"The {user} uses the spec with its mesh here.")
            steps = program.written.of_name(found.site, found.axis)
            spelled = tuple(Related(program.place(step.site), sentence(step.text)) for step in steps)
            yield self.finding(
                message=f"The spec names the axis {found.axis!r}, but the mesh of the {user} at {at} has {has}.",
                place=place,
                help=f"Use one of the mesh's axes{guess}, or add an axis {found.axis!r} to the mesh.",
                related=(use, *spelled),
                fix=self._fix(program, found, near[0]) if near else None,
            )

    def _fix(self, program: Program, found: Found, near: str) -> Fix | None:
        """Use the nearest axis name of the mesh, if the spec writes the wrong name itself."""
        edits = program.edits.renamed_in_spec(found.site, found.axis, near)
        return Fix("unsafe", f"Rename the axis to {near!r}.", edits) if edits else None
