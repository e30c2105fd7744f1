"""Tries permutations and groups for an axis of unknown size with several sizes: wrong for all of them is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.axes.permutations import (
    BadGroups,
    BadPermutation,
    groups,
    no_partition,
    out_of_range,
    pairs,
    repeated,
)
from spmdlint.analysis.axes.specs import Specs
from spmdlint.analysis.axes.written import Places
from spmdlint.analysis.callgraph.reach import MapUse
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.comprehension import collected
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Values,
    certain,
    constant,
    one,
)
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s


class AxisSize(Property):
    """Whether a value is exactly the size of the axis that an operation names: not one less, and not perhaps.

    A name that is assigned more than once, and a parameter, have no answer.
    """

    def __init__(self, frame: Frame, axis: int) -> None:
        self.frame = frame
        self.axis = axis

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, (s.Load, s.Store)):
            return CONTINUE if len(frame.code.function.stores.get(operation.name, ())) < 2 else None
        if isinstance(operation, s.Subscript):
            shape = frame.code.operations[frame.code.root_of(operation.base)]
            sized = isinstance(shape, s.Attribute) and shape.name == "shape"
            return self._of_axis(origins, frame, number, operation.index) if sized else None
        if not isinstance(operation, s.Call):
            return None
        callee = origins.ev.callee(frame, operation)
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
        if values[0] is None or values[0] != values[1]:
            return None
        return Reason(Site(frame.ref, number), "this is the size of the axis", "size")


SIZES = range(3, 9)
"""The sizes that are tried; with fewer devices, too many permutations would be right or wrong by chance."""


def _always(found: list[BadPermutation | None]) -> BadPermutation | None:
    """The first fault, if there is one of the same role for each size."""
    first = found[0]
    return None if first is None or any(bad is None or bad.role != first.role for bad in found) else first


class Trials:
    """Finds such permutations. One per run."""

    def __init__(self, evaluator: Evaluator, specs: Specs, places: Places) -> None:
        self.ev = evaluator
        self.specs = specs
        self.places = places

    def permutations(self) -> Iterator[BadPermutation]:
        """Permutations in which two pairs share an end, or that leave the axis, whatever the number of devices."""
        for use in self.specs.applications:
            known = self.ev.knowledge.get(use.applied.name)
            if known is None or known.permutation is None:
                continue
            frame, made = self._made(use, known, known.permutation)
            tried = (self._tried(use.site, known, each, frame) for each in self._arms(made)) if made is not None else ()
            bad = next((each for each in tried if each is not None), None)
            if bad is not None:
                yield bad

    def groups(self) -> Iterator[BadGroups]:
        """Groups of which two hold the same device, whatever their size."""
        for use in self.specs.applications:
            known = self.ev.knowledge.get(use.applied.name)
            if known is None or known.groups is None:
                continue
            frame, made = self._made(use, known, known.groups)
            bad = self._overlapping(use.site, made.number, frame) if made is not None else None
            if bad is not None:
                yield bad

    def _made(self, use: MapUse, known: Known, parameter: str) -> tuple[Frame, Site | None]:
        """Where the argument for a parameter is written as a list, None if it is not, and the frame in which it is."""
        call = self.ev.function(use.frame).operations[use.site.number]
        given = passed(call, parameter, known.positional) if isinstance(call, s.Call) else None
        made = self.places.made(use.site, given) if given is not None else None
        if made is None or given is None:
            return use.frame, None
        return self._frame(use.frame, given, made), made

    def _overlapping(self, site: Site, made: int, frame: Frame) -> BadGroups | None:
        operation = frame.code.operations[made]
        if not isinstance(operation, s.Collected) or operation.kind == "dict":
            return None
        unknown = self._unknown(frame, operation)
        split = [groups(self._of_size(frame, operation, unknown, size)) for size in SIZES] if unknown else []
        found = [no_partition(site, [n for group in each for n in group]) for each in split if each is not None]
        if len(found) < len(SIZES) or any(bad is None or bad.repeated is None for bad in found):
            return None
        first = found[0]
        return BadGroups(site, repeated=first.repeated, tried=SIZES[0]) if first is not None else None

    def _arms(self, made: Site) -> list[int]:
        """A list, and the values that other arms of a branch store under the same name, or return, in its place."""
        code = self.ev.code(made.ref)
        stores = [store for _, store in code.of_kind(s.Store)]
        names = {store.name for store in stores if store.value == made.number}
        instead = [store.value for store in stores if store.name in names]
        returned = [given.value for _, given in code.returns if given.value is not None]
        instead += returned if made.number in returned else []
        return list(dict.fromkeys((made.number, *instead)))

    def _frame(self, frame: Frame, given: int, made: Site) -> Frame:
        """The frame in which a list is made, with its bindings if the function that makes it is called here."""
        call = frame.code.operations[frame.code.root_of(given)]
        if made.ref != frame.ref and isinstance(call, s.Call):
            callee = self.ev.callee(frame, call)
            if isinstance(callee, FunctionValue) and callee.ref == made.ref:
                inner = self.ev.entered_frame(callee, self.ev.arguments(frame, call), frame.depth + 1)
                if inner is not None:
                    return inner
        return self.ev.free_frame(made.ref)

    def _tried(self, site: Site, known: Known, made: int, frame: Frame) -> BadPermutation | None:
        operation = frame.code.operations[made]
        if not isinstance(operation, s.Collected) or operation.kind == "dict":
            return None
        unknown = self._unknown(frame, operation)
        if unknown is None:
            return None
        kept = self._kept(frame, operation) if not known.sources else None
        if kept is not None:
            return BadPermutation(site, kept[0], kept[1], tried=SIZES[0])
        lists = [self._of_size(frame, operation, unknown, size) for size in SIZES]
        first = _always([repeated(site, known, each) for each in lists])
        if first is not None:
            return BadPermutation(site, first.device, first.role, tried=SIZES[0])
        if known.sources or not self._is_size(site, known, frame, operation):
            return None
        ends = [pairs(known, each) or [] for each in lists]
        sized = zip(ends, SIZES, strict=True)
        first = _always([out_of_range(site, each, frozenset({size})) for each, size in sized])
        return BadPermutation(site, first.device, first.role, first.size, SIZES[0]) if first is not None else None

    def _of_size(self, frame: Frame, operation: s.Collected, unknown: frozenset[int], size: int) -> Values:
        return collected(self.ev, frame, operation, dict.fromkeys(unknown, one(Constant(size))))

    def _unknown(self, frame: Frame, operation: s.Collected) -> frozenset[int] | None:
        """The operations that hold the number of devices: the ``n`` of ``for i in range(n)``, wherever it is read."""
        end = self._end(frame, operation)
        if end is None:
            return None
        return frozenset(number for number in range(len(frame.code.operations)) if self._same(frame, end, number))

    def _end(self, frame: Frame, operation: s.Collected) -> int | None:
        """The first unknown ``n`` of the loops ``for i in range(n)``."""
        for loop in operation.loops:
            step = frame.code.operations[loop]
            call = frame.code.operations[step.iterable] if isinstance(step, s.Next) else None
            if not isinstance(call, s.Call) or not call.arguments:
                return None
            if not self.ev.may_do(frame, call, "range"):
                return None
            end = call.arguments[0 if len(call.arguments) == 1 else 1].value
            if constant(self.ev.value(frame, end)) is None:
                return end
        inner = frame.code.operations[operation.element]
        return self._end(frame, inner) if isinstance(inner, s.Collected) else None

    def _is_size(self, site: Site, known: Known, frame: Frame, operation: s.Collected) -> bool:
        """Whether the unknown number is the size of the axis along which the operation at a site permutes."""
        within = self.ev.free_frame(site.ref)
        call, end = within.code.operations[site.number], self._end(frame, operation)
        axis = passed(call, known.axes, known.positional) if isinstance(call, s.Call) and known.axes else None
        if axis is None or end is None:
            return False
        sizes = Origins(self.ev, self.places.calls, self.places.reach, AxisSize(within, axis))
        return sizes.why(frame, end) is not None

    def _kept(self, frame: Frame, operation: s.Collected) -> tuple[str, str] | None:
        """A name that is one end of every pair, whichever device it refers to, and the role of that end."""
        pair = frame.code.operations[operation.element]
        if not isinstance(pair, s.Display) or len(pair.elements) != 2:
            return None
        for end, role in zip(pair.elements, ("source", "destination"), strict=True):
            load, made = frame.code.operations[end], frame.code.operations[frame.code.root_of(end)]
            if isinstance(load, s.Load) and isinstance(made, s.Parameter):
                return load.name, role
        return None

    def _same(self, frame: Frame, first: int, second: int) -> bool:
        """Whether two expressions are written identically, with names that are assigned only once."""
        if first == second:
            return True
        one, other = frame.code.operations[first], frame.code.operations[second]
        if isinstance(one, s.Load) and isinstance(other, s.Load):
            stores = frame.code.function.stores.get(one.name, ())
            return one.name == other.name and len(stores) < 2
        if isinstance(one, s.Attribute) and isinstance(other, s.Attribute):
            return one.name == other.name and self._same(frame, one.base, other.base)
        return isinstance(one, s.Const) and one == other
