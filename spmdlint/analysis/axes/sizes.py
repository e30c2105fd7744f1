"""Numbers that are the size of an axis, whatever that is: `axis_size`, a `psum` of one, an entry of a mesh's shape."""

from __future__ import annotations

from typing import Literal

from spmdlint.analysis.evaluation.values import Constant, External, Frame, Site, certain, constant
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Property, Reason
from spmdlint.program import summary as s


class AxisSize(Property):
    """Whether a value is exactly the size of the axis that an operation names: not one less, and not perhaps.

    A name that is assigned more than once, and a parameter, have no answer.
    """

    def __init__(self, frame: Frame, axis: int) -> None:
        self.frame = frame
        self.axis = axis

    def step(
        self, origins: Origins, frame: Frame, number: int, operation: s.Operation
    ) -> Reason | Literal["continue"] | None:
        if isinstance(operation, (s.Load, s.Store)):
            return CONTINUE if len(frame.code.function.stores.get(operation.name, ())) < 2 else None
        if isinstance(operation, s.Subscript):
            shape = frame.code.operations[frame.code.root_of(operation.base)]
            sized = isinstance(shape, s.Attribute) and shape.name == "shape"
            return self._of_axis(origins, frame, number, operation.index) if sized else None
        if not isinstance(operation, s.Call):
            return None
        callee = certain(origins.ev.value(frame, operation.function))
        given = [each.value for each in operation.arguments if each.keyword is None and not each.star]
        if not isinstance(callee, External) or len(given) < len(operation.arguments):
            return None
        if callee.name == "jax.lax.psum" and len(given) == 2:
            one = constant(origins.ev.value(frame, given[0])) == Constant(1)
            return self._of_axis(origins, frame, number, given[1]) if one else None
        if callee.name == "jax.lax.axis_size" and len(given) == 1:
            return self._of_axis(origins, frame, number, given[0])
        return None

    def _of_axis(self, origins: Origins, frame: Frame, number: int, axis: int) -> Reason | None:
        """The answer for the size of some axis, which may be the same axis by its value or as the same variable."""
        values = [certain(origins.ev.value(each, name)) for each, name in ((frame, axis), (self.frame, self.axis))]
        same = values[0] is not None and values[0] == values[1]
        if not same and (None not in values or not self._same_name(frame, axis)):
            return None
        return Reason(Site(frame.ref, number), "this is the size of the axis", "size")

    def _same_name(self, frame: Frame, axis: int) -> bool:
        """Whether two operations load the same variable, which is assigned once."""
        load, other = frame.code.operations[axis], self.frame.code.operations[self.axis]
        if not isinstance(load, s.Load) or not isinstance(other, s.Load) or load.name != other.name:
            return False
        if frame.ref.path != self.frame.ref.path:
            return False
        scope = frame.code.scope_of(load.name)
        if scope is None or self.frame.code.scope_of(load.name) is not scope:
            return False
        return len(scope.stores.get(load.name, ())) < 2
