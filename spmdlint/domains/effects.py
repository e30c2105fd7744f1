"""Stratum 4: which parallel calls a piece of code makes, as a term that is symbolic in its parameters.

A *behaviour* in the sense of Nielson and Nielson ("Higher-order concurrent programs with finite communication
topology", POPL 1994). The term of a function is made once; a call substitutes its arguments for the parameters, in the
functions that are called and in the conditions. Terms have a normal form: a choice between equal terms is that term, an
arm that always raises stops the job and is no choice, a loop without calls is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal as OneOf
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.core.conditions import (
    FALSE,
    TRUE,
    Conditions,
    Expression,
    decided_in,
    normal,
    simplified,
    substituted,
)
from spmdlint.core.evaluation import Evaluation
from spmdlint.core.ssa import Clause, Ssa, Try
from spmdlint.core.values import (
    NONE,
    OPEN,
    Alternative,
    Arguments,
    Class,
    Constant,
    External,
    Function,
    Member,
    Object,
    Parameter,
    Result,
    Site,
    Substitution,
    Value,
    element_kind,
    in_order,
    only,
)
from spmdlint.core.values import (
    Sequence as Elements,
)
from spmdlint.domains.exceptions import Kind as ExceptionKind
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s
from spmdlint.program.labels import may_be_one, template
from spmdlint.program.link import FunctionRef
from spmdlint.program.spelled import called_as

Strength = OneOf["strong", "weak"]
SIZE = 1200
"""The most nodes of a term; what comes after them is unknown."""
NESTING = 60
_ONE_PROCESS = (0, 1)


class ParallelCall(Struct, frozen=True, cache_hash=True):
    """A parallel call: its name, and the calls that lead to it, outermost first.

    ``same`` is equal for two calls that are the same call to the other processes. ``everyone`` says that all processes
    of the job take part, and not only those that own the devices it runs on, except if it is ``of_devices``.
    ``carried`` says that a call takes what it returned before, like a training step, whose state is on all devices.
    ``label`` is the name by which the processes match the call, if it is known.
    """

    name: str
    strength: Strength
    same: object
    path: tuple[Site, ...]
    everyone: bool = False
    of_devices: bool = False
    checkpoint: bool = False
    carried: bool = False
    label: str | None = None

    @property
    def site(self) -> Site:
        """The site in the queried code that makes the call, directly or through other functions."""
        return self.path[0]

    def matches(self, other: ParallelCall) -> bool:
        """Whether the two may be one call to the other processes."""
        return self.same == other.same and may_be_one(self.label, other.label)


class Call(Struct, frozen=True, cache_hash=True):
    call: ParallelCall


class Invoke(Struct, frozen=True, cache_hash=True):
    """A call of a symbol: what it does depends on what the callers pass."""

    callee: Alternative
    arguments: Arguments
    expressions: tuple[tuple[str | None, Expression], ...]
    path: tuple[Site, ...]


class Series(Struct, frozen=True, cache_hash=True):
    """One term after another; empty if nothing is called."""

    parts: tuple[Term, ...] = ()


class Choice(Struct, frozen=True, cache_hash=True):
    """One of two terms. ``condition`` holds for the first; None if it is not known what decides."""

    condition: Expression | None
    yes: Term
    no: Term


class Star(Struct, frozen=True, cache_hash=True):
    """A term repeated by a loop."""

    body: Term


class Leave(Struct, frozen=True, cache_hash=True):
    """Control leaves the piece of code early: a return, a break."""


class Fail(Struct, frozen=True, cache_hash=True):
    """The job stops here: an exception that nothing catches."""


class Quit(Struct, frozen=True, cache_hash=True):
    """One process leaves the job, and the others go on."""


class Unknown(Struct, frozen=True, cache_hash=True):
    """Code that nobody knows is given something that makes parallel calls: any of them, in any order."""


class Pause(Struct, frozen=True, cache_hash=True):
    """A generator gives an element: the block of a context manager runs here."""


class Raising(Struct, frozen=True, cache_hash=True):
    """An exception of one of some kinds may be raised here, in one process and not in another."""

    kinds: frozenset[ExceptionKind]
    path: tuple[Site, ...]


Term: TypeAlias = Call | Invoke | Series | Choice | Star | Leave | Fail | Quit | Unknown | Pause | Raising
Element: TypeAlias = tuple[int, FunctionRef]
"""The operation that gives the element of a loop's round, and the class of the element or the function that it is."""
Decide: TypeAlias = Callable[[Expression], "bool | None"]
NOTHING = Series()


class Effects:
    """Makes terms. One per run."""

    def __init__(self, evaluation: Evaluation, conditions: Conditions) -> None:
        self.ev = evaluation
        self.conditions = conditions
        self._terms: dict[FunctionRef, Term] = {}
        self._active: set[FunctionRef] = set()
        self.is_local_call: Callable[[Site, frozenset[int]], bool] = lambda site, statics: False
        """Whether all arguments of a call are certainly in this process's memory or on its devices."""
        self.is_global_call: Callable[[Site], bool] = lambda site: False
        """Whether an argument of a call was made to be on the devices of several processes."""
        self.raised: Callable[[FunctionRef, int], frozenset[ExceptionKind]] = lambda ref, n: frozenset()
        """The exceptions that an operation may raise in one process and not in another."""
        self.catching: Callable[[FunctionRef, int, ExceptionKind], Clause | None] = lambda ref, block, kind: None
        """The clause that catches an exception that is raised in a block."""
        self.is_entered: Callable[[FunctionRef, int], bool] = lambda ref, n: False
        """Whether a clause is entered in one process and not in another."""
        self._is_searching = True
        """Before the speaking functions are known, a compiled function counts as one that speaks."""
        self.host, self.callers = self._reached()
        self.speaking = self._find_speaking()
        self._is_searching = False

    def asked_about(self) -> list[FunctionRef]:
        """The functions in which processes may diverge, callees first."""
        return [ref for ref in self.ev.called_first() if ref in self.speaking and ref in self.host]

    # -- who calls whom

    def _reached(self) -> tuple[frozenset[FunctionRef], dict[FunctionRef, set[FunctionRef]]]:
        """The functions that run on the host, and the callers of each function there."""
        calls: dict[FunctionRef, set[FunctionRef]] = {}
        traced: set[FunctionRef] = set()
        for ref, evaluated in self.ev.functions.items():
            found = calls.setdefault(ref, set())
            for call in evaluated.calls.values():
                for a in self.ev.callees(call.callees):
                    found.update(self._runs(a, call.arguments))
                    traced.update(self._traces(a, call.arguments))
            found.update(self._reads(ref))
        called = {callee for found in calls.values() for callee in found}
        roots = [ref for ref in calls if ref not in called and ref not in traced]
        host: set[FunctionRef] = set()
        while roots:
            ref = roots.pop()
            if ref not in host:
                host.add(ref)
                roots.extend(calls.get(ref, ()))
        callers: dict[FunctionRef, set[FunctionRef]] = {}
        for ref, found in calls.items():
            for callee in found:
                callers.setdefault(callee, set()).add(ref)
        return frozenset(host), callers

    def _reads(self, ref: FunctionRef) -> Iterator[FunctionRef]:
        """The functions that run without a call: properties, context managers, iterators."""
        function, values = self.ev.project.function(ref), self.ev.functions[ref].values
        for o in function.operations:
            if isinstance(o, s.Attribute):
                yield from self._getters(values[o.base], o.name)
            elif isinstance(o, (s.Enter, s.Next)):
                given = values[o.manager if isinstance(o, s.Enter) else o.iterable]
                for a in self.ev.resolved(given):
                    if self.ev.is_generator(a):
                        yield a.kind  # type: ignore[misc]
                    elif isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                        names = ("__enter__", "__exit__") if isinstance(o, s.Enter) else ("__iter__", "__next__")
                        for name in names:
                            method = self.ev.method(a.kind, name)
                            if method is not None:
                                yield method

    def _getters(self, base: Value, name: str) -> Iterator[FunctionRef]:
        if name not in self._property_names:
            return
        for a in self.ev.resolved(base):
            if a == OPEN:
                if name in self.ev.rows.common:
                    continue
                match list(self.ev.project.methods_by_name.get(name, ())):
                    case [one] if self.ev.roles.get(one) == "property":
                        yield one
            elif isinstance(a, Object) and isinstance(a.kind, FunctionRef) and not self.ev.is_generator(a):
                classes = [a.kind, *self.ev.derived(a.kind)] if a.site is None else [a.kind]
                for cls in classes:
                    for each in self.ev.class_attribute(cls, name) or ():
                        if isinstance(each, Function) and self.ev.roles.get(each.ref) == "property":
                            yield each.ref

    @cached_property
    def _property_names(self) -> frozenset[str]:
        found = (ref for ref, role in self.ev.roles.items() if role == "property")
        return frozenset(self.ev.project.function(ref).name for ref in found)

    def _runs(self, a: Alternative, arguments: Arguments) -> Iterator[FunctionRef]:
        """The project's functions that a call runs on the host."""
        if isinstance(a, Function):
            yield a.ref
        elif isinstance(a, Class):
            maker = self.ev.method(a.ref, "__init__")
            if maker is not None:
                yield maker
        elif isinstance(a, Result):
            known = self.ev.knowledge.get(a.name)
            if known is not None and known.kind == "currying" and a.arguments.positional:
                for each in self.ev.callees(a.arguments.positional[0]):
                    yield from self._runs(each, arguments)
        elif isinstance(a, External):
            known = self.ev.knowledge.get(a.name)
            if known is not None and known.kind == "apply" and known.runs:
                for each in self._applied(known, arguments):
                    yield from self._runs(each, Arguments(open=True))

    def _applied(self, known: Known, arguments: Arguments) -> Iterator[Alternative]:
        for name in known.function:
            given = arguments.get(name, known.positional.index(name) if name in known.positional else None)
            yield from self.ev.callees(given) if given is not None else ()

    def _traces(self, a: Alternative, arguments: Arguments) -> Iterator[FunctionRef]:
        """The project's functions that a call traces, or gives to a library that traces them."""
        if isinstance(a, Result):
            known = self.ev.knowledge.get(a.name)
            if known is not None and known.kind in ("map", "jit", "transform"):
                for each in (*self.ev.callees(self.ev.wrapped(a)), *(x for v in arguments.positional[:1] for x in v)):
                    if isinstance(each, Function):
                        yield each.ref
        elif isinstance(a, External):
            known = self.ev.knowledge.get(a.name)
            if known is not None and known.kind in ("map", "jit", "transform", "apply") and not known.runs:
                for each in self._applied(known, arguments):
                    if isinstance(each, Function):
                        yield each.ref
                    elif isinstance(each, Result):
                        yield from (f.ref for f in self.ev.wrapped(each) if isinstance(f, Function))

    def _find_speaking(self) -> frozenset[FunctionRef]:
        """The functions that may make a parallel call, directly or through others."""
        found: set[FunctionRef] = set()
        pending: list[FunctionRef] = []
        for ref, evaluated in self.ev.functions.items():
            for n, call in evaluated.calls.items():
                if any(self._is_parallel(ref, n, a, call.arguments) for a in self.ev.callees(call.callees)):
                    pending.append(ref)
                    break
        while pending:
            ref = pending.pop()
            if ref not in found:
                found.add(ref)
                pending.extend(self.callers.get(ref, ()))
        return frozenset(found)

    def _is_parallel(self, ref: FunctionRef, n: int, a: Alternative, arguments: Arguments) -> bool:
        if self._direct(ref, n, a, arguments, ()) is not None:
            return True
        known = self.ev.knowledge.get(a.name) if isinstance(a, (External, Result)) else None
        inner: Iterable[Alternative] = ()
        if isinstance(a, External) and known is not None and known.kind == "apply" and known.runs:
            inner = self._applied(known, arguments)
        elif isinstance(a, Result) and known is not None and known.kind == "currying" and a.arguments.positional:
            inner = self.ev.callees(a.arguments.positional[0])
        return any(self._direct(ref, n, each, arguments, ()) is not None for each in inner)

    # -- the terms of functions

    def term(self, ref: FunctionRef) -> Term:
        """The term of a function, symbolic in its parameters."""
        if ref not in self.speaking:
            return NOTHING
        known = self._terms.get(ref)
        if known is not None:
            return known
        if ref in self._active:
            return Unknown()
        self._active.add(ref)
        try:
            found = returned(_Walk(self, ref).region(s.ENTRY, s.EXIT, None))
        finally:
            self._active.discard(ref)
        self._terms[ref] = found
        return found

    def of_loop(self, ref: FunctionRef, header: int, element: Element | None = None) -> Term:
        """The term of one round of a loop; of one for an element of a kind, if that is given."""
        walk = _Walk(self, ref, element)
        parts: list[Term] = []
        walk.after(header, parts, s.EXIT, None)
        found = parts[0] if parts else NOTHING
        return found.body if isinstance(found, Star) else found

    def of_operation(self, ref: FunctionRef, n: int, o: s.Operation, element: Element | None = None) -> Term:
        """The term of one operation."""
        kind = type(o)
        if kind is s.Call:
            return self._with_exceptions(ref, n, self.of_call(ref, n, o, element))  # type: ignore[arg-type]
        if kind is s.Raise or kind is s.Next:
            return self._with_exceptions(ref, n, NOTHING)
        if kind is s.Attribute:
            return self._of_read(ref, n, o)  # type: ignore[arg-type]
        if kind is s.Enter:
            return self._of_manager(ref, n, o.manager, "__enter__", before)  # type: ignore[union-attr]
        if kind is s.Leave:
            return self._of_manager(ref, n, o.manager, "__exit__", after)  # type: ignore[union-attr]
        if kind is s.Yield:
            return Pause()
        return NOTHING

    def _with_exceptions(self, ref: FunctionRef, n: int, term: Term) -> Term:
        """The term of an operation with the exceptions that it may raise: where the callee's term has them, there."""
        kinds = self.raised(ref, n)
        left = kinds - {kind for each in raisings_in(term) for kind in each.kinds}
        term = without_raisings(term, lambda each: not each.kinds & kinds)
        return series(Raising(left, (Site(ref, n),)), term) if left else term

    def _of_read(self, ref: FunctionRef, n: int, o: s.Attribute) -> Term:
        base = self.ev.functions[ref].values[o.base]
        getters = [g for g in self._getters(base, o.name) if g in self.speaking]
        return series(*(through(self.term(g), (Site(ref, n),)) for g in dict.fromkeys(getters)))

    def _of_manager(self, ref: FunctionRef, n: int, manager: int, method: str, half: Callable[[Term], Term]) -> Term:
        parts = []
        for a in self.ev.resolved(self.ev.functions[ref].values[manager]):
            if self.ev.is_generator(a):
                if a.kind in self.speaking:
                    whole = self.substituted(self.term(a.kind), dict(a.bindings), {}, (Site(ref, n),))
                    parts.append(half(whole))
            elif isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                for each in self.ev.attribute(a, method):
                    if isinstance(each, Function) and each.ref in self.speaking:
                        parts.append(self._of_function(each, Arguments(), (), (Site(ref, n),)))
        return alternatives(parts) if parts else NOTHING

    def of_iteration(self, ref: FunctionRef, n: int, iterable: int) -> Term:
        """The term of taking one element of an iterable."""
        parts = []
        for a in self.ev.resolved(self.ev.functions[ref].values[iterable]):
            if self.ev.is_generator(a):
                if a.kind in self.speaking:
                    whole = self.substituted(self.term(a.kind), dict(a.bindings), {}, (Site(ref, n),))
                    parts.append(without_pauses(whole))
            elif isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                for each in self.ev.attribute(a, "__next__"):
                    if isinstance(each, Function) and each.ref in self.speaking:
                        parts.append(self._of_function(each, Arguments(), (), (Site(ref, n),)))
        return alternatives(parts) if parts else NOTHING

    def of_call(self, ref: FunctionRef, n: int, o: s.Call, element: Element | None = None) -> Term:
        """The term of a call: of each function that it may run, if they are several."""
        parts = self.by_callee(ref, n, o)
        if element is not None and self.is_of(ref, o.function, element[0]):
            parts = [part for part in parts if element_of(part[0]) == element[1]]
        return alternatives([term for _, term in parts]) if parts else NOTHING

    def is_of(self, ref: FunctionRef, n: int, element: int, depth: int = 6) -> bool:
        """Whether an operation gives the element that a loop takes, or one of its methods."""
        n = self.ev.structure.ssa(ref).origin(n)
        if n == element or depth == 0:
            return n == element
        o = self.ev.project.function(ref).operations[n]
        if isinstance(o, s.Attribute):
            return self.is_of(ref, o.base, element, depth - 1)
        if not isinstance(o, s.Call) or not o.arguments:
            return False
        callee = only(self.ev.functions[ref].values[o.function])
        row = self.ev.row(callee.name) if isinstance(callee, External) else None
        is_member = row is not None and row.role == "getattr"
        return is_member and self.is_of(ref, o.arguments[0].value, element, depth - 1)

    def by_callee(self, ref: FunctionRef, n: int, o: s.Call) -> list[tuple[Alternative, Term]]:
        """The alternatives for the callee of a call, and what each does."""
        call = self.ev.functions[ref].calls.get(n)
        if call is None:
            return []
        path = (Site(ref, n),)
        expressions: tuple[tuple[str | None, Expression], ...] | None = None
        found: list[tuple[Alternative, Term]] = []
        for a in sorted(call.callees, key=in_order):
            if expressions is None and isinstance(a, (Function, Parameter, Member, Class)):
                expressions = tuple(
                    [(x.keyword, self.conditions.expression(ref, x.value)) for x in o.arguments if not x.star]
                )
            found.append((a, self.of_alternative(ref, n, a, call.arguments, expressions or (), path)))
        return found

    def of_alternative(
        self,
        ref: FunctionRef,
        n: int,
        a: Alternative,
        arguments: Arguments,
        expressions: tuple[tuple[str | None, Expression], ...],
        path: tuple[Site, ...],
    ) -> Term:
        if isinstance(a, Result) and not self.ev.is_partial(a) and _is_symbolic(a):
            return (
                NOTHING if self._direct(ref, n, a, arguments, path) is None else Invoke(a, arguments, expressions, path)
            )
        if isinstance(a, Member) and self._is_merged(a):
            # Which of the classes it is, nobody knows: all of them have to.
            callees = self.ev.callees(frozenset((a,)))
            if not all(self._may_speak(ref, n, each, arguments) for each in callees if each != OPEN):
                return NOTHING
        if isinstance(a, Parameter) or (isinstance(a, Member) and _is_symbol(a)):
            if any(self._may_speak(ref, n, each, arguments) for each in self.ev.callees(frozenset((a,)))):
                return Invoke(a, arguments, expressions, path)
            return NOTHING
        return self._concrete(ref, n, a, arguments, expressions, path)

    def _is_merged(self, a: Member) -> bool:
        """Whether the receiver of a method is known by an annotation alone, which derived classes fit as well."""
        return any(
            isinstance(base, Object)
            and base.site is None
            and isinstance(base.kind, FunctionRef)
            and not _is_self(self, a)
            for base in self.ev.resolved(frozenset((a.base,)))
        )

    def _may_speak(self, ref: FunctionRef, n: int, a: Alternative, arguments: Arguments) -> bool:
        if any(each in self.speaking for each in self._runs(a, arguments)):
            return True
        return self._direct(ref, n, a, arguments, ()) is not None

    def _concrete(
        self,
        ref: FunctionRef,
        n: int,
        a: Alternative,
        arguments: Arguments,
        expressions: tuple[tuple[str | None, Expression], ...],
        path: tuple[Site, ...],
    ) -> Term:
        if isinstance(a, Function):
            if a.ref not in self.speaking or self.ev.project.function(a.ref).generator:
                return NOTHING
            return self._of_function(a, arguments, expressions, path)
        if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
            parts = [self._concrete(ref, n, f, arguments, expressions, path) for f in self.ev.attribute(a, "__call__")]
            return alternatives(parts) if parts else NOTHING
        if isinstance(a, Class):
            maker = self.ev.method(a.ref, "__init__")
            if maker is None or maker not in self.speaking:
                return NOTHING
            return self._of_function(Function(maker, Object(path[0], a.ref)), arguments, expressions, path)
        direct = self._direct(ref, n, a, arguments, path)
        if direct is not None:
            return Call(direct)
        if isinstance(a, External) and self._ends(a):
            return Fail()
        if isinstance(a, Result) and self.ev.is_partial(a) and a.arguments.positional:
            held = a.arguments
            merged = Arguments(
                (*held.positional[1:], *arguments.positional),
                (*(p for p in held.keywords if p[0] not in dict(arguments.keywords)), *arguments.keywords),
                held.open or arguments.open,
                arguments.star,
                arguments.double,
            )
            parts = [
                self.of_alternative(ref, n, each, merged, (), path) for each in sorted(held.positional[0], key=in_order)
            ]
            return alternatives(parts) if parts else NOTHING
        if isinstance(a, External):
            known = self.ev.knowledge.get(a.name)
            if known is not None and known.kind == "apply" and known.runs:
                elements = tuple([self.ev.element(value) for value in arguments.positional[1:]])
                given = Arguments(elements) if elements else Arguments(open=True)
                parts = [
                    self.of_alternative(ref, n, each, given, (), path)
                    for each in sorted(self._applied(known, arguments), key=in_order)
                ]
                return alternatives(parts) if parts else NOTHING
        if (a is OPEN or a == OPEN or isinstance(a, (External, Member))) and self._hands_over(a, arguments):
            return Unknown()
        return NOTHING

    def _ends(self, a: External) -> bool:
        """Whether a call raises, or ends the process with an error."""
        known, row = self.ev.knowledge.get(a.name), self.ev.row(a.name)
        return row is not None and row.role == "raises" and known is None

    def _hands_over(self, a: Alternative, arguments: Arguments) -> bool:
        """Whether code that nobody knows is given something that makes parallel calls."""
        if isinstance(a, External) and (self.ev.knowledge.get(a.name) is not None or self.ev.rows.is_pure(a.name)):
            return False
        return any(self._holds_effects(each) for value in arguments.all() for each in value)

    def _holds_effects(self, a: Alternative) -> bool:
        if isinstance(a, Function):
            return a.ref in self.speaking
        if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
            return any(m in self.speaking for c in self.ev.lineage(a.kind) for m in self.ev.project.methods(c).values())
        return False

    def _of_function(
        self,
        a: Function,
        arguments: Arguments,
        expressions: tuple[tuple[str | None, Expression], ...],
        path: tuple[Site, ...],
    ) -> Term:
        given = self.ev.bindings_for(a.ref, arguments, a.receiver)
        if a.bindings:
            given = {**dict(a.bindings), **given}
        if isinstance(a.receiver, Object) and a.receiver.bindings:
            given = {**dict(a.receiver.bindings), **given}
        return self.substituted(self.term(a.ref), given, self._expressions(a, given, expressions), path)

    def _expressions(
        self, a: Function, given: Mapping[Parameter, Value], expressions: tuple[tuple[str | None, Expression], ...]
    ) -> dict[tuple[FunctionRef, str], Expression]:
        """What stands for each parameter in the conditions of a callee."""
        found: dict[tuple[FunctionRef, str], Expression] = {}
        for parameter, value in given.items():
            known = only(value)
            if isinstance(known, Constant):
                found[parameter.ref, parameter.name] = ("constant", known.kind, known.value)
            elif known is not None and self.conditions.is_something(known):
                found[parameter.ref, parameter.name] = ("object", known)
        names = [f.name for f in self.ev.project.function(a.ref).formals]
        if a.receiver is not None:
            names = names[1:]
        for keyword, expression in expressions:
            name = keyword if keyword is not None else names.pop(0) if names else None
            if name is not None:
                found.setdefault((a.ref, name), expression)
        return found

    # -- parallel calls of libraries

    def _direct(
        self, ref: FunctionRef, n: int, a: Alternative, arguments: Arguments, path: tuple[Site, ...]
    ) -> ParallelCall | None:
        """The parallel call that running a library's function is; None if it is none."""
        path = path or (Site(ref, n),)
        if isinstance(a, External):
            return self._of_known(a.name, self.ev.knowledge.get(a.name), arguments, path)
        if isinstance(a, Member) and isinstance(a.base, Result):
            name = self.ev.knowledge.outside(f"{a.base.name}.{a.name}")
            known = self.ev.knowledge.get(name)
            made_for = (x for value in a.base.arguments.all() for x in value)
            if known is not None and known.checkpoint and any(self._names_participants(x, 3) for x in made_for):
                return None
            return self._of_known(name, known, arguments, path)
        if isinstance(a, Result):
            return self._compiled(ref, n, a, path)
        if isinstance(a, (Member, type(OPEN))):
            return self._by_argument(ref, n, arguments, path)
        return None

    def _of_known(
        self, name: str, known: Known | None, arguments: Arguments, path: tuple[Site, ...]
    ) -> ParallelCall | None:
        if known is None or not known.parallel:
            return None
        position = known.positional.index(known.label) if known.label in known.positional else None
        label = arguments.get(known.label, position) if known.label is not None else None
        if known.checkpoint and any(self._names_participants(x, 3) for value in arguments.all() for x in value):
            return None
        if known.among is not None:
            among = known.positional.index(known.among) if known.among in known.positional else None
            if arguments.get(known.among, among) is not None:
                return None
        said = only(label) if label is not None else None
        tiled = only(arguments.get("tiled", None) or frozenset())
        return ParallelCall(
            name.rsplit(".", 1)[-1],
            "strong",
            name,
            path,
            everyone=True,
            of_devices=isinstance(tiled, Constant) and tiled.value is True,
            checkpoint=known.checkpoint,
            label=said.value
            if isinstance(said, Constant) and isinstance(said.value, str)
            else self._template(path[-1], known, position),
        )

    def _names_participants(self, a: Alternative, depth: int) -> bool:
        """Whether options say which processes take part."""
        if not isinstance(a, Result) or depth == 0:
            return False
        row = self.ev.row(a.name)
        if row is not None and row.role == "participants":
            given = dict(a.arguments.keywords)
            active, primary = given.get("active_processes"), given.get("primary_host")
            named = active is not None and only(active) != NONE
            return named or (primary is not None and only(primary) == NONE)
        return any(self._names_participants(x, depth - 1) for value in a.arguments.all() for x in value)

    def _template(self, site: Site, known: Known, position: int | None) -> str | None:
        function = self.ev.project.function(site.ref)
        call = function.operations[site.number]
        if not isinstance(call, s.Call) or known.label is None:
            return None
        plain = [a.value for a in call.arguments if not a.keyword and not a.star]
        named = [a.value for a in call.arguments if a.keyword == known.label]
        given = named or ([plain[position]] if position is not None and position < len(plain) else [])
        return template(function.operations, given[0]) if given else None

    def _by_argument(
        self, ref: FunctionRef, n: int, arguments: Arguments, path: tuple[Site, ...]
    ) -> ParallelCall | None:
        """A method of an object that is known only by what the method is passed."""
        operation = self.ev.project.function(ref).operations[n]
        function = (
            self.ev.project.function(ref).operations[operation.function] if isinstance(operation, s.Call) else None
        )
        if not isinstance(function, s.Attribute):
            return None
        for value in arguments.all():
            for each in value:
                known = self.ev.knowledge.get(each.name) if isinstance(each, Result) else None
                if known is not None and known.given_to:
                    name = f"{known.given_to}.{function.name}"
                    return self._of_known(name, self.ev.knowledge.get(name), arguments, path)
        return None

    def _compiled(self, ref: FunctionRef, n: int, a: Result, path: tuple[Site, ...]) -> ParallelCall | None:
        known = self.ev.knowledge.get(a.name)
        if known is None:
            return None
        if known.derives and known.kind == "transform":
            for inner in self.ev.wrapped(a):
                if isinstance(inner, Result):
                    return self._compiled(ref, n, inner, path)
            return None
        if not (known.kind == "jit" or known.spans) or self._is_local(a):
            return None
        maps = [self._is_local(each) for each in self._maps_within(a)] if known.kind == "jit" else []
        if maps and all(maps):
            return None
        spans = known.spans or bool(maps)
        if known.kind == "jit" and not spans and not self._is_sharded(a) and not self._is_searching:
            if self._is_placed_here(path[-1]):
                return None
            if self.is_local_call(path[-1], self._statics(a)) and not self._communicates(a):
                return None
        if not self.ev.wrapped(a):
            return None
        certain = spans or self._is_sharded(a)
        if not certain and not self._is_searching:
            certain = self._communicates(a) or self.is_global_call(path[-1])
        strength: Strength = "strong" if certain else "weak"
        return ParallelCall(
            self._name(a, path[-1]),
            strength,
            a.site,
            path,
            carried=carries(self.ev.project.function(path[-1].ref), path[-1].number),
        )

    def _maps_within(self, a: Result, depth: int = 3) -> Iterator[Result]:
        """The maps over devices that a compiled function consists of."""
        for each in self.ev.resolved(self.ev.wrapped(a)) if depth else ():
            known = self.ev.knowledge.get(each.name) if isinstance(each, Result) else None
            if isinstance(each, Result) and known is not None:
                if known.spans:
                    yield each
                elif known.kind in ("jit", "transform"):
                    yield from self._maps_within(each, depth - 1)

    def _statics(self, a: Result) -> frozenset[int]:
        """The positions of the arguments that a compiled function takes as constants."""
        found: set[int] = set()
        numbers = a.arguments.get("static_argnums", None) or frozenset()
        names = a.arguments.get("static_argnames", None) or frozenset()
        formals: list[str] = []
        for f in self.ev.wrapped(a):
            if isinstance(f, Function):
                formals = [each.name for each in self.ev.project.function(f.ref).formals]
        for value in (numbers, names):
            for each in value:
                parts = [x for v in each.elements for x in v] if isinstance(each, Elements) else [each]
                for part in parts:
                    if isinstance(part, Constant) and isinstance(part.value, int):
                        found.add(part.value)
                    elif isinstance(part, Constant) and part.value in formals:
                        found.add(formals.index(str(part.value)))
        return frozenset(found)

    def _is_placed_here(self, site: Site) -> bool:
        """Whether a call is in the block of a manager that puts everything on one device."""
        function, values = self.ev.project.function(site.ref), self.ev.functions[site.ref].values
        for n, o in enumerate(function.operations[: site.number]):
            if isinstance(o, s.Enter):
                made = only(values[o.manager])
                row = self.ev.row(made.name) if isinstance(made, Result) else None
                if row is not None and row.role == "local":
                    left = (
                        m
                        for m, e in enumerate(function.operations)
                        if isinstance(e, s.Leave) and e.manager == o.manager
                    )
                    ends = list(left)
                    if n < site.number and (not ends or site.number < max(ends)):
                        return True
        return False

    def _communicates(self, a: Result) -> bool:
        """Whether a compiled function contains a call that all processes must make."""
        inner = (f.ref for f in self.ev.callees(self.ev.wrapped(a)) if isinstance(f, Function))
        return any(call.everyone for ref in inner for call in calls_in(self.term(ref)))

    def _name(self, a: Result, site: Site) -> str:
        for each in sorted(self.ev.wrapped(a), key=in_order):
            if isinstance(each, Function):
                name = self.ev.project.function(each.ref).name
                if name != "<lambda>":
                    return name
                return called_as(self.ev.project.function(site.ref), site.number) or f"a lambda under {a.name}"
            if isinstance(each, (Parameter, Member)):
                return each.name
        return f"a function under {a.name}"

    def _is_sharded(self, a: Result) -> bool:
        for name in ("in_shardings", "out_shardings"):
            known = self.ev.knowledge.get(a.name)
            position = known.positional.index(name) if known is not None and name in known.positional else None
            given = a.arguments.get(name, position)
            if given is not None and any(not isinstance(each, Constant) for each in given):
                return not all(self._has_role(each, "own devices") for each in given)
        return False

    def _has_role(self, a: Alternative, role: str) -> bool:
        row = self.ev.row(a.name) if isinstance(a, Result) else None
        return row is not None and row.role == role

    def _is_local(self, a: Alternative, depth: int = 6) -> bool:
        """Whether something is made of the devices of this process, or of one device."""
        if isinstance(a, Object) and a.kind == "list":
            return depth > 0 and any(self._is_local(each, depth - 1) for each in self.ev.items(a))
        if isinstance(a, Elements):
            return any(self._is_local(x, depth - 1) for v in a.elements for x in v) if depth else False
        if not isinstance(a, Result) or depth == 0:
            return False
        if self._has_role(a, "own devices"):
            return True
        for name, value in a.arguments.keywords:
            if (
                name in ("device", "backend")
                and value
                and not any(each == OPEN or (isinstance(each, Constant) and each.value is None) for each in value)
            ):
                return True
        known = self.ev.knowledge.get(a.name)
        if known is not None and known.kind == "mesh" and self._is_written_out(a, known):
            return True
        functions = {id(v) for v in (self.ev.wrapped(a),)} if known is not None else set()
        return any(
            self._is_local(each, depth - 1)
            for value in a.arguments.all()
            if id(value) not in functions
            for each in value
        )

    def _is_written_out(self, mesh: Result, known: Known) -> bool:
        """Whether a mesh is of devices that are listed one by one: processes that own none of them take no part."""
        given = mesh.arguments.get("devices", 0 if known.sizes == "devices" else None)
        lists = [a for a in given or () if isinstance(a, (Object, Elements))]
        if given is None or len(lists) != len(given):
            return False
        for a in lists:
            if isinstance(a, Elements):
                continue
            made = self.ev.project.function(a.site.ref).operations[a.site.number] if a.site is not None else None
            if not (isinstance(made, s.Display) and made.elements and not made.starred):
                return False
        return bool(lists)

    # -- substitution

    def substituted(
        self,
        term: Term,
        given: Mapping[Parameter, Value],
        expressions: Mapping[tuple[FunctionRef, str], Expression],
        path: tuple[Site, ...],
    ) -> Term:
        """The term of a callee as its caller sees it."""
        if term == NOTHING:
            return term
        return _Instance(self, self.ev.substitution(given), expressions, path).term(term)

    def expanded(self, term: Term, nesting: int = 6) -> Term:
        """A term in which symbols stand for what all callers pass."""
        if isinstance(term, Invoke):
            if nesting == 0:
                return Unknown()
            parts = [
                self.expanded(
                    self._concrete(
                        term.path[-1].ref, term.path[-1].number, a, term.arguments, term.expressions, term.path
                    ),
                    nesting - 1,
                )
                for a in sorted(self.ev.callees(frozenset((term.callee,))), key=in_order)
            ]
            return alternatives(parts) if parts else NOTHING
        if isinstance(term, Series):
            return series(*(self.expanded(part, nesting) for part in term.parts))
        if isinstance(term, Choice):
            return select(term.condition, self.expanded(term.yes, nesting), self.expanded(term.no, nesting))
        return star(self.expanded(term.body, nesting)) if isinstance(term, Star) else term


def element_of(callee: Alternative) -> FunctionRef | None:
    """The kind of the element that is called, or whose method is."""
    receiver = callee.receiver if isinstance(callee, Function) else None
    return (element_kind(receiver) if isinstance(receiver, Object) else None) or element_kind(callee)


def _is_self(effects: Effects, a: Member) -> bool:
    """Whether a member is one of a method's own receiver."""
    base = a.base
    return isinstance(base, Parameter) and effects.ev.structure.receiver(base.ref) == base.name


class _Instance:
    """The substitution of the arguments of one call into a term."""

    def __init__(
        self,
        effects: Effects,
        substitution: Substitution,
        expressions: Mapping[tuple[FunctionRef, str], Expression],
        path: tuple[Site, ...],
    ) -> None:
        self.effects = effects
        self.values = substitution
        self.expressions = expressions
        self.path = path

    def term(self, term: Term) -> Term:
        if isinstance(term, Call):
            return Call(replace(term.call, path=(*self.path, *term.call.path)))
        if isinstance(term, Series):
            return series(*(self.term(part) for part in term.parts))
        if isinstance(term, Choice):
            if term.condition is None:
                return select(None, self.term(term.yes), self.term(term.no))
            condition, holds = normal(
                self.effects.conditions.with_classes(substituted(term.condition, self.expressions)), True
            )
            small = simplified(condition, lambda _: None)
            if small != condition:
                condition, inner = normal(small, True)
                holds = holds == inner
            yes, no = (term.yes, term.no) if holds else (term.no, term.yes)
            known = decided_in(condition, _ONE_PROCESS) if not _about_process(condition) else None
            if known is not None:
                return self.term(yes if known else no)
            return select(condition, self.term(yes), self.term(no))
        if isinstance(term, Star):
            return star(self.term(term.body))
        if isinstance(term, Invoke):
            return self._invoke(term)
        return replace(term, path=(*self.path, *term.path)) if isinstance(term, Raising) else term

    def _invoke(self, term: Invoke) -> Term:
        arguments = term.arguments.mapped(self.values.value)
        expressions = tuple([(k, substituted(e, self.expressions)) for k, e in term.expressions])
        path = (*self.path, *term.path)
        if len(path) > 12:
            return Unknown()
        made = self.values.alternative(term.callee)
        run = self.effects._concrete if made == frozenset((term.callee,)) else self.effects.of_alternative
        if isinstance(term.callee, (Parameter, Member)):
            run = self.effects.of_alternative
        parts = [
            run(term.path[-1].ref, term.path[-1].number, a, arguments, expressions, path)
            for a in sorted(made, key=in_order)
        ]
        return alternatives(parts) if parts else NOTHING


def _about_process(condition: Expression) -> bool:
    return any(
        part in ("rank", "count") if type(part) is str else type(part) is tuple and _about_process(part)
        for part in condition
    )


def _is_symbolic(a: Alternative) -> bool:
    """Whether what a library made depends on what is passed: the mesh of a map, its devices."""
    if isinstance(a, Parameter):
        return True
    if isinstance(a, Member):
        return _is_symbol(a)
    return isinstance(a, Result) and any(_is_symbolic(x) for value in a.arguments.all() for x in value)


def _is_symbol(a: Member) -> bool:
    base: Alternative = a
    while isinstance(base, Member):
        base = base.base
    return isinstance(base, Parameter)


class _Walk:
    """One walk over the control-flow graph of a function."""

    def __init__(self, effects: Effects, ref: FunctionRef, element: Element | None = None) -> None:
        self.effects = effects
        self.ref = ref
        self.element = element
        self.function = effects.ev.project.function(ref)
        self.ssa: Ssa = effects.ev.structure.ssa(ref)
        self.live = effects.ev.functions[ref].live
        self.loops = {loop.header: loop.blocks for loop in self.ssa.loops}
        self.steps = 0
        self.nesting = 0
        self._by_block: dict[int, Term] = {}
        self.headers: list[int] = []
        """The headers of the loops around, innermost last."""
        self.behind: list[frozenset[int]] = []
        """Where each of these loops leads when it ends."""
        self.tried: list[Try] = []
        """The try statements around."""

    def region(self, start: int, until: int, within: frozenset[int] | None) -> Term:
        """The term of the blocks from ``start`` to ``until``, leaving early if control leaves ``within``."""
        if self.nesting == NESTING:
            return Unknown()
        self.nesting += 1
        try:
            return self._region(start, until, within)
        finally:
            self.nesting -= 1

    def _region(self, start: int, until: int, within: frozenset[int] | None) -> Term:
        parts: list[Term] = []
        seen: set[int] = set()
        block, last = start, start
        while block != until:
            self.steps += 1
            if self.steps > 2000:
                return series(*parts, Unknown())
            if block == s.FAILURE:
                return series(*parts, Quit() if self._quits(last) else Fail())
            if self.headers and block == self.headers[-1]:
                return series(*parts)  # the next round
            if block == s.EXIT or block in seen or (self.behind and block in self.behind[-1] and within is not None):
                return series(*parts, Leave())
            if within is not None and block not in within:
                return series(*parts, self._on_the_way_out(block))
            guarded = self._entered(block)
            if guarded is not None:
                following = self._tried(guarded, block, parts, within)
            else:
                seen.add(block)
                parts.append(self._of_block(block))
                last = block
                following = self.after(block, parts, until, within)
            if following is None:
                return series(*parts)
            block = following
        return series(*parts)

    def _entered(self, block: int) -> Try | None:
        """The outermost try statement that begins here and some of whose handlers only some processes enter."""
        for each in reversed(self.ssa.tries):
            if block in each.blocks and each not in self.tried:
                for clause in each.clauses:
                    if clause.block in self.live and self.effects.is_entered(self.ref, clause.number):
                        return each
        return None

    def _tried(self, guarded: Try, block: int, parts: list[Term], within: frozenset[int] | None) -> int | None:
        """A try statement: what it does if nothing is raised, or what it does until then and the handler."""
        join = self.ssa.meeting(block, guarded.clauses[0].target)
        self.tried.append(guarded)
        usual = self.region(block, join, within)
        self.tried.pop()
        block_of = self.function.block_of
        caught = {
            each: clause
            for each in raisings_in(usual)
            if block_of[each.path[0].number] in guarded.blocks
            for kind in each.kinds
            if (clause := self.effects.catching(self.ref, block_of[each.path[0].number], kind)) in guarded.clauses
        }
        found = without_raisings(usual, caught.__contains__)
        for clause in reversed(guarded.clauses):
            cut = interrupted(usual, lambda each, clause=clause: caught.get(each) == clause)  # type: ignore[misc]
            if cut is not None:
                handler = self.region(clause.target, join, within)
                condition, holds = self.effects.conditions.literal(self.ref, clause.number)
                arms = (series(cut, handler), found)
                found = select(condition, *(arms if holds else reversed(arms)))
        parts.append(found)
        return None if within is not None and join not in within else join

    def _quits(self, block: int) -> bool:
        """Whether a block ends the process without an error."""
        numbers = self.function.blocks[block].operations
        if not numbers:
            return False
        operations, values = self.function.operations, self.effects.ev.functions[self.ref].values
        o = operations[numbers[-1]]
        if isinstance(o, s.Raise) and o.exception is not None:
            raised = operations[o.exception]
            called = raised if isinstance(raised, s.Call) else None
            kind = only(values[called.function if called is not None else o.exception])
            arguments = called.arguments if called is not None else ()
        elif isinstance(o, s.Call):
            kind, arguments = only(values[o.function]), o.arguments
        else:
            return False
        if not isinstance(kind, External):
            return False
        known, row = self.effects.ev.knowledge.get(kind.name), self.effects.ev.row(kind.name)
        if not (known is not None and known.ends) and not (row is not None and row.role == "quits"):
            return False
        status = only(values[arguments[0].value]) if arguments else Constant(0, "int")
        return isinstance(status, Constant) and status.value in (0, None)

    def _of_block(self, block: int) -> Term:
        known = self._by_block.get(block)
        if known is None:
            operations = self.function.operations
            parts = []
            for n in self.function.blocks[block].operations:
                if type(operations[n]) in _SPEAKING:
                    parts.append(self.effects.of_operation(self.ref, n, operations[n], self.element))
            known = self._by_block[block] = series(*parts)
        return known

    def after(self, block: int, parts: list[Term], until: int, within: frozenset[int] | None) -> int | None:
        """Where control goes on after a block; what lies between is added to the parts."""
        targets = [target for target in self.ssa.usual(block) if target in self.live or target == s.FAILURE]
        body = self.loops.get(block)
        if body:
            inside = [target for target in targets if target in body]
            outside = [target for target in targets if target not in body]
            if inside:
                test = self.function.blocks[block].test
                iterable = self.ssa.iterates(block)
                taken = (
                    self.effects.of_iteration(self.ref, test, iterable)
                    if iterable is not None and test is not None
                    else NOTHING
                )
                self.headers.append(block)
                self.behind.append(self._leads_to(outside or self._behind(body)))
                inner = self.region(inside[0], block, body) if inside[0] != block else NOTHING
                self.headers.pop()
                self.behind.pop()
                parts.append(star(series(taken, inner)))
            if not outside:  # `while True`: what leaves it is inside
                outside = self._behind(body)
            return outside[0] if outside else None
        if len(targets) < 2:
            return targets[0] if targets else None
        join = self.ssa.join(block)
        arms = [self.region(target, join, within) for target in targets]
        parts.append(self._choice(block, targets, arms) if len(arms) == 2 else Unknown())
        return None if within is not None and join not in within else join

    def _on_the_way_out(self, block: int) -> Term:
        """What runs between leaving a loop and where it leads: what a branch does before it returns or raises."""
        stops = self.behind[-1] if self.behind else frozenset()
        headers, self.headers = self.headers, []
        parts: list[Term] = []
        seen: set[int] = set()
        found: Term | None = None
        last = block
        while found is None:
            if block in stops or block in seen or block == s.EXIT or block in headers:
                found = series(*parts, Leave())
            elif block == s.FAILURE:
                found = series(*parts, Quit() if self._quits(last) else Fail())
            else:
                seen.add(block)
                parts.append(self._of_block(block))
                following = self.after(block, parts, s.EXIT, None)
                last = block
                if following is None:
                    found = series(*parts, Leave())
                else:
                    block = following
        self.headers = headers
        return found

    def _leads_to(self, targets: list[int]) -> frozenset[int]:
        """The blocks behind a loop, up to the first one that does anything."""
        found: set[int] = set()
        for target in targets:
            block = target
            while block not in found:
                found.add(block)
                following = self.ssa.usual(block)
                if len(following) != 1 or self._of_block(block) != NOTHING:
                    break
                block = following[0]
        return frozenset(found - {s.EXIT, s.FAILURE})

    def _behind(self, body: frozenset[int]) -> list[int]:
        """Where the exits of a loop lead that has no end of its own."""
        found = [
            t for b in sorted(body) for t in self.ssa.usual(b) if t not in body and t != s.FAILURE and t in self.live
        ]
        return found[:1]

    def _choice(self, block: int, targets: list[int], arms: list[Term]) -> Term:
        pair = self.ssa.arms(block)
        test = self.function.blocks[block].test
        if pair is None or test is None:
            return select(None, *arms)
        if self.element is not None:
            expression = self.effects.conditions.expression(self.ref, test)
            condition, holds = self.effects.conditions.of_element(expression, self.ref, *self.element)
            if condition in (TRUE, FALSE):
                return arms[0] if ((condition == TRUE) == holds) == (targets[0] == pair[0]) else arms[1]
        else:
            condition, holds = self.effects.conditions.literal(self.ref, test)
        if (targets[0] == pair[0]) != holds:
            arms.reverse()
        return select(condition, *arms)


_SPEAKING = frozenset((s.Call, s.Attribute, s.Enter, s.Leave, s.Yield, s.Raise, s.Next))


# -- the normal form


def size(term: Term) -> int:
    """The number of nodes."""
    if isinstance(term, Series):
        return 1 + sum(map(size, term.parts))
    if isinstance(term, Choice):
        return 1 + size(term.yes) + size(term.no)
    return 1 + size(term.body) if isinstance(term, Star) else 1


def parts_of(term: Term) -> tuple[Term, ...]:
    """The terms that run one after another."""
    return term.parts if isinstance(term, Series) else (term,)


def series(*terms: Term) -> Term:
    """Terms one after another; nothing after an early exit is reached."""
    found: list[Term] = []
    for term in terms:
        found.extend(parts_of(term))
    for position, part in enumerate(found):
        if isinstance(part, (Leave, Fail, Quit)):
            del found[position + 1 :]
            break
    if len(found) > 1 and sum(map(size, found)) > SIZE:
        kept: list[Term] = []
        total = 0
        for part in found:
            total += size(part)
            if total > SIZE:
                break
            kept.append(part)
        found = [*kept, Unknown()]
    return found[0] if len(found) == 1 else Series(tuple(found))


def select(condition: Expression | None, yes: Term, no: Term) -> Term:
    """A choice between two terms."""
    if yes == no:
        return yes
    if _only_fails(yes) and not _only_fails(no):
        return series(*raisings_in(yes), no)
    if _only_fails(no):
        return series(*raisings_in(no), yes)
    if condition is not None and _same_calls(yes, no):
        return yes
    return Choice(condition, yes, no)


def _same_calls(one: Term, other: Term) -> bool:
    """Whether two terms are alike but for the places of their calls."""
    if isinstance(one, Call) and isinstance(other, Call):
        return one.call.matches(other.call)
    if isinstance(one, Series) and isinstance(other, Series):
        return len(one.parts) == len(other.parts) and all(map(_same_calls, one.parts, other.parts))
    if isinstance(one, Choice) and isinstance(other, Choice):
        same = one.condition is not None and one.condition == other.condition
        return same and _same_calls(one.yes, other.yes) and _same_calls(one.no, other.no)
    if isinstance(one, Star) and isinstance(other, Star):
        return _same_calls(one.body, other.body)
    return one == other


def alternatives(terms: Iterable[Term]) -> Term:
    """One of several terms; what decides is not known."""
    found: Term | None = None
    for term in terms:
        found = term if found is None else select(None, found, term)
    return found if found is not None else NOTHING


def star(body: Term) -> Term:
    """A term repeated by a loop; leaving it early is part of what it does."""
    return Star(body) if _does_something(body) else NOTHING


def _does_something(term: Term) -> bool:
    if isinstance(term, Series):
        return any(map(_does_something, term.parts))
    if isinstance(term, Choice):
        return _does_something(term.yes) or _does_something(term.no)
    return isinstance(term, (Call, Invoke, Star, Unknown, Pause, Raising))


def _only_fails(term: Term) -> bool:
    """Whether a term ends in an exception before it calls anything."""
    parts = parts_of(term)
    return bool(parts) and isinstance(parts[-1], Fail) and all(isinstance(part, Raising) for part in parts[:-1])


def raisings_in(term: Term) -> list[Raising]:
    """The exceptions that a term may raise."""
    if isinstance(term, Raising):
        return [term]
    if isinstance(term, Series):
        return [each for part in term.parts for each in raisings_in(part)]
    if isinstance(term, Choice):
        return raisings_in(term.yes) + raisings_in(term.no)
    return raisings_in(term.body) if isinstance(term, Star) else []


def without_raisings(term: Term, gone: Callable[[Raising], bool] = lambda each: True) -> Term:
    """A term without some of the exceptions that it may raise."""
    if isinstance(term, Raising):
        return NOTHING if gone(term) else term
    if isinstance(term, Series):
        return series(*(without_raisings(part, gone) for part in term.parts))
    if isinstance(term, Choice):
        return select(term.condition, without_raisings(term.yes, gone), without_raisings(term.no, gone))
    return star(without_raisings(term.body, gone)) if isinstance(term, Star) else term


def interrupted(term: Term, ends: Callable[[Raising], bool]) -> Term | None:
    """What a term does until the first exception of some kind; None if it raises none.

    A loop is interrupted in its first round, and what decides about an arm that raises is taken to hold.
    """
    if isinstance(term, Raising):
        return NOTHING if ends(term) else None
    if isinstance(term, Series):
        for position, part in enumerate(term.parts):
            found = interrupted(part, ends)
            if found is not None:
                return series(*term.parts[:position], found)
        return None
    if isinstance(term, Choice):
        yes, no = interrupted(term.yes, ends), interrupted(term.no, ends)
        return no if yes is None else yes if no is None else select(term.condition, yes, no)
    return interrupted(term.body, ends) if isinstance(term, Star) else None


def returned(term: Term) -> Term:
    """A term without the early exit at its end, which leads to what comes next anyway."""
    parts = parts_of(term)
    if parts and isinstance(parts[-1], Leave):
        parts = parts[:-1]
    if parts and isinstance(parts[-1], Choice):
        last = parts[-1]
        parts = (*parts[:-1], select(last.condition, returned(last.yes), returned(last.no)))
    return series(*parts)


def through(term: Term, path: tuple[Site, ...]) -> Term:
    """A term as reached through one more call."""
    if isinstance(term, Call):
        return Call(replace(term.call, path=(*path, *term.call.path)))
    if isinstance(term, Series):
        return series(*(through(part, path) for part in term.parts))
    if isinstance(term, Choice):
        return select(term.condition, through(term.yes, path), through(term.no, path))
    return star(through(term.body, path)) if isinstance(term, Star) else term


def before(term: Term) -> Term:
    """The half of a context manager that runs before the block."""
    kept: list[Term] = []
    for part in parts_of(term):
        if isinstance(part, Pause):
            break
        if isinstance(part, Choice) and _pauses(part):
            kept.append(select(part.condition, before(part.yes), before(part.no)))
            break
        kept.append(part)
    return series(*kept)


def after(term: Term) -> Term:
    """The half of a context manager that runs after the block."""
    parts = parts_of(term)
    for position, part in enumerate(parts):
        if isinstance(part, Pause):
            return returned(series(*parts[position + 1 :]))
        if isinstance(part, Choice) and _pauses(part):
            rest = parts[position + 1 :]
            return returned(series(select(part.condition, after(part.yes), after(part.no)), *rest))
    return NOTHING


def without_pauses(term: Term) -> Term:
    """A generator's term as its iteration runs it."""
    if isinstance(term, Pause):
        return NOTHING
    if isinstance(term, Series):
        return series(*(without_pauses(part) for part in term.parts))
    if isinstance(term, Choice):
        return select(term.condition, without_pauses(term.yes), without_pauses(term.no))
    return star(without_pauses(term.body)) if isinstance(term, Star) else term


def _pauses(term: Term) -> bool:
    if isinstance(term, Choice):
        return _pauses(term.yes) or _pauses(term.no)
    return any(isinstance(part, Pause) or (isinstance(part, Choice) and _pauses(part)) for part in parts_of(term))


def specialised(term: Term, decide: Decide) -> Term:
    """A term under assumptions about its conditions."""
    if isinstance(term, Series):
        return series(*(specialised(part, decide) for part in term.parts))
    if isinstance(term, Choice):
        known = decide(term.condition) if term.condition is not None else None
        if known is not None:
            return specialised(term.yes if known else term.no, decide)
        return select(term.condition, specialised(term.yes, decide), specialised(term.no, decide))
    return star(specialised(term.body, decide)) if isinstance(term, Star) else term


def quitting(term: Term, *, leaves_job: bool) -> Term:
    """A term in which a process that quits leaves the others alone, or ends the job."""
    if isinstance(term, Quit):
        return Leave() if leaves_job else Fail()
    if isinstance(term, Series):
        return series(*(quitting(part, leaves_job=leaves_job) for part in term.parts))
    if isinstance(term, Choice):
        arms = (quitting(term.yes, leaves_job=leaves_job), quitting(term.no, leaves_job=leaves_job))
        return select(term.condition, *arms)
    return star(quitting(term.body, leaves_job=leaves_job)) if isinstance(term, Star) else term


def filtered(term: Term, counts: Callable[[ParallelCall], bool]) -> Term:
    """A term with only those calls that count."""
    if isinstance(term, Call):
        return term if counts(term.call) else NOTHING
    if isinstance(term, Series):
        return series(*(filtered(part, counts) for part in term.parts))
    if isinstance(term, Choice):
        return select(term.condition, filtered(term.yes, counts), filtered(term.no, counts))
    return star(filtered(term.body, counts)) if isinstance(term, Star) else term


def calls_in(term: Term) -> list[ParallelCall]:
    """The calls of a term in order; those of both arms, and those of loops once."""
    if isinstance(term, Call):
        return [term.call]
    if isinstance(term, Series):
        return [call for part in term.parts for call in calls_in(part)]
    if isinstance(term, Choice):
        return calls_in(term.yes) + calls_in(term.no)
    return calls_in(term.body) if isinstance(term, Star) else []


def carries(function: s.Function, number: int) -> bool:
    """Whether the result of a call is stored where one of its arguments came from: ``state = step(state, batch)``."""
    operation = function.operations[number]
    if not isinstance(operation, s.Call):
        return False
    taken = {_name_of(function, argument.value) for argument in operation.arguments} - {None}
    given = {number}
    for other in range(number + 1, len(function.operations)):
        later = function.operations[other]
        if isinstance(later, s.Item) and later.value in given:
            given.add(other)
        elif isinstance(later, s.Store) and later.value in given and later.name in taken:
            return True
        elif isinstance(later, s.StoreAttribute) and later.value in given:
            stored = (_name_of(function, later.base), later.name)
            if stored in taken:
                return True
    return False


def _name_of(function: s.Function, number: int) -> object:
    operation = function.operations[number]
    if isinstance(operation, s.Load):
        return operation.name
    if isinstance(operation, s.Attribute):
        base = _name_of(function, operation.base)
        return (base, operation.name) if base is not None else None
    return None
