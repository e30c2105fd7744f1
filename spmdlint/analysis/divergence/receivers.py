"""Calls of a method on one object among several, under a condition that uses the same object."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall, same_calls
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Constant, External, Frame, FunctionValue, Instance, Site, truth
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Reason
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

_KNOWN = (Applied, FunctionValue, External)


class ChosenCall(Struct, frozen=True):
    """A call whose function a branch chose, why the choice varies, and the parallel calls of two of the choices."""

    branch: Site
    reason: Reason
    ways: tuple[tuple[ParallelCall, ...], tuple[ParallelCall, ...]]


class ChosenCalls:
    """Checks calls that run one of several functions. One per run."""

    def __init__(self, evaluator: Evaluator, effects: Effects, facets: Facets) -> None:
        self.ev = evaluator
        self.effects = effects
        self.facets = facets

    def in_function(self, frame: Frame) -> Iterator[ChosenCall]:
        """The calls in a function whose parallel calls depend on a choice that varies."""
        for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            callees = self.effects.callees(frame, call)
            if len(callees) < 2 or not all(isinstance(callee, _KNOWN) for callee in callees):
                continue
            ways = [tuple(self.effects.of_callee(frame, number, call, c)) for c in self.ev.in_order(callees)]
            other = next((way for way in ways[1:] if not same_calls(ways[0], way)), None)
            reason = self.facets.choice.why(frame, call.function) if other is not None else None
            if other is not None and reason is not None:
                branch = next(step.site for step in reversed(reason.chain()) if step.through == "choice")
                yield ChosenCall(branch, reason, (ways[0], other))


def chosen_by(evaluator: Evaluator, frame: Frame, test: int, call: ParallelCall) -> bool:
    """Whether a condition distinguishes the objects whose method makes the call: those it lets in may be others.

    As in ``if hook.runs_everywhere or process_index() == 0: hook.run()``, over hooks of several classes. What the class
    itself says of the object decides that part of the condition, and if the rest is left, it distinguishes processes.
    """
    operations = frame.code.operations
    made = operations[call.site.number]
    method = operations[made.function] if isinstance(made, s.Call) else None
    receiver = operations[method.base] if isinstance(method, s.Attribute) else None
    if not isinstance(made, s.Call) or not isinstance(receiver, s.Load):
        return False
    run = [value for value in evaluator.value(frame, made.function) if value != Constant(None)]
    if len(run) < 2 or receiver.name not in _names_in(frame, test):
        return False
    owner = evaluator.project.enclosing_class(call.path[1].ref) if len(call.path) > 1 else None
    if owner is None:
        return True
    made_by = Instance(evaluator.objects.class_of(owner))
    return _answer(evaluator, frame, test, receiver.name, made_by) is not None


_VARIES = None
"""The answer of a condition that the object does not decide."""


def _answer(ev: Evaluator, frame: Frame, test: int, name: str, made_by: Instance) -> bool | str | None:
    """The outcome of a condition for objects of a class, a text if it is not known, and None if others decide it."""
    operation = frame.code.operations[test]
    if isinstance(operation, s.BoolOp):
        decisive = operation.operator == "or"
        answers = [_answer(ev, frame, each, name, made_by) for each in operation.operands]
        if decisive in answers:
            return decisive
        unknown = [each for each in answers if isinstance(each, str)]
        return unknown[0] if unknown else _VARIES if _VARIES in answers else not decisive
    if name not in _names_in(frame, test):
        return _VARIES
    base = frame.code.operations[operation.base] if isinstance(operation, s.Attribute) else None
    if isinstance(operation, s.Attribute) and isinstance(base, s.Load) and base.name == name:
        known = truth(ev.objects.attribute(made_by, operation.name) or frozenset())
        return known if known is not None else "unknown"
    return "unknown"


def _names_in(frame: Frame, number: int) -> set[str]:
    """The names that occur in an expression."""
    operations = frame.code.operations
    found: set[str] = set()
    pending = [number]
    while pending:
        operation = operations[pending.pop()]
        if isinstance(operation, s.Load):
            found.add(operation.name)
        elif isinstance(operation, s.Call):
            pending += [operation.function, *(argument.value for argument in operation.arguments)]
        else:
            pending += operands(operation)
    return found
