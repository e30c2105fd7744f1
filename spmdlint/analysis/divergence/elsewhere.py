"""Parallel calls that run at their own times: in threads of the host, callbacks from the device, and finalizers.

A thread launches its calls between those of the main thread, at a different position on each process. A callback runs
while the devices are still in the computation that called it, so a call of all processes inside it waits for itself. A
finalizer runs when the garbage collector gets to its object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    ClassValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Site,
    Values,
    certain,
)
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s

_POOLED = "submit"
_STARTED = (_POOLED, "threading.Thread")
_RUN = "run"
"""What a thread runs that is an object of a class of its own."""
_DEPTH = 3
"""How many levels of callers above the place where a function is passed on are searched."""


class CallElsewhere(Struct, frozen=True):
    """A call that passes on a function, or a finalizer, and the first parallel call that the function makes."""

    site: Site
    starter: str
    call: ParallelCall
    how: Literal["thread", "callback", "finalizer"]


class CallsElsewhere:
    """Checks every function that is passed to a thread, a callback or the like."""

    def __init__(
        self,
        evaluator: Evaluator,
        calls: Calls,
        reach: Reach,
        effects: Effects,
        multi: MultiProcess,
        *,
        preview: bool,
    ) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach
        self.effects = effects
        self.multi = multi
        self.preview = preview

    def found(self) -> Iterator[CallElsewhere]:
        """Every such call, function by function."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            if frame.code.function.name == "__del__" and self.ev.project.enclosing_class(ref) is not None:
                yield from self._finalizer(frame)
            for number, operation in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                yield from self._handed(frame, number, operation)

    def _finalizer(self, frame: Frame) -> Iterator[CallElsewhere]:
        """The call in ``__del__`` that all processes must make together."""
        for call in self.effects.of_function(frame):
            if call.everyone:
                yield CallElsewhere(call.path[0], "__del__", call, "finalizer")
                return

    def _handed(self, frame: Frame, number: int, operation: s.Call) -> Iterator[CallElsewhere]:
        known = self._starter(frame, operation)
        if known is None or known.callback is None:
            return
        how: Literal["thread", "callback"] = "callback" if known.source == "callback" else "thread"
        for value in self._functions(frame, operation, known):
            for target in self.calls.targets(value, Arguments(open=True), frame.depth + 1):
                for call in self.effects.of_function(target.frame):
                    if self._counts(frame, call, how) or self._meets_others(frame, number, known, call):
                        name = known.name.rsplit(".", 1)[-1]
                        yield CallElsewhere(Site(frame.ref, number), name, call, how)
                        return

    def _counts(self, frame: Frame, call: ParallelCall, how: str) -> bool:
        if how == "callback":
            # In a single-process job, a checkpoint waits for nobody.
            alone = call.checkpoint and not self.preview and not self.multi.runs_several(frame.ref.path)
            return call.everyone and not alone
        # Barriers and checkpoints in a thread are how asynchronous savers work.
        if call.everyone:
            known = self.ev.knowledge.get(call.same) if isinstance(call.same, str) else None
            return self.preview and known is not None and known.agreement and not known.checkpoint
        # Actors in reinforcement learning run a bare jit on their own device in threads.
        return self.preview and call.strength == "strong"

    def _meets_others(self, frame: Frame, number: int, starter: Known, call: ParallelCall) -> bool:
        """Whether the program launches calls over all devices in a thread, and others beside them."""
        if call.everyone or call.strength != "strong" or starter.name not in _STARTED:
            return False
        waits = (read for _, read in frame.code.of_kind(s.Attribute) if read.name == "result")
        if any(frame.code.root_of(read.base) == number for read in waits):
            return False
        # A thread may be the only one that launches anything, as in a server, but not beside a loop of training.
        only_steps = starter.name != _POOLED
        site = Site(frame.ref, number)
        return self.multi.surely_runs_several(frame.ref.path) and self._launches_beside(site, only_steps, _DEPTH)

    def _launches_beside(self, site: Site, only_steps: bool, depth: int) -> bool:
        """Whether a function launches other calls beside one that it makes, or one of its callers does."""
        frame = self.ev.free_frame(site.ref)
        repeated = frozenset().union(*frame.code.flow.loops.values())
        blocks = self.ev.live_blocks(frame) & repeated if only_steps else self.ev.live_blocks(frame)
        for number, call in frame.code.calls_in(sorted(blocks)):
            launched = self.effects.of_call(frame, number, call) if number != site.number else ()
            if any(each.carried or (each.strength == "strong" and not only_steps) for each in launched):
                return True
        edges = self.reach.callers.get(site.ref, ()) if depth else ()
        return any(
            edge.target.way == "call" and self._launches_beside(edge.site, only_steps, depth - 1) for edge in edges
        )

    def _starter(self, frame: Frame, operation: s.Call) -> Known | None:
        """What is known of a callee that runs functions at their own times."""
        callees = self.ev.value(frame, operation.function)
        for callee in ordered(callees):
            if isinstance(callee, External):
                return self.ev.knowledge.get(callee.name)
            if isinstance(callee, ClassValue):
                bases = map(self.ev.knowledge.get, self.ev.objects.library_bases(callee))
                return next((each for each in bases if each is not None and each.source == "thread"), None)
            if isinstance(callee, FunctionValue):
                return None
        method = self.ev.function(frame).operations[operation.function]
        if not isinstance(method, s.Attribute):
            return None
        known = self.ev.knowledge.methods.get(method.name)
        if known is None or not known.needs:
            return known
        makers = [v.name for v in ordered(self.ev.value(frame, method.base)) if isinstance(v, (Applied, External))]
        return known if not makers or any(name.split(".")[0] in known.needs for name in makers) else None

    def _functions(self, frame: Frame, operation: s.Call, known: Known) -> Iterator[FunctionValue]:
        for callee in self.ev.value(frame, operation.function):
            if isinstance(callee, ClassValue):  # of a thread
                run = certain(self.ev.objects.attribute(Instance(callee), _RUN))
                if isinstance(run, FunctionValue):
                    yield run
        arguments = self.ev.arguments(frame, operation)
        passed: Values | None = arguments.keyword(known.callback or "")
        position = known.positional.index(known.callback) if known.callback in known.positional else 0
        if passed is None and position < len(arguments.positional):
            passed = arguments.positional[position]
        for value in passed or ():
            if isinstance(value, FunctionValue):
                yield value
            elif isinstance(value, Applied):
                inside = (v for values in value.arguments.positional for v in values)
                yield from (v for v in inside if isinstance(v, FunctionValue))
