"""The functions of a project, and the frames in which they run; each is made once."""

from __future__ import annotations

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.values import Constant, Frame, FunctionValue, Values
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Project
from spmdlint.program.sharing import shared

MAX_FRAMES = 16
"""The most frames of one function with different bindings of its parameters."""
MAX_WRITTEN = 2 * MAX_FRAMES
"""The most frames of one function, including those that bind only constants and functions."""


class Frames:
    """Interns frames: equal bindings give the same frame. One per run."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._frames: dict[FunctionRef, dict[tuple[object, ...], Frame]] = {}
        self._made = 0
        self._codes: dict[FunctionRef, Code] = {}
        self._free: dict[FunctionRef, Frame] = {}

    def frame(
        self, ref: FunctionRef, bindings: dict[str, Values], outer: Frame | None, depth: int, arrays: bool = False
    ) -> Frame:
        """The frame of a function with these bindings; if a function has too many frames, bindings are dropped."""
        frames = self._frames.get(ref)
        if frames is None:
            frames = self._frames[ref] = {}
        names = shared(tuple(sorted(bindings)))
        given = tuple([bindings[name] for name in names])
        key = (names, given, outer, arrays)
        found = frames.get(key)
        if found is None:
            count = len(frames)
            if bindings and count >= MAX_FRAMES:
                # Constants and functions decide branches, and few different ones are passed to any function.
                kinds = (Constant, FunctionValue)
                written = {name: vs for name, vs in bindings.items() if all(isinstance(v, kinds) for v in vs)}
                if len(written) < len(bindings):
                    return self.frame(ref, written, outer, depth, arrays and bool(written))
                if count >= MAX_WRITTEN:
                    return self.frame(ref, {}, outer, depth)
            found = frames[key] = Frame(self.code(ref), ref, names, given, outer, depth, arrays, serial=self._made)
            self._made += 1
        return found

    def free_frame(self, ref: FunctionRef) -> Frame:
        """The frame of a function without a known call: its parameters and those of enclosing functions are free."""
        found = self._free.get(ref)
        if found is None:
            parent = self.project.function(ref).parent
            outer = self.free_frame(self.project.ref(ref.path, parent)) if parent is not None else None
            found = self._free[ref] = self.frame(ref, {}, outer, 0)
        return found

    def code(self, ref: FunctionRef) -> Code:
        """What is true of a function in all its frames."""
        found = self._codes.get(ref)
        if found is None:
            summary = self.project.modules[ref.path].summary
            found = self._codes[ref] = Code(summary, summary.functions[ref.index])
        return found

    def flow(self, ref: FunctionRef) -> Flow:
        return self.code(ref).flow

    def function(self, frame: Frame) -> s.Function:
        return frame.code.function
