"""Keys that are split for this process's devices from a key that all processes share: every process draws the same.

A key comes from a seed, which is a setting or is named so, or from a constant; on its way it is split, a step number is
folded into it, or a function passes it to another. If anything else is done to it, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from spmdlint.analysis.callgraph.upstream import imported
from spmdlint.analysis.evaluation.bindings import passed, passed_to
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.receivers import is_receiver
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Values,
    certain,
)
from spmdlint.analysis.inputs.localkeys import split_for_own_devices
from spmdlint.analysis.meshtypes.onpurpose import FOLD, keys_of_devices
from spmdlint.analysis.variance.alone import Alone
from spmdlint.analysis.variance.arguments import argument_for
from spmdlint.analysis.variance.origins import Origins
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

INITIALIZERS = frozenset(("init", "init_by_shape", "init_with_output", "lazy_init"))
"""Methods that make the parameters of a model."""
_KEY_DEPTH, _DRAW_DEPTH = 24, 12
_RESHAPE, _ARRAYS = "reshape", "jax.numpy."
_STEPS = frozenset("step epoch iteration global_step update_step num_steps".split())
_COPIES = frozenset(("jax.numpy.stack", "jax.numpy.array", "jax.numpy.asarray"))

RowCall: TypeAlias = tuple[Frame, int, s.Call]
"""A call that passes each device a row: its frame, its number and the call itself."""


class SharedSplit(Struct, frozen=True):
    """The split, the call of a map that takes its keys, and where the split key is made.

    ``draws``: it is not a split, but draws rows for the devices.
    """

    site: Site
    given: Site
    made: Site
    draws: bool = False


def shared_splits(
    evaluator: Evaluator, table: Typing, content: Origins, calls: Iterable[RowCall], folding: Folding
) -> Iterator[SharedSplit]:
    """Every such split whose keys go to a map over the devices of all processes, by one of the calls."""
    search, alone = KeySearch(evaluator, table, content), Alone(evaluator)
    for frame, given, call in calls:
        if folding.in_map(evaluator.value(frame, call.function)):
            continue
        for site in (site for argument in call.arguments for site in _splits(evaluator, table, frame, argument.value)):
            where = evaluator.free_frame(site.ref)
            split = where.code.operations[site.number]
            if isinstance(split, s.Call) and split.arguments and not alone.at(where, site.number):
                made = search.made(where, split.arguments[0].value, _KEY_DEPTH)
                if made is not None:
                    yield SharedSplit(site, Site(frame.ref, given), made)


class Folding:
    """Maps that make a key of its own for each of all devices: they fold the index of the device into what they get."""

    def __init__(self, content: Origins) -> None:
        self.ev = content.ev
        self.content = content
        folding = content.reach.calling((FOLD,))
        self._folds = {ref for ref in folding if any(True for _ in keys_of_devices(self.ev, self.ev.free_frame(ref)))}

    def in_map(self, callees: Values) -> bool:
        """Whether a map runs a function, itself or through others, that folds the index of a device into a key."""
        callee = certain(callees) if self._folds else None
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, Applied) else None
        if known is None or not isinstance(callee, Applied):
            return False
        run = self.content.calls.functions_in(known, callee.arguments)
        pending = [function.ref for function in run if isinstance(function, FunctionValue)]
        seen: set[FunctionRef] = set()
        while pending:
            ref = pending.pop()
            if ref in self._folds:
                return True
            if ref not in seen:
                seen.add(ref)
                pending += self._called.get(ref, ())
        return False

    def passes_to_map(self, frame: Frame, keys: int) -> bool:
        """Whether a function passes keys that it makes to such a map."""
        return any(
            self.in_map(self.ev.value(frame, call.function))
            for _, call in (frame.code.of_kind(s.Call) if self._folds else ())
            if any(frame.code.root_of(argument.value) == keys for argument in call.arguments)
        )

    @cached_property
    def _called(self) -> dict[FunctionRef, set[FunctionRef]]:
        found: dict[FunctionRef, set[FunctionRef]] = {}
        for caller, edges in self.content.reach.edges.items():
            found.setdefault(caller.ref, set()).update(edge.target.frame.ref for edge in edges)
        return found


def _splits(ev: Evaluator, table: Typing, frame: Frame, number: int) -> Iterator[Site]:
    """Where keys are split for own devices: also copies, fields of a state, ``key, *keys = split(key, own + 1)``."""
    pending, seen = [number], set[int]()
    while pending:
        number = resolved(ev, frame, pending.pop())
        if number in seen:
            continue  # a copy of a copy, in a loop
        seen.add(number)
        operation = frame.code.operations[number]
        stores = ev.reaching(frame, number, operation.name) if isinstance(operation, s.Load) else ()
        stored = (frame.code.operations[each] for each in sorted(stores))
        made = [frame.code.operations[each.value] for each in stored if isinstance(each, s.Store)]
        for call in (each for each in made or (operation,) if isinstance(each, s.Call)):
            callee = ev.callee(frame, call)
            if isinstance(callee, ClassValue) or (isinstance(callee, External) and callee.name in _COPIES):
                pending += [argument.value for argument in call.arguments]
        own = split_for_own_devices(table, ev.value(frame, number))
        if own is not None:
            yield own
        if not isinstance(operation, s.Item) or not operation.star:
            continue
        split = resolved(ev, frame, operation.value)
        rest = frame.code.operations[split]
        given = rest.arguments[1:2] if isinstance(rest, s.Call) else ()
        more = frame.code.operations[given[0].value] if given else None
        if isinstance(rest, s.Call) and isinstance(more, s.Binary) and more.operator == "+":
            callee, devices, kept = (certain(ev.value(frame, n)) for n in (rest.function, more.left, more.right))
            counts = isinstance(devices, Applied) and devices.name in table.rows.local_count
            splits = isinstance(callee, External) and callee.name in table.rows.split
            if splits and counts and kept == Constant(operation.index):
                yield Site(frame.ref, split)


def calls_over_rows(evaluator: Evaluator) -> Iterator[RowCall]:
    """The calls of maps that pass each device a row, except of those that make the parameters of a model."""
    for ref in evaluator.project.functions():
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            callee = evaluator.callee(frame, call)
            known = evaluator.knowledge.get(callee.name) if isinstance(callee, Applied) else None
            if known is None or not known.by_hand or not isinstance(callee, Applied) or _initializes(evaluator, callee):
                continue
            yield frame, number, call


def splits_in_states(evaluator: Evaluator, table: Typing, content: Origins, folding: Folding) -> Iterator[SharedSplit]:
    """Such splits in a method of a state, where it is given to the devices: ``state.replicate()``.

    The key is a field of the state, or an argument of the method. A method that nobody calls splits nothing.
    """
    search, project = KeySearch(evaluator, table, content), evaluator.project
    for ref in project.functions():
        cls, frame = project.enclosing_class(ref), evaluator.free_frame(ref)
        for number, call in frame.code.of_kind(s.Call) if cls is not None else ():
            key = call.arguments[0].value if call.arguments else None
            if key is None or split_for_own_devices(table, evaluator.value(frame, number)) != Site(ref, number):
                continue
            if folding.passes_to_map(frame, number):
                continue
            calls = _calls_by_name(evaluator, ref)
            field, origin = frame.code.operations[key], frame.code.operations[frame.code.root_of(key)]
            given: Iterable[tuple[Frame, int, int]] = ()
            if isinstance(field, s.Attribute) and is_receiver(frame.code.function, field.base):
                given = _creations(evaluator, cls, field.name) if calls and cls is not None else ()
            elif isinstance(origin, s.Parameter):
                passes = ((w, n, passed_to(frame.code.function, c, origin.name, bound=True)) for w, n, c in calls)
                given = [(where, place, value) for where, place, value in passes if value is not None]
            for where, place, value in given:
                made = search.made(where, value, _KEY_DEPTH)
                if made is not None:
                    yield SharedSplit(Site(ref, number), Site(where.ref, place), made)
                    break


def _calls_by_name(evaluator: Evaluator, method: FunctionRef) -> list[tuple[Frame, int, s.Call]]:
    """The calls of a method by its name that are not known to call something else.

    Those of its own file, if there are any, or of files that import it.
    """
    name = frozenset((evaluator.project.function(method).name,))
    found: list[tuple[Frame, int, s.Call]] = []
    for ref in evaluator.project.functions():
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_named(name).items():
            callees = evaluator.value(frame, call.function)
            attribute = isinstance(frame.code.operations[call.function], s.Attribute)
            own = any(isinstance(callee, FunctionValue) and callee.ref == method for callee in callees)
            other = any(isinstance(callee, (External, FunctionValue)) for callee in callees)
            if own or (attribute and not other):
                found.append((frame, number, call))
    return [each for each in found if each[0].ref.path == method.path] or [
        each for each in found if _imports(evaluator, each[0].ref.path, method.path)
    ]


def _imports(evaluator: Evaluator, path: Path, module: Path) -> bool:
    """Whether a file imports a module of the project."""
    importer = evaluator.project.modules[path]
    return any(module in imported(evaluator.project, importer, each) for each in importer.imports)


def _creations(evaluator: Evaluator, cls: FunctionRef, field: str) -> Iterator[tuple[Frame, int, int]]:
    """The calls of ``create`` on a class, a method from a library, and what they pass for a field."""
    for ref in evaluator.project.functions():
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_named(frozenset(("create",))).items():
            method = frame.code.operations[call.function]
            owner = certain(evaluator.value(frame, method.base)) if isinstance(method, s.Attribute) else None
            for argument in call.arguments if isinstance(owner, ClassValue) and owner.ref == cls else ():
                if argument.keyword == field:
                    yield frame, number, argument.value


def _initializes(evaluator: Evaluator, mapped: Applied) -> bool:
    """Whether it is a map of a model's ``init``: each process must make the same parameters, to keep one copy."""
    operations = evaluator.free_frame(mapped.site.ref).code.operations
    call = operations[mapped.site.number]
    given = operations[call.arguments[0].value] if isinstance(call, s.Call) and call.arguments else None
    return isinstance(given, s.Attribute) and given.name in INITIALIZERS


def _all(found: Sequence[list[Site] | None], ways: Collection[object]) -> list[Site] | None:
    """What all ways lead to; None if there is no way, or one of them is unknown."""
    return [site for each in found if each for site in each] if ways and None not in found else None


class KeySearch:
    """Finds where a key is made, through the steps that leave it the same on every process. One per walk."""

    def __init__(self, evaluator: Evaluator, table: Typing, content: Origins) -> None:
        self.ev = evaluator
        self.table = table
        self.content = content
        self._open: set[tuple[Frame, int]] = set()

    def made(self, frame: Frame, number: int, depth: int) -> Site | None:
        """Where a key is made that certainly every process has."""
        return next(iter(self._made(frame, number, depth) or ()), None)

    def _made(self, frame: Frame, number: int, depth: int) -> list[Site] | None:
        """Where it is made, whichever way it came: nowhere if all ways lead back to the key itself, None if unknown."""
        operation = frame.code.operations[number]
        if depth == 0:
            return None
        if isinstance(operation, s.Load):
            stores = sorted(self.ev.reaching(frame, number, operation.name))
            return _all([self._made(frame, n, depth - 1) for n in stores if (frame, n) not in self._open], stores)
        if isinstance(operation, s.Store):
            self._open.add((frame, number))
            try:
                return self._made(frame, operation.value, depth - 1)
            finally:
                self._open.discard((frame, number))
        if isinstance(operation, s.Item):
            return self._made(frame, operation.value, depth - 1)
        if isinstance(operation, s.Subscript):
            return self._made(frame, operation.base, depth - 1)
        if isinstance(operation, s.Call) and operation.arguments:
            callee = self.ev.callee(frame, operation)
            first = operation.arguments[0].value
            if isinstance(callee, External) and callee.name in self.table.rows.split:
                return self._made(frame, first, depth - 1)
            if isinstance(callee, External) and callee.name == FOLD and len(operation.arguments) == 2:
                counts = self._counts(frame, operation.arguments[1].value)
                return self._made(frame, first, depth - 1) if counts else None
            known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is not None and known.seed is not None and self._is_alike(frame, first):
                return [Site(frame.ref, number)]
        return self._passed(frame, operation, depth) if isinstance(operation, s.Parameter) else None

    def _passed(self, frame: Frame, parameter: s.Parameter, depth: int) -> list[Site] | None:
        """Where a key is made that every caller of a function passes it; a function without callers has none."""
        edges = self.content.reach.callers.get(frame.ref, ()) if frame is self.ev.free_frame(frame.ref) else ()
        ways = {(edge.caller.ref, edge.number, edge.target.way): None for edge in edges}
        found: list[list[Site] | None] = []
        for caller, number, way in ways:
            where = self.ev.free_frame(caller)
            call = where.code.operations[number]
            if not isinstance(call, s.Call) or way != "call":
                return None
            given = argument_for(self.ev, frame, parameter.name, call, where)
            found.append(self._made(*given, depth - 1) if given is not None else None)
        return _all(found, ways)

    def _counts(self, frame: Frame, number: int) -> bool:
        """Whether the number folded into a key is a literal, or the number of a step."""
        operation = frame.code.operations[resolved(self.ev, frame, number)]
        if self.content.of(frame, number) is not None:
            return False
        if isinstance(operation, s.Item) and operation.index == 0:
            step = frame.code.operations[operation.value]
            return isinstance(step, s.Next) and self._calls(frame, step.iterable, "builtins.enumerate")
        if isinstance(operation, s.Next):
            return self._calls(frame, operation.iterable, "builtins.range")
        named = isinstance(operation, (s.Load, s.Attribute, s.Parameter)) and operation.name in _STEPS
        return named or isinstance(operation, s.Const)

    def _calls(self, frame: Frame, number: int, name: str) -> bool:
        return self.ev.callee(frame, frame.code.operations[frame.code.root_of(number)]) == External(name)

    def _is_alike(self, frame: Frame, seed: int) -> bool:
        """Whether a seed is a constant, a setting, or a parameter that has a default or is named a seed."""
        operation = frame.code.operations[frame.code.root_of(seed)]
        if self.content.of(frame, seed) is not None:
            return False
        if isinstance(operation, s.Parameter):
            formals = frame.code.function.formals
            return "seed" in operation.name.lower() or any(
                formal.name == operation.name and formal.default for formal in formals
            )
        return isinstance(operation, s.Const) or (
            isinstance(operation, s.Attribute) and "seed" in operation.name.lower()
        )


def shared_draws(
    evaluator: Evaluator, table: Typing, content: Origins, calls: Iterable[RowCall]
) -> Iterator[SharedSplit]:
    """Every draw of such rows that one of the calls passes to a map over the devices of all processes."""
    search = _Draws(evaluator, table, content)
    for frame, given, call in calls:
        for argument in call.arguments:
            found = search.for_own_devices(frame, argument.value, _DRAW_DEPTH)
            if found is not None:
                drawn, made = found
                yield SharedSplit(drawn, Site(frame.ref, given), made, draws=True)


class _Draws:
    def __init__(self, evaluator: Evaluator, table: Typing, content: Origins) -> None:
        self.ev = evaluator
        self.table = table
        self.keys = KeySearch(evaluator, table, content)

    def for_own_devices(self, frame: Frame, number: int, depth: int) -> tuple[Site, Site] | None:
        """Where rows for this process's devices are drawn, and where their key is made."""
        operation = frame.code.operations[number]
        if not depth:
            return None
        if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
            stores = sorted(self.ev.reaching(frame, number, operation.name))
            # What a step has returned in the round before was passed to it in the first round.
            found = (self.for_own_devices(frame, store, depth - 1) for store in stores)
            return next((each for each in found if each is not None), None)
        if isinstance(operation, s.Store):
            return self.for_own_devices(frame, operation.value, depth - 1)
        if not isinstance(operation, s.Call):
            return None
        given = [argument.value for argument in operation.arguments if argument.keyword is None]
        callee, method = self.ev.callee(frame, operation), frame.code.operations[operation.function]
        if isinstance(callee, External) and self.table.exact.get(callee.name) == "draw":
            shape = passed(operation, "shape", ("key", "shape"))
            counts = shape is not None and self._leads_with_own(frame, shape)
            return self._drawn(frame, number, {}, depth) if counts else None
        if isinstance(callee, External) and callee.name == f"{_ARRAYS}{_RESHAPE}" and len(given) > 1:
            return self._drawn(frame, given[0], {}, depth) if self._leads_with_own(frame, given[1]) else None
        if isinstance(method, s.Attribute) and method.name == _RESHAPE and given:
            return self._drawn(frame, method.base, {}, depth) if self._leads_with_own(frame, given[0]) else None
        return None

    def _leads_with_own(self, frame: Frame, shape: int) -> bool:
        """Whether the first dimension of a shape is the number of this process's devices."""
        operation = frame.code.operations[resolved(self.ev, frame, shape)]
        if isinstance(operation, s.Binary) and operation.operator == "+":
            return self._leads_with_own(frame, operation.left)
        first = operation.elements[0] if isinstance(operation, s.Display) and operation.elements else shape
        value = certain(self.ev.value(frame, first))
        return isinstance(value, Applied) and value.name in self.table.rows.local_count

    def _drawn(
        self, frame: Frame, number: int, entered: dict[Frame, tuple[Frame, s.Call]], depth: int
    ) -> tuple[Site, Site] | None:
        """The draw that an array is made from, through arithmetic and the project's own functions."""
        number = frame.code.root_of(number)
        operation = frame.code.operations[number]
        if not depth:
            return None
        inner: list[tuple[Frame, int]] = []
        if isinstance(operation, s.Binary):
            inner = [(frame, operation.left), (frame, operation.right)]
        elif isinstance(operation, s.Call):
            callee = self.ev.callee(frame, operation)
            given = [argument.value for argument in operation.arguments]
            if isinstance(callee, External) and self.table.exact.get(callee.name) == "draw" and given:
                made = self._key(frame, given[0], entered)
                return (Site(frame.ref, number), made) if made is not None else None
            if isinstance(callee, External) and callee.name.startswith(_ARRAYS):
                inner = [(frame, each) for each in given]
            elif isinstance(callee, FunctionValue):
                inside = self.ev.entered_frame(callee, self.ev.arguments(frame, operation), frame.depth + 1)
                if inside is not None:
                    entered = {**entered, inside: (frame, operation)}
                    inner = [(inside, each.value) for _, each in inside.code.returns if each.value is not None]
        found = (self._drawn(where, each, entered, depth - 1) for where, each in inner)
        return next((each for each in found if each is not None), None)

    def _key(self, frame: Frame, number: int, entered: dict[Frame, tuple[Frame, s.Call]]) -> Site | None:
        """Where the key of a draw is made, the same on every process; in a caller, if it is passed."""
        operation = frame.code.operations[frame.code.root_of(number)]
        if isinstance(operation, s.Parameter) and frame in entered:
            caller, call = entered[frame]
            given = argument_for(self.ev, frame, operation.name, call, caller)
            return self._key(*given, entered) if given is not None else None
        return self.keys.made(frame, number, _KEY_DEPTH)
