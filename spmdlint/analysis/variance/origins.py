"""Follows a value back to what gave it a property: through names, fields, calls and the arguments of callers.

One walk serves every property that flows with data. A property says where it begins, what ends it, and what carries it
(see :class:`Property`); the walk knows Python. Reasons are parent pointers, shortest first found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, overload

from spmdlint.analysis.callgraph.calls import PASSING, Calls
from spmdlint.analysis.callgraph.reach import CallEdge, Reach
from spmdlint.analysis.evaluation.elements import changed_fields, fields, returns
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    ModuleValue,
    Site,
    Value,
    text,
    truth,
)
from spmdlint.analysis.variance import outside
from spmdlint.analysis.variance.arguments import argument_for, arguments_for, in_rest, kind_of, passed_on, rest
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.defaults import (
    Options,
    default_values,
    factories,
    parameters_asked,
    passes_value,
    stored_where_missing,
    where_given,
)
from spmdlint.analysis.variance.outside import OutsideStores, overridden, receiver
from spmdlint.analysis.variance.reason import Crossing, field_stores, surest
from spmdlint.analysis.variance.reason import Reason as Reason
from spmdlint.analysis.variance.verified import Verified
from spmdlint.analysis.variance.walk import Known, Walk
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.testfiles import is_test
from spmdlint.program.uniform import Uniform

CONTINUE: Literal["continue"] = "continue"
Answer: TypeAlias = Reason | Literal["continue"] | None
"""Of one operation: why it has a property, None if it has not, or CONTINUE to look further back."""
_BY_NAME = frozenset(("getattr",))
CARRIES = (s.Store, s.Load, s.Parameter, s.Attribute, s.Import, s.IfExp, s.BoolOp, s.Enter)
"""The operations that hand on a value as it is, for properties that computing ends."""


class Property(ABC):
    """A property of values that flows with data."""

    one_kind = False
    """Whether it matters only that there is a reason, whichever kind: the first stands for all, realizable or not."""

    @abstractmethod
    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        """The answer of one operation."""

    def beyond(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Reason | None:
        """The answer of one operation if the walk has found nothing further back."""
        return None

    def given_by(self, function: External, site: Site) -> Reason | None:
        """Why what a library's function returns has the property, if something else calls it, without arguments."""
        return None

    def stored(self, origins: Origins, ref: FunctionRef, number: int) -> Reason | None:
        """Why what an operation stores for other functions has the property because of where the store is made."""
        return None

    def chosen(
        self, origins: Origins, frame: Frame, name: str, places: Sequence[tuple[int, int | None]], use: int | None
    ) -> Reason | None:
        """Why a branch gives a value the property by choosing between stores (or returns) and their values.

        ``name`` is what is chosen, in words; ``use`` is the block where it is read, None for after the function.
        """
        return None

    def left(self, origins: Origins, frame: Frame, name: str, store: int, use: int | None) -> Reason | None:
        """Why a value has the property because the loop around its only store is left in a different iteration."""
        return None


class OtherFacets(Protocol):
    """The facets by which properties ask about other values, once all of them are made."""

    content: Origins
    length: Origins
    lengths: Origins
    inside: Origins
    made: Origins
    presence: Origins
    emptiness: Origins
    own_device: Origins

    def of_loop(self, frame: Frame, iterable: int) -> Reason | None:
        """Why a loop over a value makes a different number of iterations on each process."""


_BY_CHANCE = ("files",)
"""What may be the same on all processes after all: a branch that chooses by process is the better reason."""
MAX_MADE = 16
"""The most places that make objects of one class; beyond that, an argument of one says nothing of the others."""
MAX_MORE = 4
"""Once a caller has given a reason, the most arguments of further callers that are asked for one of another kind."""


class Origins:
    """The walk, for one property. One per run and property."""

    def __init__(
        self,
        evaluator: Evaluator,
        calls: Calls,
        reach: Reach,
        what: Property,
        walk: Walk | None = None,
        programs: Mapping[Path, Collection[Path]] | None = None,
    ) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach
        self.property = what
        self._entries: dict[FunctionRef, list[CallEdge]] = {}
        self._known = Known()
        self._walk = walk or Walk()
        self._programs = programs or {}
        self._uniform = Uniform(evaluator.project)
        self._outside = evaluator.once(OutsideStores)
        self._options = evaluator.once(Options)
        self._conditions = evaluator.once(Conditions)
        self._verified = evaluator.once(Verified)

    def why(self, frame: Frame, number: int) -> Reason | None:
        """Why a value has the property; None if it does not, as far as is known.

        What one script stores in a field is no reason for what another one reads: no run comes to both.
        """
        found = self._walked(frame, number)
        if found is None or self._walk.is_open:
            return found
        in_one = (each for each in found.each() if self._in_one_program(frame, each))
        return surest(each for each in in_one if self.property.one_kind or self._is_realizable(each))

    def _in_one_program(self, frame: Frame, reason: Reason) -> bool:
        files = {frame.ref.path, *(site.ref.path for site, _ in field_stores(self.ev, reason))}
        return all(files.issubset(self._programs.get(path, files)) for path in files)

    def _is_realizable(self, reason: Reason) -> bool:
        """Whether what a call passes to a function comes back to that call, as in a run (Reps, POPL 1995).

        Where it comes back to another call, that one may well pass something with the property, too.
        """
        passed: dict[FunctionRef, tuple[Site, str]] = {}
        for step in reason.chain():
            way, function, name = step.crosses or ("", step.site.ref, "")
            if way == "keeps":
                passed.clear()
            elif way == "enters":
                passed[function] = step.site, name
            elif way == "leaves" and function in passed:
                entered, name = passed.pop(function)
                caller = self.ev.free_frame(step.site.ref)
                call = caller.code.operations[step.site.number]
                given = self._arguments(self.ev.free_frame(function), name, call, caller)
                if entered != step.site and not any(self._walked(*each) for each in given):
                    return False
        return True

    def _walked(self, frame: Frame, number: int) -> Reason | None:
        return self._walk.find(self._known, (frame, number), lambda: self._step(frame, number))

    @property
    def cut(self) -> bool:
        """Whether the last question was cut short, and therefore has no answer."""
        return self._walk.cut

    def _step(self, frame: Frame, number: int) -> Reason | None:
        if number in self._uniform.values(frame.ref):
            return None
        operation = self._read(frame, number)
        answer = self.property.step(self, frame, number, operation)
        if answer != CONTINUE:
            return answer
        found = self._further(frame, number, operation)
        return found if found is not None else self.property.beyond(self, frame, number, operation)

    def _read(self, frame: Frame, number: int) -> s.Operation:
        """An operation; for ``getattr(value, "name")``, also with a default, the read of the attribute that it is."""
        named = frame.code.calls_named(_BY_NAME).get(number)
        given = [argument.value for argument in named.arguments] if named is not None else []
        name = text(self.ev.value(frame, given[1])) if len(given) > 1 else None
        return s.Attribute(given[0], name) if name is not None else frame.code.operations[number]

    def callees(self, frame: Frame, call: s.Call) -> Sequence[Value]:
        """The values that a call may call, in order."""
        return self.reach.constructed.callees(frame, call.function)

    def in_generator(
        self, frame: Frame, number: int, call: s.Call, callee: FunctionValue, ask: Callable[[Frame], Reason | None]
    ) -> Reason | None:
        """The answer of ``ask`` about the body of a generator of the project, as entered by a call."""
        is_generator = self.ev.project.function(callee.ref).generator
        return self.in_call(frame, number, call, callee, ask) if is_generator else None

    def in_call(
        self, frame: Frame, number: int, call: s.Call, callee: FunctionValue, ask: Callable[[Frame], Reason | None]
    ) -> Reason | None:
        """The answer of ``ask`` about the body of a function of the project, as entered by a call."""
        inner = self.ev.entered_frame(callee, self.ev.arguments(frame, call), frame.depth + 1)
        if inner is None:
            return None
        with self._walk.inside(self._walk.made(inner, frame, number)):
            return ask(inner)

    def within(self, entered: Frame, caller: Frame, call: int, ask: Callable[[], Reason | None]) -> Reason | None:
        """The answer of ``ask`` about values in a function, as entered by a call."""
        with self._walk.inside(self._walk.made(entered, caller, call)):
            return ask()

    def all_of(self, reasons: Iterable[Reason | None]) -> Reason | None:
        """All reasons as one; the first, if the property has reasons of one kind."""
        return next(filter(None, reasons), None) if self.property.one_kind else surest(reasons)

    def any_of(self, frame: Frame, numbers: Iterable[int]) -> Reason | None:
        """Why any of several values of one function has the property."""
        return self.all_of(self.why(frame, number) for number in numbers)

    @staticmethod
    @overload
    def step(frame: Frame, number: int, text: str, before: Reason, crosses: Crossing | None = None) -> Reason: ...
    @staticmethod
    @overload
    def step(
        frame: Frame, number: int, text: str, before: Reason | None, crosses: Crossing | None = None
    ) -> Reason | None: ...
    @staticmethod
    def step(
        frame: Frame, number: int, text: str, before: Reason | None, crosses: Crossing | None = None
    ) -> Reason | None:
        """A reason with one more step in front, if there is one."""
        return before.then(Site(frame.ref, number), text, None, crosses) if before is not None else None

    # -- data flow in Python

    def _further(self, frame: Frame, number: int, operation: s.Operation) -> Reason | None:
        if isinstance(operation, s.Load):
            return self._load(frame, number, operation)
        if isinstance(operation, s.Store):
            return self.why(frame, operation.value)
        if isinstance(operation, (s.IfExp, s.BoolOp)):
            return self.any_of(frame, self._left_of(frame, operation))
        if isinstance(operation, s.Await):
            return self.why(frame, operation.value)
        if isinstance(operation, s.Enter):
            return self._entered(frame, number, operation)
        if isinstance(operation, s.Attribute):
            return self._attribute(frame, number, operation)
        if isinstance(operation, s.Call):
            return self.through_call(frame, number, operation)
        if isinstance(operation, s.Parameter):
            return self._parameter(frame, number, operation)
        if isinstance(operation, s.Import):
            target = self.import_target(frame, operation)
            return self.any_of(*target) if target is not None else None
        return None

    def _entered(self, frame: Frame, number: int, operation: s.Enter) -> Reason | None:
        """Why what a `with` binds has the property: a context manager yields or returns it, or is it itself."""
        block = self.ev.managed(frame, operation)
        if block is not None:
            given = [o.value for _, o in block.code.of_kind(s.Yield) if o.value is not None]
            with self._walk.inside(self._walk.made(block, frame, frame.code.root_of(operation.manager))):
                found = self.any_of(block, given)
            return self.step(frame, number, f"{block.code.function.name}() yields it", found)
        if any(isinstance(value, Instance) for value in self.ev.value(frame, operation.manager)):
            return self.of_special(frame, number, operation.manager, "__enter__")
        return self.why(frame, operation.manager)

    def _left_of(self, frame: Frame, operation: s.IfExp | s.BoolOp) -> tuple[int, ...]:
        """The operands that a choice may return, given the arguments of the call that is being followed."""
        operands = taken(self.ev, frame, operation)
        asked = operation.test if isinstance(operation, s.IfExp) else operation.operands[0]
        for name in parameters_asked(frame, asked) if len(operands) > 1 else ():
            left = where_given(frame, operation, name) if self._is_passed(frame, name) else None
            if left is not None:
                return left
        return operands

    def _is_passed(self, frame: Frame, name: str) -> bool:
        """Whether the call that is being followed passes a value for a parameter."""
        context = self._walk.asks(frame)
        if context is None:
            return False
        given = self._argument(frame, name, context.caller.code.operations[context.number], context.caller)
        return given is not None and passes_value(self.ev, *given)

    def _load(self, frame: Frame, number: int, operation: s.Load) -> Reason | None:
        function = frame.code.function
        scope = frame.code.scope_of(operation.name)
        if scope is function:
            reaching = sorted(self.ev.reaching(frame, number, operation.name))
            agreed = self._verified.stores(frame, number, operation.name)
            stores = [n for n in reaching if n not in agreed and not self._conditions.is_for_one(frame, n)]
            if len(stores) > 1 and self._is_passed(frame, operation.name):
                stores = [n for n in stores if not stored_where_missing(self.ev, frame, n, operation.name)]
            found = self.any_of(frame, stores)
            if found is None or found.kind in _BY_CHANCE:
                found = self.all_of((self._chosen(frame, operation.name, stores, function.block_of[number]), found))
            elsewhere = outside.of_function(self.ev, frame, operation.name)
            return found or self._set_elsewhere(frame, number, operation.name, elsewhere)
        if scope is not None:
            outer = frame.outer
            while outer is not None and self.ev.function(outer) is not scope:
                outer = outer.outer
            if outer is None:
                return None
            return self.any_of(outer, scope.stores.get(operation.name, ()))
        return self._global(operation.name, number, frame)

    def _chosen(self, frame: Frame, name: str, stores: Sequence[int], use: int | None) -> Reason | None:
        """The branch that decides which of several stores is the last before a use."""
        if len(stores) < 2:
            return self.property.left(self, frame, repr(name), stores[0], use) if stores else None
        if all(self._uniform.stored(frame.ref, store) for store in stores):
            return None
        operations = self.ev.function(frame).operations
        places = []
        for store in stores:
            operation = operations[store]
            if not isinstance(operation, s.Store):
                return None
            places.append((store, operation.value))
        return self.property.chosen(self, frame, repr(name), places, use)

    def _set_elsewhere(self, frame: Frame, number: int, name: str, stores: Iterable[outside.Store]) -> Reason | None:
        """Why a name has the property because of stores in other functions."""
        found = self.all_of(
            self.property.stored(self, ref, store) or self.why(self.ev.free_frame(ref), store)
            for ref, store in stores
            if not self._uniform.stored(ref, store)
        )
        return self.step(frame, number, f"{name!r} is set by another function", found)

    def _global(self, name: str, number: int, frame: Frame) -> Reason | None:
        module = self.ev.project.modules[frame.ref.path]
        stores: Sequence[int] = module.top.stores.get(name, ())
        if not stores:
            return None
        top = self.ev.free_frame(FunctionRef(module.path, 0))
        # The module itself reads the value stored last; a function of it may run at any time.
        before = sorted(self.ev.reaching(top, number, name)) if frame.ref == top.ref else []
        use = module.top.block_of[number] if before else None
        found = self.any_of(top, before or stores) or self._chosen(top, name, before or stores, use)
        found = self.step(frame, number, f"{name!r} is set at module level", found)
        return found or self._set_elsewhere(frame, number, name, outside.of_module(self.ev, module.path, name))

    def import_target(self, frame: Frame, operation: s.Import) -> tuple[Frame, tuple[int, ...]] | None:
        """The module-level stores in the project that an imported name refers to."""
        module = self.ev.project.modules[frame.ref.path]
        if operation.name is None:
            return None
        dotted = self.ev.project.absolute(module, operation.module, operation.level)
        path = self.ev.project.find_module(dotted, module)
        if path is None or path == module.path:
            return None
        stores = self.ev.project.modules[path].top.stores.get(operation.name, ())
        return self.ev.free_frame(FunctionRef(path, 0)), tuple(stores)

    def _attribute(self, frame: Frame, number: int, operation: s.Attribute) -> Reason | None:
        found = self.all_of(self._of_field(frame, number, operation))
        return found or self.set_beside(frame, operation) or self._of_option(frame, operation)

    def _of_field(self, frame: Frame, number: int, operation: s.Attribute) -> Iterator[Reason | None]:
        """The reasons of what may be stored in a field."""
        bases = self.ev.objects.by_name.owners(frame, operation.base, operation.name)
        for base in ordered(bases):
            if isinstance(base, ModuleValue):
                top = self.ev.free_frame(FunctionRef(base.path, 0))
                found = self.any_of(top, top.code.function.stores.get(operation.name, ()))
                yield self.step(frame, number, f"{operation.name!r} is set at module level", found)
            if not isinstance(base, Instance) or self._is_traced(frame, operation.base, base):
                continue
            yield from self._of_instance(frame, number, operation.name, base)
        for where, value in fields(self.ev, frame, operation.base, operation.name):
            yield self.step(frame, number, f"it is the field {operation.name!r}", self.why(where, value))
        for where, value in changed_fields(self.ev, frame, operation.base, operation.name):
            text = f"a copy with a different {operation.name!r} is made"
            yield self.step(where, value, text, self.why(where, value))

    def _of_option(self, frame: Frame, operation: s.Attribute) -> Reason | None:
        """Why the default of a command-line option has the property, for runs that do not give the option."""
        default = self._options.default(frame, operation)
        if default is None:
            return None
        return self.step(*default, f"it is the default of the option {operation.name!r}", self.why(*default))

    def _is_traced(self, frame: Frame, number: int, base: Instance) -> bool:
        """Whether it is a record passed to traced code: its fields come from the call, not from what the host made.

        So it is in a method of the record that only such code calls.
        """
        if self.ev.objects.field_names(base.cls) is None or not self.reach.only_traced(frame.ref):
            return False
        root = frame.code.operations[frame.code.root_of(number)]
        if not isinstance(root, s.Parameter) or not self._is_receiver(frame, root):
            return isinstance(root, s.Parameter)
        calls = self.reach.callers.get(frame.ref, ())
        return bool(calls) and all(self._passes_traced(edge.caller, edge.number) for edge in calls)

    def _passes_traced(self, caller: Frame, number: int) -> bool:
        """Whether a call in traced code is of a method of what that code was passed."""
        call = caller.code.operations[number]
        method = caller.code.operations[call.function] if isinstance(call, s.Call) else None
        base = caller.code.root_of(method.base) if isinstance(method, s.Attribute) else number
        root = caller.code.operations[base]
        return (
            isinstance(root, s.Parameter) and self.reach.only_traced(caller.ref) and not self._is_receiver(caller, root)
        )

    def _is_receiver(self, frame: Frame, parameter: s.Parameter) -> bool:
        receiver = frame.code.function.formals[:1] if self.ev.project.enclosing_class(frame.ref) is not None else ()
        return parameter.name in {formal.name for formal in receiver}

    def set_beside(self, frame: Frame, operation: s.Attribute) -> Reason | None:
        """Why a field has the property of an object of which nothing is known but that the program sets its fields.

        It has a name there, or is a part of this method's object, and the methods of that object set it.
        """
        stores = (*self._outside.of_name(frame, operation), *self._outside.of_part(frame, operation))
        places = ((self.ev.free_frame(ref), store) for ref, store in stores if not self._uniform.stored(ref, store))
        return self.all_of(self._stored(*place, f"{operation.name!r} is set here") for place in places)

    def _stored(self, frame: Frame, store: int, text: str) -> Reason | None:
        """Why what is stored in a field has the property, or because of where it is stored."""
        stored = frame.code.operations[store]
        assert isinstance(stored, s.StoreAttribute)
        found = self.property.stored(self, frame.ref, store) or self.why(frame, stored.value)
        return self.step(frame, store, text, found, ("keeps", frame.ref, ""))

    def _of_instance(self, frame: Frame, number: int, name: str, base: Instance) -> Iterator[Reason | None]:
        caller = receiver(self.ev, frame)
        for cls in self.ev.objects.lineage(base.cls):
            for method, store in self._stores(cls, name, base.cls, caller):
                if not self._uniform.stored(method, store):
                    yield self._stored(self.frame_of(method), store, f"it is stored in {name!r}")
            for method, copy, value in self.ev.objects.copied_fields(cls.ref, name):
                where = self.frame_of(method)
                found = self.property.stored(self, method, copy) or self.why(where, value)
                yield self.step(where, copy, f"a copy with a different {name!r} is made", found)
            found = self.any_of(self.ev.free_frame(cls.ref), default_values(self.ev, cls.ref, name))
            yield self.step(frame, number, f"{name!r} is set in the class body", found)
            yield self._of_factories(cls.ref, name)
            # What is made as one of a base class is no object of this one.
            for where, call, value in self._made_with(cls, name) if cls == base.cls else ():
                found = self.why(where, value)
                if found is not None:
                    yield found.then(call, f"an object with this {name!r} is made here")
            getter = self.ev.project.methods(cls.ref).get(name)
            made_by = self.ev.decorators(getter, self.ev.free_frame(cls.ref)) if getter is not None else ()
            if getter is not None and any(each.endswith("property") for each in made_by):
                found = self.of_returns(self.ev.free_frame(getter))
                yield self.step(frame, number, f"the property {name!r} returns it", found)

    def _made_with(self, cls: ClassValue, name: str) -> Iterator[tuple[Frame, Site, int]]:
        """What the calls that make objects of a class pass for a field, and what their callers pass on to them."""
        for where, call, value in self.reach.constructed.given(cls, name):
            yield where, Site(where.ref, call), value
        for where, call in self.reach.constructed.spreading(cls):
            for caller, value in self.in_rest(where, "**", name):
                yield caller, Site(where.ref, call), value

    def _of_factories(self, cls: FunctionRef, name: str) -> Reason | None:
        """Why what makes the default of a field gives it the property."""
        for place, factory in factories(self.ev, cls, name):
            site = Site(cls, place)
            if isinstance(factory, External):
                found = self.property.given_by(factory, site)
            else:
                found = self.of_returns(factory)
            if found is not None:
                return found.then(site, f"this makes the default of {name!r}")
        return None

    def _stores(
        self, cls: ClassValue, name: str, base: ClassValue, caller: ClassValue | None
    ) -> Iterator[tuple[FunctionRef, int]]:
        """The stores to a field: by methods of the object's class, or elsewhere; not by methods that are overridden."""
        if self._outside.renewed(cls, name):
            return
        for method, store in self.ev.objects.attribute_stores(cls.ref).get(name, ()):
            if not overridden(self.ev, base, method):
                yield method, store
        for method, store in self._outside.stores(cls, name):
            if caller is None or not overridden(self.ev, caller, method):
                yield method, store

    def through_call(self, frame: Frame, number: int, operation: s.Call) -> Reason | None:
        """Why a call of the project's own function has the property: by what it returns, perhaps of its arguments."""
        return self.all_of(self._through_call(frame, number, operation))

    def _through_call(self, frame: Frame, number: int, operation: s.Call) -> Iterator[Reason | None]:
        arguments = self.ev.arguments(frame, operation)
        for value in self.callees(frame, operation):
            callee = self.ev.objects.called(value)
            if not isinstance(callee, (FunctionValue, Applied)):
                continue
            for target in self.calls.targets(callee, arguments, frame.depth + 1):
                if target.way in ("jit", "map"):
                    continue
                direct = isinstance(callee, FunctionValue)
                with self._walk.inside(self._walk.made(target.frame, frame, number) if direct else None):
                    found = self.of_returns(target.frame)
                text = f"{self.ev.function(target.frame).name}() returns it"
                yield self.step(frame, number, text, found, ("leaves", target.frame.ref, ""))

    def of_returns(self, frame: Frame) -> Reason | None:
        """Why the return value of a function has the property."""
        if self._uniform.returned(frame.ref):
            return None
        return self._walk.find(self._known, (frame, "returns"), lambda: self._of_returns(frame))

    def of_special(self, frame: Frame, number: int, given: int, *names: str) -> Reason | None:
        """Why what Python gets from a special method of an object of the project varies: the first that it has."""
        for value in ordered(self.ev.value(frame, given)):
            if not isinstance(value, Instance):
                continue
            for name in names:
                methods = [m for m in self.ev.objects.attribute(value, name) if isinstance(m, FunctionValue)]
                for method in methods:
                    found = self.of_returns(self.ev.free_frame(method.ref))
                    if found is not None:
                        return self.step(frame, number, f"its {name}() returns it", found)
                if methods:
                    break
        return None

    def frame_of(self, ref: FunctionRef) -> Frame:
        """The frame of a function as entered by the call that is followed, or its frame without a known call."""
        return self._walk.frame_of(ref) or self.ev.free_frame(ref)

    def _of_returns(self, frame: Frame) -> Reason | None:
        function = self.ev.function(frame)
        places = [(n, value) for n, value in returns(self.ev, frame) if not self._conditions.is_for_one(frame, n)]
        found = self.any_of(frame, [value for _, value in places if value is not None])
        if len(places) < 2 or function.generator or (found is not None and found.kind not in _BY_CHANCE):
            return found
        return self.all_of((self.property.chosen(self, frame, f"the result of {function.name}()", places, None), found))

    def _parameter(self, frame: Frame, number: int, operation: s.Parameter) -> Reason | None:
        """Why an argument has the property: a reason in any one caller is enough."""
        context, name, text = self._walk.asks(frame), operation.name, f"it is passed as {operation.name!r}"
        if context is not None:
            call = self.ev.function(context.caller).operations[context.number]
            with self._walk.outside(context):
                given = self._arguments(frame, operation.name, call, context.caller)
                found = self.all_of(self.why(*each) for each in given)
            if found is not None:
                return self.step(context.caller, context.number, text, found, ("enters", frame.ref, name))
            return self._default(frame, operation.name) if _omits(call) and not given else None
        edges = self._calls_of(frame.ref)
        if len(edges) > MAX_MADE and self.ev.code(frame.ref).function.name == "__init__":
            return None
        passing = list(arguments_for(self.ev, self.reach, frame, name, edges))
        reasons = (
            self.step(caller, call, text, self.why(*each), ("enters", frame.ref, name))
            for caller, call, one in passing
            for each in ([one] if one else self._forwarded(frame, name, caller.code.operations[call], caller))
        )
        first = next(filter(None, reasons), None)
        if first is not None:
            return self.all_of(chain((first,), islice(reasons, MAX_MORE)))
        omitted = not edges or any(not one and _omits(caller.code.operations[call]) for caller, call, one in passing)
        return self._default(frame, name) if omitted else None

    def _default(self, frame: Frame, name: str) -> Reason | None:
        """Why the default of a parameter has the property."""
        outer, number = frame.outer, self.ev.default_of(frame.ref, frame.outer, name)
        if outer is None or number is None:
            return None
        return self.step(outer, number, f"it is the default of {name!r}", self.why(outer, number))

    def passed_for(self, frame: Frame, name: str) -> Iterator[tuple[Frame, int]]:
        """The arguments for a parameter: of the call that is followed, or of all calls that are known."""
        for caller, call in self._calls_into(frame):
            yield from self._arguments(frame, name, call, caller)

    def in_rest(self, frame: Frame, star: str, item: object) -> Iterator[tuple[Frame, int]]:
        """What calls pass as an item of the ``*args`` of a function, by position, or of its ``**kwargs``, by name."""
        for caller, call in self._calls_into(frame):
            given = in_rest(self.ev, frame, star, item, call, caller)
            if given is not None:
                yield caller, given

    def of_spread(self, frame: Frame, call: s.Call) -> Reason | None:
        """Why anything has the property that a call passes on of its function's own ``*args`` and ``**kwargs``."""
        for argument in call.arguments:
            root = frame.code.operations[frame.code.root_of(argument.value)]
            if argument.star and isinstance(root, s.Parameter) and argument.star == kind_of(frame, root.name):
                for caller, passing in self._calls_into(frame):
                    taken = rest(self.ev, frame, argument.star, passing, caller)
                    found = self.any_of(caller, taken)
                    if found is not None:
                        return found
        return None

    def _calls_into(self, frame: Frame) -> list[tuple[Frame, s.Call]]:
        """The call that is followed into a function, or all that are known to enter it in this frame."""
        context = self._walk.asks(frame)
        if context is not None:
            calls = [(context.caller, context.number)]
        elif frame is self.ev.free_frame(frame.ref):
            calls = [(edge.caller, edge.number) for edge in self._calls_of(frame.ref)]
        else:  # a decorator's function is another one for each that it decorates
            entering = self.reach.callers.get(frame.ref, ())
            calls = [(e.caller, e.number) for e in entering if e.target.way in PASSING and e.target.frame is frame]
        operations = [(caller, caller.code.operations[number]) for caller, number in calls]
        return [(caller, call) for caller, call in operations if isinstance(call, s.Call)]

    def _argument(self, frame: Frame, name: str, call: s.Operation, caller: Frame) -> tuple[Frame, int] | None:
        return argument_for(self.ev, frame, name, call, caller) if isinstance(call, s.Call) else None

    def _arguments(self, frame: Frame, name: str, call: s.Operation, caller: Frame) -> list[tuple[Frame, int]]:
        """The argument for a parameter, or what the callers of the caller pass for it, whose arguments it passes on."""
        given = self._argument(frame, name, call, caller)
        return [given] if given is not None else list(self._forwarded(frame, name, call, caller))

    def _forwarded(self, frame: Frame, name: str, call: s.Operation, caller: Frame) -> Iterator[tuple[Frame, int]]:
        for star, item in passed_on(self.ev, frame, name, call, caller) if isinstance(call, s.Call) else ():
            yield from self.in_rest(caller, star, name if star == "**" else item)

    def _calls_of(self, ref: FunctionRef) -> list[CallEdge]:
        """The calls of a function, each once: regardless of who calls the caller, where it certainly makes the call."""
        if ref not in self._entries:
            declared = self.ev.objects.abstract.declared(ref)
            entering = [*self.reach.callers.get(ref, ()), *(self.reach.callers.get(declared, ()) if declared else ())]
            root = self.ev.project.roots[-1]
            # What a test passes says nothing of the program.
            tests = is_test(ref.path, root)
            entering = [e for e in entering if tests or not is_test(e.caller.ref.path, root)]
            edges = [e for e in entering if e.target.way in PASSING and e.caller.ref != ref]
            free = {e.site for e in edges if e.caller is self.ev.free_frame(e.caller.ref)}
            once: dict[tuple[Site, Frame | None], CallEdge] = {}
            for edge in edges:
                if edge.site not in free:
                    once.setdefault((edge.site, edge.caller), edge)
                elif edge.caller is self.ev.free_frame(edge.caller.ref):
                    once.setdefault((edge.site, None), edge)
            self._entries[ref] = list(once.values())
        return self._entries[ref]


def _omits(call: s.Operation) -> bool:
    """Whether a call passes nothing for a parameter that it does not name: it has no starred argument."""
    return isinstance(call, s.Call) and not any(argument.star for argument in call.arguments)


def taken(ev: Evaluator, frame: Frame, operation: s.IfExp | s.BoolOp) -> tuple[int, ...]:
    """The operands that may be the value; an operand that is known to be only tested is left out."""
    if isinstance(operation, s.IfExp):
        answer = truth(ev.value(frame, operation.test))
        if answer is None:
            return operation.body, operation.orelse
        return (operation.body if answer else operation.orelse,)
    left, right = operation.operands
    answer = truth(ev.value(frame, left))
    if answer is None:
        return left, right
    return (right,) if answer == (operation.operator == "and") else (left,)
