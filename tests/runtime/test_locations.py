"""From a line of a module to the user's source."""

from __future__ import annotations

from typing import Any

from spmdlint.runtime_checks.calls.modules import source_of

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


MOVED = """module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<f32>) {
    %cst = stablehlo.constant dense<1.0> : tensor<f32> loc(#loc3)
    %cst_1 = stablehlo.constant dense<2.0> : tensor<f32> loc(#loc3)
    %0 = stablehlo.multiply %cst_1, %arg0 : tensor<4xf32> loc(#loc2)
    %1 = "stablehlo.all_reduce"(%0) ({
    ^bb0(%arg1: tensor<f32>):
      "stablehlo.return"(%arg1) : (tensor<f32>) -> () loc(#loc3)
    }) : (tensor<4xf32>) -> tensor<4xf32> loc(#loc2)
  } loc(#loc3)
}
#loc2 = loc("/home/me/model.py":3:11)
#loc3 = loc("/home/me/train.py":6:8)
"""


def test_a_constant_is_where_it_is_used() -> None:
    assert source_of(MOVED, 4) == "/home/me/model.py:3"
    assert source_of(MOVED, 3) == "/home/me/train.py:6"


def test_an_operation_with_a_region_is_where_the_region_ends() -> None:
    assert source_of(MOVED, 6) == "/home/me/model.py:3"


def test_callers_are_the_same_lines_with_and_without_a_frame_for_a_comprehension() -> None:
    code = """
import sys
from spmdlint.runtime_checks.calls.frames import raising_site, user_site
def helper(number):
    return user_site(sys._getframe())
def both():
    return [helper(number) for number in (1,)]
def fail():
    return [1 / number for number in (0,)]
(site,) = both()
try:
    fail()
except ZeroDivisionError as error:
    raised = raising_site(error.__traceback__)
"""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "/home/me/train.py", "exec"), names)
    assert (names["site"].line, [line.rpartition(":")[2] for line in names["site"].callers][:2]) == (5, ["7", "10"])
    assert (names["raised"].line, [line.rpartition(":")[2] for line in names["raised"].callers]) == (9, ["12"])
