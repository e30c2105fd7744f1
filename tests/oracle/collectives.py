"""The collectives of ``jax.lax``: how each is written, and what can be wrong with its own arguments."""

from __future__ import annotations

from dataclasses import dataclass

from writing import SETTINGS, Draw, Writer


@dataclass(frozen=True)
class Collective:
    """One collective; ``text`` has {f} for the function, {x} for the operand, {a} for the axis, {n} for its size.

    ``devices``: its axis must be one of devices, not of a vmap. ``tuples``: it takes several axes. ``tuple_only``: it
    takes them in a tuple only. ``permuted`` takes a permutation at {p}, ``grouped`` takes axis_index_groups.
    """

    name: str
    text: str
    devices: bool = False
    tuples: bool = False
    tuple_only: bool = False
    permuted: bool = False
    grouped: bool = False


_REDUCTIONS = tuple(
    Collective(name, "{f}({x}, {k}{a}{g})", tuples=True, grouped=True) for name in ("psum", "pmean", "pmax", "pmin")
)
COLLECTIVES = (
    *_REDUCTIONS,
    Collective("all_gather", "{f}({x}, {k}{a}{g})", tuples=True, grouped=True),
    Collective("all_to_all", "{f}({x}, {a}, 0, 1, tiled=True{g})", grouped=True),
    Collective("psum_scatter", "{f}({x}, {k}{a}, tiled=True{g})", grouped=True),
    Collective("ppermute", "{f}({x}, {a}, {p})", permuted=True),
    Collective("pshuffle", "{f}({x}, {a}, {p})", permuted=True),
    Collective("pswapaxes", "{f}(jnp.zeros(({n}, {n})), {a}, 0)"),
    Collective("pbroadcast", "{f}({x}, {a}, 0)", devices=True, tuple_only=True),
    Collective("pcast", "{f}(jnp.zeros(3), {k}{a}, to='varying')", devices=True, tuples=True),
    Collective(
        "ragged_all_to_all",
        "{f}({x}, {x}, *(jnp.ones({n}, int),) * 4, axis_name={a})",
        devices=True,
    ),
    Collective("axis_index", "{f}({k}{a})", tuples=True),
    Collective("axis_size", "{f}({k}{a})", tuples=True),
)
BY_NAME = {collective.name: collective for collective in COLLECTIVES}


def write(
    draw: Draw, writer: Writer, user: str, collective: Collective, operand: str, axis: str, size: int, fault: str
) -> str:
    """The call, with the mark of ``fault`` in its permutation or groups if it is a fault of those."""
    function = _function(draw, writer, user, collective.name)
    permutation = _permutation(draw, writer, user, collective, size, fault) if collective.permuted else ""
    groups = ""
    if collective.grouped and fault.startswith("groups"):
        groups = f", axis_index_groups={_groups(draw, writer, user, size, fault)}"
    keyword = draw.pick("", "axis_name=")
    return collective.text.format(f=function, x=operand, a=axis, n=size, p=permutation, g=groups, k=keyword)


def _function(draw: Draw, writer: Writer, user: str, name: str) -> str:
    style = draw.pick("lax", "jax.lax", "from", "getattr", "alias")
    if style == "from":
        writer.need(user, f"from jax.lax import {name}")
        return name
    if style == "getattr":
        return f"getattr(lax, {name!r})"
    if style == "alias":
        writer.need(user, f"from jax.lax import {name} as lax_{name}")
        return f"lax_{name}"
    return f"{style}.{name}"


def _permutation(draw: Draw, writer: Writer, user: str, collective: Collective, size: int, fault: str) -> str:
    pairs = [(i, (i + 1) % size) for i in range(size)]
    if fault == "perm-source":
        pairs[1] = (0, pairs[1][1])
    elif fault == "perm-destination":
        pairs[1] = (1, pairs[0][1])
    elif fault == "perm-range":
        pairs[1] = (1, size + 3)
    if collective.name == "pshuffle":
        # pshuffle takes the sources in the order of the destinations.
        text = repr([source for source, _ in pairs] if fault != "perm-range" else [0, size + 3])
        if fault == "perm-destination":
            text = repr([0] * size)
        computed = f"[(i + 1) % {size} for i in range({size})]"
    else:
        text = repr(pairs)
        computed = f"[(i, (i + 1) % {size}) for i in range({size})]"
        if fault == "perm-source":
            computed = f"[(i % {size - 1}, (i + 1) % {size}) for i in range({size})]"
        elif fault == "perm-destination":
            computed = f"[(i, 0) for i in range({size})]"
        elif fault == "perm-range":
            computed = f"[(i, i + 1) for i in range({size})]"
    style = draw.pick("literal", "computed", "constant", "zipped", "dataflow")
    if style == "literal" or (style != "constant" and collective.name == "pshuffle" and fault.startswith("perm")):
        return text
    if style == "computed":
        return computed
    if style == "zipped" and collective.name == "ppermute":
        sources, destinations = [s for s, _ in pairs], [d for _, d in pairs]
        return f"list(zip({sources}, {destinations}))"
    home = draw.pick(user, SETTINGS)
    constant = writer.fresh("PERM")
    writer.add(home, f"{constant} = {computed if style == 'dataflow' else text}")
    return writer.refer(draw, constant, home, user)


def _groups(draw: Draw, writer: Writer, user: str, size: int, fault: str) -> str:
    half = size // 2
    groups = [list(range(half)), list(range(half, size))]
    if fault == "groups-twice":
        groups[1] = list(range(half))
    elif fault == "groups-size":
        groups = [list(range(size)), list(range(size, 2 * size))]
    if draw.maybe():
        if fault == "groups-twice":
            return f"[list(range({half})) for _ in range(2)]"
        return f"[[k * {size} + j for j in range({size})] for k in range(2)]"
    if draw.maybe():
        constant = writer.fresh("GROUPS")
        home = draw.pick(user, SETTINGS)
        writer.add(home, f"{constant} = {groups!r}")
        return writer.refer(draw, constant, home, user)
    return repr(groups)
