"""How the axis name and the function travel: parameters, closures, fields, partials, tables, decorators."""

from __future__ import annotations

from collections.abc import Callable

from spelling import Name, spell
from writing import HERE, LIBRARY, MAIN, Draw, Writer

Call = Callable[[str, str, str], str]
"""Writes the collective for an operand and an axis, both expressions, in a module."""


def carry(draw: Draw, writer: Writer, call: Call, name: Name) -> str:
    """Define a function of one array that makes the collective; an expression for it in the main module."""
    home = draw.pick(MAIN, LIBRARY)
    return draw.pick(*FORMS)(draw, writer, call, name, home)


def _plain(draw: Draw, writer: Writer, call: Call, name: Name, home: str) -> str:
    function = writer.fresh("reduce")
    line = call("x", spell(draw, writer, home, name), home)
    if draw.maybe():
        writer.add(home, f"{function} = lambda x: {line}{HERE}")
    else:
        writer.add(home, f"def {function}(x):", f"    return {line}{HERE}")
    return writer.refer(draw, function, home, MAIN)


def _parameter(draw: Draw, writer: Writer, call: Call, name: Name, home: str) -> str:
    """A helper with a parameter, and how it gets its argument."""
    function, axis = writer.fresh("reduce"), spell(draw, writer, MAIN, name)
    style = draw.pick("positional", "keyword", "partial", "lambda", "kwargs", "twice", "optional")
    default = "=None" if style == "optional" else ""
    line = call("x", "axis", home)
    writer.add(home, f"def {function}(x, axis{default}):")
    if style == "optional":
        writer.add(home, "    if axis is None:", "        return x")
    writer.add(home, f"    return {line}{HERE}")
    there = writer.refer(draw, function, home, MAIN)
    if style == "partial":
        return draw.pick(f"partial({there}, axis={axis})", f"partial(partial({there}), axis={axis})")
    if style == "lambda":
        return f"(lambda x: {there}(x, {axis}))"
    outer = writer.fresh("outer")
    if style == "kwargs":
        writer.add(MAIN, f"def {outer}(x, *args, **options):", f"    return {there}(x, *args, **options)")
        return draw.pick(f"partial({outer}, axis={axis})", f"(lambda x: {outer}(x, {axis}))")
    if style == "twice":
        inner = writer.fresh("inner")
        writer.add(MAIN, f"def {inner}(x, *, axis):", f"    return {there}(x, axis=axis)")
        there = inner
    if style == "positional":
        writer.add(MAIN, f"def {outer}(x):", f"    return {there}(x, {axis})")
    else:
        writer.add(MAIN, f"def {outer}(x):", f"    y = {there}(x, axis={axis})", "    return y")
    return outer


def _default(draw: Draw, writer: Writer, call: Call, name: Name, home: str) -> str:
    function, axis = writer.fresh("reduce"), spell(draw, writer, home, name)
    star = draw.pick("", "*, ")
    writer.add(home, f"def {function}(x, {star}axis={axis}):", f"    return {call('x', 'axis', home)}{HERE}")
    return writer.refer(draw, function, home, MAIN)


def _closure(draw: Draw, writer: Writer, call: Call, name: Name, home: str) -> str:
    make = writer.fresh("make")
    style = draw.pick("def", "lambda", "tuple", "unpacked", "dict", "wrapped")
    line = call("x", "axis", home)
    writer.add(home, f"def {make}(axis):")
    if style == "lambda":
        writer.add(home, f"    return lambda x: {line}{HERE}")
    else:
        writer.add(home, "    def reduce(x):", f"        return {line}{HERE}", "")
        result = {"tuple": "(lambda x: x, reduce)", "unpacked": "lambda x: x, reduce", "dict": "{'reduce': reduce}"}
        writer.add(home, f"    return {result.get(style, 'reduce')}")
    there = writer.refer(draw, make, home, MAIN)
    made = f"{there}({draw.pick('', 'axis=')}{spell(draw, writer, MAIN, name)})"
    if style == "tuple":
        return f"{made}[1]"
    if style == "dict":
        return f"{made}['reduce']"
    function = writer.fresh("reduce")
    target = f"_, {function}" if style == "unpacked" else function
    writer.add(MAIN, f"{target} = {made}")
    return function


def _field(draw: Draw, writer: Writer, call: Call, name: Name, home: str) -> str:
    """A class whose objects know the axis; the way in which they come to know it."""
    cls = writer.fresh("Model")
    style = draw.pick("init", "default", "dataclass", "class", "super", "base", "property", "field")
    axis = spell(draw, writer, home, name) if style in ("class", "default", "property") else ""
    given = "" if axis else spell(draw, writer, MAIN, name)
    line = call("x", "self.axis", home)
    if style == "init":
        writer.add(home, f"class {cls}:", "    def __init__(self, axis):", "        self.axis = axis")
    elif style == "default":
        writer.add(home, f"class {cls}:", f"    def __init__(self, axis={axis}):", "        self.axis = axis")
    elif style == "class":
        writer.add(home, f"class {cls}:", f"    axis = {axis}")
    elif style == "property":
        writer.add(home, f"class {cls}:", "    @property", "    def axis(self):", f"        return {axis}")
    elif style in ("dataclass", "field"):
        writer.need(home, "import dataclasses")
        value = "dataclasses.field(default='spare')" if style == "field" else "'spare'"
        writer.add(home, "@dataclasses.dataclass", f"class {cls}:", "    width: int = 8", f"    axis: object = {value}")
        given = f"axis={given}"
    else:
        base = writer.fresh("Base")
        writer.add(home, f"class {base}:", "    def __init__(self, axis):", "        self.axis = axis")
        writer.add(home, f"class {cls}({base}):")
        if style == "super":
            writer.add(home, "    def __init__(self, axis, width=8):", "        super().__init__(axis)")
    method = draw.pick("reduce", "__call__", "helper")
    self_method = "_reduce" if method == "helper" else method
    writer.add(home, f"    def {self_method}(self, x):", f"        return {line}{HERE}")
    if method == "helper":
        writer.add(home, "    def reduce(self, x):", "        return self._reduce(x)")
    there = writer.refer(draw, cls, home, MAIN)
    model = writer.fresh("model")
    writer.add(MAIN, f"{model} = {there}({given})")
    if method == "__call__":
        return model
    return draw.pick(f"{model}.reduce", f"getattr({model}, 'reduce')", f"(lambda x: {model}.reduce(x))")


def _static(draw: Draw, writer: Writer, call: Call, name: Name, home: str) -> str:
    cls, axis = writer.fresh("Tools"), spell(draw, writer, home, name)
    kind = draw.pick("staticmethod", "classmethod")
    first = "cls, " if kind == "classmethod" else ""
    line = call("x", axis, home)
    writer.add(home, f"class {cls}:", f"    @{kind}", f"    def reduce({first}x):", f"        return {line}{HERE}")
    there = writer.refer(draw, cls, home, MAIN)
    return draw.pick(f"{there}.reduce", f"{there}().reduce")


def _overridden(draw: Draw, writer: Writer, call: Call, name: Name, home: str) -> str:
    """A method that calls that of the base, whose axis the class decides."""
    base, cls = writer.fresh("Base"), writer.fresh("Model")
    axis = spell(draw, writer, MAIN, name)
    line = call("x", "self.axis", home)
    writer.add(home, f"class {base}:", "    axis = 'spare'", "    def reduce(self, x):", f"        return {line}{HERE}")
    there = writer.refer(draw, base, home, MAIN)
    writer.add(MAIN, f"class {cls}({there}):", f"    axis = {axis}")
    writer.add(MAIN, "    def reduce(self, x):", "        return super().reduce(x)")
    return draw.pick(f"{cls}().reduce", f"(lambda x: {cls}().reduce(x))")


def _listed(draw: Draw, writer: Writer, call: Call, name: Name, home: str) -> str:
    """A method of an object that is taken out of a list which is filled by `append`."""
    cls, models = writer.fresh("Model"), writer.fresh("models")
    line = call("x", "self.axis", home)
    writer.add(home, f"class {cls}:", "    def __init__(self, axis):", "        self.axis = axis")
    writer.add(home, "    def reduce(self, x):", f"        return {line}{HERE}")
    there, axis = writer.refer(draw, cls, home, MAIN), spell(draw, writer, MAIN, name)
    style = draw.pick("after", "loop", "built", "comprehension", "field")
    if style == "after":
        writer.add(MAIN, f"{models} = [{draw.pick('', f'{there}(None)')}]", f"{models}.append({there}({axis}))")
        return f"{models}[-1].reduce"
    if style == "loop":
        writer.add(MAIN, f"{models} = []", "for _ in range(2):", f"    {models}.append({there}({axis}))")
    elif style == "built":
        build = writer.fresh("build_models")
        body = ["    found = []", "    for _ in range(count):", f"        found.append({there}(axis))"]
        writer.add(MAIN, f"def {build}(axis, count=2):", *body, "    return found")
        writer.add(MAIN, f"{models} = {build}({axis})")
    elif style == "comprehension":
        writer.add(MAIN, f"{models} = [{there}({axis}) for _ in range(len(jax.devices()))]")
    else:
        holder = writer.fresh("Stack")
        writer.add(MAIN, f"class {holder}:", "    def __init__(self, axis):", "        self.parts = []")
        writer.add(MAIN, f"        self.parts.append({there}(axis))", "", "    def run(self, x):")
        turn = draw.pick("part in self.parts", "_, part in enumerate(self.parts)")
        writer.add(MAIN, f"        for {turn}:", "            y = part.reduce(x)", "        return y")
        return f"{holder}({axis}).run"
    return f"{models}[{draw.pick(0, 1)}].reduce"


FORMS = (_plain, _parameter, _default, _closure, _field, _static, _overridden, _listed)


def surround(draw: Draw, writer: Writer, core: str, *, array: bool = False) -> str:
    """Define a step that calls the core inside something of JAX or Python; its name in the main module.

    ``array``: the step must give an array for sure. What a loop of JAX or a gradient gives has the tree of what goes
    in, which a reader of the text cannot know.
    """
    step = writer.fresh("step")
    if step == "step":
        writer.add(MAIN, "def used(x, y):", "    return x + 0 * jnp.sum(y)")
    bodies = [body for body in BODIES if body.split("\n")[-1].startswith("return used(")] if array else BODIES
    body = draw.pick(*bodies)
    writer.add(MAIN, f"def {step}(x):", *(f"    {line}" for line in body.format(core=core).split("\n")))
    return step


# The core's result may be of any shape. ``used`` makes it part of the step's, so that JAX does not drop the collective.
BODIES = (
    "return used(x, {core}(x))",
    "y = {core}(x)\nreturn used(x, y)",
    "go = {core}\nreturn used(x, go(x))",
    "def body(carry, _):\n    return used(carry, {core}(x)), None\n\nreturn jax.lax.scan(body, x, None, length=2)[0]",
    "return lax.fori_loop(0, 2, lambda i, y: used(y, {core}(x)), x)",
    "return lax.cond(x.sum() > 0, lambda y: used(y, {core}(x)), lambda y: y, x)",
    "grads, y = jax.grad(lambda y: ((y * y).sum(), {core}(x)), has_aux=True)(x)\nreturn used(grads, y)",
    "value, grads = jax.value_and_grad(lambda y: used(y * y, {core}(x)).sum())(x)\nreturn used(grads, value)",
    "y = jax.tree.map({core}, {{'w': x, 'b': x}})\nreturn used(x, y['w'])",
    "for _ in range(2):\n    x = used(x, {core}(x))\nreturn x",
    "if True:\n    x = used(x, {core}(x))\nreturn x",
    "with jax.named_scope('reduce'):\n    y = {core}(x)\nreturn used(x, y)",
    "return jax.checkpoint(lambda y: used(y, {core}(y)))(x)",
    "results = [{core}(y) for y in (x, x)]\nreturn used(x, results[0])",
    "table = {{'reduce': {core}, 'keep': lambda y: y}}\nreturn table['keep'](used(x, table['reduce'](x)))",
    "results = list(map({core}, [x, x]))\nreturn used(x, results[1])",
    "y, pull = jax.vjp(lambda y: used(y, {core}(x)), x)\nreturn pull(y)[0] + y",
    "try:\n    y = {core}(x)\nfinally:\n    z = x\nreturn used(z, y)",
    "return used(x, jax.jit({core})(x))",
    "z, y = (x, {core}(x))\nreturn used(z, y)",
    "return (lambda y, z: used(z, y))({core}(x), x)",
    (
        "f = jax.custom_vjp(lambda y: used(y, {core}(y)))\nf.defvjp(lambda y: (f(y), y), lambda y, g: (g,))\n"
        "return used(x, f(x))"
    ),
    (
        "more = lambda state: state[1] < 1\n"
        "return lax.while_loop(more, lambda state: (used(state[0], {core}(x)), state[1] + 1), (x, 0))[0]"
    ),
    "return lax.switch(0, [lambda y: used(y, {core}(x)), lambda y: y], x)",
    "for _, f in {{'reduce': {core}}}.items():\n    x = used(x, f(x))\nreturn used(x, x)",
    "y = jax.tree.map(partial({core}), [x])\nreturn used(x, y[0])",
)


HAND_OVERS = "name partial dict tuple decorated tagged rebound lambda jit attribute choice".split()


def hand_over(draw: Draw, writer: Writer, step: str) -> str:
    """An expression for a step that goes another way to the map than by its name."""
    style = draw.pick(*HAND_OVERS)
    if style == "partial":
        return f"partial({step})"
    if style == "dict":
        table = writer.fresh("STEPS")
        writer.add(MAIN, f"{table} = {{'train': {step}, 'other': lambda x: x}}")
        return f"{table}['train']"
    if style == "tuple":
        both = writer.fresh("steps")
        writer.add(MAIN, f"def {both}():", f"    return (lambda x: x), {step}")
        name = writer.fresh("chosen")
        writer.add(MAIN, f"_, {name} = {both}()")
        return name
    if style == "decorated":
        logged = writer.fresh("logged")
        writer.need(MAIN, "import functools")
        inner = ["    @functools.wraps(f)", "    def inner(*args, **kwargs):", "        return f(*args, **kwargs)"]
        writer.add(MAIN, f"def {logged}(f):", *inner, "", "    return inner")
        return f"{logged}({step})"
    if style == "tagged":
        tagged = writer.fresh("tagged")
        inner = [
            "    def around(f):",
            "        def inner(*args):",
            "            return f(*args)",
            "        return inner",
        ]
        writer.add(MAIN, f"def {tagged}(tag):", *inner, "", "    return around")
        return f"{tagged}('train')({step})"
    if style == "rebound":
        writer.add(MAIN, f"{step} = {draw.pick('jax.checkpoint', 'jax.jit')}({step})")
        return step
    if style == "attribute":
        holder = writer.fresh("Holder")
        writer.add(MAIN, f"class {holder}:", "    def __init__(self):", f"        self.step = {step}")
        return f"{holder}().step"
    if style == "choice":
        return f"({step} if {step} is not None else (lambda x: x))"
    return {"lambda": f"(lambda x: {step}(x))", "jit": f"jax.jit({step})"}.get(style, step)
