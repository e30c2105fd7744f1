"""Decides which arrays differ in shape between processes: from sizes that vary, and from what is made with them.

A window of one length has the same shape wherever it lies, and what is padded to a size has that size; so for padding,
only the target size counts. An array of a process's share has the share's length.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeGuard

from spmdlint.analysis.evaluation.bindings import by_position, passed
from spmdlint.analysis.evaluation.code import LINKS
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import filling_of, given_to
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.transfers import whole_result
from spmdlint.analysis.evaluation.values import Constant, External, Frame, Site, certain, constant
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.element import of_element, of_entry
from spmdlint.analysis.variance.evened import size_reached
from spmdlint.analysis.variance.guarded import decided
from spmdlint.analysis.variance.items import of_appended
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.analysis.variance.rounds import of_round
from spmdlint.analysis.variance.selected import SELECTED, by_filling, by_function, by_index
from spmdlint.analysis.variance.texts import ENCODED, LONGEST, padded_to_longest
from spmdlint.analysis.variance.windows import JOINED, Windows, are_complements, resolved
from spmdlint.analysis.variance.writtenshapes import several_shapes
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

_FILLED = ("zeros", "ones", "full", "empty", "arange")
_STACKED = ("array", "asarray", "stack", "concatenate", "vstack", "hstack", "fromiter", "frombuffer")
_LIBRARIES = names("array_libraries")
_NEW_AXES = frozenset(f"{library}newaxis" for library in _LIBRARIES)
_METHODS_KEEP = frozenset("astype copy transpose swapaxes squeeze ravel flatten cumsum clip round".split())
MAPPERS = frozenset(names("leaf_mappers"))
_KEEPERS = frozenset(names("shape_keepers"))
_SIZES = frozenset(("size", "shape"))
_UNKNOWN = (SELECTED, LONGEST)
"""Kinds of reasons that hold for every part of a value: nobody has said which of its parts they are about."""


class Shape(Property):
    """The shape differs between processes."""

    def __init__(self, facets: OtherFacets, control: Control) -> None:
        self.facets = facets
        self.control = control

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Call):
            return self._of_texts(origins, frame, number, operation) or self._call(origins, frame, number, operation)
        if isinstance(operation, s.Item):
            found = of_element(origins, frame, operation)
            if found == CONTINUE:
                return self._of_entry(origins, frame, operation) or of_round(origins, frame, number)
            return found
        if isinstance(operation, s.Next):
            return of_round(origins, frame, number)
        if isinstance(operation, s.Subscript):
            return self._cut(origins, frame, number, operation)
        if isinstance(operation, s.Collected):
            found = origins.why(frame, operation.element)
            return found or (self.facets.length.why(frame, number) if operation.kind != "dict" else None)
        if isinstance(operation, (s.Display, s.DictDisplay)):
            is_set = isinstance(operation, s.Display) and operation.kind == "set"
            return origins.any_of(frame, operation.elements) if not is_set else None
        if isinstance(operation, s.Binary):
            return self._combined(origins, frame, operation)
        if isinstance(operation, s.Unary):
            return origins.why(frame, operation.operand) if operation.operator == "-" else None
        if isinstance(operation, s.Load):
            return self._loaded(origins, frame, number, operation)
        if isinstance(operation, s.Attribute):
            return self._encoded(origins, frame, operation) or CONTINUE
        if isinstance(operation, s.IfExp):
            return self._of_expression(origins, frame, operation) or CONTINUE
        if isinstance(operation, (s.Store, s.Parameter, s.Await, s.Import)):
            return CONTINUE
        return None

    def chosen(
        self, origins: Origins, frame: Frame, name: str, places: Sequence[tuple[int, int | None]], use: int | None
    ) -> Reason | None:
        shapes = several_shapes(origins.ev, frame, [value for _, value in places])
        at = [place for place, _ in places]
        text = f"whether {name} has the shape {shapes} depends on this"
        return decided(self.facets.content, self.control, frame, at, use, text) if shapes is not None else None

    def _of_expression(self, origins: Origins, frame: Frame, choice: s.IfExp) -> Reason | None:
        """Why one of two arrays with different shapes is chosen."""
        shapes = several_shapes(origins.ev, frame, (choice.body, choice.orelse))
        found = self.facets.content.why(frame, choice.test) if shapes is not None else None
        text = f"whether the shape is {shapes} depends on this"
        return found.then(Site(frame.ref, choice.test), text) if found is not None else None

    def _of_texts(self, origins: Origins, frame: Frame, number: int, call: s.Call) -> Reason | None:
        texts = self.facets.content.any_of(frame, padded_to_longest(origins.ev, frame, call))
        text = "this process's own texts are padded to the longest of them"
        return Reason(Site(frame.ref, number), text, LONGEST, texts) if texts is not None else None

    @staticmethod
    def _encoded(origins: Origins, frame: Frame, operation: s.Attribute) -> Reason | None:
        """Why a field of a tokenizer's result differs in shape."""
        found = origins.why(frame, operation.base) if operation.name in ENCODED else None
        return found if found is not None and found.kind == LONGEST else None

    def _loaded(self, origins: Origins, frame: Frame, number: int, load: s.Load) -> Answer:
        """Why the value of a name differs in shape, together with what was put into it."""
        puts = {
            place: put
            for place in filling_of(origins.ev, frame, number)
            if isinstance(put := frame.code.operations[place], s.StoreSubscript)
        }
        found = self._filled(origins, frame, load.name, puts.values())
        if found is not None:
            return found
        before = [put for place, put in puts.items() if place < number]
        fixed = self._renewed(origins, frame, before) or self._padded_before(origins, frame, number, load)
        return None if fixed else CONTINUE

    @staticmethod
    def _filled(origins: Origins, frame: Frame, name: str, puts: Collection[s.StoreSubscript]) -> Reason | None:
        """Why what is put into a dictionary under a key differs in shape."""
        given = [each.value for each in puts]
        made = given_to(frame.code.function, name) if given else []
        only_dictionaries = bool(made) and all(isinstance(each, s.DictDisplay) for each in made)
        return origins.any_of(frame, given) if only_dictionaries else None

    @staticmethod
    def _renewed(origins: Origins, frame: Frame, puts: Iterable[s.StoreSubscript]) -> bool:
        """Whether a loop puts arrays of one shape under the keys of a dictionary: perhaps in the place of all."""
        for put in puts:  # the keys of a dictionary that a loop goes over are several strings
            keys = origins.ev.value(frame, put.index)
            strings = len(keys) > 1 and all(isinstance(v, Constant) and isinstance(v.value, str) for v in keys)
            if strings and origins.why(frame, put.value) is None:
                return True
        return False

    @staticmethod
    def _of_entry(origins: Origins, frame: Frame, operation: s.Item) -> Reason | None:
        """Why the value in ``for key, value in arrays.items()``, or one of several results, differs in shape."""
        function = origins.ev.function(frame)
        each = function.operations[operation.value]
        if isinstance(each, s.Call):  # one of several results
            whole = _selected_from(origins.ev, frame, each, operation.index)
            if whole is not None:
                return origins.why(frame, whole)
            found = origins.why(frame, operation.value)
            return found if found is not None and any(step.kind in _UNKNOWN for step in found.chain()) else None
        table = frame.code.table_of(operation, 1)
        return origins.why(frame, table) if table is not None else None

    def _combined(self, origins: Origins, frame: Frame, operation: s.Binary) -> Reason | None:
        if operation.operator == "@":  # sums over the rows of the right operand, or of a transposed left one
            left = frame.code.operations[operation.left]
            turned = isinstance(left, s.Attribute) and left.name in ("T", "mT")
            return None if turned else origins.why(frame, operation.left)
        size = size_reached(origins.ev, frame, operation)
        if size is not None:
            return self.facets.content.why(frame, size)
        found = origins.any_of(frame, (operation.left, operation.right))
        if found is None and operation.operator == "*":
            # `[0] * n` has n elements; a product with an array has the array's shape, which was looked at above.
            for one_side, other in ((operation.left, operation.right), (operation.right, operation.left)):
                if isinstance(frame.code.operations[one_side], s.Display):
                    return self._aimed_at(origins.ev, frame, other)
        return found

    def _aimed_at(self, ev: Evaluator, frame: Frame, number: int) -> Reason | None:
        """Why a size varies; for a difference ``size - length``, only the size that is padded to counts."""
        for _ in LINKS:
            operation = frame.code.operations[resolved(ev, frame, number)]
            if not isinstance(operation, s.Binary) or operation.operator != "-":
                break
            number = operation.left
        return self.facets.content.why(frame, number)

    def _cut(self, origins: Origins, frame: Frame, number: int, operation: s.Subscript) -> Reason | None:
        function = origins.ev.function(frame)
        index = function.operations[operation.index]
        parts = index.elements if isinstance(index, s.Display) else (operation.index,)
        said = [(part, certain(origins.ev.value(frame, part))) for part in parts]
        new = (Constant(None), *map(External, _NEW_AXES))
        kept = tuple(part for part, value in said if value not in new)
        if len(kept) < len(parts) and all(_takes_all(function.operations[part]) for part in kept):
            return origins.why(frame, operation.base)
        parts = kept
        cuts = [cut for cut in (function.operations[part] for part in parts) if isinstance(cut, s.Slice)]
        if not cuts:
            return self._chosen(origins, frame, number, operation)
        if len(parts) == 1:
            return self.facets.length.why(frame, number)
        ends = [cut.upper for cut in cuts if cut.lower is None and cut.upper is not None]
        places = [part for part in parts if not isinstance(function.operations[part], s.Slice)]
        found = self.facets.content.any_of(frame, ends) or origins.any_of(frame, places)
        whole = origins.why(frame, operation.base) if found is None else None
        first = function.operations[parts[0]]
        rows = isinstance(first, s.Slice) or (isinstance(first, s.Const) and first.value is ...)
        # Which rows are taken decides how many there are, but not how long each is.
        return found or (whole if whole is not None and (rows or whole.kind == LONGEST) else None)

    @staticmethod
    def _padded_before(origins: Origins, frame: Frame, load: int, operation: s.Load) -> bool:
        """Whether a branch pads the value of a name to one size if it is shorter."""
        if frame.code.scope_of(operation.name) is not frame.code.function:
            return False
        stores = origins.ev.reaching(frame, load, operation.name)
        for store in sorted(stores) if len(stores) > 1 else ():
            made = frame.code.operations[frame.code.root_of(store)]
            given: tuple[int, ...] = ()
            callee = frame.code.operations[made.function] if isinstance(made, s.Call) else None
            if isinstance(made, s.Call) and isinstance(callee, (s.Load, s.Attribute)) and "pad" in callee.name:
                given = given or tuple(argument.value for argument in made.arguments[:1])
                own = any(_names(frame, each, operation.name) for each in given)
                if own and origins.why(frame, store) is None:
                    return True
        return False

    def _chosen(self, origins: Origins, frame: Frame, number: int, operation: s.Subscript) -> Reason | None:
        """Why rows chosen by indices or by a mask, or an element of a tuple or dictionary, differ in shape."""
        index = origins.ev.function(frame).operations[operation.index]
        if isinstance(index, s.Const):
            found = origins.why(frame, operation.base)
            if found is not None and found.kind in _UNKNOWN:
                return found
            if isinstance(index.value, str) and not filling_of(origins.ev, frame, operation.base):
                found = of_entry(origins, frame, operation.base, index.value)
                if found is not None:
                    return found
            return of_round(origins, frame, frame.code.root_of(operation.base), index.value)
        found = by_index(origins.ev, frame, number, operation.index) or origins.why(frame, operation.index)
        return found if found is not None and found.kind in (SELECTED, "data") else None

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        arguments = [argument.value for argument in operation.arguments]
        function = origins.ev.function(frame)
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if not isinstance(callee, External):
                continue
            if callee.name.startswith("jax.random.") and len(arguments) > 1:
                return self._made(origins, frame, number, self._of_sizes(frame, operation))
            if not callee.name.startswith(_LIBRARIES) or not arguments:
                return self._elsewhere(origins, frame, number, callee.name, operation)
            name = callee.name.rsplit(".", 1)[-1]
            selected = by_function(frame, number, name)
            if selected is not None:
                return selected
            if name in _FILLED:
                ends = by_position(operation) or arguments
                return self._made(origins, frame, number, self._of_first(frame, name, ends))
            if name in _STACKED:
                return self._made(origins, frame, number, self._stacked(origins, frame, name, operation))
            if name == "pad" and len(arguments) > 1:
                return self._padded(origins, frame, arguments, function)
            if name == "reshape":
                rest = self._size(origins, frame, arguments[0]) if _has_rest(function, arguments[1:]) else None
                return self.facets.content.any_of(frame, arguments[1:]) or rest
            if name in ("repeat", "tile", "resize", "broadcast_to"):
                count = self._made(origins, frame, number, self.facets.content.any_of(frame, arguments[1:2]))
                return count or (origins.why(frame, arguments[0]) if name in ("repeat", "tile") else None)
            if name in ("sum", "mean", "max", "min", "all", "any", "prod", "size", "int32", "int64", "float32"):
                return None
            return origins.any_of(frame, arguments)
        method = function.operations[operation.function]
        return self._method(origins, frame, number, operation, method) if isinstance(method, s.Attribute) else CONTINUE

    def _stacked(self, origins: Origins, frame: Frame, name: str, call: s.Call) -> Reason | None:
        """Why an array that is put together from several arrays differs in shape."""
        parts = call.arguments[0].value
        if name in JOINED and _along_rows(origins.ev, frame, call) and are_complements(origins, frame, parts):
            return None
        found = origins.why(frame, parts) or self.facets.length.why(frame, parts)
        found = found or by_filling(origins.ev, frame, parts)
        return found or (of_appended(origins, frame, parts) if name in JOINED else None)

    def _of_first(self, frame: Frame, name: str, arguments: list[int]) -> Reason | None:
        """Why an array made from a shape, or between two ends, differs in shape."""
        if name != "arange" or len(arguments) < 2:
            return self.facets.content.why(frame, arguments[0])
        windows = Windows(self.facets.content)
        found = windows.differs(frame, *arguments[:2], cut=False)
        if found is None and (len(arguments) > 2 or not windows.follows(frame, *arguments[:2])):
            found = self.facets.content.any_of(frame, arguments)
        return found

    def _size(self, origins: Origins, frame: Frame, array: int) -> Reason | None:
        """Why the number of elements of an array differs."""
        return self.facets.length.why(frame, array) or origins.why(frame, array)

    def _method(self, origins: Origins, frame: Frame, number: int, operation: s.Call, method: s.Attribute) -> Answer:
        """Why the result of an array's method, or of a method that makes an array of a size, differs in shape."""
        arguments = [argument.value for argument in operation.arguments]
        if method.name == "reshape":
            function = origins.ev.function(frame)
            rest = self._size(origins, frame, method.base) if _has_rest(function, arguments) else None
            return self.facets.content.any_of(frame, arguments) or rest
        if method.name in _METHODS_KEEP:
            return origins.why(frame, method.base)
        if any(argument.keyword in _SIZES for argument in operation.arguments):
            return self._made(origins, frame, number, self._of_sizes(frame, operation))
        return CONTINUE

    def _of_sizes(self, frame: Frame, operation: s.Call) -> Reason | None:
        """Why the shape requested for random numbers varies: given by name, or written out after the key."""
        operations = self.facets.content.ev.function(frame).operations
        named = [argument.value for argument in operation.arguments if argument.keyword in _SIZES]
        behind = [argument.value for argument in operation.arguments[1:] if not argument.keyword]
        written = [number for number in behind if isinstance(operations[number], s.Display)]
        return self.facets.content.any_of(frame, (*named, *written))

    @staticmethod
    def _made(origins: Origins, frame: Frame, number: int, found: Reason | None) -> Reason | None:
        return origins.step(frame, number, "an array of that size is made", found)

    def _padded(self, origins: Origins, frame: Frame, arguments: list[int], function: s.Function) -> Reason | None:
        """Why ``pad(x, (before, after))`` differs in shape: its widths count as sizes that are padded to."""
        pending, sizes = [arguments[1]], []
        while pending:
            operation = function.operations[pending[-1]]
            number = pending.pop()
            if isinstance(operation, s.Display):
                pending.extend(operation.elements)
            elif _joins_lists(operation, function):
                pending.extend((operation.left, operation.right))
            else:
                sizes.append(number)
        found = next((found for size in sizes if (found := self._aimed_at(origins.ev, frame, size)) is not None), None)
        # Data whose size differs, and which gets a differing number of rows, is padded to one size.
        return found if found is None or self._size(origins, frame, arguments[0]) is None else None

    def _elsewhere(self, origins: Origins, frame: Frame, number: int, name: str, operation: s.Call) -> Reason | None:
        arguments = [argument.value for argument in operation.arguments]
        known = origins.ev.knowledge.get(name)
        if known is not None and known.gives_global and known.local is not None:
            # Without the shape of the whole, the parts of all processes must have one shape.
            part = passed(operation, known.local, known.positional)
            whole = passed(operation, "global_shape", known.positional)
            found = origins.why(frame, part) if part is not None and whole is None else None
            if part is None or found is None or found.kind != SELECTED:
                return found
            text = "each process passes in its part as it is"
            return Reason(Site(frame.ref, part), text, "data", found)
        if name in _KEEPERS or (known is not None and known.per_device):
            return origins.any_of(frame, arguments[:1])
        if name in MAPPERS:
            return origins.any_of(frame, arguments[1:])
        if known is None and "pad" in name.rsplit(".", 1)[-1].split("_"):
            return self._made(origins, frame, number, self.facets.content.any_of(frame, arguments[1:]))
        return None


def _selected_from(ev: Evaluator, frame: Frame, call: s.Call, index: int) -> int | None:
    """What a call selects elements from, if its result at an index has one for each of them: ``return_inverse``."""
    callee = ev.callee(frame, call)
    known = ev.knowledge.transfer(callee.name) if isinstance(callee, External) else None
    whole = whole_result(known, call) if known is not None else None
    return call.arguments[0].value if whole is not None and whole == index else None


def _has_rest(function: s.Function, sizes: list[int]) -> bool:
    """Whether one size of a new shape is -1, which means whatever is left."""
    for number in sizes:
        operation = function.operations[number]
        if isinstance(operation, s.Display) and _has_rest(function, list(operation.elements)):
            return True
        if isinstance(operation, s.Binary) and _has_rest(function, [operation.left, operation.right]):
            return True
        if isinstance(operation, s.Unary) and operation.operator == "-":
            one = function.operations[operation.operand]
            if isinstance(one, s.Const) and one.value == 1:
                return True
    return False


def _takes_all(index: s.Operation) -> bool:
    """Whether an index takes all of one dimension, or of several."""
    if isinstance(index, s.Slice):
        return index.lower is None and index.upper is None and index.step is None
    return isinstance(index, s.Const) and index.value is ...


def _names(frame: Frame, number: int, name: str) -> bool:
    """Whether a value is read from a name, or from what a method of it gives, such as ``items()``."""
    operation = frame.code.operations[number]
    method = frame.code.operations[operation.function] if isinstance(operation, s.Call) else None
    base = frame.code.operations[method.base] if isinstance(method, s.Attribute) else operation
    return isinstance(base, s.Load) and base.name == name


def _joins_lists(operation: s.Operation, function: s.Function) -> TypeGuard[s.Binary]:
    """Whether lists are put together: ``[(0, more)] + [(0, 0)] * 3``."""
    if not isinstance(operation, s.Binary) or operation.operator not in ("+", "*"):
        return False
    sides = [function.operations[side] for side in (operation.left, operation.right)]
    return any(isinstance(side, s.Display) or _joins_lists(side, function) for side in sides)


def _along_rows(ev: Evaluator, frame: Frame, call: s.Call) -> bool:
    """Whether a call may join arrays along their first dimension, where their rows add up."""
    axis = passed(call, "axis", ("arrays", "axis"))
    known = constant(ev.value(frame, axis)) if axis is not None else None
    return known is None or known.value == 0
