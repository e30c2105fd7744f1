"""Where the data that processes share out is made: the reader may have to fix that place, and not the share."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Site
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.program import summary as s


class Made(Property):
    """The value is made by a call of a library or of a generator, or is written out."""

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Call):
            project = origins.ev.project
            callees = [v for v in origins.ev.value(frame, operation.function) if isinstance(v, FunctionValue)]
            if callees and not any(project.function(callee.ref).generator for callee in callees):
                return CONTINUE
        elif not isinstance(operation, (s.Display, s.Collected)):
            return CONTINUE
        return Reason(Site(frame.ref, number), "the data that is shared out is made here", "made")
