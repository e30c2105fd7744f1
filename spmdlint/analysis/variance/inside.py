"""Arrays in a dictionary or list: whether their lengths differ between processes."""

from __future__ import annotations

from spmdlint.analysis.evaluation.elements import entries
from spmdlint.analysis.evaluation.fillings import filling_of
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue
from spmdlint.analysis.variance.element import of_element, of_entry
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

_HOLDERS = frozenset(names("holders"))
_LEAVES = frozenset(names("tree_leaves"))
_VIEWS = frozenset(("values", "items", "copy"))
_FOLLOWED = (s.Load, s.Store, s.Parameter, s.Attribute, s.IfExp, s.BoolOp)


class Inside(Property):
    """The value holds arrays whose lengths differ between processes. ``length`` is the facet of one such array."""

    def __init__(self, facets: OtherFacets) -> None:
        self.facets = facets

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Collected):
            return self.facets.length.why(frame, operation.element)
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        if isinstance(operation, s.Item):
            return of_element(origins, frame, operation)
        if isinstance(operation, s.Load):
            return self._filled(origins, frame, number, operation) or CONTINUE
        return CONTINUE if isinstance(operation, _FOLLOWED) else None

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        callees = origins.callees(frame, operation)
        arguments = [argument.value for argument in operation.arguments if not argument.star]
        for function in origins.calls.run_by(callees, frame, operation):
            if isinstance(function, FunctionValue):
                return origins.in_call(frame, number, operation, function, self.facets.length.of_returns)
        for callee in callees:
            if isinstance(callee, External):
                holds = callee.name in _HOLDERS or callee.name in _LEAVES
                return origins.any_of(frame, arguments) if holds else None
        method = frame.code.operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in _VIEWS and not arguments:
            return origins.why(frame, method.base)
        return CONTINUE

    def _filled(self, origins: Origins, frame: Frame, number: int, load: s.Load) -> Reason | None:
        """Why what is put into a dictionary, under some key, has a different length."""
        text, length = f"it is put into {load.name!r}", self.facets.length
        places = ((place, frame.code.operations[place]) for place in filling_of(origins.ev, frame, number))
        return origins.all_of(
            origins.step(frame, place, text, length.why(frame, put.value))
            for place, put in places
            if isinstance(put, s.StoreSubscript)
        )


def of_item(inside: Origins, length: Origins, frame: Frame, subscript: s.Subscript) -> Reason | None:
    """Why an array taken by a constant key, or by an index into a list of arrays, has a different length."""
    index = frame.code.operations[subscript.index]
    if not isinstance(index, s.Const):
        return None
    if isinstance(index.value, str) and any(entries(length.ev, frame, subscript.base, index.value)):
        return of_entry(length, frame, subscript.base, index.value)
    return inside.why(frame, subscript.base)


def of_round(inside: Origins, frame: Frame, taken: s.Next | s.Item) -> Reason | None:
    """Why an array that a loop takes from a dictionary has a different length: ``for name, rows in parts.items()``."""
    table = frame.code.table_of(taken, 1)
    return inside.why(frame, table) if table is not None else None
