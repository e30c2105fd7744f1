"""Keys of one process's devices that come from a key which all processes share: every process draws the same.

They are split for these devices, or put on one of them. A key comes from a seed, which is a setting or is named so, or
from a constant; on its way it is split, a step number is folded into it, or a function passes it to another. If
anything else is done to it, nothing is reported. Rows for this process's devices are also wrong where an index among
all devices chooses one of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.standard import COPIES
from spmdlint.analysis.evaluation.transfers import through
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    Constant,
    External,
    Frame,
    FunctionValue,
    Instance,
    Site,
    Value,
    Values,
    certain,
    text,
)
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.meshtypes.rows import FOLD, keys_of_devices
from spmdlint.analysis.placement.kinds import OWN_DEVICES, ROWS
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.variance.agreed import is_agreed
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.origins import CARRIES, CONTINUE, Answer, Origins, Property, Reason
from spmdlint.analysis.variance.reason import surest
from spmdlint.analysis.variance.windows import leading, resolved
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import inputs

INITIALIZERS = frozenset(("init", "init_by_shape", "init_with_output", "lazy_init"))
"""Methods that make the parameters of a model."""
_INIT = re.compile(r"init\w*params")
_DRAWN = "drawn"
PUT = "jax.device_put"
Does: TypeAlias = Literal["splits", "draws", "puts"]
_STEPS = frozenset("step epoch iteration global_step update_step num_steps".split())


class SharedSplit(Struct, frozen=True):
    """What splits, draws or puts keys, the call that passes them to devices, and the way of the key from its origin."""

    site: Site
    given: Site
    key: Reason
    does: Does


def shared_splits(
    table: Typing, content: Origins, quantities: Quantities, placement: Placement
) -> Iterator[SharedSplit]:
    """Every such split or draw for a map over the devices of all processes, and keys put on devices of this process."""
    ev, conditions = content.ev, content.ev.once(Conditions)
    alike = Origins(ev, content.calls, content.reach, AlikeKey(table, content))
    told = set[Site]()
    for made, given, puts in (*_put_here(content, placement), *_in_rows(table, content, quantities)):
        frame, new = ev.free_frame(made.ref), made not in told
        told.add(made)
        own = content.why(frame, made.number)
        # A branch may have chosen the key: one process logs with a key of its own, and the others share one.
        at = [step.site for step in own.chain()] if own is not None else []
        chosen = any(site.number == block.test for site in at for block in ev.code(site.ref).function.blocks)
        if not new or conditions.is_for_one(frame, made.number) or (own is not None and not chosen):
            continue
        key = alike.why(frame, made.number)
        drawn = [step.site for step in key.chain() if step.kind == _DRAWN] if key is not None else []
        if key is not None and not (puts and drawn):
            does: Does = "puts" if puts else "draws" if drawn else "splits"
            yield SharedSplit(given if puts else [*drawn, made][0], given, key, does)


def _put_here(content: Origins, placement: Placement) -> Iterator[tuple[Site, Site, bool]]:
    """The values that are put on devices of this process, and where."""
    for use in content.reach.applications:
        frame = content.ev.free_frame(use.site.ref)
        given = inputs(frame.code.operations[use.site.number]) if use.applied.name == PUT else ()
        on_own = len(given) > 1 and placement.surely(OWN_DEVICES, frame, given[1])
        if on_own or (given and placement.surely(ROWS, frame, use.site.number)):
            yield Site(use.site.ref, given[0]), use.site, True


def _in_rows(table: Typing, content: Origins, quantities: Quantities) -> Iterator[tuple[Site, Site, bool]]:
    """The rows for this process's devices, and the call that passes each device one."""
    uses, rows = UsesOfKeys(content), Origins(content.ev, content.calls, content.reach, OwnRows(table, quantities))
    for frame, given, call in _calls_over_rows(table, content, uses):
        taken = () if uses.in_map(content.ev.value(frame, call.function)) else call.arguments
        made = {reason.source.site: None for each in taken if (reason := rows.why(frame, each.value)) is not None}
        yield from ((site, Site(frame.ref, given), False) for site in made)


class UsesOfKeys:
    """What functions and maps do with keys: fold the index of the device into them, or make a model's parameters."""

    def __init__(self, content: Origins) -> None:
        self.ev = content.ev
        self.content = content

    def in_map(self, callees: Values) -> bool:
        """Whether a map runs a function, itself or through others, that folds the index of a device into a key."""
        return bool(self._folds) and self._runs(certain(callees), self._folds)

    def initializes(self, callee: Value | None) -> bool:
        """Whether a function, or what is mapped or compiled, runs a model's ``init``."""
        if isinstance(callee, Applied):
            call = self.ev.code(callee.site.ref).operations[callee.site.number]
            given = call.arguments[:1] if isinstance(call, s.Call) else ()
            named = (self.ev.code(callee.site.ref).operations[each.value] for each in given)
            if any(isinstance(each, s.Attribute) and each.name in INITIALIZERS for each in named):
                return True
        return self._runs(callee, self._initializing)

    def _runs(self, callee: Value | None, wanted: Collection[FunctionRef]) -> bool:
        """Whether a function, or what is mapped or compiled, is one of these, or calls one."""
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, Applied) else None
        run = {callee}
        if known is not None and isinstance(callee, Applied):
            run = {*self.content.calls.functions_in(known, callee.arguments)}
        pending = [function.ref for function in run if isinstance(function, FunctionValue)]
        seen: set[FunctionRef] = set()
        while pending:
            ref = pending.pop()
            if ref in wanted:
                return True
            if ref not in seen:
                seen.add(ref)
                pending += self._called.get(ref, ())
        return False

    @cached_property
    def _folds(self) -> set[FunctionRef]:
        folding = self.content.reach.calling((FOLD,))
        return {ref for ref in folding if any(True for _ in keys_of_devices(self.ev, self.ev.free_frame(ref)))}

    @cached_property
    def _initializing(self) -> set[FunctionRef]:
        """Functions that call such a method, or that are named for it."""
        codes = {ref: self.ev.code(ref) for ref in self.ev.project.functions()}
        return {r for r, each in codes.items() if each.calls_named(INITIALIZERS) or _INIT.match(each.function.name)}

    @cached_property
    def _called(self) -> dict[FunctionRef, set[FunctionRef]]:
        found: dict[FunctionRef, set[FunctionRef]] = {}
        for caller, edges in self.content.reach.edges.items():
            found.setdefault(caller.ref, set()).update(edge.target.frame.ref for edge in edges)
        return found


def _calls_over_rows(table: Typing, content: Origins, uses: UsesOfKeys) -> Iterator[tuple[Frame, int, s.Call]]:
    """The calls of maps that pass each device a row, except of those that make the parameters of a model.

    Also of what is put beside replicated values, ``replicate(state).replace(key=...)``, if it is known to run.
    """
    ev = content.ev
    for ref in ev.project.functions():
        frame = ev.free_frame(ref)
        runs = ev.project.enclosing_class(ref) is None or bool(content.reach.callers.get(ref))
        for number, call in frame.code.calls_in(sorted(ev.live_blocks(frame))):
            callee, method = ev.callee(frame, call), frame.code.operations[call.function]
            known = ev.knowledge.get(callee.name) if isinstance(callee, Applied) else None
            if known is not None and known.by_hand and isinstance(callee, Applied):
                if not uses.initializes(callee):
                    yield frame, number, call
            elif runs and isinstance(method, s.Attribute) and method.name in COPIES:
                made = frame.code.operations[frame.code.root_of(method.base)]
                if ev.may_call(frame, made, *table.rows.replicate):
                    yield frame, number, call


class AlikeKey(Property):
    """A key that every process makes alike, from a literal or a setting, and may split, and what is drawn with it."""

    def __init__(self, table: Typing, content: Origins) -> None:
        self.table = table
        self.content = content

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Item):
            element = of_element(origins, frame, operation)
            return element if element != CONTINUE else origins.why(frame, operation.value)
        if isinstance(operation, s.Subscript):
            return origins.why(frame, operation.base)
        if isinstance(operation, (s.Unary, s.Binary)):
            return origins.any_of(frame, inputs(operation))
        if not isinstance(operation, s.Call):
            return CONTINUE if isinstance(operation, CARRIES) else None
        callee = origins.ev.callee(frame, operation)
        if not isinstance(callee, External) or not operation.arguments:
            return CONTINUE
        if callee.name.startswith(ARRAYS):
            return origins.any_of(frame, [argument.value for argument in operation.arguments])
        first, known = operation.arguments[0].value, origins.ev.knowledge.get(callee.name)
        if self.table.exact.get(callee.name) == "draw":
            key = origins.why(frame, first)
            return Reason(Site(frame.ref, number), "this draws with it", _DRAWN, key) if key is not None else None
        folds = callee.name == FOLD and len(operation.arguments) == 2
        if callee.name in self.table.rows.split | self.table.rows.split_own or (
            folds and self._counts(frame, operation.arguments[1].value)
        ):
            return origins.why(frame, first)
        if known is None or known.seed is None or not self._is_alike(frame, first):
            return None
        return Reason(Site(frame.ref, number), "every process makes this key", "alike")

    def _counts(self, frame: Frame, number: int) -> bool:
        """Whether the number folded into a key is a literal, what a loop goes over, or the number of a step."""
        operation = frame.code.operations[resolved(self.content.ev, frame, number)]
        counted = isinstance(operation, (s.Const, s.Next, s.Item))
        named = isinstance(operation, (s.Load, s.Attribute, s.Parameter)) and operation.name in _STEPS
        return (counted or named) and self.content.why(frame, number) is None

    def _is_alike(self, frame: Frame, seed: int) -> bool:
        """Whether a seed is a constant, agreed, a setting, or a parameter that has a default or is named a seed."""
        if self.content.why(frame, seed) is not None:
            return False
        operation = frame.code.operations[frame.code.root_of(seed)]
        name = operation.name if isinstance(operation, (s.Parameter, s.Attribute)) else ""
        defaults = frame.code.function.formals if isinstance(operation, s.Parameter) else ()
        known = isinstance(operation, s.Const) or "seed" in name.lower()
        return known or any(o.name == name and o.default for o in defaults) or is_agreed(self.content.ev, frame, seed)


_READS: tuple[type[s.Operation], ...] = (s.Subscript, s.Call)
_OWN = "these are for the devices of this process"
ARRAYS = "jax.numpy."
_RESHAPE = "reshape"


class GlobalIndex(Struct, frozen=True):
    """The choice, the call that gives the index, and where the keys are split or the rows drawn."""

    site: Site
    place: Site
    split: Site


def global_indices(table: Typing, content: Origins, quantities: Quantities) -> Iterator[GlobalIndex]:
    """Every such choice."""
    ev, rows = content.ev, Origins(content.ev, content.calls, content.reach, OwnRows(table, quantities))
    for ref in ev.project.functions():
        frame = ev.free_frame(ref)
        live = ev.live_blocks(frame)
        for block, number, operation in frame.code.each(_READS):
            chosen = _chosen(ev, table, frame, operation) if block in live else None
            place = certain(ev.value(frame, chosen[1])) if chosen is not None else None
            if chosen is None or not isinstance(place, Applied) or table.rules.get(place.name) != "index":
                continue
            made = rows.why(frame, chosen[0])
            if made is not None:
                yield GlobalIndex(Site(ref, number), place.site, made.source.site)


def _chosen(ev: Evaluator, table: Typing, frame: Frame, operation: s.Operation) -> tuple[int, int] | None:
    """What an operation takes a part of, and the index of the part."""
    if isinstance(operation, s.Subscript):
        return operation.base, operation.index
    if isinstance(operation, s.Call) and operation.arguments[1:] and ev.may_call(frame, operation, *table.rows.pick):
        return operation.arguments[0].value, operation.arguments[1].value
    return None


class OwnRows(Property):
    """As many keys or rows as this process has devices, where they are split or drawn, or are given that shape."""

    def __init__(self, table: Typing, quantities: Quantities) -> None:
        self.table = table
        self.quantities = quantities

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Item) and operation.star:
            return self._but_one(origins.ev, frame, operation)
        if isinstance(operation, s.Subscript) and text(origins.ev.value(frame, operation.index)) is not None:
            return origins.why(frame, operation.base)
        if isinstance(operation, (s.Item, s.Subscript)):
            element = of_element(origins, frame, operation)
            return element if element != CONTINUE else None
        if isinstance(operation, (s.Display, s.DictDisplay)):
            return origins.any_of(frame, inputs(operation))
        if isinstance(operation, s.Attribute):
            owners = origins.ev.objects.by_name.owners(frame, operation.base, operation.name)
            made = (o.cls for o in ordered(owners) if isinstance(o, Instance))
            given = (each for cls in made for each in origins.reach.constructed.given(cls, operation.name))
            # Also in traced code, to which the record is passed.
            return surest(origins.why(where, value) for where, _, value in given) or CONTINUE
        if not isinstance(operation, s.Call):
            return CONTINUE if isinstance(operation, CARRIES) else None
        callee, method = origins.ev.callee(frame, operation), frame.code.operations[operation.function]
        if self._makes(origins.ev, frame, operation, callee):
            return Reason(Site(frame.ref, number), _OWN, "own")
        named = method.name if isinstance(method, s.Attribute) else ""
        if isinstance(callee, External) and not callee.name.startswith(ARRAYS):
            return origins.any_of(frame, through(origins.ev.knowledge, callee.name, operation, "batches"))
        if isinstance(callee, (External, ClassValue)) or named in COPIES:
            return origins.any_of(frame, [argument.value for argument in operation.arguments])
        return CONTINUE if isinstance(callee, FunctionValue) else None

    def _makes(self, ev: Evaluator, frame: Frame, call: s.Call, callee: Value | None) -> bool:
        """Whether a call splits a key into so many, draws so many, or reshapes what it is given to so many."""
        given = [argument.value for argument in call.arguments if argument.keyword is None]
        method, name = frame.code.operations[call.function], callee.name if isinstance(callee, External) else ""
        shape = None
        if ev.may_call(frame, call, *self.table.rows.split_own):
            return True
        splits = ev.may_call(frame, call, *self.table.rows.split)
        if splits or self.table.exact.get(name) == "draw":
            shape = passed(call, size := "num" if splits else "shape", ("key", size))
        elif name == f"{ARRAYS}{_RESHAPE}" and len(given) > 1:
            shape = given[1]
        elif isinstance(method, s.Attribute) and method.name == _RESHAPE and given:
            shape = given[0]
        return shape is not None and self._leads_with_own(frame, shape)

    def _leads_with_own(self, frame: Frame, shape: int) -> bool:
        """Whether a number, or the first dimension of a shape, is the number of this process's devices."""
        count = self.quantities.quantity(frame, leading(self.quantities.ev, frame, shape))
        return count is not None and (count.role, count.unit) == ("count", "local")

    def _but_one(self, ev: Evaluator, frame: Frame, rest: s.Item) -> Reason | None:
        """The keys but those for the host: ``key, *keys = split(key, own + 1)``."""
        split = resolved(ev, frame, rest.value)
        call = frame.code.operations[split]
        count = call.arguments[1:2] if isinstance(call, s.Call) else ()
        splits = bool(count) and ev.may_call(frame, call, *self.table.rows.split)
        more = frame.code.operations[count[0].value] if splits else None
        if not isinstance(more, s.Binary) or certain(ev.value(frame, more.right)) != Constant(rest.index):
            return None
        return Reason(Site(frame.ref, split), _OWN, "own") if self._leads_with_own(frame, count[0].value) else None
