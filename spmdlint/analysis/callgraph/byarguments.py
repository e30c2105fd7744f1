"""Resolves a method of an unknown object by its arguments: ``manager.save(0, args=ocp.args.StandardSave(x))``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Applied, External, Frame, Free, Unknown
from spmdlint.program import summary as s


def by_arguments(evaluator: Evaluator, frame: Frame, call: s.Call) -> External | None:
    """The library method that a call runs, if one of its arguments is made for that method's class alone."""
    method = frame.code.operations[call.function]
    if not isinstance(method, s.Attribute) or not call.arguments:
        return None
    if not all(isinstance(callee, (Unknown, Free)) for callee in evaluator.value(frame, call.function)):
        return None
    for argument in call.arguments:
        for value in ordered(evaluator.value(frame, argument.value)):
            known = evaluator.knowledge.get(value.name) if isinstance(value, Applied) else None
            if known is not None and known.given_to:
                return External(f"{known.given_to}.{method.name}")
    return None
