"""Exceptions on one process only: parallel calls in handlers, and handlers that go on as if nothing had been skipped.

Only handlers that catch everything, or what comes from outside (see `variance/raised.py`), count. A handler that skips
calls *after* its `try` is a branch like any other, and `branches.py` checks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.callgraph.entries import Entries
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.transfers import rows_of
from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.variance.caught import reads_own_file
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.raised import Raised, tried_by
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.summary import ENTRY, EXIT


class ExceptionPath(Struct, frozen=True):
    """A parallel call that an exception on one process adds or skips; ``handler`` is the clause, or the function.

    ``reason`` says why it is raised on one process only, if the project raises it itself.
    """

    call: ParallelCall
    handler: Site
    how: Literal["in a handler", "on the way out", "skipped"]
    reason: Reason | None = None


class ExceptionPaths:
    """Checks every handler, and the exit of every context manager."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        effects: Effects,
        multi: MultiProcess,
        entries: Entries,
        content: Origins,
        *,
        preview: bool,
    ) -> None:
        self.entries = entries
        self.content = content
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.multi = multi
        self.preview = preview
        self.raised = Raised(evaluator)

    def found(self) -> Iterator[ExceptionPath]:
        """Every such path, function by function."""
        for ref in self.ev.project.functions():
            if ref not in self.reach.host:
                continue
            frame = self.ev.free_frame(ref)
            if self.ev.function(frame).name in ("__exit__", "__aexit__"):
                yield from self._way_out(frame, ref)
            function = self.ev.function(frame)
            for number, block in enumerate(function.blocks):
                caught = function.operations[block.test] if block.test is not None else None
                if isinstance(caught, s.Caught) and block.test is not None:
                    yield from self._in_frames(frame, number, Site(ref, block.test), caught)

    def _in_frames(self, frame: Frame, block: int, site: Site, caught: s.Caught) -> Iterator[ExceptionPath]:
        """What a handler does to calls: with unknown arguments, else with the first caller that passes functions."""
        for each in (frame, *self.entries.frames(frame.ref)):
            if block in self.ev.live_blocks(each):
                found = list(self._handler(each, block, site, caught))
                if found:
                    yield from found
                    return

    def _way_out(self, frame: Frame, ref: FunctionRef) -> Iterator[ExceptionPath]:
        """A barrier that ``__exit__`` always reaches, whether or not an exception is being raised.

        Barriers in functions that it calls are for --preview, and only if it ignores the exception's arguments.
        """
        told = {formal.name for formal in self.ev.function(frame).formals[1:]}
        deaf = self.preview and not any(load.name in told for _, load in frame.code.of_kind(s.Load))
        for call in self.effects.of_blocks(frame, sorted(self.reach.certainty.blocks(frame))):
            if call.everyone and not call.checkpoint and (len(call.path) == 1 or deaf):
                yield ExceptionPath(call, call.site, "on the way out")
                return

    def _handler(self, frame: Frame, block: int, site: Site, caught: s.Caught) -> Iterator[ExceptionPath]:
        outside = caught.kind is None or self.raised.happens_to_one(self.ev.value(frame, caught.kind))
        # What the program raises itself, it raises because of this process's own data.
        reason = self.content.why(frame, site.number) if not outside else None
        if not outside and reason is None:
            return
        function = self.ev.function(frame)
        target = next(edge.target for edge in function.blocks[block].edges if edge.kind == "except")
        own = self._only_through(frame, block, target)
        interrupted = self._interrupted(frame, caught, own)
        if interrupted is not None:
            yield ExceptionPath(interrupted, site, "in a handler")
            return
        if not own or not self._goes_on(frame, target):
            return
        tried = self._calls(frame, tried_by(self.ev.flow(frame.ref), block))
        handled = self._calls(frame, sorted(own))
        if not self.raised.may_fail(frame, block, self._reads_own):  # else the others never come here
            handled = [call for call in handled if call.everyone and not call.checkpoint]
        if handled and not tried and outside:
            yield ExceptionPath(handled[0], site, "in a handler")
        elif (
            tried
            and not self._calls(frame, sorted(own))
            and not self._ends(frame, sorted(own))
            and (not outside or self.raised.may_fail(frame, block, self._fails if self.preview else self._reads_own))
        ):
            yield ExceptionPath(tried[0], site, "skipped", reason)

    def _goes_on(self, frame: Frame, start: int) -> bool:
        """Whether control can get from a block to the end of the function; not through `assert False`."""
        live = self.ev.live_blocks(frame)
        return EXIT in self.ev.flow(frame.ref).reachable_by(start, lambda block, _: block in live)

    def _ends(self, frame: Frame, blocks: list[int]) -> bool:
        """Whether a handler ends the process: then the others fail with it, and nothing goes on."""
        for _, operation in frame.code.calls_in(blocks):
            if any(known.ends for known in rows_of(self.ev, frame, operation)):
                return True
        return False

    def _interrupted(self, frame: Frame, caught: s.Caught, handler: set[int]) -> ParallelCall | None:
        """What a handler of Ctrl-C calls: a signal reaches one process, while the others are in their next step."""
        if caught.kind is None or not self.preview:
            return None
        kinds = self.ev.value(frame, caught.kind)
        if not all(isinstance(kind, External) and kind.name == "builtins.KeyboardInterrupt" for kind in kinds):
            return None
        return next((call for call in self._calls(frame, sorted(handler)) if call.everyone), None)

    def _fails(self, frame: Frame, number: int, operation: s.Call) -> bool:
        """Whether a call may fail on one process: it is not a parallel call, and does more than compute."""
        if any(self.effects.of_call(frame, number, operation)):
            return False
        return not self.raised.is_calm(self.ev.value(frame, operation.function))

    def _reads_own(self, frame: Frame, number: int, operation: s.Call) -> bool:
        """Whether a call reads a file of this process's own."""
        return reads_own_file(self.raised, self.content, frame, number, operation) is not None

    def _calls(self, frame: Frame, blocks: list[int]) -> list[ParallelCall]:
        several = self.multi.runs_several(frame.ref.path)
        calls = self.effects.of_blocks(frame, blocks)
        return [call for call in calls if call.strength == "strong" or (call.carried and several)]

    def _only_through(self, frame: Frame, block: int, target: int) -> set[int]:
        """The blocks that control reaches only through one clause."""
        flow = self.ev.flow(frame.ref)
        others = flow.reachable_by(ENTRY, lambda one, other: (one, other) != (block, target))
        return flow.reachable(target) - others
