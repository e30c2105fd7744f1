"""Random bodies of `shard_map`, as text. Every value in them is a scalar, so that any two can be put together."""

from __future__ import annotations

import random

HEAD = """\
import functools
import typing

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


class Fields(typing.NamedTuple):
    first: jax.Array
    second: jax.Array


class Pair:
    def __init__(self, first, second):
        self.first = first
        self.second = second

    def total(self):
        return self.first + self.second


def helper(a, b):
    c = a * 2.0
    return c + b, b


unseen = eval("lambda v, w: jnp.sin(v) * w")
"""

IN_SPECS = ("P()", 'P("x")', 'P("y")', 'P("x", "y")', 'P(None, "x")', 'P(("x", "y"))')
OUTPUTS = (("{}", "P()"), ("{}[None]", 'P("x")'), ("{}[None]", 'P("y")'), ("{}[None]", 'P(("x", "y"))'))
AXES = ('"x"', '"y"', '("x", "y")')

# A is an axis or both, B one axis; a, b and c are earlier values; N is a fresh name.
FORMS = (
    "N = a + b",
    "N = a * b - 1.0",
    "N = jnp.sin(a)",
    "N = jnp.where(a > 0.0, b, c)",
    "N = jnp.maximum(a, b)",
    "N = -a",
    "N = a / 2.0",
    "N = jnp.stack([a, b]).sum()",
    "N = lax.psum(a, A)",
    "N = lax.pmean(a, A)",
    "N = lax.pmax(a, A)",
    "N = lax.psum(1.0, A) * a",
    "N = lax.all_gather(a, B).sum()",
    "N = lax.ppermute(a, B, [(0, 1), (1, 0)])",
    "N = lax.psum_scatter(jnp.ones(2) * a, B, tiled=True).sum()",
    "N = lax.all_to_all(jnp.ones(2) * a, B, 0, 0).sum()",
    "N = lax.axis_index(B) + a",
    "N = lax.axis_index(B).astype(jnp.float32)",
    "N = jnp.zeros_like(a)",
    "N = jnp.ones(3).sum()",
    "N = jnp.float32(jnp.shape(a * jnp.ones(2))[0])",
    "N = lax.stop_gradient(a)",
    "N = helper(a, b)[0]",
    "N, _ = helper(a, b)",
    "N = (lambda v: v + b)(a)",
    "N = jax.grad(lambda w: (w * b) ** 2)(a)",
    "_, N = jax.value_and_grad(lambda w: (w * b).sum())(a)",
    "N = jax.vjp(lambda w: (w * b) ** 2, a)[1]((a * b) / 2.0)[0]",
    "N, pull = jax.vjp(lambda w, u: lax.pmean(w * u, A), a, b)\n    N = pull(N)[0]",
    "N, pull = jax.vjp(lambda w, u: helper(w, u)[0], a, b)\n    N = pull(N)[1]",
    "_, pull, aux = jax.vjp(lambda w: (w * b, w), a, has_aux=True)\n    N = pull(b * a)[0] + aux",
    "N = jax.grad(lambda w: unseen(w, b))(a)",
    "N = jax.vmap(lambda v: v * b)(jnp.ones(2) * a).sum()",
    "N = lax.fori_loop(0, 3, lambda i, v: v * b, a * b)",
    "N = lax.scan(lambda v, e: (v + b + e, v), a + b + c, jnp.ones(2) * c)[0]",
    "N = lax.scan(lambda v, e: (v, v + e), a, jnp.ones(2) * c)[1].sum()",
    "N = lax.cond(True, lambda v, w: v + w, lambda v, w: v * w, a, b)",
    "N = jax.tree.map(lambda v, w: v + w, (a, b), (c, a))[0]",
    'N = {"k": a, "l": b}["k"] + c',
    "N = jnp.zeros(3).at[0].set(a).sum()",
    "N = jax.random.normal(jax.random.key(0), (2,)).sum() * a",
    "N = jax.checkpoint(lambda v: jnp.exp(v))(a)",
    "N = jax.jit(lambda v: v + b)(a)",
    "N = sum([a, b, c])",
    "N = lax.switch(1, [lambda v: v, lambda v: v + 1.0], a)",
    "N = lax.while_loop(lambda v: (v < 3.0) | (v > 9.0), lambda v: v + a * 0.0, a)",
    "N = lax.fori_loop(0, 2, lambda i, v: v + 1.0, a)",
    "N = jax.lax.map(lambda v: v + a, jnp.ones(2) * b).sum()",
    "N = lax.all_gather(a, B, tiled=False).mean() * b",
    "N = lax.pcast(c, B, to='varying') if False else c",
    "N = jnp.linalg.norm(jnp.stack([a, b]))",
    "N = jnp.ones(4).reshape(2, 2).at[0, 1].add(a).mean()",
    "N = jax.value_and_grad(lambda w, u: w * u * c, argnums=(0, 1))(a, b)[1][1]",
    "N = jax.grad(lambda w: jax.grad(lambda u: u**3 * b)(w))(a)",
    "N = jax.grad(lambda w: lax.pmean(w * b, A))(a)",
    "N = jax.grad(lambda w: (helper(w, b)[0] ** 2, w), has_aux=True)(a)[0]",
    "N = jax.tree.map(jnp.add, {'p': a}, {'p': b})['p']",
    "N = functools.partial(helper, b=c)(a)[0]",
    "N = [v * b for v in (a, c)][1]",
    "N = max(0, 1) * a",
    "N = (a if a.ndim == 0 else b)",
    "N = jax.random.uniform(jax.random.fold_in(jax.random.key(1), lax.axis_index(B)), ()) + a",
    "N = lax.axis_size(B) * a",
    "N = (lambda *vs: vs[0] + vs[-1])(a, b, c)",
    "N = Pair(a, b).total()",
    "N = Fields(a, b).second",
    "N = Fields(a, b)._replace(second=c).second",
    "N = Fields(first=a, second=b).first",
)


def program(seed: int) -> str:
    """One program; the same for the same seed."""
    rng = random.Random(seed)
    count = rng.randint(1, 3)
    values = [f"v{n}" for n in range(count)]
    lines = [f"    v{n} = x{n}.sum()" for n in range(count)]
    for number in range(rng.randint(2, 7)):
        name = f"t{number}"
        form = rng.choice(FORMS)
        for letter in "abc":
            form = _replaced(form, letter, rng.choice(values[-4:]))
        form = form.replace("A)", rng.choice(AXES) + ")").replace("B", rng.choice(AXES[:2])).replace("N", name)
        lines.append(f"    {form}")
        values.append(name)
    given, spec = rng.choice(OUTPUTS)
    lines.append(f"    return {given.format(values[-1])}")
    names = ", ".join(f"x{n}" for n in range(count))
    specs = ", ".join(rng.choice(IN_SPECS) for _ in range(count))
    ends = f"run = jax.shard_map(body, mesh=mesh, in_specs=({specs},), out_specs={spec})"
    return f"{HEAD}\n\ndef body({names}):\n" + "\n".join(lines) + f"\n\n\n{ends}\n"


def _replaced(form: str, letter: str, name: str) -> str:
    """The form with a placeholder filled: a letter that stands alone."""
    out = []
    for position, sign in enumerate(form):
        before = form[position - 1] if position else " "
        after = form[position + 1] if position + 1 < len(form) else " "
        alone = not (before.isalnum() or before in '_."') and not (after.isalnum() or after in '_"')
        out.append(name if sign == letter and alone else sign)
    return "".join(out)
