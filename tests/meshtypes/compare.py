"""The types of the linter against those of JAX, over random bodies: ``compare.py COUNT [FIRST]``.

JAX traces each body with its check on, which runs nothing. For each it says: accepted, or rejected because an output
is not alike where its spec says so. Programs that JAX refuses for another reason, and those of which the linter says
that it does not know, are counted and not compared.
"""

from __future__ import annotations

import collections
import os
import sys
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

HERE = Path(__file__).resolve().parent


def of_jax(text: str, count: int) -> str:
    """What JAX says of a program."""
    import jax
    import jax.numpy as jnp

    space: dict[str, object] = {}
    exec(compile(text, "generated", "exec"), space)
    try:
        jax.eval_shape(space["run"], *[jax.ShapeDtypeStruct((4, 4), jnp.float32)] * count)
    except ValueError as error:
        return "rejected" if "require replication" in str(error) else f"other: {str(error)[:80]}"
    except Exception as error:
        return f"other: {type(error).__name__}"
    return "accepted"


def of_linter(text: str) -> str:
    """What the types of the linter say of it."""
    from spmdlint.analysis.load import load
    from spmdlint.analysis.meshtypes.bodies import Bodies
    from spmdlint.config import Config
    from spmdlint.files.read import Source
    from spmdlint.program.survey import Surveyor

    path = Path("/generated.py")
    config = Config(root=path.parent)
    program = load(Surveyor(config, None).look([path], {path: Source(path, text)}), config)
    claims = [claim for bodies in [program.bodies] for claim in _claims(bodies)]
    worst = "accepted"
    for named, leaf in claims:
        if leaf.default != "invariant":
            return "unknown"
        for axis in leaf.names - named:
            state = leaf.state(axis)
            if state in ("unknown", "mixed"):
                return "unknown"
            if state != "invariant":
                worst = "rejected"
    assert isinstance(program.bodies, Bodies)
    return worst if claims else "unknown"


def _claims(bodies):
    for use in bodies.reach.uses:
        for claim in bodies.claims_of(use):
            yield claim.named, claim.given


def main(count: int, first: int) -> int:
    """Compare; the status says whether they agree."""
    from generate import program

    told: collections.Counter[str] = collections.Counter()
    for seed in range(first, first + count):
        text = program(seed)
        jax, linter = of_jax(text, _inputs(text)), of_linter(text)
        kind = (
            "other"
            if jax.startswith("other")
            else "unknown"
            if linter == "unknown"
            else ("agree" if jax == linter else "DISAGREE")
        )
        told[kind] += 1
        if kind == "DISAGREE":
            print(f"seed {seed}: JAX {jax}, linter {linter}")
        elif kind == "other":
            told[jax] += 1
    print(dict(told))
    return 1 if told["DISAGREE"] else 0


def _inputs(text: str) -> int:
    line = next(line for line in text.splitlines() if line.startswith("def body("))
    return line.count("x")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
