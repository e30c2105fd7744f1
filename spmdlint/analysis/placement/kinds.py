"""Where a value lives, as properties of the walk that follows values: what it may be, and what else it may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.statics import static_values
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import filling_of, given_to
from spmdlint.analysis.evaluation.intent import managers_around
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    UNKNOWN,
    Applied,
    Arguments,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    ModuleValue,
    Site,
    Value,
    Values,
    certain,
    constant,
    deed,
    element_at,
)
from spmdlint.analysis.placement.narrowed import Narrowed
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.items import of_appended, of_lookup
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.analysis.variance.reason import surest
from spmdlint.analysis.variance.walk import Walk
from spmdlint.analysis.variance.windows import leading
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.load import Known
from spmdlint.knowledge.reading import Reading, named
from spmdlint.knowledge.typing import typing_table
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s

Place: TypeAlias = Literal["host", "own", "rows", "split", "whole", "over", "devices", "own devices"]
_OF_OBJECTS = frozenset(("is", "is not", "in", "not in", "not"))
_OF_EACH_ELEMENT = frozenset(("linear", "sumlike", "quotient", "nonlinear"))
_MULTIPLY = "multiply"
_MESH = "mesh"
COMPUTED = "computed"
"""The kind of the reason of what arithmetic gives: an array, and no tree of arrays."""
ELEMENTS = "elements"
"""The kind of the reason of a list or an iterator: its elements live there."""
_ITERATING = ("__next__", "__iter__")
_KEYS = "keys"
SPEC = "spec"
"""The kind of a reason for a spec; that for an array which is made with it is of another kind."""


class Question(Struct, frozen=True):
    """Whether a value lives in one of some places. ``decides``: one operand that does decides for a result."""

    places: frozenset[Place]
    decides: bool = False
    lists: bool = False
    """Whether it is about lists of devices, and not about arrays."""


SPANS = Question(frozenset(("split", "whole", "over")), decides=True)
SPLIT = Question(frozenset(("split",)), decides=True)
OWN = Question(frozenset(("host", "own", "rows")))
ROWS = Question(frozenset(("rows",)))
HOST = Question(frozenset(("host",)))
ALL_DEVICES = Question(frozenset(("devices",)), lists=True)
OWN_DEVICES = Question(frozenset(("own devices",)), lists=True)
QUESTIONS = (SPANS, SPLIT, OWN, HOST, ROWS, ALL_DEVICES, OWN_DEVICES)


class Lives(Property):
    """A value may live in one of the places of a question, or, for ``other``, anywhere else.

    ``walks`` are the walks of all questions, by question and ``other``.
    """

    one_kind = True

    def __init__(
        self, asked: Question, *, other: bool, calls: Calls, walk: Walk, table: Reading, narrowed: Narrowed
    ) -> None:
        self.asked = asked
        self.other = other
        self.calls = calls
        self.walk = walk
        self.table = table
        self.narrowed = narrowed
        self.walks: Mapping[tuple[Question, bool], Origins] = {}

    # -- operations

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        match operation:
            case s.Const(value=None):
                return None  # `x = None` before a loop, or where there is none, says nothing of the arrays
            case s.Const() | s.FString():
                return self._is("host", frame, number, "it is a value of the host")
            case s.Call():
                return self._call(origins, frame, number, operation)
            case s.Attribute():
                return self._attribute(origins, frame, number, operation)
            case s.Parameter():
                return self._parameter(origins, frame, operation)
            case s.Subscript() | s.Item():
                return self._selected(origins, frame, number, operation)
            case s.Next():
                return self._element(origins, frame, operation.iterable)
            case s.Load():
                said = self._narrowed_to(frame, number)
                return said if said != CONTINUE else self._filled(origins, frame, number, operation.name)
            case s.Display(elements=parts):
                return self._elements(frame, number, self._alternatives(origins, frame, number, parts))
            case s.DictDisplay(values=parts):
                return self._alternatives(origins, frame, number, parts)
            case s.Collected(kind="dict"):
                return origins.why(frame, operation.element)
            case s.Collected(element=int(given)) | s.Yield(value=int(given)):
                return self._elements(frame, number, origins.why(frame, given))
        return self._computed_by(origins, frame, number, operation)

    def _computed_by(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        match operation:
            case s.Binary():
                parts = (operation.left, operation.right)
                found = self._computed(origins, frame, number, parts, keeps=operation.operator != "@")
                return Reason(Site(frame.ref, number), "it is computed from this", COMPUTED, found) if found else None
            case s.Unary(operator=operator, operand=operand) if operator not in _OF_OBJECTS:
                return origins.why(frame, operand)
            case s.Compare(operators=operators, operands=operands) if _OF_OBJECTS.isdisjoint(operators):
                return self._computed(origins, frame, number, operands)
            case s.Compare() | s.Unary():
                return self._is("host", frame, number, "it is a value of the host")
        return CONTINUE

    def beyond(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Reason | None:
        """A field of an object of a library lives where that does; what nothing is known of may live anywhere."""
        if isinstance(operation, s.Attribute) and not self.asked.lists:
            owners = origins.ev.value(frame, operation.base)
            if not any(isinstance(owner, (Instance, ModuleValue, External)) for owner in owners):
                return origins.why(frame, operation.base)
        if isinstance(operation, s.Parameter) and operation.name == _MESH and self.asked is ALL_DEVICES:
            gathers = any(ref.path == frame.ref.path for ref in origins.reach.calling(self.table.gatherers))
            if gathers and not origins.reach.callers.get(frame.ref):
                return self._is("devices", frame, number, "this file gathers from all processes: it is their mesh")
        if isinstance(operation, s.Store):
            return None  # of the value itself, that was asked already
        if not self.other or self.walks[self.asked, False].why(frame, number) is not None:
            return None
        return self._unknown(frame, number)

    def _attribute(self, origins: Origins, frame: Frame, number: int, operation: s.Attribute) -> Answer:
        if any(isinstance(each, (Instance, ModuleValue)) for each in origins.ev.value(frame, operation.base)):
            return CONTINUE
        if operation.name.startswith("addressable_"):
            return self._is("own", frame, number, f".{operation.name} has what is on this process")
        if operation.name in self.table.views or (operation.name == "sharding" and not self.asked.lists):
            return origins.why(frame, operation.base)
        if operation.name in self.table.properties or (operation.name in self.table.listing and not self.asked.lists):
            return self._is("host", frame, number, "it is a value of the host")
        return CONTINUE

    def _parameter(self, origins: Origins, frame: Frame, operation: s.Parameter) -> Answer:
        context = self.walk.asks(frame)
        if context is None:
            given = frame.bound(operation.name)
            return self._of_values(origins, given) if given else CONTINUE
        call = context.caller.code.operations[context.number]
        callee = origins.ev.callee(context.caller, call)
        if not isinstance(call, s.Call) or not isinstance(callee, External) or origins.ev.kind(callee) != "apply":
            return CONTINUE
        names = [formal.name for formal in frame.code.function.formals]
        place = names.index(operation.name) + 1
        if place >= len(call.arguments):
            return CONTINUE
        with self.walk.outside(context):
            return origins.why(context.caller, call.arguments[place].value)

    def _selected(self, origins: Origins, frame: Frame, number: int, operation: s.Subscript | s.Item) -> Answer:
        base = operation.base if isinstance(operation, s.Subscript) else operation.value
        found = of_element(origins, frame, operation)
        if found != CONTINUE:
            return found
        key = None
        if isinstance(operation, s.Subscript):
            key = constant(origins.ev.value(frame, operation.index))
            found = of_lookup(origins, frame, base, operation.index)
            sure = self.walks[self.asked, False]
            if found is not None or (self.other and of_lookup(sure, frame, base, operation.index) is not None):
                return found
        at = operation.index if isinstance(operation, s.Item) else key.value if key is not None else None
        root = frame.code.operations[frame.code.root_of(base)]
        if isinstance(root, s.Call) and isinstance(at, int):
            given = self._out_shardings(origins, frame, root)
            several = certain(given) if given is not None else None
            if isinstance(several, Collection):
                return self._of_values(origins, element_at(several, at))
        if isinstance(root, s.Next) and isinstance(operation, s.Item):
            if frame.code.table_of(operation, 0) is not None:
                return self._is("host", frame, number, "it is the key of an entry")
            beside = self._beside(origins, frame, root.iterable, operation.index)
            if beside is not None:
                return origins.why(frame, beside)
        if self.asked is ALL_DEVICES and isinstance(operation, s.Subscript):
            return self._unknown(frame, number) if self.other else None
        of_base = origins.why(frame, base)
        element = _element_of(of_base)
        parts = isinstance(operation, s.Item) or (key is not None and isinstance(key.value, str))
        if parts or element is not of_base:
            return element
        return self._computed(origins, frame, number, (base,), keeps=False)

    def _beside(self, origins: Origins, frame: Frame, iterable: int, index: int) -> int | None:
        """What `zip` or `enumerate` takes the item at an index of each round from."""
        call = frame.code.operations[frame.code.root_of(iterable)]
        callee = origins.ev.callee(frame, call)
        if not isinstance(call, s.Call) or not isinstance(callee, External):
            return None
        start = self.table.paired.get(callee.name)
        given = [argument.value for argument in call.arguments if argument.keyword is None and not argument.star]
        place = index - start if start is not None else -1
        return given[place] if 0 <= place < len(given) else None

    def _narrowed_to(self, frame: Frame, number: int) -> Answer:
        """What the conditions around a use say of a value; CONTINUE if nothing."""
        said = next((each for each in self.narrowed.of_value(frame, number) if not each.host or each.here), None)
        if said is None:
            return CONTINUE
        place: Place = "host" if said.host else "own" if said.here else "over"
        return self._is(place, frame, said.test, "this is tested here")

    def _element(self, origins: Origins, frame: Frame, iterable: int) -> Answer:
        """The place of what an iteration gives: what a container has, or an object of the project returns or yields."""
        ev = origins.ev
        for value in (each for each in ordered(ev.value(frame, iterable)) if isinstance(each, Instance)):
            for name in _ITERATING:
                method = certain(ev.objects.attribute(value, name))
                if isinstance(method, FunctionValue):
                    inner = ev.free_frame(method.ref)
                    yields = ev.project.function(method.ref).generator
                    return self._yielded(origins, inner) if yields else origins.of_returns(inner)
        if gives_keys(ev, frame, iterable):
            return self._is("host", frame, iterable, "these are the keys of its entries")
        return _element_of(origins.why(frame, iterable))

    def _elements(self, frame: Frame, number: int, found: Reason | None) -> Reason | None:
        """The reason of an iterator whose elements live somewhere; a loop over it reads no array."""
        if found is None or found.kind == ELEMENTS:
            return found
        return Reason(Site(frame.ref, number), "these are its elements", ELEMENTS, found)

    def _filled(self, origins: Origins, frame: Frame, number: int, name: str) -> Answer:
        """The place of what is put into a list or dictionary that is empty where it is made; CONTINUE of the rest."""
        made, filling = given_to(frame.code.function, name), filling_of(origins.ev, frame, number)
        if made and filling and all(isinstance(each, s.Display) and not each.elements for each in made):
            return self._elements(frame, number, of_appended(origins, frame, number))
        put = [each for each in map(frame.code.operations.__getitem__, filling) if isinstance(each, s.StoreSubscript)]
        keyed = len(put) == len(filling) > 0 and all(constant(origins.ev.value(frame, p.index)) is None for p in put)
        if not keyed or not made or not all(isinstance(each, s.DictDisplay) and not each.values for each in made):
            return CONTINUE
        return self._alternatives(origins, frame, number, [each.value for each in put])

    def _alternatives(self, origins: Origins, frame: Frame, number: int, parts: Iterable[int]) -> Reason | None:
        """The parts of a container, which must all live in one place; numbers and text do not count."""
        arrays = [part for part in parts if not frame.code.is_written(part)]
        return origins.any_of(frame, arrays) if arrays else self._is("host", frame, number, "it is a value of the host")

    # -- results

    def _is(self, place: Place, frame: Frame, number: int, text: str) -> Reason | None:
        counts = (place in self.asked.places) != self.other
        return Reason(Site(frame.ref, number), text, place) if counts else None

    def _unknown(self, frame: Frame, number: int) -> Reason:
        return Reason(Site(frame.ref, number), "nothing is known of it", "unknown")

    def _ask(self, asked: Question, frame: Frame, number: int, *, other: bool | None = None) -> Reason | None:
        return self.walks[asked, self.other if other is None else other].why(frame, number)

    def _computed(
        self, origins: Origins, frame: Frame, number: int, given: Iterable[int], *, keeps: bool = True
    ) -> Reason | None:
        """The place of what is computed from some arrays. ``keeps``: on each element, so that the result is split."""
        if self.asked is SPLIT and not keeps:
            return self._unknown(frame, number) if self.other else None
        arrays = [each for each in given if not frame.code.is_written(each)]
        if not arrays:
            return self._is("own", frame, number, "it is computed on one device of this process")
        if self.asked.decides != self.other:
            return _element_of(origins.any_of(frame, arrays))
        found = [origins.why(frame, each) for each in arrays]
        return _element_of(surest(found)) if all(found) else None

    def _own_unless(self, frame: Frame, number: int, arrays: Iterable[int]) -> Reason | None:
        """The place of what is made on one device, unless it is made from what spans processes."""
        found = next((found for each in arrays if (found := self._ask(SPANS, frame, each, other=False))), None)
        if found is not None:
            return self._is("over", frame, number, "it is made from an array over the devices of all processes")
        return self._is("own", frame, number, "it is made on one device of this process")

    def keeps(self, ev: Evaluator, frame: Frame, call: s.Call, name: str) -> bool:
        """Whether a function computes on each element or row, so that what is split between processes stays so."""
        function = name.removeprefix(typing_table().methods.module)
        if function in self.table.reductions:
            is_method = not any(isinstance(callee, External) for callee in ev.value(frame, call.function))
            axis = passed(call, "axis", ("axis",) if is_method else ("a", "axis"))
            along = constant(ev.value(frame, axis)) if axis is not None else None
            return axis is not None and (along is None or along.value not in (None, 0))
        if function in self.table.together:
            return False
        return function == _MULTIPLY or typing_table().typed(name) in _OF_EACH_ELEMENT

    # -- shardings

    def _of_values(self, origins: Origins, values: Values) -> Answer:
        """The place that shardings say, by their values; CONTINUE if these say nothing."""
        answers = [self._of_value(origins, value) for value in ordered(values)]
        if CONTINUE in answers:
            return CONTINUE
        return next((answer for answer in answers if answer is not None), None)

    def _of_value(self, origins: Origins, value: Value) -> Answer:
        ev = origins.ev
        if isinstance(value, Collection) and value.elements and not value.open:
            return self._of_values(origins, frozenset().union(*value.elements))
        if isinstance(value, DictionaryValue) and value.items and not value.open:
            return self._of_values(origins, frozenset().union(*(each for _, each in value.items)))
        if not isinstance(value, Applied):
            return CONTINUE
        made = ev.free_frame(value.site.ref)
        known = ev.knowledge.get(value.name)
        if known is not None and known.kind == "sharding" and known.mesh is not None:
            found = self._by_values(origins.ev, value, known.mesh, known.specs[0])
            return found if found != CONTINUE else origins.why(made, value.site.number)
        return origins.why(made, value.site.number)

    def _by_values(self, ev: Evaluator, value: Applied, mesh: str, specs: str) -> Answer:
        """The place that the values of a mesh and of specs say; CONTINUE if the mesh is not known."""
        over = certain(ev.argument(value, mesh) or frozenset())
        if not isinstance(over, Applied):
            return CONTINUE
        said = self._names_axes(ev.free_frame(value.site.ref), value.site.number, ev.argument(value, specs))
        return self._over(ev.free_frame(over.site.ref), over.site.number, said, value.site)

    def _names_axes(self, frame: Frame, number: int, specs: Values | None) -> Reason | None:
        """Why a spec may split an array, or, for ``other``, may not."""
        named = {_names(spec) for spec in specs or (UNKNOWN,)}
        counts = named & ({False, None} if self.other else {True})
        made = certain(specs) if specs is not None else None
        site = made.site if isinstance(made, Applied) else Site(frame.ref, number)
        return Reason(site, "this spec is for it", SPEC) if counts else None

    def _over(self, frame: Frame, mesh: int, said: Reason | None, site: Site) -> Reason | None:
        """The place of arrays over a mesh. ``said``: why their spec may split them, or, for ``other``, may not."""
        if not self.asked.decides:
            return self._ask(OWN_DEVICES, frame, mesh)
        found = self._ask(ALL_DEVICES, frame, mesh)
        if self.asked is SPLIT:
            found = found or said if self.other else found and said
        if found is None:
            return None
        return Reason(
            site, "it is over the devices of all processes", "split" if self.asked is SPLIT else "over", found
        )

    def _placed(self, origins: Origins, frame: Frame, number: int, sharding: int, known: Known | None) -> Reason | None:
        """The place of an array that is made with a sharding, or on a device."""
        if self._ask(OWN_DEVICES, frame, sharding, other=False) is not None:
            own = self._is("own", frame, number, "it is put on a device of this process")
            if own is not None or self._ask(OWN_DEVICES, frame, sharding, other=True) is None:
                return own
        if self.asked is SPANS and known is not None and known.gives_global:
            if self.other:
                return self._ask(OWN, frame, sharding, other=False)
            return self._is("over", frame, number, "it is made for the devices of all processes")
        if self.asked is SPLIT and known is not None and known.gives_global:
            said = self._split_by(origins.ev, frame, sharding)
            if said != CONTINUE:
                return self._from(said, frame, number, "it is made for the devices of all processes")
        return self._from(origins.why(frame, sharding), frame, number, "it is made with this sharding")

    def _split_by(self, ev: Evaluator, frame: Frame, sharding: int) -> Answer:
        """Why the specs of a sharding split a global array, whatever its mesh; CONTINUE if they are not known."""
        found: list[Reason] = []
        values = ordered(ev.value(frame, sharding))
        for value in values:
            known = ev.knowledge.get(value.name) if isinstance(value, Applied) else None
            if not isinstance(value, Applied) or known is None or known.kind != "sharding" or not known.specs:
                return CONTINUE
            made = ev.free_frame(value.site.ref)
            said = self._names_axes(made, value.site.number, ev.argument(value, known.specs[0]))
            found += [said] if said is not None else []
        own = self._ask(OWN, frame, sharding, other=False)
        if own is not None:
            return own if self.other else None
        return (found[0] if found else None) if values else CONTINUE

    def _from(self, found: Reason | None, frame: Frame, number: int, text: str) -> Reason | None:
        """The reason of an array, by that of its sharding."""
        return Reason(Site(frame.ref, number), text, "array", found) if found is not None else None

    # -- calls

    def _call(self, origins: Origins, frame: Frame, number: int, call: s.Call) -> Answer:
        values = origins.ev.value(frame, call.function)
        answers = [self._of_callee(origins, frame, number, call, callee) for callee in ordered(values)]
        found = next((answer for answer in answers if isinstance(answer, Reason)), None)
        if found is not None:
            return found
        if self.other and UNKNOWN in values and len(values) > 1:
            return self._unknown(frame, number)
        return CONTINUE if CONTINUE in answers or not answers else None

    def _of_callee(self, origins: Origins, frame: Frame, number: int, call: s.Call, callee: Value) -> Answer:
        if deed(callee) == "dictionary" and call.arguments:
            return self._alternatives(origins, frame, number, [argument.value for argument in call.arguments])
        if isinstance(callee, External):
            return self._of_library(origins, frame, number, call, callee.name)
        if isinstance(callee, FunctionValue):
            if not origins.ev.project.function(callee.ref).generator:
                return CONTINUE
            return origins.in_generator(frame, number, call, callee, lambda inner: self._yielded(origins, inner))
        if isinstance(callee, Applied) and origins.ev.knowledge.get(callee.name) is not None:
            return self._of_compiled(origins, frame, number, call, callee)
        method = frame.code.operations[call.function]
        if isinstance(method, s.Attribute) and not isinstance(callee, Instance):
            return self._of_method(origins, frame, number, call, method)
        return CONTINUE

    def _yielded(self, origins: Origins, frame: Frame) -> Reason | None:
        yields = [number for number, given in frame.code.of_kind(s.Yield) if given.value is not None]
        return origins.any_of(frame, yields)

    def _of_method(self, origins: Origins, frame: Frame, number: int, call: s.Call, method: s.Attribute) -> Answer:
        """The place of what a method of an array returns, which goes by the name of a function."""
        if self.asked.lists:
            return origins.why(frame, method.base)
        if method.name in self.table.methods or method.name == _KEYS:
            return self._is("host", frame, number, f".{method.name}() gives a value of the host")
        if method.name.startswith("addressable_"):
            return origins.why(frame, call.function)
        name = typing_table().methods.module + method.name
        if self.asked is ROWS and self._has_rows(origins.ev, frame, call, self.table.shapers.get(name, 0) - 1):
            return self._is("rows", frame, number, "it has a row for each device of this process")
        return self._computed(origins, frame, number, (method.base,), keeps=self.keeps(origins.ev, frame, call, name))

    def _of_library(self, origins: Origins, frame: Frame, number: int, call: s.Call, name: str) -> Answer:
        table, known = self.table, origins.ev.knowledge.get(name)
        given = [argument.value for argument in call.arguments if not argument.star and argument.keyword is None]
        if self.asked.lists:
            return self._listed(origins, frame, number, call, name, known)
        if name in table.passing and given:
            if elements().get(name) == "list" and gives_keys(origins.ev, frame, given[0]):
                return self._is("host", frame, number, "these are the keys of its entries")
            passed_on = origins.why(frame, given[0])
            return _element_of(passed_on) if name == table.next else passed_on
        if name in table.from_mesh:
            mesh, spec = table.from_mesh[name]
            return self._from_mesh(frame, number, given[mesh], given[spec]) if spec < len(given) else CONTINUE
        if name in table.makers and known is not None:
            sharding = passed(call, table.makers[name][0], known.positional)
            if sharding is not None:
                return self._placed(origins, frame, number, sharding, known)
        if known is not None and known.kind is not None:
            found = self._made(origins, frame, number, call, known)
            if found != CONTINUE:
                return found
        if self.asked is ROWS and self._has_rows(origins.ev, frame, call, table.shapers.get(name)):
            return self._is("rows", frame, number, "it has a row for each device of this process")
        if known is not None and (known.per_device or known.own_by is not None):
            return self._is(
                "rows" if known.per_device else "own", frame, number, f"{name} gives arrays on this process's devices"
            )
        if named(name, table.here):
            return self._own_unless(frame, number, given)
        if named(name, table.host):
            return self._is("host", frame, number, f"{name} gives a value of the host")
        if not named(name, table.eager):
            return CONTINUE
        typed = typing_table().typed(name)
        arrays = given[:1] if typed == "linear" else given
        return self._computed(origins, frame, number, arrays, keeps=self.keeps(origins.ev, frame, call, name))

    def _has_rows(self, ev: Evaluator, frame: Frame, call: s.Call, place: int | None) -> bool:
        """Whether an argument is the number of local devices, or a shape that begins with it."""
        if place is None or not 0 <= place < len(call.arguments) or call.arguments[place].star:
            return False
        given = certain(ev.value(frame, leading(ev, frame, call.arguments[place].value)))
        return isinstance(given, Applied) and units().counts.get(given.name) == "local"

    def _from_mesh(self, frame: Frame, number: int, mesh: int, spec: int) -> Reason | None:
        if self.asked is SPANS:
            found = self._ask(OWN_DEVICES, frame, mesh, other=False) if self.other else None
            return found if self.other else self._is("over", frame, number, "it is made over a mesh")
        found = self._over(frame, mesh, self._ask(SPLIT, frame, spec), Site(frame.ref, number))
        return self._from(found, frame, number, "it is made over this mesh")

    def _listed(
        self, origins: Origins, frame: Frame, number: int, call: s.Call, name: str, known: Known | None
    ) -> Answer:
        """The place of a list of devices, in any arrangement, or of a mesh."""
        table = self.table
        if name in table.devices:
            place: Place = "host" if call.arguments else "devices"
            return self._is(place, frame, number, f"{name}() lists the devices of all processes")
        if name in table.local:
            return self._is("own devices", frame, number, f"{name}() lists this process's devices")
        listed = passed(call, "devices", known.positional) if known is not None else None
        if name in table.over_all and listed is None:
            return self._is("devices", frame, number, f"{name}() takes all devices")
        if listed is None and call.arguments and (name in table.passing or named(name, table.host)):
            listed = call.arguments[0].value
        return origins.why(frame, listed) if listed is not None else CONTINUE

    def _made(self, origins: Origins, frame: Frame, number: int, call: s.Call, known: Known) -> Answer:
        """The place of a sharding, of a spec, of the results of a function that is compiled, or of what is mapped."""
        if known.kind in ("sharding", "map") and known.mesh is not None:
            said_by = known.specs[0] if known.kind == "sharding" else "out_specs"
            mesh, spec = (passed(call, each, known.positional) for each in (known.mesh, said_by))
            if mesh is None or spec is None:
                return CONTINUE
            said = self._ask(SPLIT, frame, spec) if self.asked is SPLIT else None
            return self._over(frame, mesh, said, Site(frame.ref, number))
        if known.kind == "spec":
            named = certain(origins.ev.value(frame, number))
            return self._names_axes(frame, number, frozenset((named,)) if named is not None else None)
        if known.kind in ("jit", "currying"):
            sharding = passed(call, "out_shardings", known.positional)
            return origins.why(frame, sharding) if sharding is not None else CONTINUE
        iterates = elements().get(known.name) == "map"
        if known.kind == "apply" and len(call.arguments) > 1 and (iterates or known.leaves is not None):
            found = self._mapped(origins, frame, number, call)
            return self._elements(frame, number, found) if iterates and isinstance(found, Reason) else found
        return CONTINUE

    def _mapped(self, origins: Origins, frame: Frame, number: int, call: s.Call) -> Answer:
        """The place of a tree whose leaves a function makes, one by one, of those of other trees."""
        leaf = s.Call(call.arguments[0].value, tuple(call.arguments[1:]))
        answers: list[Answer] = []
        for callee in ordered(origins.ev.value(frame, leaf.function)):
            if not isinstance(callee, FunctionValue):
                answers.append(self._of_callee(origins, frame, number, leaf, callee))
                continue
            inner = origins.ev.entered_frame(callee, Arguments(open=True), frame.depth + 1)
            if inner is None:
                return CONTINUE
            with self.walk.inside(self.walk.made(inner, frame, number)):
                answers.append(origins.of_returns(inner))
        found = next((answer for answer in answers if isinstance(answer, Reason)), None)
        return found if found is not None or CONTINUE not in answers else CONTINUE

    def _out_shardings(self, origins: Origins, frame: Frame, call: s.Call) -> Values | None:
        """The shardings with which the function that is called was compiled; None if with none."""
        compiled = origins.ev.callee(frame, call)
        if not isinstance(compiled, Applied):
            return None
        given = origins.ev.argument(compiled, "out_shardings")
        return given if given and given != {Constant(None)} else None

    def _of_compiled(self, origins: Origins, frame: Frame, number: int, call: s.Call, callee: Applied) -> Answer:
        """The place of what a compiled or mapped function returns."""
        known = origins.ev.knowledge.get(callee.name)
        if known is None or self.asked.lists:
            return CONTINUE
        shardings = self._out_shardings(origins, frame, call)
        if shardings is not None:
            found = self._of_values(origins, shardings)
            found = found if found != CONTINUE else origins.why(frame, call.function)
            return self._from(found, frame, number, f"what {callee.name} compiled gives it")
        taken = origins.ev.argument(callee, "in_shardings") if known.kind == "jit" else None
        if taken and taken != {Constant(None)}:
            said = self._of_values(origins, taken) if self.asked is not SPLIT else CONTINUE
            if said != CONTINUE or self.asked is not SPANS:  # if it is not known, arguments that span processes decide
                return said
        if known.kind == "map":
            if known.mesh is not None:
                found = self._by_values(origins.ev, callee, known.mesh, "out_specs")
                found = found if found != CONTINUE else origins.why(frame, call.function)
                return self._from(found, frame, number, f"what {callee.name} maps gives it")
            if known.by_hand:
                return self._is("own", frame, number, f"the results of {callee.name} are on this process's devices")
        if known.kind not in ("jit", "map", "transform"):
            return CONTINUE
        run = certain(callee.arguments.positional[0]) if callee.arguments.positional and not callee.receiver else None
        if known.kind == "jit" and isinstance(run, Applied) and origins.ev.kind(run) == "map":
            return self._of_compiled(origins, frame, number, call, run)
        managers = [origins.ev.value(frame, manager.function) for manager in managers_around(frame, number)]
        if External(self.table.context) in frozenset().union(*managers):
            return self._is("own", frame, number, "it is computed on the default device")
        targets = list(self.calls.targets(callee, origins.ev.arguments(frame, call), frame.depth + 1))
        if any(self._lays_out(origins.ev, target.frame) for target in targets):
            found = surest(origins.of_returns(target.frame) for target in targets)
            if found is None and not self.other:
                return CONTINUE
            return self._from(found, frame, number, f"{callee.name} compiles it so")
        static = static_values(origins.ev, callee, call)
        given = [argument.value for argument in call.arguments if argument.value not in static]
        if all(map(frame.code.is_written, given)) and not self._takes_all(origins.ev, frame, number, call, run):
            return CONTINUE
        return self._computed(origins, frame, number, given, keeps=False)

    def _lays_out(self, ev: Evaluator, frame: Frame) -> bool:
        """Whether compiled code says itself over which devices arrays lie: by a constraint, or through a map."""
        called = (ev.callee(frame, call) for _, call in frame.code.of_kind(s.Call))
        maps = (ev.knowledge.get(each.name) for each in called if isinstance(each, Applied))
        return bool(frame.code.calls_named(self.table.laying_out)) or any(k is not None and k.mesh for k in maps)

    def _takes_all(self, ev: Evaluator, frame: Frame, number: int, call: s.Call, run: Value | None) -> bool:
        """Whether a compiled function has no arrays but its arguments: it reads no name of a function around it."""
        if not call.arguments and any(managers_around(frame, number)):
            return False  # a context may say on which devices
        if not isinstance(run, FunctionValue) or run.receiver is not None:
            return False
        code = ev.code(run.ref)
        scopes = (code.scope_of(load.name) for _, load in code.of_kind(s.Load))
        return all(scope is None or scope is code.function for scope in scopes)


def _element_of(found: Reason | None) -> Reason | None:
    """The reason of an element, by that of an iterator or a list; a part of a tree or an array keeps its own."""
    return found.before if found is not None and found.kind == ELEMENTS else found


def gives_keys(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether going over a value gives the keys of a dictionary, and not what it holds."""
    return any(isinstance(value, DictionaryValue) for value in ev.value(frame, number))


def copied(ev: Evaluator, given: Value) -> bool:
    """Whether a sharding or spec names no axis: it places a copy on every device."""
    known = ev.knowledge.get(given.name) if isinstance(given, Applied) else None
    if known is None or not isinstance(given, Applied):
        return False
    if known.kind == "sharding":
        return any(copied(ev, spec) for spec in ev.argument(given, known.specs[0]) or ())
    return known.kind == "spec" and _names(given) is False


def _names(spec: Value) -> bool | None:
    """Whether a spec names an axis; None if that is not known."""
    if not isinstance(spec, Applied):
        return None
    named = any(constant(each) != Constant(None) for each in spec.arguments.positional)
    return named or (None if spec.arguments.open else False)
