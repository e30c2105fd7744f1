"""Decides which values differ between processes, and because of what.

A value varies if it comes from a source (such as the process index; the knowledge base names the sources) and has
passed no agreement point on the way, or if a varying branch chose it. An unknown value does not vary: nothing is
reported where nothing is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.elements import put_into
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.paths import PATHS
from spmdlint.analysis.evaluation.transfers import passing, through, through_method
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    Called,
    ClassValue,
    Constant,
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    ModuleValue,
    Site,
    Values,
    certain,
    constant,
    deed,
)
from spmdlint.analysis.variance.agreed import AgreedNames
from spmdlint.analysis.variance.caught import Caught
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.emptiness import filters
from spmdlint.analysis.variance.evened import SHARDERS, capped, raised_to_what_is_alike
from spmdlint.analysis.variance.guarded import called_by_some, decided, guarded, set_by_some, tells_who
from spmdlint.analysis.variance.handed import Handed
from spmdlint.analysis.variance.items import of_appended, of_filled, of_item, of_lookup, of_shuffled
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason, taken
from spmdlint.analysis.variance.parts import holds_part, shared_out
from spmdlint.analysis.variance.ragged import is_length_of_one, summary_of_lengths
from spmdlint.analysis.variance.raised import Raised
from spmdlint.analysis.variance.reason import of_kind, surest
from spmdlint.analysis.variance.rounds import left_early, of_loop, of_round, side_by_side
from spmdlint.analysis.variance.sources import NUMBERS, Sources, drawn, source_function
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.files import names
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

STAMP = "stamp"
"""The kind of a time that has been formatted as text."""
_JOINERS = frozenset(("join", "format"))
_LOOKUPS = frozenset(("get", "pop", "setdefault"))
_WRITERS = frozenset(("strftime", "isoformat", "ctime"))
_LISTERS = frozenset(names("listers"))
_TREES = frozenset(names("trees"))
# Attributes that are the same everywhere, even of arrays that differ.
_ALIKE = frozenset("shape dtype ndim size sharding device devices".split())
# How many examples a part of a data set has.
_SIZES = frozenset(("num_examples", "num_rows", "num_records"))
_OBJECTS = (Instance, FunctionValue, ClassValue, ModuleValue)


class Variance(Property):
    """The content varies between processes. What decides it may differ in other ``facets``."""

    def __init__(
        self,
        facets: OtherFacets,
        sources: Sources,
        control: Control,
        handed: Handed,
        spans: Callable[[Frame, int], bool],
    ) -> None:
        self.facets = facets
        self.spans = spans
        self.knowledge = sources.knowledge
        self.raised = Raised(sources.ev)
        self.sources = sources
        self.control = control
        self.handed = handed
        self.agreed = AgreedNames(control)
        self.conditions = control.ev.once(Conditions)
        self.caught = Caught(facets, self.raised, control)

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Compare):
            return of_comparison(origins, self.facets.presence, frame, number, operation)
        if isinstance(operation, s.Display):
            return origins.any_of(frame, operation.elements) if operation.kind != "set" else None
        if isinstance(operation, (s.Subscript, s.Item)):
            own = self._own_part(frame, number) or self._likely(frame, number)
            found = own or of_element(origins, frame, operation)
            if found != CONTINUE:
                return found
            if isinstance(operation, s.Item):
                beside = side_by_side(origins, frame, operation)
                whole = origins.why(frame, beside) if beside is not None else None
                yielded = whole or of_round(origins, frame, number, shared=True)
                if beside is not None or yielded is not None:
                    return yielded
        if isinstance(operation, (s.Unary, s.Binary, s.FString, s.Subscript, s.Item)):
            return self._made_of(origins, frame, number, operation)
        if isinstance(operation, s.Slice):
            ends = [end for end in (operation.lower, operation.upper, operation.step) if end is not None]
            return self._share(frame, number, origins.any_of(frame, ends))
        if isinstance(operation, s.Next):
            return self._round(origins, frame, number, operation)
        if isinstance(operation, s.Collected):
            return self._collected(origins, frame, number, operation)
        if isinstance(operation, s.IfExp):
            found = origins.any_of(frame, taken(origins.ev, frame, operation))
            return found or self._either(origins, frame, operation)
        if isinstance(operation, s.Attribute):
            source = self.sources.of_name(frame, number) or set_by_some(origins, self.control, frame, number)
            return source or self._attribute(origins, frame, operation)
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        return self._by_control(origins, frame, number, operation)

    def _by_control(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        """Why a value varies because of the control flow that led to it."""
        if isinstance(operation, s.Caught):
            return self.caught.of_own_data(origins, frame, number) or self.raised.why(frame, number)
        if not isinstance(operation, s.Load):
            return CONTINUE
        if self.agreed.is_one(frame, number, operation):
            return None
        put = of_appended(origins, frame, number) or of_shuffled(origins, frame, number, operation.name)
        return put or CONTINUE

    def beyond(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Reason | None:
        """Why a name that is filled later varies, or why a parameter is most likely a part of the data."""
        if isinstance(operation, s.Parameter):
            return self._own_argument(origins, frame, number) or self._likely(frame, number)
        if isinstance(operation, s.Load):
            return of_filled(origins, self.control, frame, operation, number)
        return None

    def _collected(self, origins: Origins, frame: Frame, number: int, operation: s.Collected) -> Reason | None:
        if operation.kind == "set":
            return None
        function = origins.ev.function(frame)
        loops = [function.operations[loop] for loop in operation.loops]
        iterables = [loop.iterable for loop in loops if isinstance(loop, s.Next)]
        if is_length_of_one(origins.ev, frame, operation):
            part = origins.any_of(frame, iterables)
            text = "the lengths of the examples differ between processes"
            data = of_kind(part, "data")
            return Reason(Site(frame.ref, number), text, "data", data) if data is not None else None
        found = origins.any_of(frame, (operation.element, *iterables))
        if found is not None:
            return origins.step(frame, number, "a list is made from it", found)
        # The author knows whose devices or rows a list takes, but not what is drawn at random or fits the data.
        found = origins.any_of(frame, filters(origins, frame, operation))
        drawn = of_kind(found, "entropy", "data", "ragged")
        return origins.step(frame, number, "what the list takes depends on it", drawn)

    def _attribute(self, origins: Origins, frame: Frame, operation: s.Attribute) -> Answer:
        values = origins.ev.value(frame, operation.base)
        if origins.reach.only_traced(frame.ref):  # what the host puts into a tree is an argument there
            owners = (each.cls for each in values if isinstance(each, Instance))
            if any(not _TREES.isdisjoint(origins.ev.objects.library_bases(cls)) for cls in owners):
                return None
        made_here = not any(isinstance(value, Instance) for value in values)
        if made_here and origins.ev.objects.patched.on_others(operation.name, frame.ref.path):
            # What the program itself sets on a library's object says nothing about its data.
            by_library = self._part(origins, frame, operation)
            return origins.set_beside(frame, operation) or of_kind(by_library, "clock", "entropy", "host")
        found = self._part(origins, frame, operation)
        if found is None and operation.name in _SIZES:
            part = frame.code.operations[operation.base]
            described = self.facets.length.why(frame, part.index) if isinstance(part, s.Subscript) else None
            found = described or self.facets.length.why(frame, operation.base)
        if found is None and operation.name in NUMBERS:
            found = self.facets.own_device.why(frame, operation.base)
        return found or CONTINUE

    @staticmethod
    def _part(origins: Origins, frame: Frame, operation: s.Attribute) -> Reason | None:
        """Why a part of an object that a library made from a clock or the like varies: ``uuid.uuid4().hex``."""
        bases = origins.ev.value(frame, operation.base)
        if operation.name in _ALIKE or any(isinstance(v, (Instance, ModuleValue, External)) for v in bases):
            return None
        made = any(isinstance(v, (Applied, Called, Member)) for v in bases)
        kinds = ("data", "named", *(("clock", "entropy", "host") if made else ()))
        return of_kind(origins.why(frame, operation.base), *kinds)

    def _round(self, origins: Origins, frame: Frame, number: int, operation: s.Next) -> Reason | None:
        """Why the element of an iteration varies; for a range only the start counts: the end only says how many."""
        iterable = origins.ev.function(frame).operations[operation.iterable]
        taken = self._own_part(frame, number)
        if taken is not None:
            return taken
        parts = self._local_parts(origins, frame, operation.iterable)
        if parts is not None:
            return parts
        if isinstance(iterable, s.Call) and origins.ev.may_do(frame, iterable, "range"):
            start = iterable.arguments[0].value if len(iterable.arguments) > 1 else None
            return origins.why(frame, start) if start is not None else None
        found = origins.why(frame, operation.iterable) or self._yielded(origins, frame, number)
        return self._but_keys(frame, number, found) or self._likely(frame, number)

    def _but_keys(self, frame: Frame, number: int, found: Reason | None) -> Reason | None:
        """Why what a loop takes varies; the keys of a table are the same, whatever data each process has under them."""
        code, taken = frame.code, frame.code.operations[number]
        if found is None or code.table_of(taken, 0) is None:
            looked_up = code.of_kind(s.Subscript) if found is not None and isinstance(taken, s.Next) else ()
            by_it = (each.base for _, each in looked_up if code.root_of(each.index) == number)
            if not any(isinstance(taken, s.Next) and self.conditions.same(frame, n, taken.iterable) for n in by_it):
                return found
        return surest(each for each in found.each() if tells_who(each)) if found is not None else None

    @staticmethod
    def _yielded(origins: Origins, frame: Frame, number: int) -> Reason | None:
        """Why an element varies that is taken whole: of one that is unpacked, each part is asked for."""
        unpacked = any(item.value == number for _, item in frame.code.of_kind(s.Item))
        return None if unpacked else of_round(origins, frame, number, shared=True)

    def _local_parts(self, origins: Origins, frame: Frame, number: int) -> Reason | None:
        """The parts of an array that are on this process, in whatever order they are iterated."""
        function = origins.ev.function(frame)
        operation = function.operations[frame.code.root_of(number)]
        if isinstance(operation, s.Attribute) and operation.name in self.knowledge.local_parts:
            text = f".{operation.name} has this process's parts only"
            return Reason(Site(frame.ref, number), text, "data")
        if isinstance(operation, s.Call) and operation.arguments and origins.ev.may_call(frame, operation, *_LISTERS):
            return self._local_parts(origins, frame, operation.arguments[0].value)
        return None

    def _own_part(self, frame: Frame, number: int) -> Reason | None:
        """Why a value varies that the program itself passes on as this process's part."""
        taken = self.handed.part_of(frame, number)
        text = "this is the process's part of the data, and is put into a global array here"
        return Reason(taken, text, "data") if taken is not None else None

    def _own_argument(self, origins: Origins, frame: Frame, number: int) -> Reason | None:
        """Why a parameter that is passed on varies; only if no call is known, as its argument would say more."""
        edges = origins.reach.callers.get(frame.ref, ())
        return None if any(edge.target.way == "call" for edge in edges) else self._own_part(frame, number)

    def _likely(self, frame: Frame, number: int) -> Reason | None:
        """Why a value varies that the program uses in the way it would use this process's part."""
        used = self.handed.likely_part_of(frame, number)
        text = "this is most likely the process's part of the data, judging by how it is used here"
        return Reason(used, text, "named") if used is not None else None

    def _either(self, origins: Origins, frame: Frame, operation: s.IfExp) -> Reason | None:
        values = [origins.ev.value(frame, number) for number in (operation.body, operation.orelse)]
        if origins.ev.decided(frame, operation.test) is not None or alike(origins.ev, values):
            return None
        if same_behind_bars(self.conditions, frame, (operation.body, operation.orelse)):
            return None
        return origins.why(frame, operation.test)

    @staticmethod
    def _read(frame: Frame, number: int, found: Reason | None) -> Reason | None:
        """The contents of a process's own file: they are data, and do not identify the process.

        A file whose name contains a time holds what was written under that name, which need not differ.
        """
        read = [each for each in found.each() if each.kind not in ("clock", STAMP, "entropy")] if found else ()
        site, text = Site(frame.ref, number), "this is read from the process's own file"
        return surest(Reason(site, text, "data", each) if each.kind in ("identity", "host") else each for each in read)

    def _made_of(
        self,
        origins: Origins,
        frame: Frame,
        number: int,
        operation: s.Unary | s.Binary | s.FString | s.Subscript | s.Item,
    ) -> Reason | None:
        """Why the result of an operator varies."""
        rows = _counted(frame, operation)
        found = self.facets.length.why(frame, rows) if rows is not None else None
        found = found or origins.any_of(frame, _operands(frame, operation)) or self.sources.of_name(frame, number)
        if isinstance(operation, s.Item):
            found = self._but_keys(frame, number, found)
        if found is None and isinstance(operation, s.Subscript):
            return of_item(origins, frame, operation)
        return self._written(origins, frame, number, operation, found) if isinstance(operation, s.FString) else found

    def _written(
        self, origins: Origins, frame: Frame, number: int, operation: s.FString, found: Reason | None
    ) -> Reason | None:
        """Why formatted text varies: because of its parts, where objects are formatted by their ``__str__``."""
        for part in operation.parts:
            found = found or origins.of_special(frame, number, part, "__str__")
        return self._stamp(frame, number, found)

    @staticmethod
    def _stamp(frame: Frame, number: int, found: Reason | None) -> Reason | None:
        """A time formatted as text: no two are the same, but none is empty, and nobody compares them."""
        site, text = Site(frame.ref, number), "it is formatted as text"
        each = found.each() if found is not None else ()
        return surest(Reason(site, text, STAMP, one) if one.kind == "clock" else one for one in each)

    @staticmethod
    def _share(frame: Frame, number: int, found: Reason | None) -> Reason | None:
        """A slice by the process index is data, and does not identify the process."""
        if found is None or found.kind != "identity":
            return found
        return Reason(Site(frame.ref, number), "this is sliced by the process index", "data", found)

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        arguments = [argument.value for argument in operation.arguments]
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if isinstance(callee, Applied):
                local = self._of_compiled(origins, frame, number, operation, callee)
                if local is not None:
                    return local
            if not isinstance(callee, External):
                continue
            known = self.knowledge.get(callee.name)
            if known is not None and known.agreement:
                return None
            found = self.sources.of_call(frame, number, operation, callee)
            if found is not None:
                return found
            if callee.name == reading().next:
                taken = self._own_part(frame, number) or self._likely(frame, number)
                taken = taken or self._yielded(origins, frame, number)
                if taken is not None:
                    return taken
            owner = self.knowledge.get(callee.name.rpartition(".")[0]) if known is None else None
            method = frame.code.operations[operation.function]
            if owner is not None and owner.attribute and isinstance(method, s.Attribute):
                return origins.why(frame, method.base)  # a method of a text or the like, which the attribute holds
            seed = passed(operation, known.order_seed, known.positional) if known and known.order_seed else None
            part = self._shuffled(origins, frame, number, seed) or holds_part(origins, frame, number, operation, known)
            return part or self._of_library(origins, frame, number, callee.name, operation)
        found = self.sources.of_method(frame, number, operation) or self._own_part(frame, number)
        if found is not None:
            return found
        method = origins.ev.function(frame).operations[operation.function]
        callees = origins.ev.value(frame, operation.function)
        if isinstance(method, s.Attribute) and method.name in SHARDERS:
            share = self._share(frame, number, origins.any_of(frame, arguments))
            if share is not None:
                return share if share.kind == "data" else None
        if isinstance(method, s.Attribute) and not any(isinstance(c, (*_OBJECTS, External)) for c in callees):
            return self._of_method(origins, frame, number, operation, method)
        return self._gone_over(origins, frame, number) or CONTINUE

    @staticmethod
    def _gone_over(origins: Origins, frame: Frame, number: int) -> Reason | None:
        """Why iterating over an object of the project gives an order of this process's own, by its ``__iter__``."""
        for value in ordered(origins.ev.value(frame, number)):
            for method in origins.ev.objects.attribute(value, "__iter__") if isinstance(value, Instance) else ():
                if isinstance(method, FunctionValue):
                    inside = origins.ev.free_frame(method.ref)
                    loops = inside.code.of_kind(s.Next) if inside.code.function.generator else ()
                    given = [loop.iterable for _, loop in loops]
                    given += [y.value for _, y in inside.code.of_kind(s.Yield) if y.delegate and y.value is not None]
                    found = origins.any_of(inside, given) or origins.of_returns(inside)
                    if found is not None:
                        return found
        return None

    @staticmethod
    def _shuffled(origins: Origins, frame: Frame, number: int, seed: int | None) -> Reason | None:
        """Why what a call returns is in an order of this process's own: the seed that it is given differs."""
        found = drawn(Site(frame.ref, number), origins.why(frame, seed) if seed is not None else None)
        return origins.step(frame, number, "the order depends on it", found)

    def _of_compiled(
        self, origins: Origins, frame: Frame, number: int, call: s.Call, compiled: Applied
    ) -> Reason | None:
        """Why what a compiled function gives varies: it is called with data that the host has read from its own file.

        JAX takes an array of the host's for one that all processes have, so nothing makes the results agree.
        """
        known = self.knowledge.get(compiled.name)
        if known is None or known.kind != "jit" or any(compiled.arguments.keyword(each) for each in known.specs):
            return None
        found = origins.any_of(frame, [argument.value for argument in call.arguments])
        if found is None or found.kind != "data":
            return None
        return origins.step(frame, number, "it is computed from this by each process for itself", found)

    def _of_method(
        self, origins: Origins, frame: Frame, number: int, operation: s.Call, method: s.Attribute
    ) -> Reason | None:
        """Why the result of a method of a library's or an unknown object varies."""
        arguments = [argument.value for argument in operation.arguments]
        if method.name in _ALIKE:
            return None
        if method.name in _WRITERS:
            return self._stamp(frame, number, origins.why(frame, method.base))
        if method.name in _JOINERS:
            return origins.any_of(frame, (method.base, *arguments))
        if method.name in _LOOKUPS and arguments:
            found = of_lookup(origins, frame, method.base, arguments[0])
            if found is not None:
                return found
        if method.name == "index":
            return origins.any_of(frame, (method.base, *arguments)) or self._own_place(frame, method, arguments)
        known = self.knowledge.methods.get(method.name)
        if known is not None and known.counts:
            found, held = self.facets.length.why(frame, method.base), origins.why(frame, method.base)
            shares = self.knowledge.get(source_function(origins.ev, held)) if held is not None else None
            if found is not None or held is None or (shares is not None and shares.own):
                return self._counted(frame, number, found)
        part = holds_part(origins, frame, number, operation, known)
        if method.name == "shuffle":
            part = part or self._shuffled(origins, frame, number, passed(operation, "seed", ("buffer_size", "seed")))
        found = part or shared_out(origins, frame, number, operation) or origins.why(frame, method.base)
        found = found or origins.any_of(frame, through_method(origins.ev, frame, operation, "content"))
        return drawn(Site(frame.ref, number), found) if method.name in self.knowledge.draws else found

    def _own_place(self, frame: Frame, method: s.Attribute, arguments: Sequence[int]) -> Reason | None:
        """The position of one of this process's devices among all: ``devices.index(jax.local_devices()[0])``."""
        if self.facets.own_device.why(frame, method.base) is not None:
            return None
        return self.facets.own_device.any_of(frame, arguments)

    def _of_library(self, origins: Origins, frame: Frame, number: int, name: str, operation: s.Call) -> Answer:
        """Why the result of a library function that is not a source varies with its arguments."""
        known = self.knowledge.get(name)
        arguments = [argument.value for argument in operation.arguments]
        if known is not None and known.counts:
            given = origins.ev.value(frame, arguments[0]) if arguments else ()
            if any(isinstance(each, Instance) and origins.ev.objects.attribute(each, "__len__") for each in given):
                return origins.of_special(frame, number, arguments[0], "__len__")  # not what iterating over it gives
            return self._counted(frame, number, self.facets.length.any_of(frame, arguments))
        if elements().get(name) == "dictionary" and arguments:
            return origins.why(frame, arguments[0])
        if known is not None and known.reads:
            return self._read(frame, number, origins.any_of(frame, arguments))
        if elements().get(name) == "minimum" and capped(origins, frame, arguments):
            return None
        if elements().get(name) == "maximum" and raised_to_what_is_alike(origins, frame, arguments):
            return None
        carried = arguments if name in PATHS else through(self.knowledge, name, operation, "content")
        if elements().get(name) == "map" and arguments:
            function = certain(origins.ev.value(frame, arguments[0]))
            carried = arguments[1:] if deed(function) != "length" else ()
        if known is not None and known.laid_out and not (known.gives_global or known.kind):
            place = passed(operation, known.laid_out, known.positional)
            carried = arguments[:1] if place is not None and not self.spans(frame, place) else ()
        if carried:
            found = origins.any_of(frame, carried)
            if found is not None and found.through == "shuffle" and passing(self.knowledge, name, "order") is None:
                return None  # the same in any order
            found = found or summary_of_lengths(self.facets.lengths, frame, name, arguments)
            return found or origins.any_of(frame, put_into(frame, arguments)) or origins.of_spread(frame, operation)
        spread = origins.of_spread(frame, operation) if passing(self.knowledge, name, "content") is not None else None
        return spread or CONTINUE

    @staticmethod
    def _counted(frame: Frame, number: int, found: Reason | None) -> Reason | None:
        """How many elements of its own a process has is data, and does not tell which process it is."""
        if found is None or found.kind != "identity":
            return found
        return Reason(Site(frame.ref, number), "this is how many of them this process has", "data", found)

    def given_by(self, function: External, site: Site) -> Reason | None:
        return self.sources.of_applied(Applied(function.name, Arguments(), site))

    # -- stores in other functions

    def stored(self, origins: Origins, ref: FunctionRef, number: int) -> Reason | None:
        return self.sources.of_store(ref, number) or self._guarded(origins, ref, number)

    def _guarded(self, origins: Origins, ref: FunctionRef, number: int) -> Reason | None:
        """Why a store is made on some processes only, or at a different time on each."""
        frame = origins.frame_of(ref)
        function = origins.ev.function(frame)
        operation = function.operations[number]
        if isinstance(operation, (s.StoreAttribute, s.Store)):
            if isinstance(certain(origins.ev.value(frame, operation.value)), _OBJECTS):
                return None
            kept = function.operations[frame.code.root_of(operation.value)]
            if isinstance(kept, s.Attribute) and kept.name == operation.name:
                return None  # a field of one object is passed on to another
        elif not isinstance(operation, s.Call):  # a call that makes a copy with changed fields
            return None
        found = guarded(origins, self.control, frame, number)
        if found is None and isinstance(operation, s.StoreAttribute):
            found = called_by_some(origins, self.control, ref)
        return found

    # -- values that a branch chose

    def chosen(
        self, origins: Origins, frame: Frame, name: str, places: Sequence[tuple[int, int | None]], use: int | None
    ) -> Reason | None:
        values = [frozenset((Constant(None),)) if v is None else origins.ev.value(frame, v) for _, v in places]
        if alike(origins.ev, values) or same_behind_bars(
            self.conditions, frame, [v for _, v in places if v is not None]
        ):
            return None
        at = [place for place, _ in places]
        text = f"which value {name} has depends on this"
        found = decided(origins, self.control, frame, at, use, text, lambda found: found.kind != STAMP)
        found = found or left_early(origins, frame, at, use, name)
        if found is not None and all(v is not None and self.spans(frame, v) for _, v in places):
            return None  # an array over the devices of all processes is one, however each process came by it
        return found

    def left(self, origins: Origins, frame: Frame, name: str, store: int, use: int | None) -> Reason | None:
        return left_early(origins, frame, (store,), use, name) if of_loop(frame, store) else None


def alike(ev: Evaluator, values: Sequence[Values]) -> bool:
    """Whether no test can tell these values apart: equal constants, or objects that are all present.

    The members of an enumeration are told apart, as constants are.
    """
    first = values[0] if values else None
    if all(value == first and isinstance(certain(value), Constant) for value in values):
        return True
    objects = [certain(value) for value in values]
    members = {each for each in objects if isinstance(each, Instance) and ev.objects.is_enum(each.cls)}
    return len(members) < 2 and all(isinstance(each, _OBJECTS) for each in objects)


def _operands(frame: Frame, operation: s.Operation) -> tuple[int, ...]:
    if isinstance(operation, s.Unary):
        return (operation.operand,)
    if isinstance(operation, s.Binary):
        return (operation.left, operation.right)
    if isinstance(operation, s.FString):
        return operation.parts
    if isinstance(operation, s.Subscript):
        cuts = isinstance(frame.code.operations[operation.index], s.Slice)
        # A process's slice of a listing is that first of all: it varies even where the listing does not.
        return (operation.index, operation.base) if cuts else (operation.base, operation.index)
    if isinstance(operation, s.Item):
        return (operation.value,)
    return ()


def _counted(frame: Frame, operation: s.Operation) -> int | None:
    """The array whose rows ``array.shape[0]`` counts."""
    shape = frame.code.operations[operation.base] if isinstance(operation, s.Subscript) else None
    if not isinstance(operation, s.Subscript) or not isinstance(shape, s.Attribute) or shape.name != "shape":
        return None
    index = frame.code.operations[operation.index]
    return shape.base if isinstance(index, s.Const) and index.value == 0 else None


# Comparisons of a process index that hold for a range or a list of processes, such as those that share a mesh.
_GROUPS = frozenset(("<", "<=", ">", ">=", "in", "not in"))
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def of_comparison(
    content: Origins, presence: Origins, frame: Frame, number: int, operation: s.Compare
) -> Reason | None:
    """Why the result of a comparison differs between processes."""
    function = content.ev.function(frame)
    nothing = (s.Const(None), s.Const(""))
    empty = [n for n in operation.operands if function.operations[n] in nothing]
    if empty:
        # Whether there is a value is a separate question from which value it is.
        return presence.any_of(frame, (n for n in operation.operands if n not in empty))
    found = content.any_of(frame, operation.operands)
    anyhow = found is not None and (found.kind == "hash" or found.through == "shuffle")
    if anyhow and operation.operators[0] in ("in", "not in"):
        return None  # whether an object was seen before is the same everywhere, whatever its id and in any order
    if found is None or found.kind != "identity" or not any(o in _GROUPS for o in operation.operators):
        return found
    if _is_among_texts(function, operation) or found.passes("choice"):
        return found
    if operation.operators[0] not in ("in", "not in") and _asks_for_first(content, frame, operation):
        return found
    return Reason(Site(frame.ref, number), "it separates a group of processes from the others", "group", found)


def _is_among_texts(function: s.Function, operation: s.Compare) -> bool:
    """Whether a comparison asks for one of several texts, which are no processes."""
    listed = function.operations[operation.operands[-1]]
    texts = [function.operations[n] for n in listed.elements] if isinstance(listed, s.Display) else []
    return bool(texts) and all(isinstance(each, s.Const) and isinstance(each.value, str) for each in texts)


def _asks_for_first(content: Origins, frame: Frame, operation: s.Compare) -> bool:
    """Whether a comparison separates the first process from the others: ``> 0``, ``< 1`` and the like."""
    left, right = (constant(content.ev.value(frame, number)) for number in operation.operands[:2])
    bound, operator = (right, operation.operators[0]) if left is None else (left, _TURNED[operation.operators[0]])
    limit = {">": 0, "<=": 0, ">=": 1, "<": 1}[operator]
    return len(operation.operators) == 1 and bound is not None and bound.value == limit


# Names that projects give to progress bars. A library's call with the elements of its argument counts as well.
_BARS = frozenset(("tqdm", "track", "progress_bar", "tqdm_notebook"))


def same_behind_bars(conditions: Conditions, frame: Frame, values: Sequence[int]) -> bool:
    """Whether these values are the same iterable, some of them wrapped in a progress bar."""
    behind = [_behind(conditions.ev, frame, value) for value in values]
    if behind == list(values) or len(behind) < 2:
        return False
    return all(_same(conditions, frame, behind[0], other) for other in behind[1:])


def _behind(ev: Evaluator, frame: Frame, number: int) -> int:
    call = frame.code.operations[number]
    if not isinstance(call, s.Call) or not call.arguments or call.arguments[0].star:
        return number
    callee = frame.code.operations[call.function]
    if isinstance(callee, (s.Load, s.Attribute)) and callee.name in _BARS:
        return call.arguments[0].value
    made = ev.callee(frame, call)
    given = through(ev.knowledge, made.name, call, "order") if isinstance(made, External) else ()
    return given[0] if len(given) == 1 else number


def _same(conditions: Conditions, frame: Frame, one: int, other: int) -> bool:
    """Whether two values are equal, including ``range`` and the like called twice with equal arguments."""
    if conditions.same(frame, one, other):
        return True
    ev = conditions.ev
    first, second = (frame.code.operations[resolved(ev, frame, number)] for number in (one, other))
    if not isinstance(first, s.Call) or not isinstance(second, s.Call):
        return False
    names = {v.name for v in ev.value(frame, first.function) if isinstance(v, External)}
    if not names or ev.value(frame, first.function) != ev.value(frame, second.function):
        return False
    if [a.keyword for a in first.arguments] != [a.keyword for a in second.arguments]:
        return False
    pairs = zip(first.arguments, second.arguments, strict=True)
    return all(_same(conditions, frame, a.value, b.value) for a, b in pairs)
