"""Keys that are split for this process's devices from a key that all processes share: every process draws the same.

A key comes from a seed, which is a setting or is named so, or from a constant; on its way it is split, a step number is
folded into it, or a function passes it to another. If anything else is done to it, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
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
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.origins import CARRIES, CONTINUE, Answer, Origins, Property, Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import inputs

INITIALIZERS = frozenset(("init", "init_by_shape", "init_with_output", "lazy_init"))
"""Methods that make the parameters of a model."""
_DRAWN = "drawn"
_RESHAPE, _ARRAYS = "reshape", "jax.numpy."
_STEPS = frozenset("step epoch iteration global_step update_step num_steps".split())

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
    search, alone = Keys(table, content), Alone(evaluator)
    for frame, given, call in calls:
        if folding.in_map(evaluator.value(frame, call.function)):
            continue
        for site in (site for argument in call.arguments for site in _splits(evaluator, table, frame, argument.value)):
            where = evaluator.free_frame(site.ref)
            split = where.code.operations[site.number]
            if isinstance(split, s.Call) and split.arguments and not alone.at(where, site.number):
                made = search.made(where, split.arguments[0].value)
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
            if isinstance(callee, ClassValue) or (isinstance(callee, External) and callee.name.startswith(_ARRAYS)):
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
    search, project = Keys(table, content), evaluator.project
    for ref in project.functions():
        cls, frame = project.enclosing_class(ref), evaluator.free_frame(ref)
        for number, call in frame.code.of_kind(s.Call) if cls is not None else ():
            key = call.arguments[0].value if call.arguments else None
            if key is None or split_for_own_devices(table, evaluator.value(frame, number)) != Site(ref, number):
                continue
            if folding.passes_to_map(frame, number):
                continue
            calls = content.reach.callers.get(ref)
            made = search.made(frame, key) if calls else None
            if calls and made is not None:
                yield SharedSplit(Site(ref, number), Site(calls[0].caller.ref, calls[0].number), made)


def _initializes(evaluator: Evaluator, mapped: Applied) -> bool:
    """Whether it is a map of a model's ``init``: each process must make the same parameters, to keep one copy."""
    operations = evaluator.free_frame(mapped.site.ref).code.operations
    call = operations[mapped.site.number]
    given = operations[call.arguments[0].value] if isinstance(call, s.Call) and call.arguments else None
    return isinstance(given, s.Attribute) and given.name in INITIALIZERS


class AlikeKey(Property):
    """A key that every process makes alike, from a literal or a setting, and may split, and what is drawn with it."""

    def __init__(self, table: Typing, content: Origins) -> None:
        self.table = table
        self.content = content

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Item):
            element = of_element(origins, frame, operation)
            return element if element != CONTINUE else origins.of(frame, operation.value)
        if isinstance(operation, s.Subscript):
            return origins.of(frame, operation.base)
        if isinstance(operation, (s.Unary, s.Binary)):
            return origins.any_of(frame, inputs(operation))
        if not isinstance(operation, s.Call):
            return CONTINUE if isinstance(operation, CARRIES) else None
        callee = origins.ev.callee(frame, operation)
        if not isinstance(callee, External) or not operation.arguments:
            return CONTINUE
        if callee.name.startswith(_ARRAYS):
            return origins.any_of(frame, [argument.value for argument in operation.arguments])
        first, known = operation.arguments[0].value, origins.ev.knowledge.get(callee.name)
        if self.table.exact.get(callee.name) == "draw":
            key = origins.of(frame, first)
            return Reason(Site(frame.ref, number), "this draws with it", _DRAWN, key) if key is not None else None
        folds = callee.name == FOLD and len(operation.arguments) == 2
        if callee.name in self.table.rows.split or (folds and self._counts(frame, operation.arguments[1].value)):
            return origins.of(frame, first)
        if known is None or known.seed is None or not self._is_alike(frame, first):
            return None
        return Reason(Site(frame.ref, number), "every process makes this key", "alike")

    def _counts(self, frame: Frame, number: int) -> bool:
        """Whether the number folded into a key is a literal, what a loop goes over, or the number of a step."""
        operation = frame.code.operations[resolved(self.content.ev, frame, number)]
        named = isinstance(operation, (s.Load, s.Attribute, s.Parameter)) and operation.name in _STEPS
        counted = named or isinstance(operation, (s.Const, s.Next, s.Item))
        return counted and self.content.of(frame, number) is None

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


class Keys:
    """Asks where a key is made, or what is drawn with it, if each process makes the same. One per run."""

    def __init__(self, table: Typing, content: Origins) -> None:
        self._content = content
        self._alike = Origins(content.ev, content.calls, content.reach, AlikeKey(table, content))

    def alike(self, frame: Frame, number: int) -> Reason | None:
        """Why a key, or what is drawn with one, is the same on every process; None if it differs or is not known."""
        return self._alike.of(frame, number) if self._content.of(frame, number) is None else None

    def made(self, frame: Frame, key: int) -> Site | None:
        """Where a key is made that every process has."""
        found = self.alike(frame, key)
        return found.source.site if found is not None else None


def shared_draws(table: Typing, content: Origins, calls: Iterable[RowCall]) -> Iterator[SharedSplit]:
    """Every draw of such rows that one of the calls passes to a map over the devices of all processes."""
    rows = Origins(content.ev, content.calls, content.reach, OwnRows(table, Keys(table, content)))
    for frame, given, call in calls:
        for argument in call.arguments:
            found = rows.of(frame, argument.value)
            drawn = next((step for step in found.chain() if step.kind == _DRAWN), None) if found is not None else None
            if found is not None and drawn is not None:
                yield SharedSplit(drawn.site, Site(frame.ref, given), found.source.site, draws=True)


class OwnRows(Property):
    """Rows for the devices of this process that are drawn with a key, at the draw or where they are reshaped to it."""

    def __init__(self, table: Typing, keys: Keys) -> None:
        self.table = table
        self.keys = keys

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if not isinstance(operation, s.Call):
            return CONTINUE if isinstance(operation, (s.Load, s.Store)) else None
        given = [argument.value for argument in operation.arguments if argument.keyword is None]
        callee, method = origins.ev.callee(frame, operation), frame.code.operations[operation.function]
        name = callee.name if isinstance(callee, External) else ""
        rows, shape = number, None
        if self.table.exact.get(name) == "draw":
            shape = passed(operation, "shape", ("key", "shape"))
        elif name == f"{_ARRAYS}{_RESHAPE}" and len(given) > 1:
            rows, shape = given[:2]
        elif isinstance(method, s.Attribute) and method.name == _RESHAPE and given:
            rows, shape = method.base, given[0]
        own = shape is not None and self._leads_with_own(origins.ev, frame, shape)
        return self.keys.alike(frame, rows) if own else None

    def _leads_with_own(self, ev: Evaluator, frame: Frame, shape: int) -> bool:
        """Whether the first dimension of a shape is the number of this process's devices."""
        operation = frame.code.operations[resolved(ev, frame, shape)]
        if isinstance(operation, s.Binary) and operation.operator == "+":
            return self._leads_with_own(ev, frame, operation.left)
        first = operation.elements[0] if isinstance(operation, s.Display) and operation.elements else shape
        value = certain(ev.value(frame, first))
        return isinstance(value, Applied) and value.name in self.table.rows.local_count
