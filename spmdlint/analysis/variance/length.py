"""The number of elements: which iterables make loops run a different number of iterations on each process.

A slice has the same length everywhere if its bounds are the same everywhere, or if it is a window that moves with the
process index (``x[r * k:(r + 1) * k]``). A stride (``x[r::n]``) does not, unless the division leaves no remainder,
which nothing promises. A generator gives as many elements as the loops around its ``yield``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from spmdlint.analysis.evaluation.bindings import by_position
from spmdlint.analysis.evaluation.fillings import fillings, fillings_of_field, given_to
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.paths import lists_folder
from spmdlint.analysis.evaluation.transfers import shape_given, through, through_method
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Site,
    certain,
)
from spmdlint.analysis.variance import sifted
from spmdlint.analysis.variance.agreed import is_agreed
from spmdlint.analysis.variance.arguments import is_partial
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.counted import size_asked_for
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.emptiness import filters
from spmdlint.analysis.variance.evened import (
    SHARDERS,
    called_on_what_divides,
    divided,
    extended,
    padded,
    shares_what_divides,
    size_reached,
)
from spmdlint.analysis.variance.grown import Grown, of_other_lengths
from spmdlint.analysis.variance.guarded import decided, tells_when, tells_who
from spmdlint.analysis.variance.inside import of_item, of_round
from spmdlint.analysis.variance.iterated import Iterated
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.analysis.variance.parts import deals, of_part, of_split
from spmdlint.analysis.variance.rounds import has_no_end
from spmdlint.analysis.variance.selected import SELECTORS, by_function, by_index
from spmdlint.analysis.variance.strides import StridedElements
from spmdlint.analysis.variance.texts import of_encoded, of_letters, of_mapped, of_whole_file
from spmdlint.analysis.variance.windows import Windows, are_complements, cut_by, resolved
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Knowledge
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s

_CONSTRUCTORS = frozenset(("source", "from_list", "from_tensor_slices", "from_generator"))
"""Functions of a class that make one of its data sets."""
_LISTS = frozenset(names("sequences"))
_CHAINED = "itertools.chain.from_iterable"
_COUNTED = frozenset(("arange", "repeat", "tile", "permutation"))
_DISTINCT = frozenset(names("distinct"))
_SELECTING = frozenset(f"{library}.{name}" for library in ("numpy", "jax.numpy") for name in (*SELECTORS, "where"))
_RANGES = frozenset(names("ranges"))
_READERS = frozenset(names("data_readers"))


class Length(Property):
    """The value has a different number of elements on each process."""

    def __init__(self, facets: OtherFacets, knowledge: Knowledge, control: Control) -> None:
        self.facets = facets
        self.knowledge = knowledge
        self.control = control
        self.grown = Grown(facets, control)
        self.strided = StridedElements(control)
        self.iterated = Iterated(self)

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Call):
            part = self._data(
                of_split(self.facets.content, frame, operation), frame, number, "a window by process index"
            )
            return part or self._call(origins, frame, number, operation)
        if isinstance(operation, s.Item):
            found = of_element(origins, frame, operation)
            return found if found != CONTINUE else of_round(self.facets.inside, frame, operation)
        if isinstance(operation, s.Next):
            return of_round(self.facets.inside, frame, operation)
        if isinstance(operation, s.Subscript):
            return self._subscript(origins, frame, number, operation)
        if isinstance(operation, s.Collected):
            function = origins.ev.function(frame)
            loops = [function.operations[loop] for loop in operation.loops]
            found = origins.any_of(frame, [loop.iterable for loop in loops if isinstance(loop, s.Next)])
            found = found or self.of_dealt(origins, frame, (operation.element,))
            found = found or of_letters(self.facets.content, frame, number, operation)
            return found or self._picked(frame, number, operation)
        if isinstance(operation, s.Binary):
            return self._joined(origins, frame, operation) if operation.operator == "+" else None
        if isinstance(operation, s.Load):
            size = self._asked(frame, number, operation)
            if size is not None:
                return self.facets.content.why(frame, size)
            found = self._filled(origins, frame, number, operation)
            return found or self.grown.of_name(self.facets.content, frame, number, operation) or CONTINUE
        if isinstance(operation, s.Attribute):
            found = self._filled_field(origins, frame, operation)
            found = found or self.iterated.of_property(origins, frame, operation)
            return found or self.grown.of_field(self.facets.content, frame, operation) or CONTINUE
        if isinstance(operation, s.IfExp):
            arms = [origins.ev.value(frame, arm) for arm in (operation.body, operation.orelse)]
            if not of_other_lengths(*arms):
                return CONTINUE
            found = self.facets.content.why(frame, operation.test)
            return found if found is not None and tells_who(found) else None
        if isinstance(operation, (s.Store, s.Parameter, s.Await, s.BoolOp, s.Enter)):
            return CONTINUE
        return None

    def chosen(
        self, origins: Origins, frame: Frame, name: str, places: Sequence[tuple[int, int | None]], use: int | None
    ) -> Reason | None:
        values = [origins.ev.value(frame, value) for _, value in places if value is not None]
        if len(values) < len(places) or not any(of_other_lengths(values[0], other) for other in values[1:]):
            return None
        at = [place for place, _ in places]
        text = f"how many elements {name} has depends on this"
        return decided(self.facets.content, self.control, frame, at, use, text, tells_who)

    def beyond(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Reason | None:
        """Why a parameter or field that its author called local differs in length, if nothing else is known of it."""
        name = operation.name if isinstance(operation, (s.Parameter, s.Attribute)) else None
        if name is None or not is_called_own_part(name):
            return None
        if any(isinstance(value, External) for value in origins.ev.value(frame, number)):
            return None  # a function with such a name
        if isinstance(operation, s.Parameter) and any(
            e.target.way == "call" for e in origins.reach.callers.get(frame.ref, ())
        ):
            return None  # the arguments are known, and nothing was found there
        return Reason(Site(frame.ref, number), f"{name!r} is this process's own part, judging by its name", "named")

    def _joined(self, origins: Origins, frame: Frame, operation: s.Binary) -> Reason | None:
        """Why two lists joined together differ in length; ``rows + [0] * (size - len(rows))`` has that size."""
        size = size_reached(self.facets.content.ev, frame, operation)
        if size is not None:
            return self.facets.content.why(frame, size)
        return origins.any_of(frame, (operation.left, operation.right))

    def _asked(self, frame: Frame, place: int, load: s.Load) -> int | None:
        """The size that a list has here because a branch has tested it."""
        bound = frame.code.function.binds(load.name)
        return size_asked_for(self.facets.content.ev, frame, place, load) if bound else None

    def _filled(self, origins: Origins, frame: Frame, place: int, load: s.Load) -> Reason | None:
        """Why a list that a loop fills differs in length: it has an element for each iteration."""
        function = origins.ev.function(frame)
        if not function.binds(load.name) or not _starts_empty(function, load.name):
            return None
        text = f"{load.name!r} gets an element for each of these"
        return origins.all_of(
            origins.step(frame, number, text, self.iterated.why(origins, frame, iterable))
            or self.of_dealt(origins, frame, (number,))
            for number, iterable in fillings(origins.ev, frame, place)
        )

    def _filled_field(self, origins: Origins, frame: Frame, field: s.Attribute) -> Reason | None:
        """Why a list that an object keeps, and that a loop in one of its methods fills, differs in length."""
        objects = origins.ev.objects
        for owner in ordered(origins.ev.value(frame, field.base)):
            for cls in objects.lineage(owner.cls) if isinstance(owner, Instance) else ():
                for method in sorted({m for m, _ in objects.attribute_stores(cls.ref).get(field.name, ())}):
                    inside = origins.frame_of(method)
                    for number, iterable in fillings_of_field(origins.ev, inside, field.name):
                        found = self.iterated.why(origins, inside, iterable)
                        if found is not None:
                            text = f"{field.name!r} gets elements for each of these"
                            return origins.step(inside, number, text, found)
        return None

    def of_dealt(self, origins: Origins, frame: Frame, places: Sequence[int]) -> Reason | None:
        """Why what is kept of a loop's elements differs in number: they are dealt by ``if i % n == rank``."""
        found = self.strided.stride(self.facets.content, frame, places)
        if found is None or padded(origins, frame, found[2]):
            return None
        return self._data(found[0], frame, found[1], "dealt out by process index, with the remainder not distributed")

    def _picked(self, frame: Frame, number: int, collected: s.Collected) -> Reason | None:
        """Why a comprehension takes more elements on some processes: those that are done by now, or drawn at random."""
        tests = list(filters(self.facets.content, frame, collected))
        found = self.facets.content.any_of(frame, tests)
        if found is None or not tells_when(found):
            return sifted.of_tests(self.facets.content, frame, number, tests, collected.loops)
        # The source must be in the condition itself; for what is done by now, anywhere in this function.
        near = found.source is found or (found.kind == "completion" and found.source.site.ref == frame.ref)
        return (
            self.facets.content.step(frame, number, "how many elements it takes depends on it", found) if near else None
        )

    # -- slices and splits

    def _subscript(self, origins: Origins, frame: Frame, number: int, operation: s.Subscript) -> Reason | None:
        function = origins.ev.function(frame)
        index = function.operations[operation.index]
        cut = cut_by(origins.ev, frame, operation.index)
        if cut is not None:
            return self._slice(origins, frame, number, operation, cut)
        if isinstance(index, s.Const) and isinstance(index.value, str):
            # One of the arrays in a file, or in a dictionary.
            return origins.why(frame, operation.base) or of_item(self.facets.inside, origins, frame, operation)
        for value in ordered(origins.ev.value(frame, operation.base)):
            if isinstance(value, Applied) and deals(origins.ev, value) and not divided(origins, value):
                return self._data(
                    self.facets.content.why(frame, operation.index), frame, number, "split by process index"
                )
        masked = by_index(origins.ev, frame, number, operation.index)
        found = self._selected(frame, masked, (operation.index, operation.base))
        return found or of_item(self.facets.inside, origins, frame, operation)

    def _distinct(self, origins: Origins, frame: Frame, number: int, given: int) -> Reason | None:
        """Why a call that takes the distinct elements of a value gives a different number of them."""
        found = self.facets.content.why(frame, given)
        if found is None or found.kind != "data":
            return origins.why(frame, given)
        text = "how many distinct elements there are depends on this process's part of the data"
        return origins.step(frame, number, text, found)

    def _selected(self, frame: Frame, selected: Reason | None, given: Sequence[int]) -> Reason | None:
        """Why a selection by content differs in length: its number of rows depends on this process's own data."""
        found = self.facets.content.any_of(frame, given) if selected is not None else None
        if selected is None or found is None or found.kind not in ("identity", "group", "data"):
            return None
        if any(o.operator == "%" for _, o in frame.code.of_kind(s.Binary)) or frame.code.mentions(_COUNTED):
            return None  # dealt by index, as evenly as the division allows
        return Reason(selected.site, selected.text, "data", found)

    def _slice(
        self, origins: Origins, frame: Frame, number: int, operation: s.Subscript, index: s.Slice
    ) -> Reason | None:
        if index.step is not None:
            starts = [end for end in (index.lower, index.step) if end is not None]
            found = self.facets.content.any_of(frame, starts)
            if index.upper is not None and Windows(self.facets.content).divides(frame, index.upper, index.step):
                return None
            if padded(origins, frame, operation.base) or called_on_what_divides(origins, frame):
                return None
            how = "a stride by process index, with the remainder not distributed"
            return self._data(self._of_what(frame, operation.base, found), frame, number, how)
        if index.lower is not None and index.upper is not None:
            windows = Windows(self.facets.content)
            if padded(origins, frame, operation.base) and windows.uncapped(frame, index.upper) == index.upper:
                return None
            found = windows.differs(frame, index.lower, index.upper, cut=True)
            return self._data(found, frame, number, "a window by process index")
        end = index.lower if index.lower is not None else index.upper
        cut = self.facets.content.why(frame, end) if end is not None else None
        if index.upper is None and cut is None:  # it is as much shorter than the whole on every process
            return origins.why(frame, operation.base)
        return self._data(cut, frame, number, "cut at the process index")

    def _of_what(self, frame: Frame, shared: int, found: Reason | None) -> Reason | None:
        """The reason for a share, with what is shared in front of it if that is made elsewhere."""
        shares = found is not None and found.kind in ("identity", "group")
        made = self.facets.made.why(frame, shared) if shares else None
        if found is None or made is None or made.source.site.ref == frame.ref:
            return found
        return found.then(made.source.site, made.source.text)

    @staticmethod
    def _data(found: Reason | None, frame: Frame, number: int, how: str) -> Reason | None:
        if found is None or found.kind not in ("identity", "group"):
            return found
        return Reason(
            Site(frame.ref, number), f"this process's part is {how}, so the parts differ in size", "data", found
        )

    # -- calls

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        for callee in origins.callees(frame, operation):
            if isinstance(callee, Applied) and is_partial(origins.ev, callee):
                return CONTINUE
            if isinstance(callee, External):
                dealt = of_part(origins, self.facets.content, frame, number, operation, self.knowledge.get(callee.name))
                return dealt or self._external(origins, frame, number, callee.name, operation)
            if isinstance(callee, ClassValue):
                objects = [v for v in ordered(origins.ev.value(frame, number)) if isinstance(v, Instance)]
                return next((r for v in objects if (r := self.iterated.of_object(origins, v)) is not None), None)
            if isinstance(callee, FunctionValue):
                if shares_what_divides(origins, frame, operation):
                    return None
                ask = partial(self.iterated.of_yields, origins)
                found = origins.in_generator(frame, number, operation, callee, ask)
                return found if found is not None else CONTINUE
        method = origins.ev.function(frame).operations[operation.function]
        if not isinstance(method, s.Attribute):
            return None
        dealt = of_part(origins, self.facets.content, frame, number, operation, self.knowledge.methods.get(method.name))
        return dealt or self._method(origins, frame, number, operation, method)

    def _method(self, origins: Origins, frame: Frame, number: int, call: s.Call, method: s.Attribute) -> Reason | None:
        """Why the result of a method of an unknown or a library's object differs in length."""
        arguments = [argument.value for argument in call.arguments]
        if method.name in SHARDERS:
            found = self.facets.content.any_of(frame, arguments)
            how = "a shard, with the remainder not distributed"
            if extended(origins, frame, method.base):
                return None
            found = self._of_what(frame, method.base, found)
            return self._data(found, frame, number, how) if found is not None and found.kind == "identity" else None
        kept = through_method(origins.ev, frame, call, "size")
        if kept:
            return origins.any_of(frame, kept)
        if method.name == "take" and arguments:  # from endless data, or by a program that pads and then takes
            found = self.facets.content.why(frame, arguments[0])
            if found is not None and found.kind in ("data", "files"):
                return origins.step(frame, number, "this many elements are taken", found)
            enough = extended(origins, frame, method.base) or is_agreed(origins.ev, frame, arguments[0])
            return None if enough else origins.why(frame, method.base)
        if lists_folder(origins.ev, frame, method):
            own = self._from_own(frame, number, [method.base], "listed from its own folder")
            if own is not None:
                return own
            text = f".{method.name}() may find different files on each process"
            return Reason(Site(frame.ref, number), text, "files")
        return of_whole_file(frame, number, method) or of_encoded(self.facets.content, frame, number, method)

    def _from_own(self, frame: Frame, number: int, path: Sequence[int], how: str) -> Reason | None:
        """Why there is another number of files, or of rows in a file, if each process looks at a path of its own."""
        found = self.facets.content.any_of(frame, path)
        return self._data(found, frame, number, how) if found is not None and found.kind != "files" else None

    def _external(self, origins: Origins, frame: Frame, number: int, name: str, call: s.Call) -> Reason | None:
        known = self.knowledge.get(name)
        arguments = [argument.value for argument in call.arguments]
        if known is not None and known.listing:
            own = self._from_own(frame, number, arguments[:1], "listed from its own folder")
            return own or Reason(Site(frame.ref, number), f"{name}() may find different files on each process", "files")
        if name in _RANGES:
            return self._range(frame, number, first=0)
        if name in _READERS and arguments:
            return self._from_own(frame, number, arguments[:1], "read from its own file")
        if name == reading().next and arguments:
            return self.facets.inside.why(frame, arguments[0])
        if name == _CHAINED and arguments:
            return self._chained(origins, frame, number)
        shape = shape_given(self.knowledge, name, call)
        if shape is not None:
            return self._leading(frame, shape)
        if name in _DISTINCT | _SELECTING and arguments:
            distinct = self._distinct(origins, frame, number, arguments[0]) if name in _DISTINCT else None
            return distinct or self._selected(frame, by_function(frame, number, name.rpartition(".")[2]), arguments)
        if name in _LISTS and arguments:
            cut = self._islice(frame, arguments[0])
            if cut is not None:
                return self.iterated.why(origins, frame, cut)
        kept = through(self.knowledge, name, call, "size")
        if kept:
            letters = of_mapped(self.facets.content, frame, number, arguments)
            return letters or self._kept(origins, frame, number, name, kept)
        if (known is None or known.batches) and not name.startswith(("builtins.", "itertools.")):
            return self._by_library(origins, frame, number, name, arguments)
        if elements().get(name) == "islice":
            return self._cut(origins, frame, number, arguments)
        return None

    def _kept(self, origins: Origins, frame: Frame, number: int, name: str, arguments: Sequence[int]) -> Reason | None:
        """Why the result of a function that keeps the number of elements, or that of the shortest argument, differs."""
        if are_complements(origins, frame, arguments[0]):
            return None
        content, sifts = self.facets.content, elements().get(name) == "filter"
        found = sifted.of_filter(content, frame, number, list(arguments)) if sifts else None
        each = (self.iterated.why(origins, frame, argument) for argument in arguments)
        found = found or next((reason for reason in each if reason is not None), None)
        if found is None or elements().get(name) != "zip":
            return found
        # For data that is local by name only, a uniform count in the same zip says that there is as much everywhere;
        # for other parts, only a count computed by a division does, as all processes have that many.
        divided = found.kind != "named"
        return None if any(self._says_how_many(frame, a, divided=divided) for a in arguments) else found

    def _says_how_many(self, frame: Frame, number: int, *, divided: bool) -> bool:
        """Whether this is a uniform range: what is zipped with it is meant to be at least as long."""
        ev = self.facets.content.ev
        call = ev.function(frame).operations[resolved(ev, frame, number)]
        if not isinstance(call, s.Call) or not ev.may_do(frame, call, "range"):
            return False
        if divided:
            ends = [frame.code.operations[resolved(ev, frame, argument.value)] for argument in call.arguments]
            if not any(isinstance(end, s.Binary) and end.operator == "//" for end in ends):
                return False
        return self.facets.content.any_of(frame, [argument.value for argument in call.arguments]) is None

    def _chained(self, origins: Origins, frame: Frame, number: int) -> Reason | None:
        """Why the total number of elements in several examples differs."""
        call = frame.code.operations[number]
        found = self.facets.content.why(frame, call.arguments[0].value) if isinstance(call, s.Call) else None
        text = "this is as long as all of this process's examples together"
        return origins.step(frame, number, text, found) if found is not None and found.kind == "data" else None

    def _leading(self, frame: Frame, shape: int) -> Reason | None:
        """Why the number of rows in an array of this shape differs."""
        sizes = self.facets.content.ev.function(frame).operations[shape]
        if isinstance(sizes, s.Display):
            return self.facets.content.why(frame, sizes.elements[0]) if sizes.elements and not sizes.starred else None
        return self.facets.content.why(frame, shape)

    def _range(self, frame: Frame, number: int, first: int) -> Reason | None:
        """Why a range differs in length: like a slice with the same ends; a varying start alone may be anywhere.

        ``first`` is the position of the argument from which on the ends are passed.
        """
        call = frame.code.operations[number]
        arguments = by_position(call)[first:] if isinstance(call, s.Call) else []
        found = self.facets.content.any_of(frame, arguments)
        if found is None or len(arguments) < 2:
            return found
        if len(arguments) == 3 and Windows(self.facets.content).divides(frame, arguments[1], arguments[2]):
            return None
        if len(arguments) == 2 and found.kind in ("identity", "group", "data"):
            windows = Windows(self.facets.content)
            if windows.follows(frame, *arguments):
                differs = windows.differs(frame, *arguments, cut=False)
                return self._data(differs, frame, number, "a range by process index")
        return found

    def _cut(self, origins: Origins, frame: Frame, number: int, arguments: list[int]) -> Reason | None:
        """Why what ``islice`` takes differs in length: by its ends, as a range does, or by the stride of its steps."""
        if len(arguments) == 2 and has_no_end(self.facets.content, frame, arguments[1]):
            return self.iterated.why(origins, frame, arguments[0])
        if len(arguments) < 4:
            return self._range(frame, number, first=1)
        shared = resolved(self.facets.content.ev, frame, arguments[0])
        if self._islice(frame, shared) is not None or padded(origins, frame, arguments[0]):
            return None  # what was cut before it is shared out may well divide
        how = "a stride by process index, with the remainder not distributed"
        found = self._of_what(frame, arguments[0], self.facets.content.why(frame, arguments[1]))
        return self._data(found, frame, number, how) or origins.why(frame, arguments[0])

    def _islice(self, frame: Frame, number: int) -> int | None:
        """What ``islice(iterator, n)`` takes from; fewer elements than asked for mean that the end is reached."""
        ev = self.facets.content.ev
        call = ev.function(frame).operations[number]
        if not isinstance(call, s.Call) or len(call.arguments) != 2:
            return None
        return call.arguments[0].value if ev.may_do(frame, call, "islice") else None

    def _by_library(
        self, origins: Origins, frame: Frame, number: int, name: str, arguments: list[int]
    ) -> Reason | None:
        """Why a loader or data set that a library makes of a process's part most likely iterates over it once."""
        owner, _, short = name.rpartition(".")
        if not short[:1].isupper():
            short = owner.rpartition(".")[2] if short in _CONSTRUCTORS else ""
        if not short[:1].isupper() or short.endswith("Sampler"):
            return None
        found = origins.any_of(frame, arguments) or self._by_stage(origins, frame, arguments)
        if found is None or found.kind not in ("data", "ragged", "identity"):
            return None
        return Reason(Site(frame.ref, number), f"{short} goes over this process's part of the data", "ragged", found)

    def _by_stage(self, origins: Origins, frame: Frame, arguments: list[int]) -> Reason | None:
        """Why a stage of a pipeline, a generator that it runs, gives a different number of elements."""
        for argument in arguments:
            stage = certain(origins.ev.value(frame, argument))
            if isinstance(stage, FunctionValue) and origins.ev.project.function(stage.ref).generator:
                found = self.iterated.of_yields(origins, origins.ev.free_frame(stage.ref))
                if found is not None:
                    return found
        return None


def _starts_empty(function: s.Function, name: str) -> bool:
    """Whether a name is only ever given an empty list, alone or as in ``rows, names = [], []``."""
    made = given_to(function, name)
    return bool(made) and all(isinstance(o, s.Display) and o.kind == "list" and not o.elements for o in made)


def is_called_own_part(name: str) -> bool:
    """Whether its name calls something this process's own part of the data: ``local_batch``, ``host_rows``."""
    words = name.lower().split("_")
    return ("local" in words or "host" in words[:-1]) and words[-1] in _PARTS


_PARTS = frozenset(
    "local data dataset examples records files batches shard shards samples items rows windows graphs sequences "
    "documents validation valid val".split()
)
