"""The maps around a step: pmap, vmap, shard_map and smap, alone and nested, and the ways to write them."""

from __future__ import annotations

from dataclasses import dataclass

from spelling import spell
from writing import HERE, LIBRARY, MAIN, SETTINGS, Draw, Writer


@dataclass(frozen=True)
class Layer:
    """One map. ``axes`` are those of its mesh, or its own one; it binds ``bound`` of them and shards over ``over``."""

    kind: str
    axes: tuple[tuple[str, int], ...]
    bound: tuple[str, ...]
    over: tuple[str, ...] = ()

    @property
    def devices(self) -> bool:
        return self.kind != "vmap"

    def size(self, name: str) -> int:
        return dict(self.axes)[name]

    def outer_shape(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the array that the map takes so that its function gets one of shape ``inner``."""
        if self.kind in ("pmap", "vmap"):
            return (self.axes[0][1], *inner)
        rows = inner[0]
        for name in self.over:
            rows *= self.size(name)
        return (rows, *inner[1:])


STACKS = (
    "pmap",
    "vmap",
    "shard_map",
    "shard_map-subset",
    "shard_map-context",
    "shard_map-experimental",
    "smap",
    "pmap-vmap",
    "vmap-vmap",
    "vmap-pmap",
    "shard_map-vmap",
    "vmap-shard_map",
    "shard_map-shard_map",
    "vmap-pmap-vmap",
    "vmap-vmap-shadowing",
    "pmap-vmap-shadowing",
)
NAMES = ("data", "model", "batch", "rows", "i")
SPARE = ("columns", "x", "replica")
"""Names that no map of a program binds."""


def layers(draw: Draw, stack: str) -> tuple[Layer, ...]:
    """The layers of a stack, outermost first."""
    free = list(NAMES)

    def name() -> str:
        chosen = draw.pick(*free)
        free.remove(chosen)
        return chosen

    if stack == "shard_map-shard_map":
        axes = ((name(), 2), (name(), 4))
        names = tuple(n for n, _ in axes)
        return tuple(
            Layer(kind, axes, (n,), _some(draw, n)) for kind, n in zip(("subset", "inner"), names, strict=True)
        )
    found = []
    # JAX mixes up the sizes of a pmap's axis and a vmap's around it when it lowers them.
    size = draw.pick(4, 2, 8) if stack.startswith("vmap-pmap") else 0
    for kind in {"shard_map-subset": ["subset"], "shard_map-context": ["context"]}.get(stack, stack.split("-")):
        if kind in ("pmap", "vmap"):
            own = name()
            found.append(Layer(kind, ((own, size or draw.pick(4, 2, 8)),), (own,)))
        elif kind == "shadowing":
            outer, inner = found[-2], found[-1]
            found[-1] = Layer(inner.kind, ((outer.bound[0], inner.axes[0][1]),), outer.bound)
        elif kind == "experimental":
            found[-1] = Layer("experimental", found[-1].axes, found[-1].bound, found[-1].over)
        else:
            axes = draw.pick(((name(), 2), (name(), 4)), ((name(), 8),))
            if kind in ("smap", "subset") and len(axes) == 1:
                axes = (*axes[:0], (axes[0][0], 4), (name(), 2))
            names = tuple(n for n, _ in axes)
            bound = (draw.pick(*names),) if kind in ("smap", "subset") else names
            over = bound if kind == "smap" else _some(draw, *bound)
            found.append(Layer(kind, axes, bound, over))
    return tuple(found)


def _some(draw: Draw, *names: str) -> tuple[str, ...]:
    return draw.pick((), names[:1], names[-1:], names)


def apply(draw: Draw, writer: Writer, layer: Layer, function: str, fault: str) -> str:
    """Map a function; the name of the mapped one in the main module."""
    if layer.kind in ("pmap", "vmap"):
        return _by_name(draw, writer, layer, function, fault)
    if layer.kind == "smap":
        axis = spell(draw, writer, MAIN, layer.bound[0])
        return _written(draw, writer, "jax.smap", function, [f"in_axes=0, out_axes=0, axis_name={axis}"], "", False)
    return _over_mesh(draw, writer, layer, function, fault)


def _by_name(draw: Draw, writer: Writer, layer: Layer, function: str, fault: str) -> str:
    library = f"jax.{layer.kind}"
    if draw.maybe():
        writer.need(MAIN, f"from jax import {layer.kind}")
        library = layer.kind
    axis = spell(draw, writer, MAIN, layer.bound[0])
    options = [] if fault == "unnamed" else [f"axis_name={axis}"]
    if draw.maybe():
        options.append("in_axes=0" if layer.kind == "vmap" else draw.pick("in_axes=0", "in_axes=(0,), out_axes=0"))
    return _written(draw, writer, library, function, options, "fun", False)


def _written(
    draw: Draw, writer: Writer, library: str, function: str, options: list[str], keyword: str, marked: bool
) -> str:
    """One of the ways to apply a map, on one line that is marked if a finding may be due on it."""
    mapped, given = writer.fresh("mapped"), "".join(f", {option}" for option in options)
    mark = HERE if marked else ""
    style = draw.pick("call", "decorator", "partial", "keyword", "factory", "method", "inside", "options")
    if style == "decorator":
        decorator = f"@partial({library}{given}){mark}"
        writer.add(MAIN, decorator, f"def {mapped}(x):", f"    return {function}(x)")
    elif style == "partial":
        writer.add(MAIN, f"{mapped} = partial({library}{given})({function}){mark}")
    elif style == "keyword" and keyword:
        writer.add(MAIN, f"{mapped} = {library}({keyword}={function}{given}){mark}")
    elif style == "factory":
        factory = writer.fresh("map_over")
        writer.add(MAIN, f"def {factory}(f):", f"    return {library}(f{given}){mark}")
        writer.add(MAIN, f"{mapped} = {factory}({function})")
    elif style == "method":
        cls = writer.fresh("Trainer")
        writer.add(MAIN, f"class {cls}:", "    def __init__(self):")
        writer.add(MAIN, f"        self.mapped = {library}(self._step{given}){mark}")
        writer.add(MAIN, "    def _step(self, x):", f"        return {function}(x)")
        writer.add(MAIN, f"{mapped} = {cls}().mapped")
    elif style == "inside":
        writer.add(MAIN, f"def {mapped}(x):", f"    f = {library}({function}{given}){mark}", "    return f(x)")
    elif style == "options" and all("=" in option for option in options) and options:
        table = writer.fresh("OPTIONS")
        writer.add(MAIN, f"{table} = dict({', '.join(options)}){mark}")
        writer.add(MAIN, f"{mapped} = {library}({function}, **{table}){mark}")
    else:
        writer.add(MAIN, f"{mapped} = {library}({function}{given}){mark}")
    return mapped


def mesh(draw: Draw, writer: Writer, axes: tuple[tuple[str, int], ...], *, context: bool = False) -> str:
    """A mesh; the expression for it in the main module."""
    home = draw.pick(MAIN, LIBRARY, SETTINGS)
    name, names = writer.fresh("mesh"), tuple(n for n, _ in axes)
    sizes = tuple(size for _, size in axes)
    spelled = spell(draw, writer, home, names)
    style = draw.pick(
        "Mesh", "make_mesh", *(() if context or writer.lowered else ("AbstractMesh",)), "keywords", "returned", "held"
    )
    types = f"axis_types=(jax.sharding.AxisType.Auto,) * {len(sizes)}"
    text = f"jax.sharding.Mesh(np.array(jax.devices()).reshape({sizes}), {spelled})"
    if style == "AbstractMesh":
        text = f"jax.sharding.AbstractMesh({sizes}, {spelled}, {types})"
    elif style == "make_mesh":
        text = f"jax.make_mesh({sizes}, {spelled}, {types})"
    elif style == "keywords":
        text = f"jax.make_mesh({sizes}, axis_names={spelled}, {types})"
    else:
        writer.need(home, "import numpy as np")
    if style == "returned":
        function = writer.fresh("make_mesh")
        writer.add(home, f"def {function}():", f"    return {text}")
        return f"{writer.refer(draw, function, home, MAIN)}()"
    if style == "held":
        holder = writer.fresh("Grid")
        writer.add(home, f"class {holder}:", "    def __init__(self):", f"        self.mesh = {text}")
        writer.add(home, f"{name} = {holder}()")
        return f"{writer.refer(draw, name, home, MAIN)}.mesh"
    writer.add(home, f"{name} = {text}")
    return writer.refer(draw, name, home, MAIN)


def _over_mesh(draw: Draw, writer: Writer, layer: Layer, function: str, fault: str) -> str:
    ins, outs = spec(draw, writer, layer.over), spec(draw, writer, layer.over)
    if fault == "spec-axis":
        wrong = _misspelled(draw, writer, layer)
        ins, outs = draw.pick((wrong, outs), (ins, wrong))
    elif fault == "repeated":
        twice = layer.bound[0]
        wrong = draw.pick(f"P({twice!r}, {twice!r})", f"P(({twice!r}, {twice!r}))", f"P({twice!r}, None, {twice!r})")
        ins, outs = draw.pick((wrong, outs), (ins, wrong))
    elif fault == "arity-in":
        ins = draw.pick(f"({ins}, P())", f"({ins}, {ins}, None)", "()")
    elif fault == "arity-out":
        outs = draw.pick(f"({outs}, P())", f"({outs}, {outs}, {outs})")
    else:
        ins = draw.pick(ins, f"({ins},)")
    marked = fault in ("spec-axis", "repeated", "arity-in", "arity-out")
    if marked and draw.maybe():
        constant = writer.fresh("SPECS")
        writer.add(MAIN, f"{constant} = {ins}{HERE}")
        ins = constant
    options = [f"in_specs={ins}", f"out_specs={outs}"]
    if layer.kind in ("subset", "inner"):
        axes = repr(layer.bound[0])
        options.append(draw.pick(f"axis_names={{{axes}}}", f"axis_names=frozenset([{axes}])"))
    if layer.kind == "experimental":
        writer.need(MAIN, "from jax.experimental.shard_map import shard_map as old_shard_map")
        options = [f"mesh={mesh(draw, writer, layer.axes)}", *options, "check_rep=False"]
        return _written(draw, writer, "old_shard_map", function, options, "f", marked)
    if layer.kind not in ("context", "inner"):
        options.insert(0, f"mesh={mesh(draw, writer, layer.axes)}")
    options.append("check_vma=False")
    library = "jax.shard_map"
    if draw.maybe():
        writer.need(MAIN, "from jax import shard_map")
        library = "shard_map"
    return _written(draw, writer, library, function, options, "", marked)


def spec(draw: Draw, writer: Writer, over: tuple[str, ...]) -> str:
    """A partition spec for the first dimension, over some axes."""
    if not over:
        return draw.pick("P()", "P(None)")
    if len(over) == 1:
        return f"P({spell(draw, writer, MAIN, over[0], plain=draw.maybe())})"
    return f"P({spell(draw, writer, MAIN, over, plain=draw.maybe())})"


def _misspelled(draw: Draw, writer: Writer, layer: Layer) -> str:
    wrong = draw.pick(*SPARE, *(name for name, _ in layer.axes if name not in layer.bound))
    entry: str | tuple[str, ...] = draw.pick(wrong, (layer.bound[0], wrong))
    return f"P({spell(draw, writer, MAIN, entry, plain=draw.maybe())})"
