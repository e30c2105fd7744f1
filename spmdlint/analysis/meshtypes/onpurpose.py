"""Keys that are shared on purpose: another one from the same split is made different for each device."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, Site, certain
from spmdlint.program import summary as s

_FOLD = "jax.random.fold_in"
_INDEX = "jax.lax.axis_index"


def has_own_sibling(ev: Evaluator, split: Site) -> bool:
    """Whether a key from the same split has the index of the device folded in: its author tells the two apart."""
    frame = ev.free_frame(split.ref)
    for _, call in frame.code.calls_in(sorted(ev.live_blocks(frame))):
        if not _calls(ev, frame, call, _FOLD) or len(call.arguments) < 2:
            continue
        key, folded = (argument.value for argument in call.arguments[:2])
        if _split_of(frame, key) == split.number and _is_index(ev, frame, folded):
            return True
    return False


def _split_of(frame: Frame, number: int) -> int:
    """The operation that a key, or the row of keys that it was taken from, is the result of."""
    code = frame.code
    root = code.root_of(number)
    operation = code.operations[root]
    while isinstance(operation, (s.Item, s.Subscript)):
        root = code.root_of(operation.value if isinstance(operation, s.Item) else operation.base)
        operation = code.operations[root]
    return root


def _is_index(ev: Evaluator, frame: Frame, number: int) -> bool:
    operation = frame.code.operations[frame.code.root_of(number)]
    return isinstance(operation, s.Call) and _calls(ev, frame, operation, _INDEX)


def _calls(ev: Evaluator, frame: Frame, call: s.Call, name: str) -> bool:
    callee = certain(ev.value(frame, call.function))
    return getattr(callee, "name", None) == name
