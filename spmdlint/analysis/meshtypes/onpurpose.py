"""Keys that are made different for each device on purpose, and keys of the same split that are therefore shared so."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, Site
from spmdlint.analysis.variance.agreed import parts
from spmdlint.program import summary as s

FOLD = "jax.random.fold_in"
_INDEX = "jax.lax.axis_index"
_DEPTH = 6


def has_own_sibling(ev: Evaluator, split: Site) -> bool:
    """Whether a key from the same split has the index of the device folded in: its author tells the two apart."""
    frame = ev.free_frame(split.ref)
    return any(_split_of(frame, key) == split.number for key in keys_of_devices(ev, frame))


def keys_of_devices(ev: Evaluator, frame: Frame) -> Iterator[int]:
    """The keys that a function makes different for each device: it folds in its index, or a number made from that."""
    for _, call in frame.code.calls_in(sorted(ev.live_blocks(frame))):
        if ev.callee(frame, call) == External(FOLD) and len(call.arguments) == 2:
            key, folded = (argument.value for argument in call.arguments)
            made_from = (value for part in parts(ev, frame, folded, _DEPTH) for value in ev.value(frame, part))
            if any(isinstance(value, Applied) and value.name == _INDEX for value in made_from):
                yield key


def _split_of(frame: Frame, number: int) -> int:
    """The operation that a key, or the row of keys that it was taken from, is the result of."""
    code = frame.code
    root = code.root_of(number)
    operation = code.operations[root]
    while isinstance(operation, (s.Item, s.Subscript)):
        root = code.root_of(operation.value if isinstance(operation, s.Item) else operation.base)
        operation = code.operations[root]
    return root
