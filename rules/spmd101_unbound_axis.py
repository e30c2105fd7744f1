from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Fix, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program, Unbound


class UnboundAxis(Rule):
    """A collective names an axis that nothing around it binds, or (preview) that two maps around it bind.

    ## What it does

    Follows every call from a `pmap`, `shard_map`, `smap` or `jit`, and from module level, down to the collectives
    (`psum`, `pmean`, `all_gather`, `axis_index`, ...), across functions, closures, classes and files, and checks that
    a map on the way binds the axis that the collective names.

    With `--preview`, also finds maps (`pmap`, `vmap(axis_name=...)`, `shard_map`, ...) inside a map that binds the same
    name: passed to it directly, or called from its function.

    ## Why it matters

    JAX reports this only when it traces the function: on the cluster, after the queue, with
    `NameError: unbound axis name`.

    Where two maps bind one name, it refers to the inner axis only: a `psum` that is meant to sum over the devices sums
    over the rows of one device, and nothing raises.

    ## Example

    ```python
    import jax

    def loss(params, batch):
        return jax.lax.pmean((params * batch).sum(), axis_name="batch")

    p_loss = jax.pmap(loss, axis_name="data")
    ```

    ## Use instead

    ```python
    import jax

    def loss(params, batch):
        return jax.lax.pmean((params * batch).sum(), axis_name="data")

    p_loss = jax.pmap(loss, axis_name="data")
    ```

    ## Limits

    An axis name that is not known (a parameter of a function that nothing in the project calls, a configuration
    value) is not reported, nor is a collective in a branch that cannot be decided, or in a function that nothing calls
    or maps. Code under `pytest.raises`, `assertRaises` or `except NameError` is taken to be intentional.
    Names that are bound twice are in preview because some are on purpose.
    """

    code = "SPMD101"
    name = "unbound-axis"
    merged = ("SPMD105 shadowed-axis",)
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.unbound_axes():
            yield self._diagnostic(program, found)
        if program.preview:
            yield from self._bound_twice(program)

    def _bound_twice(self, program: Program) -> Iterator[Diagnostic]:
        told = set()
        for found in program.regions.shadowed():
            if (found.site, found.axis) in told:
                continue
            told.add((found.site, found.axis))
            place = program.place(found.site)
            library, outer = (name.rsplit(".", 1)[-1] for name in (found.library, found.outer_library))
            around = f"the {outer} at {program.where(found.outer, place.path)}"
            yield self.finding(
                message=f"This {library} binds the axis name {found.axis!r}, which {around} already binds.",
                place=place,
                help="Give the two axes different names, and name the intended one in each collective.",
                related=(Related(program.place(found.outer), f"The {outer} binds {found.axis!r} here."),),
                severity="warning",
            )

    def _diagnostic(self, program: Program, found: Unbound) -> Diagnostic:
        need = found.need
        place = program.place(need.site)
        root = program.place(found.root)
        bound = ", ".join(repr(name) for name in sorted(found.bound.names))
        where = program.where(found.root, place.path)
        if found.way == "call":
            how = f"{where} runs it outside any map"
        else:
            how = f"the {found.way} at {where} runs it and binds {bound or 'no axis name'}"
            if found.way == "jit" and bound:
                how = f"the jit at {where} runs it, and only {bound} is bound there"
        more = f" ({found.more} more collectives there also need it)" if found.more else ""
        names = sorted(found.bound.names)
        near = next(iter(get_close_matches(need.axis, names, n=1) or names[:1]), None)
        if near is not None:
            around = "around it" if found.way == "jit" else f"in the {found.way}"
            instead = f"Use that name, or bind {need.axis!r} {around}."
            several = f"Bound here: {bound}. " if len(names) > 1 else ""
            way_out = f"{several}Did you mean {near!r}? {instead}"
        elif found.way in ("pmap", "smap", "vmap"):
            way_out = f'Pass axis_name="{need.axis}" to the {found.way} at {where}.'
        elif found.way == "shard_map":
            way_out = f"Give the shard_map at {where} a mesh that has the axis {need.axis!r}."
        else:
            way_out = f"Run it under a pmap or shard_map that binds {need.axis!r}, or leave out the collective."
        return self.finding(
            message=f"{need.collective} names the axis {need.axis!r}, which nothing binds: {how}{more}.",
            place=place,
            help=way_out,
            related=(Related(root, sentence(how)), *self._path(program, found), *self._spelled(program, found)),
            fix=self._fix(program, found, near),
        )

    def _path(self, program: Program, found: Unbound) -> Iterator[Related]:
        """The calls that lead from the root to the collective."""
        sites = [*found.need.path, found.need.site]
        for site, below in pairwise(sites):
            inner = program.function_name(below)
            yield Related(program.place(site), f"This call leads into {inner}." if inner else "This call leads to it.")

    def _spelled(self, program: Program, found: Unbound) -> Iterator[Related]:
        """Where the name is written, if that is on another line, and where the mesh is made."""
        place = program.place(found.need.site)
        for step in program.written.of_name(found.need.site, found.need.axis):
            at = program.place(step.site)
            if (at.path, at.start.row) != (place.path, place.start.row):
                yield Related(at, sentence(step.text))
        if found.mesh is not None:
            yield Related(program.place(found.mesh), "The mesh is made here.")

    def _fix(self, program: Program, found: Unbound, near: str | None) -> Fix | None:
        """Use the nearest bound name, or name the axis of a map that binds no name."""
        need = found.need
        if near is not None:
            if len(found.bound.names) > 1 and not get_close_matches(need.axis, [near]):
                return None
            edits = program.edits.renamed_axis(need.site, need.axis, near)
            return Fix("unsafe", f"Rename the axis to {near!r}.", edits) if edits else None
        if found.way in ("pmap", "vmap") and found.root.ref.path == need.site.ref.path:
            change = program.edits.added_keyword(found.root, "axis_name", f'"{need.axis}"')
            return Fix("unsafe", f"Pass axis_name to the {found.way}.", change=change) if change is not None else None
        return None
