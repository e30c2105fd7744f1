"""Which parallel calls a piece of code makes, in order.

A *strong* parallel call spans processes whatever its arguments are: a `pmap`, a `shard_map`, `multihost_utils`. A
*weak* one is a bare `jit`, which spans them if its arguments do. A call that cannot be resolved does not count: nothing
is reported without proof. Calling a jitted function while another one is traced is not a parallel call, nor is creating
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.arguments import by_arguments, unknown_map
from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.getters import Getters, Implied
from spmdlint.analysis.callgraph.participants import (
    is_older,
    on_local_devices,
    pretends_to_be_one,
    sharded,
    told_who_takes_part,
)
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.memo import Memo
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    Constant,
    External,
    Frame,
    Free,
    FunctionValue,
    Instance,
    Site,
    Value,
    Values,
    certain,
    constant,
    text,
)
from spmdlint.heuristics.spreading import Spreading
from spmdlint.knowledge.load import Known
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.labels import called_as, may_be_one, template
from spmdlint.program.link import FunctionRef

Strength = Literal["strong", "weak"]
BROADCAST = "jax.experimental.multihost_utils.broadcast_one_to_all"
"""The parallel call by which one process sends its value to all others."""
_NONE = frozenset((Constant(None),))
_TOLD = 4
"""From how many functions on their number is told in place of their names."""
MAX_CALLS = 32
"""The most parallel calls that are listed for one function; the first ones decide."""


class ParallelCall(Struct, frozen=True):
    """A parallel call: its name, and the calls that lead to it, outermost first.

    ``same`` is equal for two calls that are the same call to the other processes. ``everyone`` says that all processes
    of the job take part, and not only those that own the devices it runs on; except if it is ``of_devices``, because it
    gathers an array that may be on the devices of only some processes. ``carried`` says that a call takes what it
    returned before, like a training step, whose state is on all devices; ``handed``, that the queried function hands on
    an argument to it and returns the result, so that a caller may do that.
    """

    name: str
    strength: Strength
    same: object
    path: tuple[Site, ...]
    everyone: bool = False
    of_devices: bool = False
    checkpoint: bool = False
    carried: bool = False
    handed: bool = False
    label: str | None = None
    """The name by which the processes match the call, if it is known."""
    only_for: tuple[tuple[str, bool], ...] = ()
    """Parameters of the queried code for which the call is not made if they are here, or, if true, on the host."""

    def matches(self, other: ParallelCall) -> bool:
        """Whether the two may be one call to the other processes: calls under different names never match."""
        return self.same == other.same and may_be_one(self.label, other.label)

    @property
    def site(self) -> Site:
        """The site in the queried code that makes the call, directly or through other functions."""
        return self.path[0]


class Placing(Protocol):
    """Where values live, as far as that decides which calls are parallel calls; answers are sure."""

    def spans(self, frame: Frame, number: int) -> bool:
        """Whether a value is an array over the devices of all processes."""

    def is_for_all(self, frame: Frame, number: int) -> bool:
        """Whether a value is such an array, or one with a row for each device of this process."""

    def own(self, frame: Frame, number: int) -> bool:
        """Whether a value is on the host, or on devices of this process."""

    def computes_everywhere(self, frame: Frame, number: int, call: s.Call) -> str | None:
        """The function that a call runs, if it needs the processes of all devices outside compiled code."""

    def indexes_everywhere(self, frame: Frame, taken: s.Subscript) -> bool:
        """Whether a part is taken of an array that no process has as a whole."""

    def only_for(self, frame: Frame, number: int) -> tuple[tuple[str, bool], ...]:
        """The parameters that must not be on this process (or, if true, on its host) for an operation to run."""

    def is_here(self, frame: Frame, number: int, *, host: bool) -> bool:
        """Whether a value is on this process, or on its host."""

    def passed_for(self, entered: Frame, name: str, call: s.Call, caller: Frame) -> tuple[Frame, int] | None:
        """What a call passes for a parameter of a function."""


class Effects:
    """Lists parallel calls bottom-up, memoised by frame. One per run."""

    def __init__(
        self, evaluator: Evaluator, calls: Calls, reach: Reach, spreading: Spreading, placement: Placing, preview: bool
    ) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach
        self.spreading = spreading
        self.placement = placement
        self.preview = preview
        self._memo: Memo[tuple[ParallelCall, ...]] = Memo((), ())
        self._getters = Getters(evaluator, ())
        self._parts: dict[Frame, list[tuple[int, Implied]]] = {}

    @cached_property
    def _silent(self) -> frozenset[Frame]:
        """The frames that make no parallel call, directly or through their callees. These are most of a program."""
        visited = frozenset(self.reach.frames)
        callers: dict[Frame, list[Frame]] = {}
        for caller, edges in self.reach.edges.items():
            for edge in edges:
                callers.setdefault(edge.target.frame, []).append(caller)
        speaking: set[Frame] = set()
        self._spread(speaking, [*self.reach.spanning, *(frame for frame in callers if frame not in visited)], callers)
        self._spread(speaking, [frame for frame in visited - speaking if self._computes(frame)], callers)
        names: frozenset[str] = frozenset()
        while (getters := Getters(self.ev, speaking)).names != names:
            names = getters.names
            self._spread(speaking, [frame for frame in visited - speaking if getters.reads(frame)], callers)
        self._getters = getters
        return visited - speaking

    def _computes(self, frame: Frame) -> bool:
        """Whether a function certainly makes a parallel call that only the places of its arrays tell."""
        for number, call in frame.code.of_kind(s.Call):
            if self.placement.computes_everywhere(frame, number, call) is not None:
                return True
            if unknown_map(frame, call, self.callees(frame, call), self.placement.is_for_all) is not None:
                return True
        return bool(self._indexed(frame))

    def _indexed(self, frame: Frame) -> list[tuple[int, Implied]]:
        """Where a function takes a part of an array that no process has as a whole."""
        found = self._parts.get(frame)
        if found is None:
            taken = () if self.reach.only_traced(frame.ref) else frame.code.of_kind(s.Subscript)
            found = [(number, each) for number, each in taken if self.placement.indexes_everywhere(frame, each)]
            self._parts[frame] = found
        return found

    @staticmethod
    def _spread(speaking: set[Frame], pending: list[Frame], callers: Mapping[Frame, list[Frame]]) -> None:
        while pending:
            frame = pending.pop()
            if frame not in speaking:
                speaking.add(frame)
                pending.extend(callers.get(frame, ()))

    def is_silent(self, frame: Frame) -> bool:
        """Whether a frame certainly makes no parallel call, directly or through its callees."""
        return frame in self._silent

    def of_function(self, frame: Frame) -> tuple[ParallelCall, ...]:
        """The parallel calls that a function may make, in source order."""
        if frame in self._silent:
            return ()
        return self._memo.once(frame, lambda: self._of_function(frame))

    def _of_function(self, frame: Frame) -> tuple[ParallelCall, ...]:
        live = self.ev.live_blocks(frame)
        order = self.ev.flow(frame.ref).order(s.ENTRY)
        return self.of_blocks(frame, [block for block in order if block in live])

    def of_blocks(self, frame: Frame, blocks: Iterable[int]) -> tuple[ParallelCall, ...]:
        """The parallel calls in some blocks of a function, in the order of the blocks."""
        if frame in self._silent:
            return ()
        found: list[ParallelCall] = []
        for number, operation in self.running(frame, blocks):
            if not isinstance(operation, s.Call):
                found.extend(self.of_read(frame, number, operation))
            elif not operation.decorator:
                found.extend(self.of_call(frame, number, operation))
            if len(found) >= MAX_CALLS:
                return tuple(found[:MAX_CALLS])
        return tuple(found)

    def running(self, frame: Frame, blocks: Iterable[int]) -> Iterable[tuple[int, s.Call | Implied]]:
        """The calls in some blocks, and what runs a property or a special method there that makes parallel calls."""
        reads = [*self._getters.reads(frame), *self._indexed(frame)]
        if not reads:
            return frame.code.calls_in(blocks)
        block_of = frame.code.function.block_of
        order = {block: place for place, block in enumerate(blocks)}
        found: list[tuple[int, s.Call | Implied]] = [*frame.code.calls_in(order)]
        found += [(number, operation) for number, operation in reads if block_of[number] in order]
        return sorted(found, key=lambda each: (order[block_of[each[0]]], each[0]))

    def reads_properties(self, frame: Frame) -> bool:
        """Whether a function makes parallel calls by what is not written as a call: properties, parts of arrays."""
        return not self.is_silent(frame) and bool(self._getters.reads(frame) or self._indexed(frame))

    def readers(self, ref: FunctionRef) -> frozenset[FunctionRef]:
        """The functions that run a property or a special method which makes parallel calls."""
        return self._readers.get(ref, frozenset())

    @cached_property
    def _readers(self) -> Mapping[FunctionRef, frozenset[FunctionRef]]:
        found: dict[FunctionRef, set[FunctionRef]] = {}
        for frame in self.reach.frames:
            for _, operation in () if self.is_silent(frame) else self._getters.reads(frame):
                run = self._getters.read_by(frame, operation)
                if run is not None:
                    found.setdefault(run[0].ref, set()).add(frame.ref)
        return {ref: frozenset(readers) for ref, readers in found.items()}

    def of_read(self, frame: Frame, number: int, operation: Implied) -> Iterator[ParallelCall]:
        """The parallel calls of the property or the special method that an operation runs."""
        site = Site(frame.ref, number)
        if (number, operation) in self._indexed(frame):
            yield ParallelCall("indexing", "weak", "indexing", (site,))
            return
        run = self._getters.read_by(frame, operation)
        for target in self.calls.targets(*run, frame.depth + 1) if run is not None else ():
            for inner in self.of_function(target.frame):
                yield replace(inner, path=(site, *inner.path))

    def of_call(self, frame: Frame, number: int, operation: s.Call) -> Iterator[ParallelCall]:
        """The parallel calls that one call makes, directly or through the project's functions."""
        if frame in self._silent:
            return
        made = list(self._of_call(frame, number, operation))
        only_for = self.placement.only_for(frame, number) if made else ()
        if not any(self._is_here(frame, name, host) for name, host in only_for):
            yield from (replace(each, only_for=(*each.only_for, *only_for)) for each in made) if only_for else made

    def _is_here(self, frame: Frame, name: str, host: bool) -> bool:
        """Whether a parameter of a function is here, or on the host, whoever calls it."""
        given = next((n for n, each in frame.code.of_kind(s.Parameter) if each.name == name), None)
        return given is not None and self.placement.is_here(frame, given, host=host)

    def _still_for(self, entered: Frame, call: s.Call, frame: Frame, made: ParallelCall) -> ParallelCall | None:
        """A call of a function, as made by a call of that function; None if what that passes rules it out."""
        left: list[tuple[str, bool]] = []
        for name, host in made.only_for:
            given = self.placement.passed_for(entered, name, call, frame)
            if given is None:
                continue
            if self.placement.is_here(*given, host=host):
                return None
            root = given[0].code.operations[given[0].code.root_of(given[1])]
            if given[0] is frame and isinstance(root, s.Parameter):
                left.append((root.name, host))
            elif not (self.preview or self.placement.spans(*given)):
                return None  # a helper that gathers what is not here is mostly passed what is
        return replace(made, only_for=tuple(left))

    def _of_call(self, frame: Frame, number: int, operation: s.Call) -> Iterator[ParallelCall]:
        callees = self.callees(frame, operation)
        step = unknown_map(frame, operation, callees, self.placement.is_for_all)
        if step is not None:
            carried = carries(frame.code, number, operation)
            yield ParallelCall(step, "strong", (frame.ref.path, step), (Site(frame.ref, number),), carried=carried)
            return
        name = self.placement.computes_everywhere(frame, number, operation)
        if name is not None:
            yield ParallelCall(name.rsplit(".", 1)[-1], "weak", name, (Site(frame.ref, number),))
        callee = certain(callees) or by_arguments(self.ev, frame, operation)
        if callee is None:
            for each in self.one_of(frame, callees):
                yield from self._through(frame, number, operation, each)
            yield from self._of_several(frame, number, operation, callees)
            return
        yield from self.of_callee(frame, number, operation, callee)

    def callees(self, frame: Frame, operation: s.Call) -> Values:
        """The functions that a call may run; not None, which cannot be called, as in ``losses.get(name)(x)``."""
        found = self.reach.constructed.called(frame, operation)
        return frozenset(map(self._runs, found - _NONE)) if len(found) > 1 else found

    def _runs(self, callee: Value) -> Value:
        """The function that a call of a value runs: the ``__call__`` of an object."""
        method = certain(self.ev.objects.attribute(callee, "__call__")) if isinstance(callee, Instance) else None
        return method if isinstance(method, FunctionValue) else callee

    def _of_several(self, frame: Frame, number: int, operation: s.Call, callees: Values) -> Iterator[ParallelCall]:
        """The parallel call that a call makes if it runs one of several functions, each of which is a parallel call.

        They are looked up by a key, for example: ``losses[name](x)``. If all are functions of the project, what they
        do is known better.
        """
        if len(callees) < 2 or all(isinstance(callee, FunctionValue) for callee in callees):
            return
        if not all(isinstance(callee, (Applied, External, FunctionValue)) for callee in callees):
            return
        ways = [tuple(self.of_callee(frame, number, operation, each)) for each in ordered(callees)]
        if not all(len(way) == 1 for way in ways):
            return
        calls = [way[0] for way in ways]
        names = list(dict.fromkeys(call.name for call in calls))
        strong = all(call.strength == "strong" for call in calls)
        yield ParallelCall(
            " or ".join(names) if len(names) < _TOLD else f"one of {len(names)} functions",
            "strong" if strong else "weak",
            tuple(call.same for call in calls),
            (Site(frame.ref, number),),
            carried=all(call.carried for call in calls),
        )

    def one_of(self, frame: Frame, callees: Values) -> list[FunctionValue]:
        """The project functions among which a call chooses, if it can run nothing else, in source order.

        If no caller is known, a function that a caller may have passed instead is left out, because one of the others
        runs when nothing is passed; the frames of known callers determine what was passed.
        """
        functions = [callee for callee in callees if isinstance(callee, FunctionValue)]
        others = (FunctionValue,) if self.reach.callers.get(frame.ref) else (FunctionValue, Free)
        if not all(isinstance(callee, others) for callee in callees):
            return []
        return sorted(functions, key=lambda function: (function.ref.path, function.ref.index))

    def of_callee(self, frame: Frame, number: int, operation: s.Call, callee: Value) -> Iterator[ParallelCall]:
        """The parallel calls that a call makes if it runs this callee, which is one of several possible ones."""
        site = Site(frame.ref, number)
        callee = self.ev.objects.called(callee) if isinstance(callee, ClassValue) else callee
        if isinstance(callee, External):
            yield from self._of_library(frame, number, operation, callee)
            return
        callee = compiled_in(self.calls, callee) or callee
        if isinstance(callee, Applied):
            known = self.ev.knowledge.get(callee.name)
            if known is not None and known.kind == "currying" and callee.arguments.positional:
                for each in ordered(callee.arguments.positional[0]):
                    if isinstance(each, (Applied, External)):
                        yield from self.of_callee(frame, number, operation, each)
            if known is not None and (known.kind == "jit" or known.spans):
                if on_local_devices(callee):
                    return
                strength: Strength = "strong" if known.spans else "weak"
                if strength == "weak" and self._communicates(frame, operation, callee):
                    strength = "strong"
                if strength == "weak" and self.placement.own(frame, number):
                    return
                if strength == "weak" and (sharded(self.ev, callee) or self.placement.spans(frame, number)):
                    strength = "strong"
                if strength == "weak" and self.spreading.keeps_to_itself(frame.ref.path):
                    return
                made = ParallelCall(self._name(callee, site), strength, callee.site, (site,), handed=True)
                yield _taken_on(frame.code, number, operation, made)
                return
        yield from self._through(frame, number, operation, callee)

    def _of_library(self, frame: Frame, number: int, operation: s.Call, callee: External) -> Iterator[ParallelCall]:
        """The parallel calls that a call of a library function makes: itself, or in the code that it runs."""
        known, site = self.ev.knowledge.get(callee.name), Site(frame.ref, number)
        if known is None or (known.checkpoint and told_who_takes_part(self.ev, frame, operation)):
            return
        if known.checkpoint and (pretends_to_be_one(self.ev, frame, number) or is_older(self.ev, frame, known)):
            return
        if known.among is not None and passed(operation, known.among, known.positional) is not None:
            return
        if known.parallel:
            name = callee.name.rsplit(".", 1)[-1]
            label = self._label(frame, operation, known)
            yield ParallelCall(
                name,
                "strong",
                callee.name,
                (site,),
                everyone=True,
                of_devices=self._of_global_array(frame, operation),
                checkpoint=known.checkpoint,
                label=label,
            )
        if known.runs:
            for function in self.calls.run_by((callee,), frame, operation):
                if isinstance(function, (External, Applied)):
                    yield from self.of_callee(frame, number, operation, function)
            yield from self._through(frame, number, operation, callee)

    def _of_global_array(self, frame: Frame, operation: s.Call) -> bool:
        """Whether a call is ``tiled``: it gathers an array over devices, and only their processes make it."""
        tiled = self.ev.arguments(frame, operation).keyword("tiled")
        known = constant(tiled) if tiled is not None else None
        return known is not None and known.value is True

    def _through(self, frame: Frame, number: int, operation: s.Call, callee: Value) -> Iterator[ParallelCall]:
        """The parallel calls of the project functions that a call runs."""
        site = Site(frame.ref, number)
        arguments = self.ev.arguments(frame, operation)
        for target in self.calls.targets(callee, arguments, frame.depth + 1):
            if target.way in ("call", "transform", "apply"):
                for inner in self.of_function(target.frame):
                    still = self._still_for(target.frame, operation, frame, inner) if inner.only_for else inner
                    if still is not None:
                        yield _taken_on(frame.code, number, operation, replace(still, path=(site, *inner.path)))

    def _communicates(self, frame: Frame, operation: s.Call, callee: Applied) -> bool:
        """Whether a compiled function contains a call that all processes must make, or lays out arrays on a mesh."""
        arguments = self.ev.arguments(frame, operation)
        targets = list(self.calls.targets(callee, arguments, frame.depth + 1))
        if any(self._lays_out(target.frame) for target in targets):
            return True
        return any(call.everyone for target in targets for call in self.of_function(target.frame))

    def _lays_out(self, frame: Frame) -> bool:
        """Whether a function lays out arrays on a mesh as it is called: a sharding that may be None is often tested."""
        made, blocks = frame.code.calls_named(reading().laying_out), frame.code.function.block_of
        return bool(made) and not self.ev.live_blocks(frame).isdisjoint(blocks[number] for number in made)

    def agrees(self, frame: Frame, operation: s.Call) -> bool:
        """Whether a call gives every process the values of all processes, or the value of one."""
        for callee in ordered(self.ev.value(frame, operation.function)):
            known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is not None and known.parallel and known.agreement:
                return True
        return False

    def _label(self, frame: Frame, operation: s.Call, known: Known) -> str | None:
        if known.label is None:
            return None
        arguments = self.ev.arguments(frame, operation)
        values = arguments.keyword(known.label)
        position = known.positional.index(known.label)
        if values is None and position < len(arguments.positional):
            values = arguments.positional[position]
        if values is not None and constant(values) is not None:
            return text(values)
        return template(frame.code.operations, passed(operation, known.label, known.positional))

    def _name(self, callee: Applied, site: Site) -> str:
        """The function that a map or jit runs, as named in the source; for a lambda, what the call names."""
        known = self.ev.knowledge.get(callee.name)
        if known is not None:
            for function in self.calls.functions_in(known, callee.arguments):
                ref = getattr(function, "ref", None)
                if isinstance(function, Free):
                    return function.name  # of the parameter or field, which is all that the source says
                if ref is not None:
                    name = self.ev.project.function(ref).name
                    if name != "<lambda>":
                        return name
                    bound = called_as(self.ev.project.function(site.ref), site.number)
                    return bound or f"a lambda under {callee.name}"
        return f"a function under {callee.name}"


def compiled_in(calls: Calls, callee: Value) -> Applied | None:
    """The map or jit that runs when the host calls a derivative of it, ``jax.grad(step)(x)``; None for others."""
    known = calls.knowledge.get(callee.name) if isinstance(callee, Applied) else None
    if not isinstance(callee, Applied) or known is None or not known.derives or known.kind != "transform":
        return None
    inner = next(iter(calls.functions_in(known, callee.arguments)), None)
    compiled = calls.knowledge.get(inner.name) if isinstance(inner, Applied) else None
    runs = compiled is not None and (compiled.kind == "jit" or compiled.spans)
    return inner if runs and isinstance(inner, Applied) else None


def same_calls(first: tuple[ParallelCall, ...], second: tuple[ParallelCall, ...]) -> bool:
    """Whether two sequences of calls may be the same sequence to the other processes."""
    return len(first) == len(second) and all(a.matches(b) for a, b in zip(first, second, strict=True))


def _taken_on(code: Code, number: int, call: s.Call, made: ParallelCall) -> ParallelCall:
    """A parallel call with what the call that makes it here says of its state."""
    if not made.handed:
        return made
    return replace(made, carried=made.carried or carries(code, number, call), handed=_hands_on(code, number, call))


def _hands_on(code: Code, number: int, call: s.Call) -> bool:
    """Whether a call is passed an argument of the function around it, which returns the result, or parts of it."""
    given = {code.root_of(argument.value) for argument in call.arguments}
    if not any(parameter in given for parameter, _ in code.of_kind(s.Parameter)):
        return False
    made = {number, *(item for item, each in code.of_kind(s.Item) if code.root_of(each.value) == number)}
    shown = {n for n, each in code.of_kind(s.Display) if not made.isdisjoint(map(code.root_of, each.elements))}
    stored = [s.Load(each.name) for _, each in code.of_kind(s.Store) if code.root_of(each.value) in made]
    ends = [code.root_of(each.value) for _, each in code.returns if each.value is not None]
    return any(end in made | shown or code.operations[end] in stored for end in ends)


def carries(code: Code, number: int, operation: s.Call) -> bool:
    """Whether the result of a call is stored where one of its arguments came from: ``state = step(state, batch)``."""
    function = code.function
    given_from = [place for each in operation.arguments for place in (each.value, code.root_of(each.value))]
    taken = {_place(function, each) for each in given_from} - {None}
    block = function.blocks[function.block_of[number]].operations
    given = {number}
    for other in block[block.index(number) + 1 :]:
        later = function.operations[other]
        if isinstance(later, s.Item) and later.value in given:
            given.add(other)
        elif isinstance(later, s.Store) and later.value in given:
            if later.name in taken:
                return True
        elif isinstance(later, s.StoreAttribute) and later.value in given:
            stored = (_place(function, later.base), later.name)
            if stored in taken:
                return True
    return False


def _place(function: s.Function, number: int) -> object:
    """A name, or an attribute of one, in a form that can be compared."""
    operation = function.operations[number]
    if isinstance(operation, s.Load):
        return operation.name
    if isinstance(operation, s.Attribute):
        base = _place(function, operation.base)
        return (base, operation.name) if base is not None else None
    return None
