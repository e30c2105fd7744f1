"""Stratum 3: what decides a value, and which of its alternatives it is.

The facts of an operation are one number. Its low bits are the *causes* of its content, one bit for each kind of source;
the next ones are the causes of its choice. Above them each parameter of the function has four bits, which say how
the argument flows into the value. So a function's facts are a relation between its arguments and its result, and a call
composes it with the facts of the arguments.

Facts of cells are concrete: a parameter stands for what all callers pass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from spmdlint.core.cells import Cells
from spmdlint.core.conditions import Conditions
from spmdlint.core.evaluation import ANY, Call, Evaluated, Evaluation
from spmdlint.core.ssa import NOTHING, Definition, Phi, Ssa
from spmdlint.core.values import (
    JUST_NONE,
    NONE,
    UNKNOWN,
    Class,
    Constant,
    External,
    Function,
    Keywords,
    Member,
    ModuleValue,
    Object,
    Open,
    Parameter,
    Result,
    Sequence,
    Site,
    Value,
    element_kind,
    only,
)
from spmdlint.domains.exceptions import OUTSIDE, READ, Exceptions
from spmdlint.domains.exceptions import Kind as ExceptionKind
from spmdlint.knowledge.load import Known
from spmdlint.knowledge.rows import Row
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.uniform import Uniform

Mask: TypeAlias = int
KINDS = (
    "identity", "clock", "entropy", "files", "host", "signal", "thread", "callback", "completion", "hash", "machine",
)  # fmt: skip
"""The kinds of causes, in the order of precedence: what a finding is about if there are several."""
STAMP, SPREAD, GLOBAL = "stamp", "spread", "global"
"""Three more bits: text made of a cause, which nobody compares; a value that may be on devices of several processes;
one that was made to be there."""
BIT: Mapping[str, Mask] = {kind: 1 << position for position, kind in enumerate((*KINDS, STAMP, SPREAD, GLOBAL))}
_RAW = 16
"""Bits above those of the kinds: the cause of a value that is never zero or empty, such as the time or a name."""
_NEVER_ZERO = ("clock", "host", "entropy", "hash", "machine")
_COOKED: Mask = (1 << _RAW) - 1
CAUSES: Mask = sum(BIT[kind] for kind in KINDS)
_CAUSING = CAUSES
IDENTITY = BIT["identity"]
_FACET = 32
_CONTENT = (1 << _FACET) - 1
_CHOICE = _CONTENT << _FACET
_SIZE = _CONTENT << 2 * _FACET
_PRESENCE = _CONTENT << 3 * _FACET
_CONCRETE = (1 << 4 * _FACET) - 1
_PARAMETERS = 4 * _FACET
_WIDTH = 13


_GUARDING = sum(BIT["identity"] << _FACET * facet for facet in range(4))
_ASYNCHRONOUS = sum((BIT["signal"] | BIT["thread"]) << _FACET * facet for facet in range(4))
"""Causes that a function's stores have where only some processes call it."""


def _each(flow: int) -> Mask:
    """The bit of one flow, for every parameter."""
    found = 0
    for position in range(64):
        found |= flow << (_PARAMETERS + _WIDTH * position)
    return found


# How an argument flows into a value, from one of its facets into one of the value's.
(
    _C_TO_C, _TEXT_TO_C, _H_TO_H, _C_TO_H, _S_TO_S, _S_TO_C, _C_TO_S, _P_TO_P, _P_TO_C, _C_TO_P, _C_COOKED, _SPREADS,
    _H_TO_C,
) = (1 << bit for bit in range(_WIDTH))  # fmt: skip
_CC, _TC, _HH, _CH, _SS, _SC, _CS, _PP, _PC, _CP, _KC, _XX, _HC = (_each(1 << bit) for bit in range(_WIDTH))
_TO_CONTENT = (_CONTENT & ~(BIT[SPREAD] | BIT[GLOBAL])) | _CC | _TC | _SC | _PC | _KC | _HC
_TO_SPREAD = BIT[SPREAD] | BIT[GLOBAL] | _XX
_RAWS = _COOKED << _RAW
_TO_PRESENCE = _PRESENCE | _PP | _CP
_TO_CHOICE = _CHOICE | _HH | _CH
_TO_SIZE = _SIZE | _SS | _CS
_DECIDING = ~(BIT[SPREAD] | BIT[GLOBAL])
_TEXT = (("clock", "stamp"), ("entropy", "stamp"), ("hash", "stamp"))


def content(mask: Mask) -> Mask:
    """The causes of the content."""
    return mask & _CONTENT


def choice(mask: Mask) -> Mask:
    """The causes of the choice, as causes of a content."""
    return (mask >> _FACET) & _CONTENT


def any_facet(mask: Mask) -> Mask:
    """The causes of all facets, as causes of a content."""
    low = mask | mask >> _FACET | mask >> 2 * _FACET | mask >> 3 * _FACET
    return (low | low >> _RAW) & _COOKED


def kinds(mask: Mask) -> list[str]:
    """The kinds of the causes of a content, in the order of precedence."""
    return [kind for kind in KINDS if mask & BIT[kind]]


def kept(mask: Mask) -> Mask:
    """What an operation passes on that leaves a time a time and a name a name: its content, no choice and no size."""
    return mask & _TO_CONTENT


def data(mask: Mask) -> Mask:
    """What any other operation passes on."""
    found = mask & _TO_CONTENT
    raw, flows = found & _RAWS, found & (_CC | _TC)
    if raw or flows:
        found = (found & ~(_RAWS | _CC | _TC)) | raw >> _RAW | (found & _CC) << 10 | (found & _TC) << 9
    return found


def spread(mask: Mask) -> Mask:
    """Whether a value may be on devices of several processes."""
    return mask & _TO_SPREAD


def sized(mask: Mask) -> Mask:
    """The size alone."""
    return mask & _TO_SIZE


def choice_as_content(mask: Mask) -> Mask:
    """Which alternative a value is, as the content of an answer to that question."""
    return ((mask & _CHOICE) >> _FACET) | (mask & _HH) << 10 | (mask & _CH) >> 3


def presence_as_content(mask: Mask) -> Mask:
    """Whether a value is None, as the content of an answer to that question."""
    return ((mask & _PRESENCE) >> 3 * _FACET) | (mask & _PP) << 1 | (mask & _CP) >> 9


def size_as_content(mask: Mask) -> Mask:
    """The size of a value as a number."""
    return ((mask & _SIZE) >> 2 * _FACET) | (mask & _SS) << 1 | (mask & _CS) >> 6


def content_as_size(mask: Mask) -> Mask:
    """A number as the size of what is made with it."""
    flows = (mask & (_CC | _TC)) << 6 | (mask & _KC) >> 4 | (mask & _HC) >> 6
    low = mask & _CONTENT
    return ((low | low >> _RAW) & _COOKED) << 2 * _FACET | flows | (mask & _SC) >> 1


def truth(mask: Mask) -> Mask:
    """A value as a condition: a container is true if it has elements, and None is not; a time always is."""
    return data(mask & ~_RAWS) | size_as_content(mask) | presence_as_content(mask)


def decides(mask: Mask) -> Mask:
    """What a condition passes on to a value that it decides: content, choice, size and presence.

    A test of the file system decides directly or not at all: what is read from files that are there, or used where
    they are not, is mostly the same everywhere.
    """
    found = data(mask) & _DECIDING & ~BIT["files"]
    if not found:
        return 0
    low = found & _CONTENT
    flows = (found & _KC) >> 10
    chosen = found & _HC
    flows = flows << 3 | flows << 9 | chosen >> 10 | chosen >> 3
    return found | low << _FACET | low << 3 * _FACET | flows | content_as_size(found)


def turned(mask: Mask, turns: Iterable[tuple[str, str]]) -> Mask:
    """A content in which some kinds of causes have become others, or nothing."""
    found = data(mask)
    for before, after in turns:
        if found & BIT[before]:
            found = (found & ~BIT[before]) | BIT.get(after, 0)
    return found


def as_text(mask: Mask) -> Mask:
    """What remains of a value in a text that is made of it: it is never empty."""
    found = turned(mask, _TEXT)
    low = found & _CAUSING
    return (found & ~(low | _KC)) | low << _RAW | (found & _KC) >> 9


def parameter(position: int) -> Mask:
    """The facts of a parameter: all that the argument has."""
    return (_C_TO_C | _H_TO_H | _S_TO_S | _P_TO_P | _SPREADS) << (_PARAMETERS + _WIDTH * position)


_FLOWS: tuple[tuple[int, Callable[[Mask], Mask]], ...] = (
    (_C_TO_C, kept),
    (_C_COOKED, data),
    (_TEXT_TO_C, as_text),
    (_H_TO_H, lambda given: given & _TO_CHOICE),
    (_H_TO_C, choice_as_content),
    (_C_TO_H, lambda given: decides(given) & _TO_CHOICE),
    (_S_TO_S, lambda given: given & _TO_SIZE),
    (_S_TO_C, size_as_content),
    (_C_TO_S, content_as_size),
    (_P_TO_P, lambda given: given & _TO_PRESENCE),
    (_P_TO_C, presence_as_content),
    (_C_TO_P, lambda given: decides(given) & _TO_PRESENCE),
    (_SPREADS, spread),
)
"""What each way in which an argument flows into a value passes on."""


def union(masks: Iterable[Mask]) -> Mask:
    """All that several values have."""
    found = 0
    for each in masks:
        found |= each
    return found


def composed(mask: Mask, arguments: Callable[[int], Mask]) -> Mask:
    """A relation with the facts of the arguments in the place of its parameters."""
    found = mask & _CONCRETE
    flows, position = mask >> _PARAMETERS, 0
    if not flows:
        return found
    while flows:
        flow = flows & (1 << _WIDTH) - 1
        given = arguments(position) if flow else 0
        if given:
            for bit, passes in _FLOWS:
                if flow & bit:
                    found |= passes(given)
        flows >>= _WIDTH
        position += 1
    return found


Raised: TypeAlias = "dict[ExceptionKind, Mask]"
"""By kind of exception, what decides whether it is raised."""
KEEPS_AFTER = 100
"""After how many changes a cell loses nothing any more: what is known to be here may have facts that are lost again."""
FURTHEST = 3
"""Through how many calls an exception is followed: what comes from further below says little about this process."""


class Facts:
    """What is known of one function: the facts of each operation and phi, and what operations raise."""

    __slots__ = ("masks", "phis", "raised")

    def __init__(self, masks: list[Mask], phis: list[Mask], raised: dict[int, Raised]) -> None:
        self.masks = masks
        self.phis = phis
        self.raised = raised


class Content:
    """The solver of the stratum, and the queries on its result."""

    def __init__(self, evaluation: Evaluation, order: Iterable[FunctionRef] | None = None) -> None:
        """Find the facts of some functions, and of whatever these depend on; of all, if ``order`` is None."""
        self.ev = evaluation
        self.cells: Cells[FunctionRef, Mask] = Cells(0, operator.or_, lambda mask: mask, self._merged, KEEPS_AFTER)
        self.functions: dict[FunctionRef, Facts] = {}
        self.positions: dict[FunctionRef, dict[str, int]] = {}
        self._imports: dict[Hashable, frozenset[str]] = {}
        self.plans: dict[FunctionRef, list[tuple[int, Any, Callable[[_Visit, int, Any], Mask]]]] = {}
        self.gates: dict[tuple[FunctionRef, int, bool], tuple[int, ...]] = {}
        self.seeded = self._seeding()
        self.uniform = Uniform(evaluation.project)
        self.conditions = Conditions(evaluation)
        self.exceptions = Exceptions(evaluation)
        self.exception_kinds: dict[tuple[ExceptionKind, int], int] = {}
        """Each kind of exception, and how many calls it came through, with its position in the sets that cells hold."""
        self._demanded: set[Hashable] = set()
        self._setters = evaluation.project.fields_of_others
        self.cells.schedule(order if order is not None else evaluation.called_first())
        self.cells.schedule(self._registering())
        self.cells.solve(self._visit)

    def _is_common(self, key: Hashable) -> bool:
        assert isinstance(key, tuple)
        return key[0] == "runs" or (key[0] == "entry" and self.makes_objects(key[1]))

    def _merged(self, key: Hashable, masks: Iterable[Mask]) -> Mask | None:
        """What the objects of a class have in common that are made in several places: nobody tells them apart.

        And what all callers of a function have in common that decides whether they call it.
        """
        if not self._is_common(key):
            return None
        found: Mask | None = None
        for mask in masks:
            found = mask if found is None else found & mask
        return found

    def makes_objects(self, ref: FunctionRef) -> bool:
        function = self.ev.project.function(ref)
        return function.kind == "class" or (function.name == "__init__" and self.ev.structure.owner(ref) is not None)

    def _registering(self) -> list[FunctionRef]:
        """The functions that give others to a signal, a thread or a device to run."""
        known = self.ev.knowledge
        found = []
        for ref, evaluated in self.ev.functions.items():
            names = (a.name for call in evaluated.calls.values() for a in call.callees if isinstance(a, External))
            if any((each := known.get(name)) is not None and each.callback is not None for name in names):
                found.append(ref)
        return found

    def read(self, key: tuple[Hashable, ...]) -> Mask:
        """What a cell holds; who may write it is visited if that has not happened yet."""
        if key not in self._demanded:
            self._demanded.add(key)
            self.cells.demand(self._writers(key))
        return self.cells.read(key)

    def _writers(self, key: tuple[Hashable, ...]) -> Iterable[FunctionRef]:
        """The functions that may write a cell: those that wrote the value there."""
        kind = key[0]
        if kind in ("result", "raises", "raised kinds"):
            return (key[1],)  # type: ignore[return-value]
        if kind in ("runs", "registered"):
            return self.ev.callers.get(key[1], ())  # type: ignore[call-overload,no-any-return]
        if kind in ("item", "present"):
            own = key if kind == "item" and len(key) == 4 else ("item", key[1], key[2], ANY)
            return self.ev.cells.writers(own)
        if kind == "field" and isinstance(key[1], Site):
            return [ref for ref, _ in self._setters.get(str(key[2]), ())]
        if kind == "entry":
            return [*self.ev.cells.writers(key), *self.ev.callers.get(key[1], ())]  # type: ignore[call-overload]
        return self.ev.cells.writers(key)

    def _visit(self, ref: FunctionRef) -> None:
        self.functions[ref] = _Visit(self, ref).run()

    def _seeding(self) -> frozenset[str]:
        """The seeding functions that the program calls with an argument."""
        wanted = {known.seeded_by for known in self.ev.knowledge.functions.values() if known.seeded_by}
        found = set()
        for evaluated in self.ev.functions.values():
            for call in evaluated.calls.values():
                for a in call.callees:
                    if (
                        isinstance(a, External)
                        and a.name in wanted
                        and (call.arguments.positional or call.arguments.keywords)
                    ):
                        found.add(a.name)
        return frozenset(found)

    def position(self, ref: FunctionRef, name: str) -> int:
        """The position of a parameter among those of its function."""
        known = self.positions.get(ref)
        if known is None:
            formals = self.ev.project.function(ref).formals
            known = self.positions[ref] = {formal.name: position for position, formal in enumerate(formals)}
        return known.get(name, 0)

    def concrete(self, ref: FunctionRef, mask: Mask) -> Mask:
        """The facts of a value in a function, with what all callers pass for its parameters."""
        if not mask >> _PARAMETERS:
            return mask
        formals = self.ev.project.function(ref).formals
        return composed(mask, lambda k: self._entry(ref, formals[k].name) if k < len(formals) else 0)

    def _entry(self, ref: FunctionRef, name: str) -> Mask:
        """What callers pass; where none is known it may be anywhere."""
        found = self.read(("entry", ref, name))
        return found if self.ev.cells.read(("entry", ref, name)) else found | BIT[SPREAD]

    def of(self, ref: FunctionRef, number: int) -> Mask:
        """The concrete facts of an operation; of one that nothing asked about they may be anything."""
        facts = self.functions.get(ref)
        return self.concrete(ref, facts.masks[number]) if facts is not None else CAUSES

    def raised(self, ref: FunctionRef, n: int) -> frozenset[ExceptionKind]:
        """The exceptions that an operation may raise in one process and not in another."""
        facts = self.functions.get(ref)
        return frozenset(facts.raised.get(n, ())) if facts is not None else frozenset()

    def imports(self, ref: FunctionRef) -> frozenset[str]:
        """The top-level packages that a function's file imports."""
        known = self._imports.get(ref.path)
        if known is None:
            modules = self.ev.project.modules[ref.path].imports
            known = self._imports[ref.path] = frozenset(each.module.split(".")[0] for each in modules)
        return known

    def is_local_call(self, site: Site, statics: frozenset[int] = frozenset()) -> bool:
        """Whether all arguments of a call, but the static ones, are certainly in this process's memory or devices."""
        call = self.ev.project.function(site.ref).operations[site.number]
        if not isinstance(call, s.Call) or not call.arguments:
            return False
        arrays = [a.value for position, a in enumerate(call.arguments) if position not in statics]
        return not any(self.of(site.ref, n) & BIT[SPREAD] for n in arrays)

    def is_global_call(self, site: Site) -> bool:
        """Whether an argument of a call was made to be on the devices of several processes."""
        call = self.ev.project.function(site.ref).operations[site.number]
        return isinstance(call, s.Call) and any(self.of(site.ref, a.value) & BIT[GLOBAL] for a in call.arguments)

    def iterated(self, ref: FunctionRef, iterable: int) -> Mask:
        """The facts of what a loop iterates over, with those of the containers it may be."""
        return self.functions[ref].masks[iterable] | self.contents(ref, self.ev.functions[ref].values[iterable])

    def contents(self, ref: FunctionRef, value: Value) -> Mask:
        """What is known in a function of the elements of the containers that a value may be.

        An argument has the facts of what it contains where the call is.
        """
        found = 0
        for a in self.ev.resolved(frozenset(each for each in value if not isinstance(each, Parameter))):
            if isinstance(a, Object) and isinstance(a.kind, str):
                found |= self.inside(ref, a)
        return found

    def inside(self, ref: FunctionRef, container: Object, key: Constant | None = None) -> Mask:
        """What is known of the elements of a container in a function; of one of them, if its key is known.

        Where it was made, and if there is one of it, what was put into it afterwards as well. Elsewhere it is one of
        many that are made there, and has what it was made with.
        """
        made = container.site.ref  # type: ignore[union-attr]
        if made != ref and self.ev.project.function(made).kind == "function":
            owner = self.ev.structure.owner(made)
            if owner is None or owner != self.ev.structure.owner(ref):
                return 0
        own = (container.site, container.kind)
        if key is not None and any(True for _ in self.ev.cells.writers(("item", *own, key))):
            return self.read(("item", *own, key))
        return self.read(("item", *own))

    def argument_masks(
        self, ref: FunctionRef, positional: list[Mask], keywords: Mapping[str, Mask], rest: Mask
    ) -> list[Mask]:
        """The facts of the argument for each parameter of a function."""
        found = []
        for formal in self.ev.project.function(ref).formals:
            if formal.kind in ("positional-only", "standard") and positional:
                found.append(positional.pop(0))
            elif formal.name in keywords:
                found.append(keywords[formal.name])
            elif formal.kind == "*":
                found.append(union(positional) | rest)
                positional = []
            elif formal.kind == "**":
                found.append(union(keywords.values()) | rest)
            else:
                found.append(rest if rest else self.read(("default", ref, formal.name)))
        return found

    def inside_call(self, ref: FunctionRef, number: int, callee: FunctionRef, mask: Mask) -> Mask:
        """The concrete facts of something in a function as one call of it sees them."""
        o = self.ev.project.function(ref).operations[number]
        facts = self.functions.get(ref)
        if not isinstance(o, s.Call) or facts is None:
            return self.concrete(callee, mask)
        masks = facts.masks
        positional = [masks[a.value] for a in o.arguments if not a.keyword and not a.star]
        method = self.ev.project.function(ref).operations[o.function]
        if self.ev.structure.owner(callee) is not None and isinstance(method, s.Attribute):
            positional.insert(0, masks[method.base])
        keywords = {a.keyword: masks[a.value] for a in o.arguments if a.keyword}
        given = self.argument_masks(callee, positional, keywords, union(masks[a.value] for a in o.arguments if a.star))
        return self.concrete(ref, composed(mask, lambda k: given[k] if k < len(given) else 0))

    def field(self, cls: FunctionRef, name: str) -> Mask:
        """The concrete facts of an attribute of a class's objects: fields, class attributes, results of properties."""
        found = 0
        for owner in self.ev.lineage(cls):
            found |= self.read(("field", owner, name)) | self.read(("attribute", owner, name))
        for value in self.ev.class_attribute(cls, name) or ():
            if isinstance(value, Function) and self.ev.roles.get(value.ref) == "property":
                found |= self.concrete(value.ref, self.read(("result", value.ref)))
        return found

    def presence(self, ref: FunctionRef, values: Value, mask: Mask) -> dict[FunctionRef, Mask]:
        """What decides whether a container has elements of some kind: objects of a class, or a function.

        ``mask`` are the facts of the container; if it is one of several, what chooses it decides as well.
        """
        held: list[dict[FunctionRef, Mask]] = []
        for a in self.ev.resolved(values):
            if isinstance(a, Object) and isinstance(a.kind, str):
                keys = {key for e in self.ev.items(a) if (key := element_kind(e)) is not None}
                held.append({key: self.read(("present", a.site, a.kind, key)) for key in keys})
            elif isinstance(a, Sequence):
                parts = (*a.elements, *(() if a.rest is None else (a.rest,)))
                held.append({key: 0 for part in parts for e in part if (key := element_kind(e)) is not None})
        chosen = choice(self.concrete(ref, mask)) if len(held) > 1 else 0
        found: dict[FunctionRef, Mask] = {}
        for each in held:
            for key, decided in each.items():
                always = all(key in other for other in held)
                found[key] = found.get(key, 0) | decided | (0 if always else chosen)
        return found

    def source(self, known: Known | None, arguments: int) -> Mask:
        """The cause that a call of a library's function is by itself."""
        if known is None or known.source is None or known.callback is not None:
            return 0
        if (known.unseeded and arguments) or (known.seeded_by and known.seeded_by in self.seeded):
            return 0
        if known.at_most is not None and arguments > known.at_most:
            return 0
        kind = "machine" if known.cappable else known.source
        return BIT[kind] << _RAW if kind in _NEVER_ZERO and not known.may_be_zero else BIT[kind]


class _Visit:
    """One forward pass over one function."""

    def __init__(self, content: Content, ref: FunctionRef) -> None:
        self.c = content
        self.ev = content.ev
        self.ref = ref
        self.function = self.ev.project.function(ref)
        self.operations = self.function.operations
        self.ssa: Ssa = self.ev.structure.ssa(ref)
        self.known: Evaluated = self.ev.functions[ref]
        self.values = self.known.values
        self.masks: list[Mask] = [0] * len(self.operations)
        self.phis: list[Mask] = [0] * len(self.ssa.phis)
        self._joined: set[int] = set()
        """The phis that were joined in this pass: one that only others read is joined when they are."""
        self.parts: dict[int, tuple[Mask, ...]] = {}
        """The facts of each element of a tuple."""
        self.element_parts: dict[int, tuple[Mask, ...]] = {}
        """The same for each tuple that an iterator gives."""
        self._controls: dict[int, Mask] = {}
        # What a constructor sets is its own object's, wherever it is made.
        is_maker = self.function.name == "__init__"
        self._runs_at = 0 if is_maker else content.read(("runs", ref)) | content.read(("registered", ref))
        self._guards: dict[FunctionRef, Mask] = {}
        """By function called, the causes that decide about each of the calls here."""
        self._put_here: dict[Hashable, Mask] = {}
        """What this function puts into containers, as a relation."""
        self._yields: Mask = 0
        self._raised: dict[int, Raised] = {}
        self._came_through: dict[tuple[int, ExceptionKind], int] = {}
        self._is_watched = ref in content.exceptions.watched

    def run(self) -> Facts:
        plan = self._plan()
        masks = self.masks
        for _ in range(8):
            self._controls.clear()
            self._guards.clear()
            self._joined.clear()
            before = list(self.phis)
            for n, operation, handler in plan:
                masks[n] = handler(self, n, operation)
            for position, phi in enumerate(self.ssa.phis):
                self.phis[position] |= self._phi(phi)
            if before == self.phis or not self.ssa.goes_back:
                break
        self._publish()
        self._publish_raised()
        self._publish_guards()
        return Facts(self.masks, self.phis, self._raised)

    def _plan(self) -> list[tuple[int, Any, Callable[[_Visit, int, Any], Mask]]]:
        """The operations that have facts, in the order in which they run, with what computes these."""
        known = self.c.plans.get(self.ref)
        if known is None:
            known = self.c.plans[self.ref] = [
                (n, self.operations[n], handler)
                for block in self.ssa.order
                if block in self.known.live
                for n in self.function.blocks[block].operations
                if (handler := _HANDLERS.get(type(self.operations[n]))) is not None
            ]
        return known

    # -- definitions

    def _definition(self, definition: Definition) -> Mask:
        if definition >= 0:
            return self.masks[definition]
        if definition == NOTHING:
            return 0
        position = NOTHING - 1 - definition
        self._joined.add(position)
        self.phis[position] |= self._phi(self.ssa.phis[position])
        return self.phis[position]

    def _phi(self, phi: Phi) -> Mask:
        found = 0
        for _, definition in phi.operands:
            if definition >= 0:
                found |= self.masks[definition]
            elif definition != NOTHING:
                position = NOTHING - 1 - definition
                found |= self.phis[position] if position in self._joined else self._definition(definition)
        separating = self.gates(phi)
        if separating:
            present = self._separating_presence(phi)
            sized_alike = len({self._size_of(d) for d in phi.definitions}) == 1
            for block in separating:
                decision = self._decision(block)
                if sized_alike:  # a bar or a list around the same elements
                    decision &= _TO_CHOICE
                found |= decision if block in present else decision & ~_TO_PRESENCE
        return found

    def _size_of(self, definition: Definition) -> Hashable:
        """What is equal for definitions that certainly have as many elements."""
        if definition < 0:
            return definition
        return self._size_at(definition, 8)

    def _size_at(self, n: int, depth: int) -> Hashable:
        o = self.operations[n]
        if depth and isinstance(o, (s.Store, s.Await)):
            return self._size_at(o.value, depth - 1)
        if isinstance(o, s.Load):
            definition = self.ssa.loads.get(n)
            return self._size_of(definition) if definition is not None and definition >= 0 and depth else definition
        if depth and isinstance(o, s.Call) and o.arguments:
            callee = only(self.ev.callees(self.values[o.function]))
            row = self.ev.row(callee.name) if isinstance(callee, External) else None
            if row is not None and (row.elements == (0,) or row.role == "enumerate"):
                return self._size_at(o.arguments[0].value, depth - 1)
        return self.c.conditions.expression(self.ref, n)

    def _separating_presence(self, phi: Phi) -> tuple[int, ...]:
        """The branches that decide whether a phi is None."""
        key = (self.ref, phi.number, True)
        known = self.c.gates.get(key)
        if known is None:
            different = {self._present(d) for d in phi.definitions}
            known = self.c.gates[key] = self.ssa.deciding(phi, self._present) if len(different) > 1 else ()
        return known

    def _present(self, definition: Definition) -> Hashable:
        """True or False for what is certainly something, or None; the definition itself where that is not known."""
        if definition < NOTHING:
            value = self.known.phis[NOTHING - 1 - definition]
        else:
            value = self.values[definition] if definition >= 0 else JUST_NONE
        present = self._is_present(value)
        return self._same(definition) if present is None else present

    def gates(self, phi: Phi) -> tuple[int, ...]:
        """The branches that decide which of different values a phi takes."""
        key = (self.ref, phi.number, False)
        known = self.c.gates.get(key)
        if known is None:
            different = {self._same(d) for d in phi.definitions}
            known = self.c.gates[key] = self.ssa.deciding(phi, self._same) if len(different) > 1 else ()
        return known

    def _same(self, definition: Definition) -> Hashable:
        """What is equal for definitions that have the same value."""
        while definition >= 0:
            operation = self.operations[definition]
            if isinstance(operation, (s.Store, s.Return)) and operation.value is not None:
                value = only(self.values[definition])
                if isinstance(value, (Constant, Function, Class, External)):
                    return value
                definition = operation.value
            elif isinstance(operation, s.Load) and definition in self.ssa.loads:
                definition = self.ssa.loads[definition]
            else:
                break
        return definition

    def _decision(self, block: int) -> Mask:
        """What the branch at the end of a block passes on to what it decides."""
        test = self.function.blocks[block].test
        if test is None:
            return 0
        operation = self.operations[test]
        if isinstance(operation, s.Next):
            return decides(size_as_content(self._iterated(operation.iterable)))
        found = decides(truth(self.masks[test]))
        return found & ~_TO_CHOICE if isinstance(operation, s.Caught) else found  # what stands in does as much

    def _around(self, block: int, without: int | None = None) -> Mask:
        """What decides whether a block runs; without what one of the branches does, if that is given."""
        known = self._controls.get(block) if without is None else None
        if known is None:
            known = 0
            for each in self.ssa.controlling(block):
                if each != without:
                    known |= self._decision(each)
            if without is None:
                self._controls[block] = known
        return known

    # -- what the function gives to others

    def _write(self, key: Hashable, mask: Mask, *, kept: bool = False) -> None:
        self.c.cells.write(key, self.c.concrete(self.ref, mask if kept else mask | self._runs_at))

    def _is_kept(self, block: int, name: str) -> bool:
        """Whether a store is made only if what it sets was not set before: the first call of all makes it."""
        for each in self.ssa.controlling(block):
            test = self.function.blocks[each].test
            if test is not None and self._asks_for(test, name, 4):
                return True
        return False

    def _asks_for(self, n: int, name: str, depth: int) -> bool:
        o = self.operations[n]
        if isinstance(o, (s.Load, s.Attribute)):
            return o.name == name
        if depth and isinstance(o, s.Compare):
            return any(self._asks_for(each, name, depth - 1) for each in o.operands)
        return bool(depth) and isinstance(o, s.Unary) and self._asks_for(o.operand, name, depth - 1)

    def _publish(self) -> None:
        kind = self.function.kind
        if kind in ("module", "class"):
            cell = "global" if kind == "module" else "attribute"
            owner: Hashable = self.ref.path if kind == "module" else self.ref
            for name, definition in self.ssa.finals.items():
                self._write((cell, owner, name), self._definition(definition))
            if kind == "class":
                for name in self.ev.structure.declared(self.ref):
                    self._write(("field", self.ref, name), self.c.read(("entry", self.ref, name)))
        else:
            result = self._definition(self.ssa.result) | self._yields
            if self.c.uniform.returned(self.ref):
                result = 0
            self.c.cells.write(("result", self.ref), result)
            self._publish_parts()
        summary = self.ev.project.modules[self.ref.path].summary
        for name in self.function.globals | self.function.nonlocals:
            scope = summary.scope_of(self.function, name)
            for number in self.function.stores.get(name, ()):
                mask = self.masks[number] | self._around(self.function.block_of[number])
                kept = self._is_kept(self.function.block_of[number], name)
                if scope is None:
                    self._write(("global", self.ref.path, name), mask, kept=kept)
                else:
                    self._write(("variable", self.ev.project.ref(self.ref.path, scope.index), name), mask)
        if kind != "module":
            captured = self.ev.structure.captured(self.ref)
            for name in captured:
                for number in self.function.stores[name]:
                    if self.masks[number]:  # whoever sees it is in a process that has made the call
                        self._write(("variable", self.ref, name), self.masks[number], kept=True)
            self._publish_choices()

    def _publish_choices(self) -> None:
        """A captured variable that a branch decides: its phis carry the gates, which its stores do not."""
        for position, phi in enumerate(self.ssa.phis):
            if self.phis[position] and phi.name in self.ev.structure.captured(self.ref):
                self._write(("variable", self.ref, phi.name), self.phis[position], kept=True)

    def _publish_parts(self) -> None:
        """The facts of each element of a tuple that the function returns."""
        length = _length(self.ev.cells.read(("result", self.ref)))
        if length is None:
            return
        gates = self._definition(self.ssa.result) if self.ssa.result < NOTHING else 0
        for number, operation in enumerate(self.operations):
            if type(operation) is s.Return and operation.value is not None:
                parts = self.parts.get(operation.value)
                for position in range(length):
                    mask = parts[position] if parts is not None and position < len(parts) else self.masks[number]
                    self.c.cells.write(("result", self.ref, position), mask)
        if gates:
            phi = self.ssa.phi(self.ssa.result)
            decided = 0
            for block in self.gates(phi) if phi is not None else ():
                decided |= self._decision(block)
            for position in range(length):
                self.c.cells.write(("result", self.ref, position), decided & self._differs(position))

    def _differs(self, position: int) -> Mask:
        """The facets in which the returns of a function may differ in one element of what they return."""
        given: set[Value] = set()
        for number, operation in enumerate(self.operations):
            if type(operation) is s.Return:
                for a in self.values[number] - UNKNOWN:
                    given.add(a.elements[position] if isinstance(a, Sequence) else UNKNOWN)
        if len(given) == 1 and isinstance(only(next(iter(given))), (Constant, Function, Class)):
            return 0
        presence = {self._is_present(value) for value in given}
        return -1 if len(presence) > 1 or None in presence else ~_TO_PRESENCE

    @staticmethod
    def _is_present(value: Value) -> bool | None:
        """Whether a value is certainly something, or certainly None; None if that is not known."""
        if value == JUST_NONE:
            return False
        certain = all(a != NONE and type(a) not in (Open, Parameter, Member) for a in value)
        return True if value and certain else None

    # -- operations

    def load(self, n: int, o: s.Load) -> Mask:
        definition = self.ssa.loads.get(n)
        if definition is None or definition == NOTHING:
            return self._outer(o.name)
        if definition in self._filled and self._is_filled(n, definition):
            return self._definition(definition) & _TO_SPREAD
        found = self._definition(definition)
        if definition >= 0:
            self._pass_on_parts(definition, n)
        if self.ssa.loops:
            at = self.ssa.block_of(definition)
            for loop in self.ssa.left_between(at, self.function.block_of[n]):
                if self.ssa.changes_in(definition, loop):
                    for block in loop.exits:
                        found |= self._decision(block)
        return found

    @cached_property
    def _filled(self) -> dict[Definition, list[int]]:
        """By definition, the calls after which what it holds is the same on all processes."""
        found: dict[Definition, list[int]] = {}
        for n, call in self.known.calls.items():
            callee = only(call.callees)
            known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            o = self.operations[n]
            if known is None or known.fills is None or not known.agreement or not isinstance(o, s.Call):
                continue
            position = known.positional.index(known.fills) if known.fills in known.positional else None
            for k, argument in enumerate(o.arguments):
                if argument.keyword == known.fills or (not argument.keyword and k == position):
                    definition = self.ssa.loads.get(argument.value)
                    if definition is not None:
                        found.setdefault(definition, []).append(n)
        return found

    def _is_filled(self, n: int, definition: Definition) -> bool:
        block_of = self.function.block_of
        calls = (call for call in self._filled[definition] if self.ssa.dominates(block_of[call], block_of[n]))
        return any(block_of[call] != block_of[n] or call < n for call in calls)

    def _outer(self, name: str) -> Mask:
        function = self.function
        if function.kind != "module":
            scope = self.ev.project.modules[self.ref.path].summary.scope_of(function, name)
            if scope is not None:
                return self.c.read(("variable", self.ev.project.ref(self.ref.path, scope.index), name))
        return self._global(self.ref.path, name)

    def _global(self, path: Path, name: str) -> Mask:
        home = self.ev.home_of_global(path, name)
        return self.c.read(("global", home, name)) if home is not None else 0

    def import_(self, n: int, o: s.Import) -> Mask:
        module = self.ev.project.modules[self.ref.path]
        path = self.ev.project.find_module(self.ev.project.absolute(module, o.module, o.level), module)
        if o.name is None or path is None or path == self.ref.path:
            return 0
        return self._global(path, o.name)

    def parameter(self, n: int, o: s.Parameter) -> Mask:
        return parameter(self.c.position(self.ref, o.name))

    def store(self, n: int, o: s.Store) -> Mask:
        if self.c.uniform.stored(self.ref, n):
            return 0
        self._pass_on_parts(o.value, n)
        return self.masks[o.value]

    def _pass_on_parts(self, source: int, n: int) -> None:
        """What is the same value under a name has the same parts."""
        for parts in (self.parts, self.element_parts):
            if source in parts:
                parts[n] = parts[source]

    def attribute(self, n: int, o: s.Attribute) -> Mask:
        base = self.masks[o.base]
        # Which object it is decides what its field is; what the object contains does not.
        owners = self.ev.resolved(self.values[o.base])
        several = len(owners - {NONE}) != 1 or Open() in owners
        found = decides(choice_as_content(base)) if several else 0
        own = False
        for a in owners:
            if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                own = True
                found |= self._field(a, o.name)
            elif isinstance(a, ModuleValue):
                own = True
                found |= self._global(a.path, o.name)
            elif isinstance(a, Class):
                own = True
                for each in self.ev.lineage(a.ref):
                    found |= self.c.read(("attribute", each, o.name))
            elif isinstance(a, Result):
                found |= self.c.read(("field", a.site, o.name))
            elif isinstance(a, External):
                own = True
                known = self.ev.knowledge.get(self.ev.knowledge.outside(f"{a.name}.{o.name}"))
                if known is not None and known.attribute and known.source is not None:
                    found |= BIT[known.source]
        return found if own else found | kept(base) | spread(base)

    def _field(self, a: Object, name: str) -> Mask:
        found = 0
        cls = a.kind
        assert isinstance(cls, FunctionRef)
        classes = [cls, *self.ev.derived(cls)] if a.site is None else [cls]
        for each in classes:
            for owner in self.ev.lineage(each):
                found |= self.c.read(("field", owner, name))
            held = self.ev.class_attribute(each, name)
            for value in held or ():
                if isinstance(value, Function) and self.ev.roles.get(value.ref) == "property":
                    found |= self._given(value, (), {}, 0)
            if held is not None:
                for owner in self.ev.lineage(each):
                    found |= self.c.read(("attribute", owner, name))
        return found

    def subscript(self, n: int, o: s.Subscript) -> Mask:
        index = self.masks[o.index]
        if type(self.operations[o.index]) is s.Slice:
            return self.masks[o.base] | data(index) | content_as_size(index)
        # An object is a key as the one it is, whatever it contains.
        keys = self.ev.resolved(self.values[o.index])
        found = decides(choice_as_content(index) if keys and all(element_kind(a) for a in keys) else index)
        for a in self.ev.resolved(self.values[o.base]):
            found |= self._item(a, self.values[o.index])
        constant = only(self.values[o.index])
        parts = self.parts.get(o.base)
        place = constant.value if isinstance(constant, Constant) else None
        if parts is not None and isinstance(place, int) and -len(parts) <= place < len(parts):
            return found | parts[place]
        return found | self.masks[o.base] & ~_TO_SIZE

    def _item(self, a: object, index: Value) -> Mask:
        if isinstance(a, Object) and isinstance(a.kind, str):
            return self._element(a, index)
        if isinstance(a, External):
            row = self.ev.row(a.name)
            if row is not None and row.role == "environment":
                return self._environment(index)
        return 0

    def _element(self, container: Object, index: Value) -> Mask:
        """The facts of one element: of what is stored under its key, if that is known, else of all."""
        key = only(index)
        return self.c.inside(self.ref, container, key if isinstance(key, Constant) else None)

    def _put_one(self, container: Object, index: Value, mask: Mask, around: Mask = 0) -> None:
        """Add to the facts of an element, and of any.

        Whether it is put there decides what is under its key and how many elements there are; the others stay as they
        are.
        """
        key = only(index)
        if isinstance(key, Constant):
            self._write(("item", container.site, container.kind, key), mask | around)
        self._put_any(container, mask | sized(around))

    def _put_any(self, container: Object, mask: Mask) -> None:
        """Add to the facts of all elements of a container."""
        own = (container.site, container.kind)
        self._put_here[own] = self._put_here.get(own, 0) | mask
        self._write(("item", *own), mask)

    def _environment(self, name: Value) -> Mask:
        found = 0
        for each in self.ev.resolved(name):
            if isinstance(each, Constant):
                if self.ev.knowledge.is_rank(each.value):
                    found |= IDENTITY
                elif each.value in self.ev.rows.host_variables:
                    found |= BIT["host"] << _RAW
        return found

    def slice(self, n: int, o: s.Slice) -> Mask:
        return self._all(each for each in (o.lower, o.upper, o.step) if each is not None)

    def unary(self, n: int, o: s.Unary) -> Mask:
        return (
            truth(self.masks[o.operand])
            if o.operator == "not"
            else data(self.masks[o.operand]) | self._spread(o.operand)
        )

    def binary(self, n: int, o: s.Binary) -> Mask:
        if o.operator == "%" and isinstance(self._constant(o.left), str):
            return as_text(self.masks[o.right])
        if o.operator in ("+", "|"):
            self._hold_made(n, (o.left, o.right))
        if o.operator in "+-":
            return kept(self.masks[o.left]) | kept(self.masks[o.right]) | self._spread(o.left, o.right)
        return data(self.masks[o.left]) | data(self.masks[o.right]) | self._spread(o.left, o.right)

    def _spread(self, *operands: int) -> Mask:
        found = 0
        for each in operands:
            found |= spread(self.masks[each])
        return found

    def _constant(self, n: int) -> object:
        value = only(self.values[n])
        return value.value if isinstance(value, Constant) else None

    def compare(self, n: int, o: s.Compare) -> Mask:
        value = only(self.values[n])
        if isinstance(value, Constant):
            return 0
        if o.operators[0] in ("in", "not in"):  # the number of an object is alike in its table
            if self._is_name(o.operands[0]):
                right = self.masks[o.operands[-1]]
                held = size_as_content(self._iterated(o.operands[-1]))
                return (data(right & _RAWS) | choice_as_content(right) | held) & ~BIT["hash"]
            return (self._all(o.operands) | size_as_content(self._iterated(o.operands[-1]))) & ~BIT["hash"]
        if o.operators[0] in ("is", "is not"):
            # Which object it is counts, not what is in it.
            left, right = o.operands[0], o.operands[-1]
            if JUST_NONE in (self.values[left], self.values[right]):
                return presence_as_content(self.masks[left]) | presence_as_content(self.masks[right])
            found = 0
            for each in o.operands:
                mask = self.masks[each]
                found |= choice_as_content(mask)
                if not self._is_object(each):
                    found |= data(mask)
            return found
        return self._all(o.operands)

    def _is_name(self, n: int) -> bool:
        """Whether a value is a text of the program: it is in a table for its keys, and in a text for the letters."""
        value = self.ev.resolved(self.values[n])
        return bool(value) and all(isinstance(a, Constant) and isinstance(a.value, str) for a in value)

    def _is_object(self, n: int) -> bool:
        """Whether a value certainly is nothing but objects, functions, classes and None."""
        value = self.ev.resolved(self.values[n])
        return bool(value) and all(
            isinstance(a, (Object, Function, Class, ModuleValue, Sequence, Keywords))
            or (isinstance(a, Constant) and a.value is None)
            or isinstance(a, Result)
            for a in value
        )

    def boolop(self, n: int, o: s.BoolOp) -> Mask:
        found = self.masks[o.operands[-1]]
        values = {self._same(each) for each in o.operands}
        for each in o.operands[:-1]:
            found |= self.masks[each] | (decides(truth(self.masks[each])) if len(values) > 1 else 0)
        return found

    def ifexp(self, n: int, o: s.IfExp) -> Mask:
        found = self.masks[o.body] | self.masks[o.orelse]
        if self._size_at(o.body, 8) == self._size_at(o.orelse, 8):
            return found | decides(truth(self.masks[o.test])) & _TO_CHOICE
        same = self.values[o.body] == self.values[o.orelse] and isinstance(
            only(self.values[o.body]), (Constant, Function)
        )
        return found if same else found | decides(truth(self.masks[o.test]))

    def display(self, n: int, o: s.Display) -> Mask:
        if o.kind == "tuple" and not o.starred:
            self.parts[n] = tuple([self.masks[each] for each in o.elements])
        found = 0
        for each in o.elements:
            found |= self.masks[each]
        if o.kind == "tuple":
            return found
        self._put(n, found)
        self._hold_made(n, [o.elements[each] for each in o.starred])
        for a in self.values[n]:
            if isinstance(a, Object):
                for position, element in enumerate(o.elements):
                    if position not in o.starred:
                        self._hold(a, element, n)
        return data(found) | spread(found)

    def dictionary(self, n: int, o: s.DictDisplay) -> Mask:
        found = self._or(o.values)
        for a in self.values[n]:
            if isinstance(a, Object) and isinstance(a.kind, str):
                for key, value in zip(o.keys, o.values, strict=True):
                    self._put_one(a, UNKNOWN if key is None else self.values[key], self.masks[value])
        return spread(found)

    def _hold(self, container: Object, element: int, at: int) -> None:
        """An element that is put into a container, and what decides whether it is, or which one.

        What a loop takes from another container is put there if it was in that one.
        """
        taken = self._taken(element)
        if taken is not None:
            header, iterable = taken
            mask = self._around(self.function.block_of[at], without=header)
            self._hold_all(container, iterable, mask)
            return
        mask = self._around(self.function.block_of[at])
        alternatives = self.ev.resolved(self.values[element])
        if len(alternatives) > 1:
            mask |= choice_as_content(self.masks[element])
        for a in alternatives:
            key = element_kind(a)
            if key is not None and mask:
                self._write(("present", container.site, container.kind, key), mask)

    def _taken(self, n: int) -> tuple[int, int] | None:
        """The header of the loop whose element an operation gives, and what it iterates over."""
        origin = self.ssa.origin(n)
        o = self.operations[origin]
        return (self.function.block_of[origin], o.iterable) if isinstance(o, s.Next) else None

    def _hold_all(self, container: Object, source: int, mask: Mask) -> None:
        """The elements of another container that are put into one."""
        if isinstance(container.kind, str):
            for key, decided in self.c.presence(self.ref, self.values[source], self.masks[source]).items():
                if decided | mask:
                    self._write(("present", container.site, container.kind, key), decided | mask)

    def _hold_made(self, n: int, sources: Iterable[int], mask: Mask = 0) -> None:
        """The elements of other containers that one that is made here takes over."""
        for a in self.values[n]:
            if isinstance(a, Object) and isinstance(a.kind, str):
                for each in sources:
                    self._hold_all(a, each, mask)

    def _put(self, n: int, mask: Mask) -> None:
        for a in self.values[n]:
            if isinstance(a, Object) and isinstance(a.kind, str):
                self._put_any(a, mask)

    def collected(self, n: int, o: s.Collected) -> Mask:
        found = self.masks[o.element]
        for loop in o.loops:
            operation = self.operations[loop]
            if isinstance(operation, s.Next):
                found |= sized(self._iterated(operation.iterable))
        sifted = 0
        header = self.function.block_of[o.loops[0]] if o.loops else 0
        own = self.ssa.controlling(self.function.block_of[n])
        for block in self._sifting(o):
            if block not in own and block != header:
                decision = truth(self.masks[self.function.blocks[block].test or 0])
                found |= data(decision) | content_as_size(decision)
                sifted |= data(decision)
        self._put(n, found)
        over = [loop.iterable for loop in map(self.operations.__getitem__, o.loops) if isinstance(loop, s.Next)]
        self._hold_made(n, over, sifted)
        return found

    def _sifting(self, o: s.Collected) -> frozenset[int]:
        """The branches that decide whether a comprehension takes an element."""
        found = set()
        headers = {self.function.block_of[loop] for loop in o.loops}
        for block in self.ssa.controlling(self.function.block_of[o.element]):
            if block not in headers and self.ssa.arms(block) is not None:
                found.add(block)
        return frozenset(found)

    def _iterated(self, iterable: int) -> Mask:
        """The facts of what a loop iterates over, with those of the containers it may be."""
        return self.masks[iterable] | self.c.contents(self.ref, self.values[iterable])

    def fstring(self, n: int, o: s.FString) -> Mask:
        found = 0
        for each in o.parts:
            found |= as_text(self.masks[each])
        return found

    def next(self, n: int, o: s.Next) -> Mask:
        if self._is_watched:
            self._raise_from_elements(n, self.values[o.iterable])
        if o.iterable in self.element_parts:
            self.parts[n] = self.element_parts[o.iterable]
        return self._iterated(o.iterable) & ~(_TO_SIZE | _TO_PRESENCE)

    def item(self, n: int, o: s.Item) -> Mask:
        parts = self.parts.get(o.value)
        if parts is not None and not o.star and -len(parts) <= o.index < len(parts):
            return parts[o.index]
        return self.masks[o.value]

    def same(self, n: int, o: s.Await | s.Enter | s.Captured) -> Mask:
        return self.masks[o.value if isinstance(o, s.Await) else o.manager if isinstance(o, s.Enter) else o.subject]

    # -- exceptions

    def raise_(self, n: int, o: s.Raise) -> Mask:
        """A ``raise`` that leaves the function: whatever decides whether it runs."""
        if self._is_watched and self._leaves(self.function.block_of[n]):
            mask = self._around(self.function.block_of[n])
            if mask:
                self._raised[n] = dict.fromkeys(self.c.exceptions.raised_by(self.ref, n, o), mask)
        return 0

    def _leaves(self, block: int) -> bool:
        """Whether a block that raises leads out of the function, and to no clause of its own."""
        return all(target == s.FAILURE for target in self.ssa.usual(block))

    def _raise(self, n: int, kind: ExceptionKind, mask: Mask) -> None:
        mask |= self._around(self.function.block_of[n]) & _DECIDING if mask else 0
        if mask:
            found = self._raised.setdefault(n, {})
            found[kind] = found.get(kind, 0) | mask

    def _raise_from(self, n: int, ref: FunctionRef, arguments: Callable[[int], Mask]) -> None:
        """What a call of a project's function raises, by its relations."""
        kinds = self.c.read(("raised kinds", ref))
        if kinds:
            for (kind, calls), position in list(self.c.exception_kinds.items()):
                if kinds >> position & 1:
                    before = self._came_through.get((n, kind), calls + 1)
                    self._came_through[n, kind] = min(before, calls + 1)
                    self._raise(n, kind, composed(self.c.read(("raises", ref, kind)), arguments))

    def _raise_from_elements(self, n: int, value: Value) -> None:
        """What taking an element from an iterator raises."""
        for a in self.ev.resolved(value):
            if self.ev.is_generator(a):
                assert isinstance(a.kind, FunctionRef)
                self._raise_from(n, a.kind, self._entries(a.kind))

    def _entries(self, ref: FunctionRef) -> Callable[[int], Mask]:
        """What all callers pass for each parameter of a function."""
        formals = self.ev.project.function(ref).formals
        return lambda k: self.c.concrete(ref, parameter(k)) if k < len(formals) else 0

    def _raise_from_library(self, n: int, o: s.Call, a: Any, given: Mask) -> None:
        kind = self.c.exceptions.raised_by_library(a)
        method = self.operations[o.function]
        if kind != READ and isinstance(method, s.Attribute):
            bare = self.ev.knowledge.methods.get(method.name)
            if bare is not None and bare.reads:
                kind = READ
        if kind is not None:
            self._raise(n, kind, BIT["files"] | (data(given | self._receiver(o)) if kind == READ else 0))

    def caught(self, n: int, o: s.Caught) -> Mask:
        """Whether a clause is entered: what decides whether something is raised that it catches."""
        found = 0
        for at, raised in self._raised.items():
            for kind, mask in raised.items():
                clause = self.c.exceptions.caught(self.ref, self.function.block_of[at], kind)
                if clause is not None and clause.number == n:
                    found |= mask if kind not in (READ, OUTSIDE) else mask & ~BIT["files"] | self._outside(n, o)
        return found

    def _outside(self, n: int, o: s.Caught) -> Mask:
        """The causes of the failures outside the program that a clause names."""
        found = 0
        if o.kind is None:
            return BIT["files"]
        for clause in (c for each in self.ssa.tries for c in each.clauses if c.number == n):
            for a in self.c.exceptions.kinds(self.ref, clause) or ():
                found |= BIT[self.c.exceptions.cause(a) or "files"]
        return found

    def _publish_guards(self) -> None:
        for ref, guarded in self._guards.items():
            self.c.cells.write(("runs", ref), guarded)

    def _publish_raised(self) -> None:
        for at, raised in self._raised.items():
            for kind, mask in raised.items():
                calls = self._came_through.get((at, kind), 0)
                if calls < FURTHEST and self.c.exceptions.caught(self.ref, self.function.block_of[at], kind) is None:
                    position = self.c.exception_kinds.setdefault((kind, calls), len(self.c.exception_kinds))
                    self.c.cells.write(("raised kinds", self.ref), 1 << position)
                    self.c.cells.write(("raises", self.ref, kind), mask)

    def matches(self, n: int, o: s.Matches) -> Mask:
        """Whether a pattern fits: one that compares with nothing asks for the form of its subject alone."""
        subject = self.masks[o.subject]
        if not o.values:
            return choice_as_content(subject) | presence_as_content(subject) | size_as_content(subject)
        return data(subject) | self._all(o.values)

    def yielded(self, n: int, o: s.Yield) -> Mask:
        """What a generator gives: its size is how often it yields, whatever the sizes of what it yields."""
        if o.value is not None:
            given = self._iterated(o.value) if o.delegate else self.masks[o.value] & ~(_TO_SIZE | _TO_PRESENCE)
            self._yields |= given
        self._yields |= sized(self._around(self.function.block_of[n]))
        return 0

    def returned(self, n: int, o: s.Return) -> Mask:
        if o.value is None:
            return 0
        found = self.masks[o.value]
        for a in self.values[o.value]:
            if isinstance(a, Object) and isinstance(a.kind, str):
                mask = self._put_here.get((a.site, a.kind), 0)
                found |= sized(mask) if a.kind == "dict" else mask  # the values of a table have little in common
        return found

    def store_attribute(self, n: int, o: s.StoreAttribute) -> Mask:
        if self.c.uniform.stored(self.ref, n):
            return 0
        mask = self.masks[o.value] | self._around(self.function.block_of[n])
        for a in self.ev.resolved(self.values[o.base]):
            if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                self._write(("field", a.kind, o.name), mask, kept=self._is_kept(self.function.block_of[n], o.name))
            elif isinstance(a, Result):
                self._write(("field", a.site, o.name), mask)
            elif isinstance(a, Class):
                self._write(("attribute", a.ref, o.name), mask)
            elif isinstance(a, ModuleValue):
                self._write(("global", a.path, o.name), mask)
        return self.masks[o.value]

    def store_subscript(self, n: int, o: s.StoreSubscript) -> Mask:
        around = self._around(self.function.block_of[n])
        for a in self.ev.resolved(self.values[o.base]):
            if isinstance(a, Object) and isinstance(a.kind, str):
                self._put_one(a, self.values[o.index], self.masks[o.value], around)
                self._hold(a, o.value, n)
        return self.masks[o.value]

    def _all(self, numbers: Iterable[int]) -> Mask:
        found = 0
        for each in numbers:
            found |= data(self.masks[each])
        return found

    def _or(self, numbers: Iterable[int]) -> Mask:
        found = 0
        for each in numbers:
            found |= self.masks[each]
        return found

    # -- calls

    def call(self, n: int, o: s.Call) -> Mask:
        call = self.known.calls.get(n)
        if call is None:
            return 0
        positional = [self.masks[a.value] for a in o.arguments if not a.keyword and not a.star]
        keywords = {a.keyword: self.masks[a.value] for a in o.arguments if a.keyword}
        rest = 0
        for a in o.arguments:
            if a.star:
                rest |= self.masks[a.value]
        callee = self.masks[o.function]
        found = decides(choice_as_content(callee))
        for each in self.ev.callees(call.callees):
            found |= self._called(n, o, each, call, positional, keywords, rest)
            if self._is_watched:
                self._raise_from_call(n, o, each, positional, keywords, rest)
        return found

    def _raise_from_call(
        self, n: int, o: s.Call, a: Any, positional: list[Mask], keywords: dict[str, Mask], rest: Mask
    ) -> None:
        if isinstance(a, Function):
            if self.c.read(("raised kinds", a.ref)) and not self.ev.project.function(a.ref).generator:
                masks = self._argument_masks(a, positional, keywords, rest, self._receiver(o))
                self._raise_from(n, a.ref, lambda k: masks[k] if k < len(masks) else 0)
        elif not isinstance(a, (Class, Constant)):
            row = self.ev.row(a.name) if isinstance(a, External) else None
            if row is not None and row.element is not None and o.arguments:
                self._raise_from_elements(n, self.values[o.arguments[0].value])
            self._raise_from_library(n, o, a, union(positional) | union(keywords.values()) | rest)

    def _called(
        self, n: int, o: s.Call, a: Any, call: Call, positional: list[Mask], keywords: dict[str, Mask], rest: Mask
    ) -> Mask:
        if isinstance(a, Function):
            # One step only: what is called in turn by a function that few processes call is too often a log or a cache.
            guarded = self.c.concrete(self.ref, self._around(self.function.block_of[n])) & _GUARDING
            self._guards[a.ref] = self._guards.get(a.ref, guarded) & guarded
            if self._runs_at & _ASYNCHRONOUS:
                self.c.cells.write(("registered", a.ref), self._runs_at & _ASYNCHRONOUS)
            self._keep_parts(n, a, call, positional, keywords, rest, o)
            return self._given(a, positional, keywords, rest, self._receiver(o))
        if isinstance(a, Class):
            self._make(a.ref, positional, keywords, rest)
            return 0
        if isinstance(a, External):
            return self._of_library(n, o, a, positional, keywords, rest)
        if isinstance(a, Result):
            return self._of_result(n, o, a, call, positional, keywords, rest)
        if isinstance(a, Member) and isinstance(a.base, Result):
            return self._of_method(
                n, o, self.ev.knowledge.outside(f"{a.base.name}.{a.name}"), a.name, positional, keywords, rest
            )
        if isinstance(a, Member) and isinstance(a.base, Object):
            return self._of_container(a, positional, keywords, rest, o)
        method = self.operations[o.function]
        if isinstance(method, s.Attribute):
            return self._of_method(n, o, "", method.name, positional, keywords, rest) | BIT[SPREAD]
        return BIT[SPREAD]

    def _receiver(self, o: s.Call) -> Mask:
        method = self.operations[o.function]
        return self.masks[method.base] if isinstance(method, s.Attribute) else 0

    def _argument_masks(
        self, f: Function, positional: Iterable[Mask], keywords: Mapping[str, Mask], rest: Mask, receiver: Mask
    ) -> list[Mask]:
        given = [receiver, *positional] if f.receiver is not None else list(positional)
        return self.c.argument_masks(f.ref, given, keywords, rest)

    def _given(
        self, f: Function, positional: Iterable[Mask], keywords: Mapping[str, Mask], rest: Mask, receiver: Mask = 0
    ) -> Mask:
        """What a call of a project's function gives, by its relation; the arguments become facts of its entry."""
        masks = self._argument_masks(f, positional, keywords, rest, receiver)
        formals = self.ev.project.function(f.ref).formals
        own = self.ev.structure.receiver(f.ref)
        for formal, mask in zip(formals, masks, strict=True):
            # Which object a method runs on is decided where it is called; in the method it is the one it is.
            if formal.name == own:
                mask = spread(mask)
            if mask or self.c.makes_objects(f.ref):
                self._write(("entry", f.ref, formal.name), mask, kept=True)
        relation = self.c.read(("result", f.ref))
        return composed(relation, lambda k: masks[k] if k < len(masks) else 0)

    def _keep_parts(
        self,
        n: int,
        f: Function,
        call: Call,
        positional: list[Mask],
        keywords: dict[str, Mask],
        rest: Mask,
        o: s.Call,
    ) -> None:
        length = _length(self.values[n])
        if length is None:
            return
        masks = self._argument_masks(f, positional, keywords, rest, self._receiver(o))
        found = [
            composed(self.c.read(("result", f.ref, k)), lambda j: masks[j] if j < len(masks) else 0)
            for k in range(length)
        ]
        before = self.parts.get(n)
        self.parts[n] = tuple(found) if before is None else tuple(map(operator.or_, before, found))

    def _make(self, cls: FunctionRef, positional: list[Mask], keywords: dict[str, Mask], rest: Mask) -> None:
        maker = self.ev.method(cls, "__init__")
        if maker is not None:
            self._given(Function(maker, Class(cls)), positional, keywords, rest)
            return
        names: dict[str, FunctionRef] = {}
        for each in reversed(self.ev.lineage(cls)):
            names.update(dict.fromkeys(self.ev.structure.declared(each), each))
        for position, (name, owner) in enumerate(names.items()):
            mask = positional[position] if position < len(positional) else keywords.get(name, rest)
            self._write(("entry", owner, name), mask, kept=True)

    def _of_library(
        self, n: int, o: s.Call, a: External, positional: list[Mask], keywords: dict[str, Mask], rest: Mask
    ) -> Mask:
        known, row = self.ev.knowledge.get(a.name), self.ev.row(a.name)
        given = union(positional) | union(keywords.values()) | rest
        found = self._of_known(known, o, given) if known is not None else None
        if known is not None and known.reads and o.arguments:
            path = only(self.ev.resolved(self.values[o.arguments[0].value]))
            if isinstance(path, Constant) and str(path.value).startswith(self.ev.rows.host_paths):
                return BIT["machine"]
        if found is None and row is not None:
            found = self._by_row(n, o, a, row, positional, given)
        if found is not None:
            # What takes one element of several by chance decides which one it is.
            return found | decides(found) & _TO_CHOICE if row is not None and row.element is not None else found
        if known is not None and known.kind in ("decorator", "identity", "currying"):
            return given
        if self.ev.rows.is_host(a.name):
            return data(given)
        return data(given) | spread(given) if self.ev.rows.is_pure(a.name) else self._loose(given)

    def _of_known(self, known: Known, o: s.Call, given: Mask) -> Mask | None:
        """What a call gives by what is known of its meaning: agreement, sources, arrays over all devices."""
        if known.agreement:
            return 0
        if known.callback is not None and known.source is not None:
            self._registers(known, o)
            return 0
        source = self.c.source(known, len(o.arguments))
        if source:
            return source
        if known.gives_global:
            return BIT[SPREAD] | BIT[GLOBAL]  # one value, of which each process holds a part
        return self._applied(known, o, given) if known.kind == "apply" and known.function else None

    def _by_row(self, n: int, o: s.Call, a: External, row: Row, positional: list[Mask], given: Mask) -> Mask | None:
        """What a call gives by its transfer row."""
        if row.size is not None:
            if row.size == "content":
                return size_as_content(given | self._contained(o))
            # Where it ends decides how many elements it has; where it begins decides what they are as well.
            return content_as_size(given) | (data(positional[0]) if len(positional) > 1 else 0)
        if not row.content:
            return 0
        if row.same is not None:
            passed = positional[row.same] if row.same < len(positional) else given
            return passed & ~_TO_SPREAD if self.ev.rows.is_host(a.name) else passed
        if row.turns:
            return turned(given | self._contained(o), row.turns) | spread(given)
        if row.makes is not None:
            self._put(n, given)
            self._hold_made(n, [a.value for k, a in enumerate(o.arguments) if k in row.elements])
            return given
        if row.role in ("enumerate", "zip") and positional and len(positional) == len(o.arguments):
            elements = tuple([self._iterated(a.value) & ~(_TO_SIZE | _TO_PRESENCE) for a in o.arguments])
            self.element_parts[n] = (0, elements[0]) if row.role == "enumerate" else elements
        handler = _ROLES.get(row.role or "")
        if handler is not None:
            return handler(self, o, positional, given)
        if row.default is not None and row.default < len(positional):
            given |= decides(size_as_content(self._iterated(o.arguments[row.element or 0].value)))
        return given if row.elements or row.element is not None else data(given) | spread(given)

    def _from_environment(self, o: s.Call, positional: list[Mask], given: Mask) -> Mask:
        return self._environment(self.values[o.arguments[0].value]) if o.arguments else 0

    def _from_getattr(self, o: s.Call, positional: list[Mask], given: Mask) -> Mask:
        if len(positional) < 2:
            return data(given)
        return positional[0] | decides(positional[1]) | union(positional[2:]) | self._named(o)

    def _from_field(self, o: s.Call, positional: list[Mask], given: Mask) -> Mask:
        """The default of a record's field, or what makes it."""
        found = given
        for argument in o.arguments:
            for f in self.ev.callees(self.values[argument.value]):
                if isinstance(f, Function):
                    found |= data(self.c.concrete(f.ref, self.c.read(("result", f.ref))))
        return found

    def _from_replace(self, o: s.Call, positional: list[Mask], given: Mask) -> Mask:
        """A copy of a record with other fields, which is decided by what decides whether it is made."""
        around = self._around(self.function.block_of[o.function])
        for a in self.ev.resolved(self.values[o.arguments[0].value]) if positional else ():
            if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                for each in o.arguments:
                    if each.keyword is not None:
                        self._write(("field", a.kind, each.keyword), self.masks[each.value] | around)
        return positional[0] if positional else 0

    def _from_type(self, o: s.Call, positional: list[Mask], given: Mask) -> Mask:
        """Of what type a value is: which of its alternatives it is counts, not what it contains."""
        if not positional:
            return 0
        return choice_as_content(positional[0]) | presence_as_content(positional[0])

    def _from_hash(self, o: s.Call, positional: list[Mask], given: Mask) -> Mask:
        is_text = any(isinstance(self._constant(each.value), str) for each in o.arguments)
        return data(given) | (BIT["hash"] if is_text else 0)

    def _from_text(self, o: s.Call, positional: list[Mask], given: Mask) -> Mask:
        return as_text(given)

    def _unchanged(self, o: s.Call, positional: list[Mask], given: Mask) -> Mask:
        return given

    def _contained(self, o: s.Call) -> Mask:
        """What is known of the containers that a call is passed."""
        found = 0
        for argument in o.arguments:
            found |= self._iterated(argument.value)
        return found

    def _named(self, o: s.Call) -> Mask:
        """The facts of the field that ``getattr`` reads."""
        name = self._constant(o.arguments[1].value)
        found = 0
        for a in self.ev.resolved(self.values[o.arguments[0].value]) if isinstance(name, str) else ():
            if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                found |= self._field(a, str(name))
        return found

    @staticmethod
    def _loose(given: Mask) -> Mask:
        """What goes through a function of which nothing is known: no cause does."""
        return spread(given)

    def _applied(self, known: Known, o: s.Call, given: Mask) -> Mask:
        """A function that the library calls, on elements of its arguments or on nothing that is known."""
        found = 0
        for argument in o.arguments:
            for f in self.ev.callees(self.values[argument.value]):
                if isinstance(f, Function):
                    formals = self.ev.project.function(f.ref).formals
                    found |= self._given(f, [given] * len(formals), {}, 0)
        return data(found) | spread(found) | self._loose(given)

    def _registers(self, known: Known, o: s.Call) -> None:
        """A function that runs at a time of its own: what it stores is decided by that."""
        bit = BIT[known.source or "callback"]
        for argument in o.arguments:
            for f in self.ev.callees(self.values[argument.value]):
                if isinstance(f, Function):
                    self.c.cells.write(
                        ("registered", f.ref), bit | bit << _FACET | bit << 2 * _FACET | bit << 3 * _FACET
                    )

    def _of_result(
        self, n: int, o: s.Call, a: Result, call: Call, positional: list[Mask], keywords: dict[str, Mask], rest: Mask
    ) -> Mask:
        known = self.ev.knowledge.get(a.name)
        given = union(positional) | union(keywords.values()) | rest
        if known is not None and known.kind == "currying" and a.arguments.positional:
            held = data(self.masks[o.function])
            found = 0
            before = len(a.arguments.positional) - 1
            for f in self.ev.callees(a.arguments.positional[0]):
                if isinstance(f, Function):
                    found |= self._given(
                        f,
                        [held] * before + positional,
                        {**dict.fromkeys([k for k, _ in a.arguments.keywords], held), **keywords},
                        rest,
                    )
                elif isinstance(f, External):
                    found |= self._of_library(n, o, f, positional, keywords, rest) | held
            return found
        if known is not None and known.kind in ("decorator", "identity"):
            return given
        if known is not None and known.kind in ("map", "jit", "transform"):
            found = 0
            for f in self.ev.callees(self.ev.wrapped(a)):
                if isinstance(f, Function):
                    found |= self._given(f, positional, keywords, rest, self._receiver(o))
            if known.kind == "transform" or (known.kind == "jit" and self._is_here(given)):
                return data(found) | spread(found)
            return spread(given)
        return self._loose(given)

    def _is_here(self, mask: Mask) -> bool:
        """Whether values are certainly in this process's memory, or on its devices."""
        return not self.c.concrete(self.ref, mask) & (BIT[SPREAD] | BIT[GLOBAL])

    def _of_method(
        self, n: int, o: s.Call, name: str, bare: str, positional: list[Mask], keywords: dict[str, Mask], rest: Mask
    ) -> Mask:
        """A method of a library's object, or of one that nobody knows."""
        known = self.ev.knowledge.get(name) if name else None
        if known is not None:
            if known.agreement:
                return 0
            found = self.c.source(known, len(o.arguments))
            if found:
                return found
        bare_known = self.ev.knowledge.methods.get(bare)
        if bare_known is not None and bare_known.source is not None and self._is_imported(bare_known.needs):
            if bare_known.callback is not None:
                self._registers(bare_known, o)
                return 0
            return BIT[bare_known.source]
        receiver = self._receiver(o)
        given = union(positional) | union(keywords.values()) | rest
        if bare == "format":
            return as_text(receiver | given)
        return data(receiver) | spread(receiver) | (self._loose(given) if name else 0)

    def _is_imported(self, packages: tuple[str, ...]) -> bool:
        return not packages or bool(self.c.imports(self.ref) & set(packages))

    def _of_container(
        self, a: Member, positional: list[Mask], keywords: dict[str, Mask], rest: Mask, o: s.Call
    ) -> Mask:
        row = self.ev.rows.methods.get(a.name)
        base = a.base
        assert isinstance(base, Object)
        given = union(positional) | union(keywords.values()) | rest
        if row is not None and (row.stores is not None or row.stores_all is not None or row.role == "update"):
            around = self._around(self.function.block_of[o.function])
            self._put_any(base, given & ~_TO_SIZE | sized(around))
            if row.stores is not None and row.stores < len(o.arguments):
                self._hold(base, o.arguments[row.stores].value, o.function)
            elif row.stores is None and o.arguments:
                self._hold_all(base, o.arguments[0].value, around)
            return 0
        found = self._receiver(o)
        if row is not None and row.role == "get" and positional:
            found |= self._element(base, self.values[o.arguments[0].value])
            return found | decides(positional[0]) | union(positional[1:])
        return found | self.c.inside(self.ref, base)


def _length(value: Value) -> int | None:
    """The number of elements, if a value is certainly a tuple of one length."""
    lengths = {len(a.elements) if isinstance(a, Sequence) and a.rest is None else None for a in value - UNKNOWN}
    return lengths.pop() if len(lengths) == 1 else None


_HANDLERS: Mapping[type, Callable[[_Visit, int, Any], Mask]] = {
    s.Load: _Visit.load, s.Import: _Visit.import_, s.Parameter: _Visit.parameter, s.Store: _Visit.store,
    s.Attribute: _Visit.attribute,
    s.Subscript: _Visit.subscript, s.Slice: _Visit.slice, s.Unary: _Visit.unary, s.Binary: _Visit.binary,
    s.Compare: _Visit.compare, s.BoolOp: _Visit.boolop, s.IfExp: _Visit.ifexp, s.Display: _Visit.display,
    s.DictDisplay: _Visit.dictionary, s.Collected: _Visit.collected, s.FString: _Visit.fstring, s.Next: _Visit.next,
    s.Item: _Visit.item, s.Enter: _Visit.same, s.Await: _Visit.same, s.Captured: _Visit.same, s.Caught: _Visit.caught,
    s.Matches: _Visit.matches, s.Yield: _Visit.yielded, s.Return: _Visit.returned,
    s.StoreAttribute: _Visit.store_attribute, s.StoreSubscript: _Visit.store_subscript, s.Call: _Visit.call,
    s.Raise: _Visit.raise_,
}  # fmt: skip
_ROLES: Mapping[str, Callable[[_Visit, s.Call, list[Mask], Mask], Mask]] = {
    "environment": _Visit._from_environment, "getattr": _Visit._from_getattr, "hash": _Visit._from_hash,
    "isinstance": _Visit._from_type, "hasattr": _Visit._from_type, "type": _Visit._from_type,
    "replace": _Visit._from_replace, "field": _Visit._from_field,
    "text": _Visit._from_text, "property": _Visit._unchanged, "static": _Visit._unchanged,
    "class": _Visit._unchanged, "wraps": _Visit._unchanged, "manager": _Visit._unchanged,
}  # fmt: skip
