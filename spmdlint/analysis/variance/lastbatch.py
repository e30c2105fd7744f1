"""Batches of a process's own part of the data that differ in size: the last is short, or each is padded.

Batching without dropping the remainder ends in a short batch. If all processes see the whole data, it is short in the
same way everywhere; if their parts differ in size, it is not. Batches padded to their longest example are as long as
this process's own examples. Windows by process index in the last batch of all data are full, short or empty. The value
here is an iterable of such batches, a batch, or an array made from one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.code import LINKS
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.transfers import through, through_method
from spmdlint.analysis.evaluation.values import (
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    Values,
    certain,
)
from spmdlint.analysis.variance.evened import SHARDERS
from spmdlint.analysis.variance.lastslice import LastSlice
from spmdlint.analysis.variance.length import Length
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.analysis.variance.shape import MAPPERS
from spmdlint.analysis.variance.windows import Windows, resolved
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

REMAINDER = "remainder"
"""The kind of the step that changes the size of the last batch."""
BY_LENGTH = "by length"
"""The kind of the step that makes each batch as long as its longest example."""
BATCHERS = frozenset(("batch", "padded_batch"))
_HELPERS = 3
_LIBRARIES = names("known_libraries")
_RESIZERS = frozenset("pad concatenate concat resize append zeros ones full empty tile repeat vstack hstack".split())
_BUCKETS = frozenset(("padded_batch", "bucket_by_sequence_length", "ragged_batch"))
_FIXED = frozenset(("padded_shapes",))
_DROPS = ("drop_remainder", "drop_last")
_MAPPERS = MAPPERS | {"builtins.map"}
_PARTS = frozenset(("items", "values"))
_PASSED_ON = frozenset(names("iterators"))


class LastBatch(Property):
    """The value is, or gives, batches of which the last, or each, has a different size on some processes."""

    def __init__(self, facets: OtherFacets, lengths: Length) -> None:
        self.facets = facets
        self.lengths = lengths

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        if isinstance(operation, s.Next):
            if self.lengths.iterated.why(self.facets.length, frame, operation.iterable) is not None:
                return None  # the loop itself makes a different number of iterations, and is reported for that
            return origins.why(frame, operation.iterable)
        if isinstance(operation, s.Item):
            return origins.why(frame, operation.value)
        if isinstance(operation, s.Subscript):
            index = origins.ev.function(frame).operations[operation.index]
            if isinstance(index, s.Slice):
                return self._window(origins, frame, number, operation, index)
            return origins.why(frame, operation.base)
        if isinstance(operation, s.Display):
            return origins.any_of(frame, operation.elements) if operation.kind != "set" else None
        if isinstance(operation, s.Collected):
            return origins.why(frame, operation.element) if operation.kind != "set" else None
        if isinstance(operation, s.DictDisplay):
            return origins.any_of(frame, operation.values)
        if isinstance(operation, s.Load):
            window = self._cut_in_a_loop(frame, resolved(origins.ev, frame, number))
            at = frame.code.function.block_of[number]
            return CONTINUE if window is None or window.may_be_short(at) else None
        if isinstance(operation, (s.Store, s.Parameter, s.Attribute, s.Import, s.Enter)):
            return CONTINUE
        return None

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        arguments = [argument.value for argument in operation.arguments]
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if isinstance(callee, FunctionValue):
                found = origins.in_generator(frame, number, operation, callee, partial(self._yielded, origins))
                return found if found is not None else CONTINUE
            if isinstance(callee, External):
                return self._library(origins, frame, number, operation, callee.name, arguments)
        method = origins.ev.function(frame).operations[operation.function]
        if not isinstance(method, s.Attribute):
            return None
        if method.name in _BUCKETS and not any(a.keyword in _FIXED for a in operation.arguments):
            return self._by_length(frame, number, method.base)
        if method.name in BATCHERS:
            return self._batched(frame, number, operation, self.facets.length.why(frame, method.base))
        if method.name in SHARDERS:
            share = self.facets.content.any_of(frame, arguments)
            if share is not None and share.kind == "identity" and self._is_batched(origins, frame, method.base):
                return Reason(
                    Site(frame.ref, number), "one process gets the last batch, which may be short", REMAINDER, share
                )
            return None
        if method.name == "map" and not (arguments and keeps_sizes(origins.ev, origins.ev.value(frame, arguments[0]))):
            return None
        return origins.any_of(frame, through_method(origins.ev, frame, operation, "batches"))

    def _library(
        self, origins: Origins, frame: Frame, number: int, operation: s.Call, name: str, arguments: list[int]
    ) -> Reason | None:
        known = origins.ev.knowledge.get(name)
        if known is not None and known.batches:
            if passed(operation, known.batches, known.positional) is None:
                return None
            return self._batched(
                frame, number, operation, self.facets.length.any_of(frame, arguments), known.positional
            )
        if known is not None and known.gives_global and known.local is not None:
            part = passed(operation, known.local, known.positional)
            return origins.why(frame, part) if part is not None else None
        if name in _MAPPERS:
            keeps = arguments and keeps_sizes(origins.ev, origins.ev.value(frame, arguments[0]))
            return origins.any_of(frame, arguments[1:]) if keeps else None
        return origins.any_of(frame, through(origins.ev.knowledge, name, operation, "batches"))

    def _by_length(self, frame: Frame, number: int, base: int) -> Reason | None:
        """Batches that are as long as their longest example, made from this process's part of the data."""
        part = self.facets.content.why(frame, base)
        if part is None or part.kind != "data":
            return None
        text = "each batch is as long as the longest of this process's own examples in it"
        return Reason(Site(frame.ref, number), text, BY_LENGTH, part)

    def _batched(
        self, frame: Frame, number: int, operation: s.Call, part: Reason | None, positional: tuple[str, ...] = ()
    ) -> Reason | None:
        """Why a call makes batches of different sizes: its data is a part, and it keeps the remainder."""
        if part is None or part.kind not in ("data", "ragged") or not self._keeps_rest(frame, operation, positional):
            return None
        text = "the last batch of this process's part may be short, and it is not dropped"
        return Reason(Site(frame.ref, number), text, REMAINDER, part)

    def _keeps_rest(self, frame: Frame, operation: s.Call, positional: tuple[str, ...] = ()) -> bool:
        given = [value for each in _DROPS if (value := passed(operation, each, positional)) is not None]
        starred = any(argument.star for argument in operation.arguments)
        return not starred and all(
            certain(self.facets.content.ev.value(frame, number)) == Constant(False) for number in given
        )

    def _is_batched(self, origins: Origins, frame: Frame, base: int) -> bool:
        """Whether data was made by batching the whole, with the remainder kept, and not repeated before that."""
        links = list(_links(origins.ev, frame, base))
        for place, (call, name) in enumerate(links):
            if name in BATCHERS:
                return self._keeps_rest(frame, call) and all(before != "repeat" for _, before in links[place:])
            if not through_method(origins.ev, frame, call, "batches"):
                break
        return False

    def _window(
        self, origins: Origins, frame: Frame, number: int, operation: s.Subscript, index: s.Slice
    ) -> Reason | None:
        """``part[i:i + n]`` for ``i in range(0, len(part), n)``: the last of these windows is short."""
        ev = self.facets.content.ev
        function = ev.function(frame)
        own = of_short_batch(self.facets.content, frame, operation, index, partial(self._is_batched, origins))
        if own is not None:
            text = "the last batch may be short, and then each process's own part of it has a size of its own"
            return Reason(Site(frame.ref, number), text, REMAINDER, own)
        loop = self._loop(frame, index)
        part = self.facets.length.why(frame, operation.base) if loop is not None else None
        if loop is None or part is None or part.kind != "data":
            return None
        if self.facets.content.why(frame, loop.arguments[1].value) is None:
            return None
        window = self._cut_in_a_loop(frame, number)
        if window is None or not window.may_be_short(function.block_of[number]):
            return None
        return Reason(Site(frame.ref, number), "the last slice of this process's data is short", REMAINDER, part)

    def _loop(self, frame: Frame, index: s.Slice) -> s.Call | None:
        """The ``range(start, end, step)`` over which a loop goes whose variable is where a slice begins."""
        ev, operations = self.facets.content.ev, frame.code.operations
        if index.lower is None or index.upper is None:
            return None
        start = operations[resolved(ev, frame, index.lower)]
        iterable = operations[start.iterable] if isinstance(start, s.Next) else None
        if not isinstance(iterable, s.Call) or len(iterable.arguments) != 3:
            return None
        return iterable if ev.may_do(frame, iterable, "range") else None

    def _cut_in_a_loop(self, frame: Frame, number: int) -> LastSlice | None:
        """The slices that an operation takes in such a loop; None for any other operation."""
        operations = frame.code.operations
        operation = operations[number]
        index = operations[operation.index] if isinstance(operation, s.Subscript) else None
        loop = self._loop(frame, index) if isinstance(index, s.Slice) else None
        if loop is None or not isinstance(index, s.Slice) or index.lower is None:
            return None
        start, end, size = (argument.value for argument in loop.arguments)
        begin = resolved(self.facets.content.ev, frame, index.lower)
        return LastSlice(self.facets.content.ev, frame, number, begin, (start, end, size))

    @staticmethod
    def _yielded(origins: Origins, frame: Frame) -> Reason | None:
        """Why what a generator of the project yields has the property."""
        operations = frame.code.operations
        for block in sorted(origins.ev.live_blocks(frame)):
            for each in frame.code.function.blocks[block].operations:
                yielded = operations[each]
                found = (
                    origins.why(frame, yielded.value)
                    if isinstance(yielded, s.Yield) and yielded.value is not None
                    else None
                )
                if found is not None:
                    return found
        return None


def _links(ev: Evaluator, frame: Frame, base: int) -> Iterator[tuple[s.Call, str]]:
    """The calls of methods one after the other by which a value was made, with their names, the last first."""
    for _ in LINKS:
        call = frame.code.operations[resolved(ev, frame, base)]
        method = frame.code.operations[call.function] if isinstance(call, s.Call) else None
        if not isinstance(call, s.Call) or not isinstance(method, s.Attribute):
            return
        yield call, method.name
        base = method.base


def keeps_sizes(ev: Evaluator, functions: Values, depth: int = _HELPERS) -> bool:
    """Whether all of these functions certainly keep the number of rows."""
    return bool(functions) and all(_keeps(ev, function, depth) for function in functions)


def _keeps(ev: Evaluator, called: Value, depth: int) -> bool:
    function, _ = ev.through_partial(called)
    if isinstance(function, External):
        return function.name.startswith(_LIBRARIES) and function.name.rpartition(".")[2] not in _RESIZERS
    return isinstance(function, FunctionValue) and depth > 0 and _body_keeps(ev, ev.free_frame(function.ref), depth)


def _body_keeps(ev: Evaluator, frame: Frame, depth: int) -> bool:
    if "pad" in frame.code.function.name:
        return False
    for _, call in frame.code.calls_in(sorted(ev.live_blocks(frame))):
        callees = ev.value(frame, call.function)
        method = frame.code.operations[call.function]
        if isinstance(method, s.Attribute) and not any(isinstance(c, (External, FunctionValue)) for c in callees):
            if method.name in _RESIZERS or "pad" in method.name:
                return False
        elif not keeps_sizes(ev, callees, depth - 1):
            return False
    return True


def of_short_batch(
    content: Origins, frame: Frame, operation: s.Subscript, index: s.Slice, is_batched: Callable[[Frame, int], bool]
) -> Reason | None:
    """Why a slice is this process's own window of a batch that may be short.

    ``content`` says which values differ; ``is_batched``: whether an iterable gives batches of which the last is short.
    """
    if index.lower is None or index.upper is None or index.step is not None:
        return None
    place = content.why(frame, index.lower)
    if place is None or place.kind != "identity" or not Windows(content).follows(frame, index.lower, index.upper):
        return None
    return place if _is_short(content, frame, operation.base, is_batched) else None


def _is_short(content: Origins, frame: Frame, base: int, is_batched: Callable[[Frame, int], bool]) -> bool:
    ev = content.ev
    operation = frame.code.operations[resolved(ev, frame, base)]
    if isinstance(operation, s.Item):
        return _is_short(content, frame, operation.value, is_batched)
    if isinstance(operation, s.Next):
        return is_batched(frame, operation.iterable) or _is_short(content, frame, operation.iterable, is_batched)
    if isinstance(operation, s.Subscript):
        cuts = isinstance(frame.code.operations[operation.index], s.Slice)
        return not cuts and _is_short(content, frame, operation.base, is_batched)
    if not isinstance(operation, s.Call):
        return False
    method = frame.code.operations[operation.function]
    if isinstance(method, s.Attribute) and method.name in _PARTS:
        return _is_short(content, frame, method.base, is_batched)
    callee = ev.callee(frame, operation)
    if isinstance(callee, External) and callee.name in _PASSED_ON and len(operation.arguments) == 1:
        given = operation.arguments[0].value
        return is_batched(frame, given) or _is_short(content, frame, given, is_batched)
    return False
