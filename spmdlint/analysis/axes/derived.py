"""What runs where derivatives are taken: the rules of functions with a derivative of their own."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.evaluation.values import Applied, FunctionValue, Value, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_DEPTH = 6


def takes_derivatives(calls: Calls, callee: Value | None, depth: int = _DEPTH) -> bool:
    """Whether a value runs its function under `jax.grad` or the like, perhaps inside of a `jit`."""
    known = calls.knowledge.get(getattr(callee, "name", "")) if callee is not None else None
    if known is None or known.derives or depth == 0:
        return known is not None and known.derives
    if not isinstance(callee, Applied) or not known.function:
        return False
    return any(takes_derivatives(calls, each, depth - 1) for each in calls.functions_in(known, callee.arguments))


def rules_of(calls: Calls, callee: Value) -> Iterator[FunctionValue]:
    """The functions of the project that a function with a derivative of its own is given: ``f.defvjp(fwd, bwd)``.

    They are looked for in its file.
    """
    known = calls.knowledge.get(callee.name) if isinstance(callee, Applied) else None
    if known is None or known.derived_by is None or not isinstance(callee, Applied):
        return
    names, path = frozenset((known.derived_by,)), callee.site.ref.path
    for function in calls.ev.project.modules[path].summary.functions:
        frame = calls.ev.free_frame(FunctionRef(path, function.index))
        for call in frame.code.calls_named(names).values():
            method = frame.code.operations[call.function]
            if not isinstance(method, s.Attribute) or certain(calls.ev.value(frame, method.base)) != callee:
                continue
            given = (certain(calls.ev.value(frame, argument.value)) for argument in call.arguments)
            yield from (each for each in given if isinstance(each, FunctionValue))
