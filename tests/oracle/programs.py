"""A program: a stack of maps around a step with a collective, right or with one fault."""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis.strategies as st
from carrying import carry, hand_over, surround
from collectives import BY_NAME, COLLECTIVES, write
from maps import SPARE, STACKS, Layer, apply, layers, mesh, spec
from writing import HERE, MAIN, Draw, Writer

NO_FAULT = ""
NAME_FAULTS = ("unbound", "half", "unnamed", "outside", "level", "subset")
SPEC_FAULTS = ("spec-axis", "repeated", "arity-in", "arity-out", "constraint")
PERMUTATION_FAULTS = ("perm-source", "perm-destination", "perm-range")
GROUP_FAULTS = ("groups-twice", "groups-size")
LOWERED = ("repeated", "constraint", *PERMUTATION_FAULTS, *GROUP_FAULTS)
"""The faults that tracing alone does not bring to light."""
FAULTS = (*NAME_FAULTS, *SPEC_FAULTS, *PERMUTATION_FAULTS, *GROUP_FAULTS)


@dataclass(frozen=True)
class Case:
    """What a program is about: its maps, its collective and its fault, if any."""

    stack: str
    collective: str
    fault: str = NO_FAULT

    @property
    def kinds(self) -> list[str]:
        return [k for k in self.stack.split("-") if k in ("pmap", "vmap", "shard_map", "smap")]

    def possible(self) -> bool:
        """Does JAX have this combination, and does the fault change anything in it."""
        kinds, collective, fault = self.kinds, BY_NAME[self.collective], self.fault
        if collective.devices and set(kinds) == {"vmap"}:
            return False
        if collective.name == "ragged_all_to_all" and "vmap" in kinds:
            return False
        if collective.name == "pbroadcast" and fault in LOWERED:
            return False
        if fault == "half":
            return collective.tuples and (collective.name != "all_gather" or "vmap" not in kinds)
        if fault == "unnamed":
            # Where both maps have one name, the other one binds it, and the program is about another axis, not wrong.
            return ("pmap" in kinds or kinds[-1] == "vmap") and "shadowing" not in self.stack
        if fault == "level":
            return len(kinds) > 1 and "shadowing" not in self.stack
        if fault == "subset":
            return self.stack in ("shard_map-subset", "smap")
        if fault == "constraint":
            return "shard_map" in kinds and self.stack != "shard_map-shard_map"
        if fault in SPEC_FAULTS:
            return "shard_map" in kinds
        if fault in PERMUTATION_FAULTS:
            # Under vmap, JAX applies pairs with a repeated end without a word; a pmap's size is that of its argument.
            unsized = self.stack == "pmap" and fault == "perm-range"
            return collective.permuted and "vmap" not in kinds and self.stack != "smap" and not unsized
        if fault in GROUP_FAULTS:
            unsized = self.stack == "pmap" and fault == "groups-size"
            return collective.grouped and "vmap" not in kinds and self.stack != "smap" and not unsized
        return True


def cases() -> list[Case]:
    """Every possible case."""
    every = (Case(s, c.name, f) for s in STACKS for c in COLLECTIVES for f in (NO_FAULT, *FAULTS))
    return [case for case in every if case.possible()]


@dataclass(frozen=True)
class Program:
    """The files of a program by module name. ``shape`` is that of the argument that ``run`` takes; None if it is run
    while it is imported."""

    case: Case
    texts: tuple[tuple[str, str], ...]
    shape: tuple[int, ...] | None

    def due(self) -> list[tuple[str, int]]:
        """The lines, by module, on which a finding is due if JAX refuses the program."""
        return [
            (module, row)
            for module, text in self.texts
            for row, line in enumerate(text.split("\n"), start=1)
            if line.endswith(HERE)
        ]


def programs(case: Case) -> st.SearchStrategy[Program]:
    """The programs of a case."""

    @st.composite
    def strategy(draw):
        return build(Draw(draw), case)

    return strategy()


def build(draw: Draw, case: Case) -> Program:
    """Write one program."""
    writer, stack, collective = (
        Writer(lowered=case.fault in LOWERED),
        layers(draw, case.stack),
        BY_NAME[case.collective],
    )
    marks = case.fault not in SPEC_FAULTS
    name, size = _axis(draw, case, stack)

    def call(operand: str, axis: str, module: str) -> str:
        return write(draw, writer, module, collective, operand, axis, size, case.fault)

    core = carry(draw, writer, call, name)
    if not marks:
        # The mark of a collective that is right is none.
        writer.lines = {m: [line.removesuffix(HERE) for line in lines] for m, lines in writer.lines.items()}
    inner = "(lambda y: y)" if case.fault == "level" else core
    step = hand_over(draw, writer, surround(draw, writer, inner, array=case.fault == "arity-out"))
    if case.fault == "level":
        step = "(lambda x: x * 2)"
    elif case.fault == "constraint":
        step = _constrained(draw, writer, step, stack)
    shape: tuple[int, ...] = (8, 8)
    wrong_layer = _layer_of_fault(draw, case, stack)
    mapped = step
    for number, layer in reversed(list(enumerate(stack))):
        if case.fault == "outside":
            break
        mapped = apply(draw, writer, layer, mapped, case.fault if number == wrong_layer else NO_FAULT)
        shape = layer.outer_shape(shape)
        if case.fault == "level" and number == len(stack) - 1:
            outer = writer.fresh("outer")
            writer.add(MAIN, f"def {outer}(x):", f"    {core}(x.reshape(-1, 8)[:8])", f"    return {mapped}(x)")
            mapped = outer
    return Program(case, tuple(_finished(draw, writer, case, stack, mapped, shape).items()), _shape(case, stack, shape))


def _axis(draw: Draw, case: Case, stack: tuple[Layer, ...]) -> tuple[str | tuple[str, ...], int]:
    """The axis that the collective names, and its size."""
    collective = BY_NAME[case.collective]
    inner = stack[
        max((n for n, layer in enumerate(stack) if layer.devices and n and not stack[n - 1].devices), default=0) :
    ]
    # A vmap's axis cannot be named inside a pmap or shard_map that it maps: JAX traces that and fails to lower it.
    candidates = [(layer, name) for layer in inner for name in layer.bound if layer.devices or not collective.devices]
    if case.fault in (*PERMUTATION_FAULTS, *GROUP_FAULTS):
        candidates = [(layer, name) for layer, name in candidates if layer.size(name) > 2] or candidates
    layer, name = draw.pick(*candidates)
    if case.fault == "level":
        layer, name = stack[-1], stack[-1].bound[0]
    elif case.fault == "unnamed":
        layer = stack[_layer_of_fault(draw, case, stack)]
        name = layer.bound[0]
    size = layer.size(name)
    if case.fault == "unbound":
        name = draw.pick(*SPARE)
    elif case.fault == "subset":
        name = next(n for n, _ in layer.axes if n not in layer.bound)
    if case.fault == "half":
        return draw.pick((name, SPARE[0]), (SPARE[0], name)), size
    single = collective.name == "all_gather" and any(each.kind == "vmap" for each in stack)
    if collective.tuple_only or (collective.tuples and not single and case.fault == NO_FAULT and draw.maybe()):
        others = tuple(n for other in inner for n in other.bound if other.devices == layer.devices and n != name)
        return (name, *others) if collective.tuples and draw.maybe() else (name,), size
    return name, size


def _layer_of_fault(draw: Draw, case: Case, stack: tuple[Layer, ...]) -> int:
    kinds = ("pmap", "vmap") if case.fault == "unnamed" else ("pmap", "vmap", "smap")
    if case.fault == "unnamed":
        return [n for n, layer in enumerate(stack) if layer.kind in kinds][-1]
    return next((n for n, layer in enumerate(stack) if layer.kind not in kinds), 0)


def _constrained(draw: Draw, writer: Writer, step: str, stack: tuple[Layer, ...]) -> str:
    layer = next(layer for layer in stack if layer.kind not in ("pmap", "vmap"))
    function, over = writer.fresh("constrained"), spec(draw, writer, layer.bound[:1])
    call = draw.pick("lax.with_sharding_constraint", "jax.lax.with_sharding_constraint")
    writer.add(MAIN, f"def {function}(x):", f"    x = {call}(x, {over}){HERE}", f"    return {step}(x)")
    return function


def _finished(
    draw: Draw, writer: Writer, case: Case, stack: tuple[Layer, ...], mapped: str, shape: tuple[int, ...]
) -> dict[str, str]:
    """The texts, with what runs the mapped function."""
    if _in_context(stack):
        made = mesh(draw, writer, stack[0].axes, context=True)
        inside = f"jax.jit({mapped}).lower(jnp.zeros({shape}))"
        enter = draw.pick("jax.set_mesh", "jax.sharding.set_mesh")
        writer.add(MAIN, f"with {enter}({made}):", f"    {inside}")
        return writer.texts()
    if case.fault == "outside":
        jitted = draw.maybe()
        writer.add(MAIN, f"run = jax.jit({mapped})" if jitted else f"run = {mapped}")
        if not jitted:
            writer.add(MAIN, draw.pick("jax.eval_shape(run, jnp.zeros((8, 8)))", "jax.jit(run)(jnp.zeros((8, 8)))"))
        return writer.texts()
    # What nothing runs is nobody's mistake yet, and a vmap alone runs nothing.
    vmaps = all(layer.kind == "vmap" for layer in stack)
    style = draw.pick("jit", "main") if vmaps else draw.pick("name", "jit", "def", "build", "main")
    if style == "def":
        writer.add(MAIN, "def run(x):", f"    return {mapped}(x)")
    elif style == "build":
        writer.add(MAIN, "def build():", f"    return {mapped}", "", "run = build()")
    elif style == "main":
        writer.add(MAIN, "def main():", f"    jax.eval_shape({mapped}, jnp.zeros({shape}))")
        writer.add(MAIN, f"run = {mapped}", "", "if __name__ == '__main__':", "    main()")
    else:
        writer.add(MAIN, f"run = {mapped}" if style == "name" else f"run = jax.jit({mapped})")
    return writer.texts()


def _in_context(stack: tuple[Layer, ...]) -> bool:
    return stack[0].kind in ("context", "smap")


def _shape(case: Case, stack: tuple[Layer, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    if case.fault == "outside":
        return (8, 8)
    return None if _in_context(stack) else shape
