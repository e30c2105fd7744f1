"""Abstract evaluation: what a value may be in a frame.

Demand-driven and memoised: only what is asked for is evaluated. Calls of the project's functions are followed with
their arguments, so that ``make_update("batch")`` returns a function that closes over "batch". A cycle starts from the
empty set and is not memoised until its head is done. Depth and width are bounded; beyond that, values are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from spmdlint.analysis.evaluation import comprehension, displays, folding, standard
from spmdlint.analysis.evaluation.bindings import bind
from spmdlint.analysis.evaluation.code import FIXED, NEVER_DECIDED, NO_ROOT
from spmdlint.analysis.evaluation.comparing import compared
from spmdlint.analysis.evaluation.frames import Frames
from spmdlint.analysis.evaluation.memo import Memo
from spmdlint.analysis.evaluation.meshes import AXIS_NAMES, axes_held, axis_names_of, name_at
from spmdlint.analysis.evaluation.names import Names
from spmdlint.analysis.evaluation.objects import ALTERNATIVE_CONSTRUCTOR, Objects
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.receivers import stored_before
from spmdlint.analysis.evaluation.registered import implementations
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    NOTHING,
    UNKNOWN,
    Applied,
    Arguments,
    Called,
    ClassValue,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Frame,
    Free,
    FunctionValue,
    Instance,
    Member,
    ModuleValue,
    Namespace,
    Site,
    SuperValue,
    Unknown,
    Value,
    Values,
    any_element,
    certain,
    constant,
    deed,
    element_at,
    join,
    one,
    truth,
)
from spmdlint.knowledge.elements import Deed
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Kind, Knowledge
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Project
from spmdlint.program.sharing import shared

Made = TypeVar("Made")
MAX_DEPTH = 12  # nested frames
_NONE, _NO_ARGUMENTS = one(Constant(None)), Arguments()
Decisions = tuple[tuple[int, bool], ...]
_CONFIGURED = frozenset(names("configured"))
_AHEAD = ("lower", "compile")
"""The methods that compile a function ahead of time, one after the other."""
_MADE = frozenset((s.MakeFunction, s.MakeClass))
_RETURN = -1  # the key under which a frame's return value is memoised


class Evaluator(Frames):
    """Evaluates the values of a project. One per run. ``heeds_intent``: code that is expected to fail is left alone."""

    def __init__(self, project: Project, knowledge: Knowledge, *, heeds_intent: bool = True) -> None:
        super().__init__(project)
        self.knowledge = knowledge
        self.heeds_intent = heeds_intent
        self.memo: Memo[Values] = Memo(NOTHING, ANYTHING, shares=True)
        self._members: dict[tuple[str, str], Values] = {}
        self._orders: dict[Values, Iterable[Value]] = {}
        self._live: dict[Frame, tuple[frozenset[int], Decisions]] = {}
        self._once: dict[object, Any] = {}
        self.objects = Objects(self)
        self.names = Names(self)
        self._by_class: dict[type, Callable[[Frame, int, Any], Values]] = {
            s.Load: lambda f, n, o: _called(f, n, self.names.load(f, n, o)),
            s.Parameter: self._parameter,
            s.Attribute: self._attribute,
            s.Subscript: self._subscript,
            s.Unary: self._unary,
            s.Binary: lambda f, n, o: folding.binary(o.operator, self.value(f, o.left), self.value(f, o.right)),
            s.Compare: self._compare,
            s.BoolOp: self._boolop,
            s.IfExp: self._ifexp,
            s.Display: lambda f, n, o: displays.display(self, f, o),
            s.DictDisplay: lambda f, n, o: displays.dictionary(self, f, o),
            s.FString: lambda f, n, o: displays.fstring(self, f, o),
            s.Call: self._call,
            s.MakeFunction: lambda f, n, o: one(FunctionValue(self.project.ref(f.ref.path, o.function), f)),
            s.MakeClass: lambda f, n, o: one(ClassValue(self.project.ref(f.ref.path, o.body), f)),
            s.Import: self.names.import_,
            s.Next: self._next,
            s.Item: self._item,
            s.Enter: self._entered,
            s.Collected: lambda f, n, o: comprehension.collected(self, f, o),
            s.Await: lambda f, n, o: self.value(f, o.value),
            s.Store: lambda f, n, o: self.value(f, o.value),
        }

    def once(self, made: Callable[[Evaluator], Made]) -> Made:
        """What a class or function makes of the evaluator alone: it is made when first asked for, and then kept."""
        if made not in self._once:
            self._once[made] = made(self)
        return cast("Made", self._once[made])

    # -- control flow

    def live_blocks(self, frame: Frame) -> frozenset[int]:
        """The blocks that can run in this frame: a branch whose test is known goes only one way."""
        known = self._live.get(frame)
        if known is not None:
            return known[0]
        key = ("live", frame)
        if self.memo.came_back(key):
            return frame.code.all_blocks
        found = self.memo.assuming(
            self._live, frame, key, lambda: self._find_live(frame), lambda f: f[0] == frame.code.all_blocks
        )
        return found[0]

    def _find_live(self, frame: Frame) -> tuple[frozenset[int], Decisions]:
        ways = frame.code.ways
        live: set[int] = set()
        answers: list[tuple[int, bool]] = []
        pending = [s.ENTRY]
        while pending:
            number = pending.pop()
            if number in live:
                continue
            live.add(number)
            test, targets, yes, no = ways[number]
            answer = self.decided(frame, test) if test is not None else None
            if answer is None:
                pending += targets
            else:
                answers.append((number, answer))
                pending += yes if answer else no
        decisions = tuple(answers)
        every = frame.code.all_blocks
        return shared((every if len(live) == len(every) else frozenset(live), decisions))

    def decisions(self, frame: Frame) -> Decisions:
        """The blocks whose branch is decided in this frame, each with the outcome, in the order they were reached."""
        self.live_blocks(frame)
        found = self._live.get(frame)
        return found[1] if found is not None else ()

    def reaching(self, frame: Frame, number: int, name: str) -> frozenset[int]:
        """The stores to a local name that may be the last one before an operation, on the paths of this frame."""
        code = frame.code
        stores = code.flow.reaching(number, name)
        if len(stores) < 2:
            return stores
        live, decisions = self.live_blocks(frame), self.decisions(frame)
        return code.reaching_in(live, decisions, number, name) if decisions else stores

    def decided(self, frame: Frame, test: int) -> bool | None:
        """The outcome of a branch in this frame; None if it is not known."""
        operation = frame.code.operations[test]
        if isinstance(operation, NEVER_DECIDED):
            return None
        if isinstance(operation, s.Load) and operation.name == "TYPE_CHECKING":
            return False
        if isinstance(operation, s.Caught):
            return False if self.names.certainly_imports(frame, test) else None
        return truth(self.value(frame, test))

    # -- values

    def value(self, frame: Frame, number: int) -> Values:
        """The possible values of an operation in a frame."""
        code = frame.code
        root = code.roots[number]
        if root == NO_ROOT:
            root = code.root_of(number)
        known = frame.known.get(root)
        if known is None:
            known = code.known.get(root)
            if known is None:
                known = self._found(frame, root)
        return known

    def callee(self, frame: Frame, call: s.Operation | None) -> Value | None:
        """What a call certainly runs; None if it is not known, or may be one of several."""
        return certain(self.value(frame, call.function)) if isinstance(call, s.Call) else None

    def decorators(self, ref: FunctionRef, outer: Frame | None) -> set[str]:
        """The names in libraries of what decorates a function or class, where that is defined, or makes what does."""
        if outer is None or not (calls := outer.code.decorators.get(ref.index)):
            return set()
        return {name for call in calls for value in self.value(outer, call.function) if (name := _library_name(value))}

    def kind(self, value: Value | None) -> Kind | None:
        """What kind of a function of a library a value is, or was made by."""
        known = self.knowledge.get(value.name) if isinstance(value, (External, Applied)) else None
        return known.kind if known is not None else None

    def may_call(self, frame: Frame, call: s.Operation | None, *names: str) -> bool:
        """Whether an operation is a call that may run one of some functions of libraries."""
        called = self.value(frame, call.function) if isinstance(call, s.Call) else ()
        return any(isinstance(value, External) and value.name in names for value in called)

    def may_do(self, frame: Frame, call: s.Operation | None, *deeds: Deed) -> bool:
        """Whether an operation is a call that may do something to elements, such as "range" or "zip"."""
        return isinstance(call, s.Call) and any(deed(value) in deeds for value in self.value(frame, call.function))

    def _found(self, frame: Frame, root: int) -> Values:
        code = frame.code
        operation = code.operations[root]
        kind = type(operation)
        if isinstance(operation, s.Const):
            constant = one(Constant(operation.value)) if operation.value is not ... else ANYTHING
            found = code.known[root] = self.memo.shared(constant)
            return found
        if isinstance(operation, s.Parameter):
            bound = frame.bound(operation.name)
            if bound is not None and bound != ANYTHING:
                frame.known[root] = bound
                return bound
        method = self._by_class.get(kind)
        if method is None:
            return ANYTHING
        if kind in _MADE:
            found = frame.known[root] = method(frame, root, operation)
            return found
        fixed = code.fixed[root]
        if fixed == FIXED or (not fixed and code.is_fixed(root)):
            return self.memo.at(code.known, root, (code, root), method, frame, root, operation)
        return self.memo.at(frame.known, root, (frame, root), method, frame, root, operation)

    def each(self, values: Values, step: Callable[[Value], Values]) -> Values:
        """Apply a step to every value; an unknown value stays unknown."""
        if len(values) == 1:
            (value,) = values
            return ANYTHING if value is UNKNOWN else step(value)
        return join(*[ANYTHING if value is UNKNOWN else step(value) for value in self.in_order(values)])

    def in_order(self, values: Values) -> Iterable[Value]:
        """The values of a set in a fixed order, which is computed once for each set."""
        if len(values) < 2:
            return values
        found = self._orders.get(values)
        if found is None:
            found = self._orders[values] = ordered(values)
        return found

    def _parameter(self, frame: Frame, number: int, operation: s.Parameter) -> Values:
        bound = frame.bound(operation.name)
        if bound is not None:  # an unknown argument most likely is what the annotation says
            return self.objects.annotations.of_parameter(frame, operation.name) or bound
        function = self.function(frame)
        receiver = self.objects.implicit_receiver(frame, operation.name)
        if receiver is not None:
            return receiver
        formal = next((f for f in function.formals if f.name == operation.name), None)
        if formal is not None and formal.default:
            # A default that is code most likely runs; whether an option keeps its default is not known.
            default = self.default(frame.ref, frame.outer, operation.name)
            if default is not None and (frame.arrays or self._runs(certain(default))):
                return default
        return self.objects.annotations.of_parameter(frame, operation.name) or one(Free(frame.ref, operation.name))

    def _runs(self, default: Value | None) -> bool:
        """Whether a default is code of the project, or a library function such as ``time.time``."""
        known = self.knowledge.get(default.name) if isinstance(default, External) else None
        return isinstance(default, (FunctionValue, Instance)) or (known is not None and known.source == "clock")

    def default(self, ref: FunctionRef, outer: Frame | None, name: str) -> Values | None:
        """The default of a parameter, evaluated in the scope that defines the function."""
        number = self.default_of(ref, outer, name)
        return self.value(outer, number) if outer is not None and number is not None else None

    @staticmethod
    def default_of(ref: FunctionRef, outer: Frame | None, name: str) -> int | None:
        """The default of a parameter, as an operation of the scope that defines the function."""
        made = outer.code.made_functions.get(ref.index) if outer is not None else None
        return next((n for parameter, n in made.defaults if parameter == name), None) if made is not None else None

    # -- attributes and elements

    def _attribute(self, frame: Frame, number: int, operation: s.Attribute) -> Values:
        just_put = stored_before(frame.code, number, operation)
        if just_put is not None:
            known = certain(self.value(frame, just_put))
            if isinstance(known, (Applied, FunctionValue)):
                return one(known)
        bases = self.value(frame, operation.base)
        name = operation.name
        if len(bases) == 1:
            (base,) = bases
            return _called(frame, number, self.attribute(base, name, frame))
        # Reading an attribute of None fails, so the code that goes on reads it from a different value.
        return _called(frame, number, self.each(bases - _NONE, lambda base: self.attribute(base, name, frame)))

    def attribute(self, base: Value, name: str, frame: Frame) -> Values:
        """The possible values of ``base.name``."""
        if isinstance(base, External):
            found = self._members.get((base.name, name))
            if found is None:
                found = one(External(self.knowledge.outside(f"{base.name}.{name}")))
                self._members[base.name, name] = found
            return found
        modelled = axis_names_of(self, base) if name == AXIS_NAMES else None
        if modelled is None:
            modelled = standard.attribute(self, base, name)
        if modelled is not None:
            return modelled
        if isinstance(base, ModuleValue):
            return self.names.module_attribute(self.project.modules[base.path], name)
        if isinstance(base, Namespace):
            return self.names.dotted_name(f"{base.dotted}.{name}", self.project.modules[base.importer])
        if isinstance(base, (Instance, ClassValue, SuperValue)):
            values = self.objects.attribute(base, name)
            cls = base if isinstance(base, ClassValue) else base.cls
            if self.objects.patched.on_in(cls, name, frame.ref.path):
                values = join(values, ANYTHING)
            return axes_held(base, name, values)
        if isinstance(base, Applied):
            known = self.knowledge.get(base.name)
            if known is not None and known.kind == "record" and name in known.parameters:
                return self.argument(base, name) or ANYTHING
            member = self.knowledge.get(f"{base.name}.{name}")
            if member is not None:
                return one(Member(base, member.name) if member.kind == "forward" else External(member.name))
        if isinstance(base, (Applied, Called, Member)):
            return one(Member(base, name))
        return axes_held(base, name, self.objects.by_name.method(base, name, frame))

    def _subscript(self, frame: Frame, number: int, operation: s.Subscript) -> Values:
        index = constant(self.value(frame, operation.index))

        def step(base: Value) -> Values:
            return any_element(base) if index is None else self._element(base, index.value)

        return self.each(self.value(frame, operation.base), step)

    def _item(self, frame: Frame, number: int, operation: s.Item) -> Values:
        if operation.star:
            return ANYTHING
        return self.each(self.value(frame, operation.value), lambda base: self._element(base, operation.index))

    @staticmethod
    def _element(base: Value, index: object) -> Values:
        named = name_at(base, index) if isinstance(base, Free) else None
        return element_at(base, index) if named is None else named

    def _next(self, frame: Frame, number: int, operation: s.Next) -> Values:
        return self.each(self.value(frame, operation.iterable), standard.iterated)

    # -- operators and displays

    def _unary(self, frame: Frame, number: int, operation: s.Unary) -> Values:
        operand = self.value(frame, operation.operand)
        if operation.operator == "not":
            answer = truth(operand)
            return ANYTHING if answer is None else one(Constant(not answer))
        value = constant(operand)
        return ANYTHING if value is None else folding.unary(operation.operator, value)

    def _compare(self, frame: Frame, number: int, operation: s.Compare) -> Values:
        return compared(self, frame, operation)

    def _boolop(self, frame: Frame, number: int, operation: s.BoolOp) -> Values:
        left, right = operation.operands
        first = self.value(frame, left)
        answer = truth(first)
        if answer is not None:
            return self.value(frame, right) if answer == (operation.operator == "and") else first
        second = self.value(frame, right)
        decided = truth(second)
        if decided is not None and decided != (operation.operator == "and"):
            # `x and False` is falsy and `x or True` is truthy, whatever x is.
            return second if isinstance(certain(second), Constant) else join(first, second)
        return join(first, second)

    def _ifexp(self, frame: Frame, number: int, operation: s.IfExp) -> Values:
        answer = truth(self.value(frame, operation.test))
        if answer is not None:
            return self.value(frame, operation.body if answer else operation.orelse)
        return join(self.value(frame, operation.body), self.value(frame, operation.orelse))

    # -- calls

    def _call(self, frame: Frame, number: int, operation: s.Call) -> Values:
        if frame.depth >= MAX_DEPTH:
            return ANYTHING
        callees = self.value(frame, operation.function)
        arguments = self.arguments(frame, operation)
        site = Site(frame.ref, number)
        if operation.decorator and arguments.positional and all(map(self._is_of_unknown_library, callees)):
            return arguments.positional[0]  # it runs the function that it wraps: a timer, a check of types, a retry
        if len(callees) == 1:
            (callee,) = callees
            return ANYTHING if callee is UNKNOWN else self.call(callee, arguments, site, frame)
        return self.each(callees, lambda callee: self.call(callee, arguments, site, frame))

    def _is_of_unknown_library(self, value: Value) -> bool:
        """Whether a value comes from a library of which nothing is known."""
        name = _library_name(value)
        return name is not None and name.partition(".")[0] not in self.knowledge.libraries

    def arguments(self, frame: Frame, operation: s.Call) -> Arguments:
        """The evaluated arguments of a call."""
        positional: list[Values] = []
        keywords: list[tuple[str, Values]] = []
        is_open = False
        for argument in operation.arguments:
            values = self.value(frame, argument.value)
            if not argument.star:
                if argument.keyword is not None:
                    keywords.append((argument.keyword, values))
                elif not is_open:
                    positional.append(values)
            elif argument.star == "*":
                inner = certain(values)
                if isinstance(inner, Collection) and not inner.open:
                    positional.extend(inner.elements)
                else:
                    is_open = True
            else:
                table = certain(values)
                if isinstance(table, DictionaryValue) and not table.open:
                    keywords.extend((str(key), value) for key, value in table.items)
                else:
                    is_open = True
        return Arguments(tuple(positional), tuple(keywords), is_open)

    def call(self, callee: Value, arguments: Arguments, site: Site, frame: Frame) -> Values:
        """The possible results of calling a value."""
        if isinstance(callee, (FunctionValue, ClassValue)) and self.decorators(callee.ref, callee.outer) & _CONFIGURED:
            arguments = replace(arguments, open=True)  # a file of settings may pass what the call leaves out
        if isinstance(callee, FunctionValue):
            inner = self.entered_frame(callee, arguments, frame.depth + 1)
            found = self.returned(inner) if inner is not None else ANYTHING
            cls = callee.receiver
            if (
                isinstance(cls, ClassValue)
                and self.project.function(callee.ref).name.startswith(ALTERNATIVE_CONSTRUCTOR)
                and all(isinstance(value, (Unknown, Called)) for value in found)
            ):
                return one(Instance(cls))
            return found
        if isinstance(callee, ClassValue):
            return one(Instance(callee, arguments))
        if isinstance(callee, Instance):
            return self.each(self.objects.attribute(callee, "__call__"), lambda v: self.call(v, arguments, site, frame))
        if isinstance(callee, External):
            return self._call_external(callee.name, arguments, site, frame)
        if isinstance(callee, Applied):
            return self._call_applied(callee, arguments, site, frame)
        if isinstance(callee, Member):
            ahead = self._compiled_ahead(callee)
            if ahead is not None:
                return one(ahead)
            if isinstance(callee.base, ClassValue):
                return one(Instance(callee.base))
            return standard.method(self, callee, arguments) or one(Called(callee, site))
        return ANYTHING

    def _compiled_ahead(self, method: Member) -> Applied | None:
        """The compiled function that ``step.lower(x).compile()`` gives: a call of it is a call of ``step``.

        One with static arguments takes others than ``step`` does.
        """
        lowered = method.base.function if isinstance(method.base, Called) else None
        if method.name != _AHEAD[1] or not isinstance(lowered, Member) or lowered.name != _AHEAD[0]:
            return None
        made = lowered.base
        if self.kind(made) not in ("jit", "map") or not isinstance(made, Applied):
            return None
        static = any(name.startswith("static") for name, _ in made.arguments.keywords)
        return None if static or made.arguments.open else made

    def entered_frame(
        self, function: FunctionValue, arguments: Arguments, depth: int, *, arrays: bool = False
    ) -> Frame | None:
        """The frame in which a call of a project function runs; None if that is too deep."""
        if depth > MAX_DEPTH:
            return None
        if function.receiver is not None:
            receiver = one(function.receiver)
            arguments = Arguments((receiver, *arguments.positional), arguments.keywords, arguments.open)
        definition = self.code(function.ref).function
        bindings = bind(definition, arguments)
        if not arrays and not arguments.open:
            for formal in definition.formals:
                if formal.default and formal.name not in bindings:
                    default = self.default(function.ref, function.outer, formal.name)
                    if default is not None:
                        bindings[formal.name] = default
        return self.frame(function.ref, bindings, function.outer, depth, arrays)

    def returned(self, frame: Frame) -> Values:
        """The possible return values of a function in a frame."""
        known = frame.known.get(_RETURN)
        if known is not None:
            return known
        return self.memo.at(frame.known, _RETURN, (frame, _RETURN), self._returned, frame)

    def _returned(self, frame: Frame) -> Values:
        function = self.function(frame)
        if function.generator or function.asynchronous or frame.code.is_stub:
            return ANYTHING
        live = self.live_blocks(frame)
        sets = [
            _NONE if operation.value is None else self.value(frame, operation.value)
            for block, operation in frame.code.returns
            if block in live
        ]
        return join(*sets) if sets else _NONE

    def _call_external(self, name: str, arguments: Arguments, site: Site, frame: Frame) -> Values:
        known = self.knowledge.get(name)
        if known is not None and known.kind == "identity":
            return one(External("spmdlint.identity"))
        if known is not None and known.kind == "decorator" and arguments.positional:
            if constant(arguments.positional[0]) is not None:  # `lru_cache(None)` makes the decorator
                return one(Applied(name, arguments, site))
            changed = known.unless is not None and (arguments.open or arguments.keyword(known.unless) is not None)
            return ANYTHING if changed else arguments.positional[0]
        if known is not None and known.kind == "dispatch":
            chosen = implementations(self, frame, arguments)
            if chosen is not None:
                return chosen
        if name == "spmdlint.identity":
            return arguments.positional[0] if arguments.positional else ANYTHING
        modelled = standard.call(self, name, arguments, frame)
        return one(Applied(name, arguments, site)) if modelled is None else modelled

    def _call_applied(self, callee: Applied, arguments: Arguments, site: Site, frame: Frame) -> Values:
        known = self.knowledge.get(callee.name)
        if known is None or known.kind is None:
            return one(Called(callee, site))
        if known.kind == "currying":
            return self._call_partial(callee, arguments, site, frame)
        if known.kind == "decorator" and arguments.positional:
            return arguments.positional[0]
        if known.function and self.argument(callee, known.function[0]) is None and not callee.arguments.open:
            # `jax.jit(static_argnums=0)` awaits its function, as `partial(jax.jit, static_argnums=0)` does.
            merged = Arguments(
                (*arguments.positional, *callee.arguments.positional),
                (*callee.arguments.keywords, *arguments.keywords),
                arguments.open,
            )
            return one(Applied(callee.name, merged, site, callee.receiver))
        return one(Called(callee, site))

    def _call_partial(self, callee: Applied, arguments: Arguments, site: Site, frame: Frame) -> Values:
        first, merged = self._curried(callee, arguments)
        return self.each(first, lambda value: self.call(value, merged, site, frame))

    def through_partial(self, value: Value, arguments: Arguments = _NO_ARGUMENTS) -> tuple[Value, Arguments]:
        """What runs if a value is called with these arguments, and its own arguments: of a partial, its function."""
        if not isinstance(value, Applied) or self.kind(value) != "currying":
            return value, arguments
        first, merged = self._curried(value, arguments)
        function = certain(first)
        return (value, arguments) if function is None else self.through_partial(function, merged)

    def _curried(self, callee: Applied, arguments: Arguments) -> tuple[Values, Arguments]:
        first, *rest = callee.arguments.positional or (ANYTHING,)
        merged = Arguments(
            (*rest, *arguments.positional),
            (*callee.arguments.keywords, *arguments.keywords),
            callee.arguments.open or arguments.open,
        )
        if callee.receiver is not None:
            merged = Arguments((one(callee.receiver), *merged.positional), merged.keywords, merged.open)
        return first, merged

    def argument(self, applied: Applied, parameter: str) -> Values | None:
        """The argument that a call of a library function passed for one of its parameters; None if it passed none."""
        known = self.knowledge.get(applied.name)
        found = applied.arguments.keyword(parameter)
        if found is None and known is not None and parameter in known.formerly:
            found = applied.arguments.keyword(known.formerly[parameter])
        if found is not None or known is None:
            return found
        if parameter in known.positional:
            position = known.positional.index(parameter)
            if position < len(applied.arguments.positional):
                return applied.arguments.positional[position]
        return None

    def _entered(self, frame: Frame, number: int, operation: s.Enter) -> Values:
        """What ``with manager as name`` binds: what a generator of the project yields, or the manager itself."""
        block = self.managed(frame, operation)
        if block is not None:
            yields = (o.value for _, o in block.code.of_kind(s.Yield))
            return join(*(_NONE if value is None else self.value(block, value) for value in yields))
        managers = self.value(frame, operation.manager)
        return frozenset(v if isinstance(v, (Applied, Instance)) else UNKNOWN for v in managers)

    def managed(self, frame: Frame, operation: s.Enter) -> Frame | None:
        """The body of the generator of the project that is the manager of a `with`, as entered by the call of it."""
        call = frame.code.operations[frame.code.root_of(operation.manager)]
        made = certain(self.value(frame, call.function)) if isinstance(call, s.Call) else None
        if not isinstance(call, s.Call) or not isinstance(made, Applied):
            return None
        known = self.knowledge.get(made.name)
        given = self.argument(made, known.function[0]) if known is not None and known.manages else None
        function = certain(given) if given is not None else None
        if not isinstance(function, FunctionValue) or not self.project.function(function.ref).generator:
            return None
        receiver = function.receiver or made.receiver
        bound = FunctionValue(function.ref, function.outer, receiver) if receiver is not None else function
        return self.entered_frame(bound, self.arguments(frame, call), frame.depth + 1)


def _library_name(value: Value) -> str | None:
    """The name in a library of what a value is, comes from, or is a method of."""
    while isinstance(value, (Called, Member)):
        value = value.function if isinstance(value, Called) else value.base
    return value.name if isinstance(value, (External, Applied)) else None


def _called(frame: Frame, number: int, values: Values) -> Values:
    """The values of a name or an attribute; where it is called, it is not None, or the program ends there."""
    return values - _NONE if len(values) > 1 and number in frame.code.called else values
