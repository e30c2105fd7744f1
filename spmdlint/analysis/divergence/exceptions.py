"""Exceptions on one process only: parallel calls in handlers, and handlers that go on as if nothing had been missed.

What a file system, a network or a process's own data raise, they raise on one process. What the program itself raises
alike everywhere is no divergence; so only handlers count that catch everything, or what input and output raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.callgraph.entries import Entries
from spmdlint.analysis.callgraph.multiprocess import MultiProcess
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Collection, External, Frame, FunctionValue, Site, Values
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.summary import ENTRY, EXIT

_BROAD = frozenset(f"builtins.{name}" for name in "Exception BaseException KeyboardInterrupt".split())
_INPUT = frozenset(
    f"builtins.{name}"
    for name in "OSError IOError FileNotFoundError PermissionError ConnectionError TimeoutError EOFError".split()
) | frozenset(
    "urllib.error.URLError urllib.error.HTTPError socket.timeout socket.error queue.Empty queue.Full "
    "subprocess.CalledProcessError subprocess.TimeoutExpired http.client.HTTPException".split()
)
_CALM = ("builtins.", "os.path.", "time.", "math.", "functools.", "itertools.")
_DEPTH = 3
"""Calls of the project's own functions that are looked into for what may fail."""


@dataclass(frozen=True, slots=True)
class ExceptionPath:
    """A parallel call that an exception on one process adds or skips; ``handler`` is the clause, or the function."""

    call: ParallelCall
    handler: Site
    how: Literal["in a handler", "on the way out", "skipped"]


class ExceptionPaths:
    """Looks at every handler, and at the way out of every context manager."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        effects: Effects,
        multi: MultiProcess,
        entries: Entries,
        *,
        preview: bool,
    ) -> None:
        self.entries = entries
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.multi = multi
        self.preview = preview

    def found(self) -> Iterator[ExceptionPath]:
        """Function by function."""
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
        """What a handler does to calls: as nobody knows who calls, or as the first does who passes functions."""
        for each in (frame, *self.entries.of(frame.ref)):
            if block in self.ev.live_blocks(each):
                found = list(self._handler(each, block, site, caught))
                if found:
                    yield from found
                    return

    def _way_out(self, frame: Frame, ref: FunctionRef) -> Iterator[ExceptionPath]:
        """A barrier that ``__exit__`` always comes to, whether an exception is on its way or not."""
        for call in self.effects.of_blocks(frame, sorted(self.reach.certainty.blocks(frame))):
            if call.everyone and not call.checkpoint and len(call.path) == 1:
                yield ExceptionPath(call, call.site, "on the way out")
                return

    def _handler(self, frame: Frame, block: int, site: Site, caught: s.Caught) -> Iterator[ExceptionPath]:
        if caught.kind is not None and not _happens_to_one(self.ev.value(frame, caught.kind)):
            return
        function = self.ev.function(frame)
        target = next(edge.target for edge in function.blocks[block].edges if edge.kind == "except")
        own = self._only_through(frame, block, target)
        if not own or EXIT not in self.ev.flow(frame.ref).reachable(target):
            return
        tried = self._calls(frame, self._tried(frame, block))
        handled = [call for call in self._calls(frame, sorted(own)) if call.everyone and not call.checkpoint]
        if handled and not tried:
            yield ExceptionPath(handled[0], site, "in a handler")
        elif tried and self.preview and not self._calls(frame, sorted(own)) and self._may_fail(frame, block):
            yield ExceptionPath(tried[0], site, "skipped")

    def _may_fail(self, frame: Frame, block: int) -> bool:
        """Is there a call in the `try` that may fail on one process: not only a ``raise``, and parallel calls."""
        return any(self._fails_in(frame, tried, _DEPTH) for tried in self._tried(frame, block))

    def _fails_in(self, frame: Frame, block: int, depth: int) -> bool:
        function = self.ev.function(frame)
        calls = ((n, function.operations[n]) for n in function.blocks[block].operations)
        return any(self._call_fails(frame, n, call, depth) for n, call in calls if isinstance(call, s.Call))

    def _call_fails(self, frame: Frame, number: int, operation: s.Call, depth: int) -> bool:
        callees = self.ev.value(frame, operation.function)
        own = [callee for callee in callees if isinstance(callee, FunctionValue)]
        if own and depth and len(own) == len(callees):
            inside = [self.ev.free_frame(callee.ref) for callee in own]
            return any(self._fails_in(f, block, depth - 1) for f in inside for block in sorted(self.ev.live_blocks(f)))
        if any(self.effects.of_call(frame, number, operation)):
            return False
        names = [callee.name for callee in callees if isinstance(callee, External)]
        return not names or not all(_is_calm(name) for name in names)

    def _calls(self, frame: Frame, blocks: list[int]) -> list[ParallelCall]:
        several = self.multi.written_for(frame.ref.path)
        calls = self.effects.of_blocks(frame, blocks)
        return [call for call in calls if call.strength == "strong" or (call.carried and several)]

    def _tried(self, frame: Frame, block: int) -> list[int]:
        """The blocks of the `try` that a clause belongs to: those with a way to it, or to a clause before it."""
        function = self.ev.function(frame)
        clauses = {block}
        while True:
            before = {
                number
                for number, other in enumerate(function.blocks)
                if any(edge.kind == "false" and edge.target in clauses for edge in other.edges)
                and other.test is not None
                and isinstance(function.operations[other.test], s.Caught)
            }
            if before <= clauses:
                break
            clauses |= before
        return [
            number
            for number, other in enumerate(function.blocks)
            if any(edge.kind == "except" and edge.target in clauses for edge in other.edges)
        ]

    def _only_through(self, frame: Frame, block: int, target: int) -> set[int]:
        """The blocks that control comes to through one clause only."""
        successors = self.ev.flow(frame.ref).successors
        others: set[int] = set()
        pending = [ENTRY]
        while pending:
            current = pending.pop()
            if current not in others:
                others.add(current)
                pending.extend(t for t in successors[current] if (current, t) != (block, target))
        return self.ev.flow(frame.ref).reachable(target) - others


def _is_calm(name: str) -> bool:
    """Does a call of this raise nothing that comes from outside: it computes, or only makes an exception."""
    computes = name.startswith(_CALM) and name != "builtins.open"
    return computes or name.endswith(("Error", "Exception"))


def _happens_to_one(kinds: Values) -> bool:
    """Does one of these exceptions come from outside of the program, or is it every one."""
    for kind in kinds:
        if isinstance(kind, Collection):
            if any(_happens_to_one(element) for element in kind.elements):
                return True
        elif isinstance(kind, External) and kind.name in _BROAD | _INPUT:
            return True
    return False
