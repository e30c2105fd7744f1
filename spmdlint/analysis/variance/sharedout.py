"""Data that a library shares out: an unknown call that is given the process index and the number of processes.

``task.get_dataset(shard_info=ShardInfo(process_index(), process_count()))``: the result is this process's own part, and
does not identify the process.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.values import Applied, External, Frame, Site
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_COUNTS = frozenset(("jax.process_count", "jax.host_count"))
_DEPTH = 3


def shared_out(content: Origins, frame: Frame, number: int, call: s.Call) -> Reason | None:
    """Why the result of an unknown call is this process's part of something."""
    given = [each for argument in call.arguments for each in _parts(content, frame, argument.value, _DEPTH)]
    if not any(_is_count(content, frame, value) for value in given):
        return None
    reasons = (content.of(frame, value) for value in given)
    found = next((reason for reason in reasons if reason is not None and reason.kind == "identity"), None)
    if found is None:
        return None
    return Reason(Site(frame.ref, number), "this is shared out by process index", "data", found)


def _parts(content: Origins, frame: Frame, value: int, depth: int) -> Iterator[int]:
    """A value, with the elements of a tuple or the arguments of an unknown object."""
    yield value
    operation = frame.code.operations[frame.code.root_of(value)]
    inner: tuple[int, ...] = ()
    if isinstance(operation, s.Display):
        inner = operation.elements
    elif isinstance(operation, s.Call) and _makes_options(content, frame, operation):
        inner = tuple(argument.value for argument in operation.arguments)
    for each in inner if depth else ():
        yield from _parts(content, frame, each, depth - 1)


def _makes_options(content: Origins, frame: Frame, call: s.Call) -> bool:
    """Whether a call makes an object of a class unknown to the linter, judging by the spelling of its name."""
    callee = frame.code.operations[call.function]
    name = callee.name if isinstance(callee, (s.Load, s.Attribute)) else ""
    known = any(
        isinstance(value, External) and content.ev.knowledge.get(value.name) is not None
        for value in content.ev.value(frame, call.function)
    )
    return name[:1].isupper() and not known


def _is_count(content: Origins, frame: Frame, value: int) -> bool:
    return any(isinstance(each, Applied) and each.name in _COUNTS for each in content.ev.value(frame, value))
