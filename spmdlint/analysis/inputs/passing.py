"""Arguments that calls pass for a parameter which the knowledge base names."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.knowledge.load import Known


def passing(ev: Evaluator, key: str) -> Iterator[tuple[Frame, int, Known, int]]:
    """The calls of library functions of which a key of :class:`Known` names a parameter, with the argument for it."""
    for ref in ev.project.functions():
        frame = ev.free_frame(ref)
        for number, operation in frame.code.calls_in(sorted(ev.live_blocks(frame))):
            for callee in ordered(ev.value(frame, operation.function)):
                known = ev.knowledge.get(callee.name) if isinstance(callee, External) else None
                wanted = getattr(known, key) if known is not None else None
                value = passed(operation, wanted, known.positional) if known is not None and wanted else None
                if known is not None and value is not None:
                    yield frame, number, known, value
