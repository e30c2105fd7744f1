"""Copies of one value for each device: by a library's function, or stacked by a function of the program's own.

``jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *x.shape)), tree)``, with ``n`` the number of devices.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Value, certain
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s

_STACKING = frozenset(("jax.numpy.broadcast_to", "jax.numpy.tile", "numpy.broadcast_to"))
_COUNTS = frozenset(("jax.local_device_count", "jax.device_count"))
_DEPTH = 6


def is_copied(evaluator: Evaluator, table: Typing, value: Value | None) -> bool:
    """Whether a value holds one copy of something for each device."""
    if not isinstance(value, Applied):
        return False
    if value.name in table.rows.replicate:
        return True
    if table.rules.get(value.name) != "tree" or len(value.arguments.positional) != 2:
        return False
    function = certain(value.arguments.positional[0])
    return isinstance(function, FunctionValue) and _stacks(evaluator, function)


def _stacks(evaluator: Evaluator, function: FunctionValue) -> bool:
    """Whether a function returns its argument as often as there are devices."""
    body = evaluator.code(function.ref)
    if function.outer is None or len(body.returns) != 1 or body.returns[0][1].value is None:
        return False
    inside = evaluator.frame(function.ref, {}, function.outer, function.outer.depth + 1)
    call = body.operations[body.root_of(body.returns[0][1].value)]
    if not isinstance(call, s.Call) or len(call.arguments) != 2:
        return False
    callee = certain(evaluator.value(inside, call.function))
    if not isinstance(callee, External) or callee.name not in _STACKING:
        return False
    return _counts_devices(evaluator, inside, call.arguments[1].value, _DEPTH)


def _counts_devices(evaluator: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    """Whether the first of some sizes is the number of devices: ``(n, *x.shape)``, ``(n,) + x.shape``."""
    operation = frame.code.operations[number]
    if depth == 0:
        return False
    if isinstance(operation, s.Binary) and operation.operator == "+":
        return _counts_devices(evaluator, frame, operation.left, depth - 1)
    if isinstance(operation, s.Display):
        return bool(operation.elements) and _counts_devices(evaluator, frame, operation.elements[0], depth - 1)
    size = certain(evaluator.value(frame, number))
    return isinstance(size, Applied) and size.name in _COUNTS
