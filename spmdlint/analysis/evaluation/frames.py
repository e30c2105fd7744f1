"""The functions of a project, and the frames in which they run: each made once."""

from __future__ import annotations

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.values import Frame, Values
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Project

MAX_FRAMES = 16
"""Different bindings of one function's parameters."""


class Frames:
    """Makes frames, the same for the same bindings. One per run."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._frames: dict[tuple[object, ...], Frame] = {}
        self._count: dict[FunctionRef, int] = {}
        self._codes: dict[FunctionRef, Code] = {}
        self._free: dict[FunctionRef, Frame] = {}

    def frame(
        self, ref: FunctionRef, bindings: dict[str, Values], outer: Frame | None, depth: int, arrays: bool = False
    ) -> Frame:
        """The frame of a function with these bindings; a function seen with too many gets the one without."""
        key = (ref, frozenset(bindings.items()), outer, arrays)
        found = self._frames.get(key)
        if found is None:
            if bindings and self._count.get(ref, 0) >= MAX_FRAMES:
                return self.frame(ref, {}, outer, depth)
            self._count[ref] = self._count.get(ref, 0) + 1
            found = self._frames[key] = Frame(
                self.code(ref), ref, bindings, outer, depth, arrays, serial=len(self._frames)
            )
        return found

    def free_frame(self, ref: FunctionRef) -> Frame:
        """The frame of a function of which no call is known: its parameters are free, and those around it."""
        found = self._free.get(ref)
        if found is None:
            parent = self.project.function(ref).parent
            outer = self.free_frame(FunctionRef(ref.path, parent)) if parent is not None else None
            found = self._free[ref] = self.frame(ref, {}, outer, 0)
        return found

    def code(self, ref: FunctionRef) -> Code:
        """What holds of a function in all its frames."""
        found = self._codes.get(ref)
        if found is None:
            summary = self.project.modules[ref.path].summary
            found = self._codes[ref] = Code(summary, summary.functions[ref.index])
        return found

    def flow(self, ref: FunctionRef) -> Flow:
        return self.code(ref).flow

    def function(self, frame: Frame) -> s.Function:
        return frame.code.function
