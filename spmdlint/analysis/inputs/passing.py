"""Arguments that calls pass for a parameter which the knowledge base names."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import ClassValue, External, Frame, FunctionValue
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s


def passing(ev: Evaluator, key: str) -> Iterator[tuple[Frame, int, Known, int]]:
    """The calls of library functions of which a key of :class:`Known` names a parameter, with the argument for it."""
    for ref in ev.project.functions():
        frame = ev.free_frame(ref)
        for number, operation in frame.code.calls_in(sorted(ev.live_blocks(frame))):
            callees = ordered(ev.value(frame, operation.function))
            described = [ev.knowledge.get(callee.name) for callee in callees if isinstance(callee, External)]
            for known in described or _by_name(ev, frame, operation):
                wanted = getattr(known, key) if known is not None else None
                value = passed(operation, wanted, known.positional) if known is not None and wanted else None
                if known is not None and value is not None:
                    yield frame, number, known, value


def _by_name(ev: Evaluator, frame: Frame, operation: s.Call) -> list[Known | None]:
    """What is known of a method of an object that is not the project's, by the method's name."""
    method = frame.code.operations[operation.function]
    if not isinstance(method, s.Attribute):
        return []
    own = any(isinstance(callee, (FunctionValue, ClassValue)) for callee in ev.value(frame, operation.function))
    return [] if own else [ev.knowledge.methods.get(method.name)]
