"""From a line of a module to the user's source."""

from __future__ import annotations

from spmdlint.runtime_checks.locations import source_of

LOCATED = """#loc1 = loc("x")
module @jit_f {
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> (tensor<f32>) {
    %0 = stablehlo.sine %arg0 : tensor<4xf32> loc(#loc8)
    %1 = stablehlo.add %0, %0 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("/home/me/model.py":3:11 to :21)
#loc3 = loc("/home/me/train.py":6:8 to :12)
#loc4 = loc("/usr/lib/site-packages/jax/_src/lax.py":1:1)
#loc5 = loc("g"(#loc4))
#loc6 = loc(callsite(#loc5 at #loc2))
#loc7 = loc(callsite(#loc6 at #loc3))
#loc8 = loc("jit(f)/sin"(#loc7))
"""


def test_the_innermost_line_of_the_user() -> None:
    assert source_of(LOCATED, 3) == "/home/me/model.py:3"


def test_what_is_not_told() -> None:
    assert source_of(LOCATED, 4) is None
    assert source_of(LOCATED, 1) is None
    assert source_of(LOCATED, 99) is None
    assert source_of("", 1) is None
