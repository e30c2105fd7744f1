"""Stratum 1: what each operation gives, and whom each call runs; one forward pass per function, by cells.

A visit evaluates the operations of one function in the order of its blocks, symbolic in its parameters. It reads and
writes cells: module variables, class attributes, fields, captured variables, elements of containers, results, and what
callers pass (entries). Which names a class or module binds is read off the text beforehand, so that nothing is ever
decided because something is not known *yet*.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from spmdlint.core.cells import Cells
from spmdlint.core.ssa import NOTHING, RESULT, Definition, Phi, Ssa
from spmdlint.core.values import (
    BOTTOM,
    JUST_NONE,
    NONE,
    OPEN,
    UNKNOWN,
    WIDTH,
    Alternative,
    Arguments,
    Class,
    Constant,
    External,
    Function,
    Keywords,
    Member,
    ModuleValue,
    Object,
    Parameter,
    Result,
    Sequence,
    Site,
    Substitution,
    Super,
    Value,
    bind,
    constant,
    depth_of,
    join,
    make_keywords,
    make_member,
    make_result,
    make_sequence,
    nesting,
    only,
    widened,
)
from spmdlint.knowledge.load import Knowledge
from spmdlint.knowledge.rows import Row, Rows
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Module, Project

Steps: TypeAlias = "list[tuple[int, Any, Callable[[Visit, int, Any], Value]]]"
ANY = "*"
"""The name of the cell for the elements of a container whose key is not known."""
_BUILTINS = frozenset(dir(builtins))
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_SMALL = 1 << 20
_CONTAINERS = frozenset(("list", "dict", "set"))
MAX_PASSES = 6
OPENINGS = 5
"""In how many steps the functions are opened that nobody calls."""
MAX_CHANGES = 8
"""How often a cell may change before it keeps what it held: a backstop, because widening is not monotone."""
_NOT_KEPT = Arguments(open=True)


def _bounded(value: Value) -> Value:
    """What a cell holds with too many alternatives."""
    return widened(value) if len(value) > WIDTH else value


class Structure:
    """What the text alone says about the functions of a project. One per run."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._ssa: dict[FunctionRef, Ssa] = {}
        self._around: dict[FunctionRef, frozenset[FunctionRef]] = {}
        self._fields: dict[FunctionRef, frozenset[str]] = {}
        self._captured: dict[FunctionRef, frozenset[str]] = {}
        self._globals: dict[Path, frozenset[str]] = {}
        self._stars: dict[Path, list[s.ImportStar]] = {}
        self._stores: dict[FunctionRef, dict[str, list[tuple[FunctionRef, int]]]] = {}

    def function(self, ref: FunctionRef) -> s.Function:
        return self.project.function(ref)

    def ssa(self, ref: FunctionRef) -> Ssa:
        """The function in SSA form."""
        known = self._ssa.get(ref)
        if known is None:
            set_inside = self.project.modules[ref.path].summary.set_inside.get(ref.index, {})
            known = self._ssa[ref] = Ssa(self.project.function(ref), frozenset(set_inside))
        return known

    def around(self, ref: FunctionRef) -> frozenset[FunctionRef]:
        """The functions around a function, whose parameters it can see; a class sees its own fields' parameters."""
        known = self._around.get(ref)
        if known is None:
            found: set[FunctionRef] = set()
            function = self.function(ref)
            while function.parent is not None:
                parent = self.project.ref(ref.path, function.parent)
                function = self.function(parent)
                if function.kind != "module":
                    found.add(parent)
            known = self._around[ref] = frozenset(found)
        return known

    def captured(self, ref: FunctionRef) -> frozenset[str]:
        """The names of a function that inner functions read or set."""
        known = self._captured.get(ref)
        if known is None:
            function = self.function(ref)
            found: set[str] = set()
            if function.kind != "module":
                below = {ref.index}
                for inner in self.project.modules[ref.path].summary.functions:
                    if inner.parent in below:
                        below.add(inner.index)
                        found.update(o.name for o in inner.operations if type(o) is s.Load)
                        found.update(inner.nonlocals)
            known = self._captured[ref] = frozenset(found & function.stores.keys())
        return known

    def globals_set(self, path: Path) -> frozenset[str]:
        """The names of a module that its functions set."""
        known = self._globals.get(path)
        if known is None:
            functions = self.project.modules[path].summary.functions
            known = self._globals[path] = frozenset(n for f in functions[1:] for n in f.globals if n in f.stores)
        return known

    def names_in(self, ref: FunctionRef) -> frozenset[str]:
        """The names that a function loads or asks objects for."""
        operations = self.function(ref).operations
        return frozenset(o.name for o in operations if type(o) is s.Load or type(o) is s.Attribute)

    @cached_property
    def named(self) -> frozenset[str]:
        """The names that anything in the project loads or asks for."""
        return frozenset(name for ref in self.project.functions() for name in self.names_in(ref))

    def stars(self, path: Path) -> list[s.ImportStar]:
        """The imports of all names of another module."""
        known = self._stars.get(path)
        if known is None:
            top = self.project.modules[path].top
            known = self._stars[path] = [o for o in top.operations if type(o) is s.ImportStar]
        return known

    def field_stores(self, cls: FunctionRef) -> Mapping[str, list[tuple[FunctionRef, int]]]:
        """The stores of a class's methods to fields of their receiver, by the name of the field."""
        known = self._stores.get(cls)
        if known is None:
            known = {}
            for method in self.project.methods(cls).values():
                function, receiver = self.function(method), self.receiver(method)
                for number, o in enumerate(function.operations):
                    if type(o) is s.StoreAttribute:
                        base = function.operations[o.base]
                        if type(base) is s.Load and base.name == receiver:
                            known.setdefault(o.name, []).append((method, number))
            self._stores[cls] = known
        return known

    def owner(self, ref: FunctionRef) -> FunctionRef | None:
        """The class whose method a function is."""
        return self.project.enclosing_class(ref)

    def receiver(self, ref: FunctionRef) -> str | None:
        """The name of a method's first parameter."""
        function = self.function(ref)
        if self.owner(ref) is None or not function.formals or function.kind != "function":
            return None
        first = function.formals[0]
        return first.name if first.kind in ("positional-only", "standard") else None

    def stored_fields(self, cls: FunctionRef) -> frozenset[str]:
        """The names of the fields that the methods of a class set on their receiver, or that it declares."""
        known = self._fields.get(cls)
        if known is None:
            found = set(self.declared(cls))
            for method in self.project.methods(cls).values():
                found.update(self.fields_set(method))
            for index in range(len(self.project.modules[cls.path].summary.functions)):
                inner = self.project.ref(cls.path, index)
                if self.function(inner).parent == cls.index:
                    found.update(self.fields_set(inner))
            known = self._fields[cls] = frozenset(found)
        return known

    def fields_set(self, method: FunctionRef) -> Iterator[str]:
        function, receiver = self.function(method), self.receiver(method)
        for operation in function.operations:
            if type(operation) is s.StoreAttribute:
                base = function.operations[operation.base]
                if type(base) is s.Load and base.name == receiver:
                    yield operation.name

    def declared(self, cls: FunctionRef) -> tuple[str, ...]:
        """The fields that a class declares by annotation, in order: a class without constructor is made with them."""
        found: dict[str, None] = {}
        for operation in self.function(cls).operations:
            if type(operation) is s.Declare or (type(operation) is s.Store and operation.annotation is not None):
                found[operation.name] = None
        return tuple(found)

    @cached_property
    def set_from_outside(self) -> frozenset[str]:
        """The names of attributes that are set on anything but a method's receiver."""
        return self.project.fields_set_from_outside


class Call:
    """One call as it was evaluated: whom it may run, and with which arguments."""

    __slots__ = ("arguments", "callees")

    def __init__(self, callees: Value, arguments: Arguments) -> None:
        self.callees = callees
        self.arguments = arguments


class Evaluated:
    """What is known of one function after its last visit."""

    __slots__ = ("calls", "live", "phis", "values")

    def __init__(self, values: list[Value], phis: list[Value], calls: dict[int, Call], live: frozenset[int]) -> None:
        self.values = values
        self.phis = phis
        self.calls = calls
        self.live = live


class Evaluation:
    """The solver of the stratum, and the queries on its result."""

    def __init__(self, project: Project, knowledge: Knowledge, rows: Rows, order: Iterable[FunctionRef] | None = None):
        self.project = project
        self.knowledge = knowledge
        self.rows = rows
        self.structure = Structure(project)
        self.cells: Cells[FunctionRef, Value] = Cells(
            BOTTOM, operator.or_, _bounded, keeps_after=MAX_CHANGES, top=UNKNOWN
        )
        self.functions: dict[FunctionRef, Evaluated] = {}
        self._externals: dict[str, Value] = {}
        self._constants: dict[tuple[str, object], Value] = {}
        self.roles: dict[FunctionRef, str] = {}
        self.opened: set[FunctionRef] = set()
        """The functions that are called by nobody known, so that anything may be passed to them."""
        self.plans: dict[FunctionRef, tuple[list[Value], list[tuple[int, Steps]]]] = {}
        # What was asked in one visit: cells do not change meanwhile. After the last one they never do.
        self._resolved: dict[Value, Value] = {}
        self._callees: dict[Value, Value] = {}
        self._lineages: dict[FunctionRef, list[FunctionRef]] = {}
        self._attributes: dict[tuple[Object, str, Alternative], Value] = {}
        self.cells.schedule(order if order is not None else self._outside_in())
        self.cells.solve(self._visit)
        self._open_the_rest()
        self._forget()

    def _outside_in(self) -> list[FunctionRef]:
        """Modules first, then classes, then functions: what is imported is then known when it is read."""
        rank = {"module": 0, "class": 1, "function": 2, "lambda": 2}
        return sorted(self.project.functions(), key=lambda ref: rank[self.project.function(ref).kind])

    def _open_the_rest(self) -> None:
        """Let anything be passed to what nobody calls: first to what nothing names, which may call the others."""
        functions = [ref for ref in self.project.functions() if self.project.function(ref).formals]
        for round_ in range(OPENINGS):
            closed = [ref for ref in functions if ref not in self.opened and not self._is_entered(ref)]
            if not closed:
                return
            named = self.structure.named
            first = [ref for ref in closed if self.project.function(ref).name not in named] if round_ == 0 else []
            callable_ = self._named_by(closed) if not first and round_ < OPENINGS - 1 else frozenset()
            chosen = first or [ref for ref in closed if self.project.function(ref).name not in callable_] or closed
            self.opened.update(chosen)
            for ref in chosen:
                for formal in self.project.function(ref).formals:
                    self.cells.touch(("entry", ref, formal.name))
            self.cells.schedule(chosen)
            self.cells.solve(self._visit)

    def _is_entered(self, ref: FunctionRef) -> bool:
        formals = self.project.function(ref).formals
        return any(self.cells.read(("entry", ref, formal.name)) for formal in formals)

    def _named_by(self, functions: Iterable[FunctionRef]) -> frozenset[str]:
        """The names that some functions, or those inside them, load or ask for."""
        found: set[str] = set()
        for ref in functions:
            own = self.project.function(ref).name
            found.update(name for name in self.structure.names_in(ref) if name != own)
        return frozenset(found)

    def _forget(self) -> None:
        self._resolved.clear()
        self._callees.clear()
        self._lineages.clear()
        self._attributes.clear()

    def _visit(self, ref: FunctionRef) -> None:
        self._forget()
        self.functions[ref] = Visit(self, ref).run()

    def called_first(self) -> list[FunctionRef]:
        """All functions, callees before their callers where there is no cycle."""
        found: dict[FunctionRef, None] = {}
        for start in self._outside_in():
            if start in found:
                continue
            active = {start}
            stack = [(start, iter(self._calls_of(start)))]
            while stack:
                ref, following = stack[-1]
                for each in following:
                    if each not in found and each not in active:
                        active.add(each)
                        stack.append((each, iter(self._calls_of(each))))
                        break
                else:
                    stack.pop()
                    found[ref] = None
        return list(found)

    @cached_property
    def callers(self) -> Mapping[FunctionRef, list[FunctionRef]]:
        """By function, those that call it."""
        found: dict[FunctionRef, list[FunctionRef]] = {}
        for ref in self.functions:
            for callee in self._calls_of(ref):
                found.setdefault(callee, []).append(ref)
        return found

    def _calls_of(self, ref: FunctionRef) -> list[FunctionRef]:
        evaluated = self.functions.get(ref)
        found: dict[FunctionRef, None] = {}
        for call in evaluated.calls.values() if evaluated is not None else ():
            for a in self.callees(call.callees):
                if isinstance(a, Function):
                    found[a.ref] = None
                elif isinstance(a, Class):
                    found[self.method(a.ref, "__init__") or a.ref] = None
        return list(found)

    # -- values that are made often

    def external(self, name: str) -> Value:
        known = self._externals.get(name)
        if known is None:
            known = self._externals[name] = frozenset((External(self.knowledge.outside(name)),))
        return known

    def literal(self, value: object) -> Value:
        key = (type(value).__name__, value)
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = frozenset((constant(value),))
        return known

    @cached_property
    def owners(self) -> frozenset[str]:
        """The library classes with methods that every process has to call."""
        functions = self.knowledge.functions
        names = (name.rpartition(".")[0] for name, known in functions.items() if known.parallel)
        return frozenset(name for name in names if name in functions)

    @cached_property
    def _currying(self) -> str:
        """The name of a function that holds back arguments for another one."""
        return next(name for name, known in sorted(self.knowledge.functions.items()) if known.kind == "currying")

    def row(self, name: str) -> Row | None:
        return self.rows.functions.get(name)

    def is_partial(self, a: Alternative) -> TypeGuard[Result]:
        """Whether a value is a function of which some arguments are held back."""
        known = self.knowledge.get(a.name) if isinstance(a, Result) else None
        return known is not None and known.kind == "currying"

    def substitution(self, given: Mapping[Parameter, Value]) -> Substitution:
        return Substitution(given, self.structure.around, self.attribute)

    # -- names

    def global_name(self, path: Path, name: str, seen: frozenset[Path] = frozenset()) -> Value:
        """A module's variable, something that it imports with a star, or a builtin."""
        found = self.module_variable(path, name, seen)
        if found is not None:
            return found
        return self.external(f"builtins.{name}") if name in _BUILTINS else UNKNOWN

    def home_of_global(self, path: Path, name: str, seen: frozenset[Path] = frozenset()) -> Path | None:
        """The module that sets a variable that a module sees: itself, or one that it imports with ``*``."""
        module = self.project.modules[path]
        if name in module.top.stores or name in self.structure.globals_set(path):
            return path
        for operation in self.structure.stars(path):
            other = self.project.find_module(self.project.absolute(module, operation.module, operation.level), module)
            if other is not None and other not in seen and other != path:
                found = self.home_of_global(other, name, seen | {path})
                if found is not None:
                    return found
        return None

    def module_variable(self, path: Path, name: str, seen: frozenset[Path] = frozenset()) -> Value | None:
        """A variable of a module; None if it has none of this name."""
        home = self.home_of_global(path, name)
        if home is not None:
            return self.cells.read(("global", home, name))
        module = self.project.modules[path]
        for operation in self.structure.stars(path):
            dotted = self.project.absolute(module, operation.module, operation.level)
            other = self.project.find_module(dotted, module)
            if other is None:
                if self.knowledge.get(self.knowledge.canonical(f"{dotted}.{name}")) is not None:
                    return self.external(f"{dotted}.{name}")
            elif other not in seen and other != path:
                found = self.module_variable(other, name, seen | {path})
                if found is not None:
                    return found
        return None

    def imported(self, path: Path, operation: s.Import) -> Value:
        """What an import statement binds."""
        module = self.project.modules[path]
        dotted = self.project.absolute(module, operation.module, operation.level)
        if operation.root:
            return self.dotted(dotted.split(".")[0], module)
        if operation.name is None:
            return self.dotted(dotted, module)
        full = f"{dotted}.{operation.name}" if dotted else operation.name
        if self.knowledge.get(self.knowledge.canonical(full)) is not None:
            return self.external(full)
        home = self.project.find_module(dotted, module)
        if home is not None and home != path:
            found = self.module_variable(home, operation.name)
            if found is not None:
                return found
        return self.dotted(full, module)

    def dotted(self, dotted: str, module: Module) -> Value:
        path = self.project.find_module(dotted, module)
        if path is not None:
            return frozenset((ModuleValue(path),))
        return self.external(dotted)

    def module_attribute(self, path: Path, name: str) -> Value:
        module = self.project.modules[path]
        full = self.knowledge.canonical(f"{module.name}.{name}")
        if self.knowledge.get(full) is not None:
            return self.external(full)
        found = self.module_variable(path, name)
        if found is not None:
            return found
        inner = self.project.find_module(f"{module.name}.{name}", module)
        return frozenset((ModuleValue(inner),)) if inner is not None else UNKNOWN

    # -- classes and attributes

    def bases(self, cls: FunctionRef) -> tuple[Value, ...]:
        held = only(self.cells.read(("bases", cls)))
        return held.elements if isinstance(held, Sequence) else ()

    def lineage(self, cls: FunctionRef) -> list[FunctionRef]:
        """A class and the project's classes that it is derived from, in the order in which attributes are looked up."""
        known = self._lineages.get(cls)
        if known is not None:
            return known
        found: dict[FunctionRef, None] = {cls: None}
        pending = [cls]
        while pending:
            for base in self.bases(pending.pop(0)):
                for each in base:
                    if isinstance(each, Class) and each.ref not in found:
                        found[each.ref] = None
                        pending.append(each.ref)
        self._lineages[cls] = list(found)
        return self._lineages[cls]

    def derived(self, cls: FunctionRef) -> list[FunctionRef]:
        """The project's classes derived from a class, directly or not, in a fixed order."""
        found: dict[FunctionRef, None] = {}
        pending = [cls]
        while pending:
            for each in sorted(
                (a.ref for a in self.cells.read(("derived", pending.pop())) if isinstance(a, Class)), reverse=True
            ):
                if each not in found:
                    found[each] = None
                    pending.append(each)
        return list(found)

    def has_open_base(self, cls: FunctionRef) -> bool:
        """Whether a class is derived from something that is not the project's, so that it may have more attributes."""
        for each in self.lineage(cls):
            for base in self.bases(each):
                if any(not isinstance(a, Class) and not self._is_root(a) for a in base):
                    return True
        return False

    def _is_root(self, a: Alternative) -> bool:
        """Whether a base class has nothing that others could be surprised by."""
        row = self.row(a.name) if isinstance(a, External) else None
        return row is not None and row.role == "object"

    def class_attribute(self, cls: FunctionRef, name: str) -> Value | None:
        """What a class or one that it is derived from binds to a name; None if none does."""
        for each in self.lineage(cls):
            if name in self.project.function(each).stores:
                found = self.cells.read(("attribute", each, name))
                if found or name not in self.structure.declared(each):
                    return found
        return None

    def attribute(self, a: Alternative, name: str, receiver: Alternative | None = None) -> Value:
        """An attribute of an alternative; methods are bound to ``receiver`` instead, where it is a symbol for it."""
        kind = type(a)
        if kind is External:
            return self.external(f"{a.name}.{name}")  # type: ignore[union-attr]
        if kind is ModuleValue:
            return self.module_attribute(a.path, name)  # type: ignore[union-attr]
        if kind in (Parameter, Member):
            made = make_member(a, name)
            return frozenset((made,))
        if isinstance(a, Object):
            return self._of_object(a, name, receiver or a)
        if isinstance(a, Class):
            found = self.class_attribute(a.ref, name)
            if found is None:
                return UNKNOWN
            return self._bound(found, None, a)
        if isinstance(a, Result):
            return frozenset((make_member(a, name),))
        if isinstance(a, Super):
            own = self.class_attribute(a.ref, name)
            return UNKNOWN if own is None else self._bound(own, a.receiver, Class(a.ref))
        if isinstance(a, Function) and name in ("func", "__wrapped__", "__func__"):
            return frozenset((a,))
        if a == NONE and not name.startswith("__"):
            return BOTTOM  # an AttributeError, so nothing comes after it
        return UNKNOWN

    def _of_object(self, a: Object, name: str, receiver: Alternative) -> Value:
        known = self._attributes.get((a, name, receiver))
        if known is None:
            known = self._attributes[a, name, receiver] = self._find_attribute(a, name, receiver)
        return known

    def _find_attribute(self, a: Object, name: str, receiver: Alternative) -> Value:
        cls = a.kind
        if not isinstance(cls, FunctionRef):
            return frozenset((make_member(a, name),))
        if self.is_generator(a):
            return UNKNOWN
        classes = [cls, *self.derived(cls)] if a.site is None else [cls]
        found: Value = BOTTOM
        any_found = False
        for number, each in enumerate(classes):
            own = name in self.structure.stored_fields(each) or name in self.project.function(each).stores
            if number and not own:
                continue
            held = self._held(each, name, receiver)
            if held is not None:
                any_found = True
                found = join(found, held)
        if not any_found:
            return self._inherited(a, name)
        if a.bindings:
            found = self.substitution(dict(a.bindings)).value(found)
        return found

    def _inherited(self, a: Object, name: str) -> Value:
        """What an object has from a class of a library with methods that every process has to call."""
        assert isinstance(a.kind, FunctionRef)
        found: Value = BOTTOM
        for each in self.lineage(a.kind):
            for base in (b for value in self.bases(each) for b in value):
                if isinstance(base, External) and base.name in self.owners:
                    made = Result(base.name, a.site or Site(a.kind, 0), _NOT_KEPT)
                    found = join(found, frozenset((make_member(made, name),)))
        return found or UNKNOWN

    def _held(self, cls: FunctionRef, name: str, receiver: Alternative) -> Value | None:
        """What an object of exactly this class has under a name; None if nothing in the project gives it one."""
        found: Value | None = None
        for each in self.lineage(cls):
            if name in self.structure.stored_fields(each):
                held = self.cells.read(("field", each, name))
                found = held if found is None else join(found, held)
        if name in self.structure.set_from_outside:
            held = self.cells.read(("field", cls, name))
            if held:
                found = held if found is None else join(found, held)
        own = self.class_attribute(cls, name)
        if own is not None and not (found and self._set_when_made(cls, name)):
            bound = self._bound(own, receiver, Class(cls))
            found = bound if found is None else join(found, bound)
        return found

    def _set_when_made(self, cls: FunctionRef, name: str) -> bool:
        maker = self.method(cls, "__init__")
        return maker is not None and name in set(self.structure.fields_set(maker))

    def method(self, cls: FunctionRef, name: str) -> FunctionRef | None:
        """The function that a class, or one that it is derived from, defines under a name."""
        for each in self.lineage(cls):
            found = self.project.methods(each).get(name)
            if found is not None:
                return found
        return None

    def _bound(self, value: Value, receiver: Alternative | None, cls: Class) -> Value:
        """Attributes of a class as its objects (or, without a receiver, the class itself) see them."""
        found: Value = BOTTOM
        for each in value:
            found = join(found, self._bound_one(each, receiver, cls))
        return found

    def _bound_one(self, a: Alternative, receiver: Alternative | None, cls: Class) -> Value:
        if isinstance(a, Function) and a.receiver is None:
            if self.structure.owner(a.ref) is None and receiver is None:
                return frozenset((a,))
            role = self.roles.get(a.ref)
            if role == "static":
                return frozenset((a,))
            if role == "class":
                return frozenset((Function(a.ref, cls, a.bindings, a.depth),))
            if receiver is None:
                return frozenset((a,))
            bound = Function(a.ref, receiver, a.bindings, 1 + max(nesting(a.bindings), depth_of(receiver)))
            if role == "property":
                return self.result_of(bound, Arguments())
            return frozenset((bound,))
        if isinstance(a, Result) and receiver is not None and self._is_method(a):
            given = (frozenset((receiver,)),)
            partial = Result(
                self._currying,
                a.site,
                Arguments((frozenset((a,)), *given)),
                1 + max(a.depth, depth_of(receiver)),
            )
            return frozenset((partial,))
        return frozenset((a,))

    def _is_method(self, made: Result) -> bool:
        """Whether a decorator of a library made a method of something: it then takes the receiver first."""
        known = self.knowledge.get(made.name)
        if known is None or known.kind not in ("map", "jit", "transform"):
            return False
        inner = self.wrapped(made)
        return any(isinstance(f, Function) and self.structure.owner(f.ref) is not None for f in inner)

    def wrapped(self, made: Result) -> Value:
        """The functions that a library's map, jit, transform or partial runs."""
        known = self.knowledge.get(made.name)
        found: Value = BOTTOM
        if known is None:
            return found
        for name in known.function:
            position = known.positional.index(name) if name in known.positional else None
            given = made.arguments.get(name, position)
            if given is not None:
                found = join(found, given)
        return found

    # -- calls

    def resolved(self, value: Value, seen: frozenset[Alternative] = frozenset()) -> Value:
        """A value with symbols replaced by what all callers pass."""
        if seen:
            return self._resolve(value, seen)
        known = self._resolved.get(value)
        if known is None:
            known = self._resolved[value] = self._resolve(value, seen)
        return known

    def _resolve(self, value: Value, seen: frozenset[Alternative]) -> Value:
        for a in value:
            if type(a) is Parameter or type(a) is Member:
                break
        else:
            return value
        found: Value = BOTTOM
        for a in value:
            if a in seen:
                continue
            if isinstance(a, Parameter):
                found = join(found, self.entry(a))
            elif isinstance(a, Member):
                around = seen | {a}
                for base in self.resolved(frozenset((a.base,)), around):
                    if isinstance(base, (Object, Result)) and isinstance(a.base, (Object, Result)):
                        found = join(found, frozenset((a,)))  # a method of a container or of a library's object
                    elif base == OPEN:
                        found = join(found, self.by_name(a.name, self._symbol(a.base)))
                    else:
                        held = self.attribute(base, a.name, self._symbol(a.base))
                        found = join(found, self.resolved(held, around) if held != frozenset((a,)) else held)
            else:
                found = join(found, frozenset((a,)))
        return found

    @staticmethod
    def _symbol(base: Alternative) -> Alternative | None:
        return base if isinstance(base, (Parameter, Member)) and depth_of(base) < 2 else None

    def by_name(self, name: str, receiver: Alternative | None) -> Value:
        """What an unknown object has under a name: the method, if only one class has one of this name."""
        methods = self.project.methods_by_name.get(name, ())
        if len(methods) != 1 or name in self.rows.common or name.startswith("__"):
            return UNKNOWN
        owner = self.structure.owner(methods[0])
        assert owner is not None
        found = self._bound(self.cells.read(("attribute", owner, name)), receiver or Object(None, owner), Class(owner))
        return found or UNKNOWN

    def entry(self, parameter: Parameter) -> Value:
        """What callers pass for a parameter, as far as they are known."""
        found = self.cells.read(("entry", parameter.ref, parameter.name))
        owner = self.structure.owner(parameter.ref)
        if found and owner is not None and self.structure.receiver(parameter.ref) == parameter.name:
            is_open = OPEN in found
            found = frozenset(a for a in found if self._may_receive(a, owner))
            if not found and is_open and not self.roles.get(parameter.ref):
                return frozenset((Object(None, owner),))
        if found:
            if OPEN not in found:
                return found
            told = self._expected(parameter)
            return join(found - UNKNOWN, told) if told else found
        if parameter.ref not in self.opened and self.project.function(parameter.ref).kind != "class":
            return BOTTOM
        told = self._expected(parameter)
        if told:
            return told
        if self.structure.receiver(parameter.ref) == parameter.name:
            assert owner is not None
            if self.roles.get(parameter.ref) == "class":
                return frozenset((Class(owner),))
            if self.roles.get(parameter.ref) != "static":
                return frozenset((Object(None, owner),))
        return UNKNOWN

    def _expected(self, parameter: Parameter) -> Value:
        """What unknown callers pass: the function that is called by default, or an object as it is annotated."""
        is_field = self.project.function(parameter.ref).kind == "class"
        usual = self.cells.read(("attribute" if is_field else "default", parameter.ref, parameter.name))
        if usual and all(type(a) is Function for a in usual):
            return usual
        return self.cells.read(("annotation", parameter.ref, parameter.name))

    def _may_receive(self, a: Alternative, owner: FunctionRef) -> bool:
        """Whether a method of a class may run on something."""
        if isinstance(a, (Object, Class)):
            cls = a.kind if isinstance(a, Object) else a.ref
            return isinstance(cls, FunctionRef) and owner in self.lineage(cls)
        return False  # nothing that a library made is an object of the class

    def bindings_for(
        self, ref: FunctionRef, arguments: Arguments, receiver: Alternative | None
    ) -> dict[Parameter, Value]:
        """The value of each parameter of a function in a call; of an unknown one nothing is said."""
        function = self.project.function(ref)
        if arguments.star is not None or arguments.double is not None:
            star, double = (self.resolved(v) if v is not None else None for v in (arguments.star, arguments.double))
            arguments = Arguments(arguments.positional, arguments.keywords, arguments.open, star, double)
        given = arguments.spread()
        positional = list(given.positional)
        if receiver is not None:
            positional.insert(0, frozenset((receiver,)))
        keywords = dict(given.keywords)
        found: dict[Parameter, Value] = {}
        for formal in function.formals:
            parameter = Parameter(ref, formal.name)
            if formal.kind == "*":
                end = UNKNOWN if given.open else None
                found[parameter] = frozenset((make_sequence(positional, end),))
                positional = []
            elif formal.kind == "**":
                found[parameter] = frozenset((make_keywords(keywords.items(), given.open),))
            elif formal.kind in ("positional-only", "standard") and positional:
                found[parameter] = positional.pop(0)
            elif formal.name in keywords:
                found[parameter] = keywords.pop(formal.name)
            elif given.open:
                found[parameter] = UNKNOWN
            elif formal.default:
                found[parameter] = self.cells.read(("default", ref, formal.name)) or UNKNOWN
        return found

    def enter(self, parameter: Parameter, value: Value) -> None:
        """Add an argument to what callers pass: without bindings and sites, which the join would lose anyway."""
        self.cells.write(("entry", parameter.ref, parameter.name), frozenset(map(self._plain, self.resolved(value))))

    def _plain(self, a: Alternative) -> Alternative:
        if isinstance(a, Object):
            if isinstance(a.kind, FunctionRef) and not self.is_generator(a):
                return Object(a.site and Site(a.kind, 0), a.kind)
            return Object(a.site, a.kind) if a.bindings else a
        if isinstance(a, Function) and (a.bindings or a.receiver is not None):
            receiver = self._plain(a.receiver) if a.receiver is not None else None
            return Function(a.ref, receiver, (), 1 + depth_of(receiver))
        return a

    def result_of(self, callee: Function, arguments: Arguments) -> Value:
        """What a call of a project's function gives."""
        ref = callee.ref
        given = self.bindings_for(ref, arguments, callee.receiver)
        for parameter, value in given.items():
            if value:
                self.enter(parameter, value)
        if self.project.function(ref).generator:
            bindings = bind({**dict(callee.bindings), **given})
            return frozenset((Object(Site(ref, 0), ref, bindings, 1 + nesting(bindings)),))
        returned = self.cells.read(("result", ref))
        if not returned:
            return BOTTOM
        if callee.bindings:
            given = {**dict(callee.bindings), **given}
        return self.substitution(given).value(returned)

    def constructed(self, cls: FunctionRef, arguments: Arguments, site: Site) -> Value:
        """What a call of a class gives: an object that carries the constructor's arguments."""
        maker = self.method(cls, "__init__")
        if maker is not None:
            receiver = Object(site, cls)
            given = self.bindings_for(maker, arguments, receiver)
            for parameter, value in given.items():
                if value:
                    self.enter(parameter, value)
            held = {p: v for p, v in given.items() if p.name != self.structure.receiver(maker)}
        else:
            held = self._record(cls, arguments.spread())
        bindings = bind(held)
        return frozenset((Object(site, cls, bindings, 1 + nesting(bindings)),))

    def _record(self, cls: FunctionRef, given: Arguments) -> dict[Parameter, Value]:
        """The fields of an object whose class declares them and has no constructor of its own."""
        found: dict[Parameter, Value] = {}
        names: dict[str, FunctionRef] = {}
        for each in reversed(self.lineage(cls)):
            names.update(dict.fromkeys(self.structure.declared(each), each))
        for position, (name, owner) in enumerate(names.items()):
            value = given.get(name, position)
            if value is None and given.open:
                value = UNKNOWN
            if value is not None:
                found[Parameter(owner, name)] = value
                self.enter(Parameter(owner, name), value)
        return found

    def callees(self, value: Value) -> Value:
        """Whom a call of a value may run: symbols resolved, callable objects as their method."""
        known = self._callees.get(value)
        if known is not None:
            return known
        found: Value = BOTTOM
        for a in self.resolved(value):
            if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                found = join(found, self.attribute(a, "__call__"))
            else:
                found = join(found, frozenset((a,)))
        self._callees[value] = found
        return found

    # -- elements

    def element(self, value: Value) -> Value:
        """One element of what is iterated over."""
        found: Value = BOTTOM
        for a in self.resolved(value):
            found = join(found, self.element_of(a))
        return found

    def element_of(self, a: Alternative) -> Value:
        """One element of what a single alternative is iterated as."""
        if self.is_generator(a):
            found = self.cells.read(("result", a.kind))
            return self.substitution(dict(a.bindings)).value(found) if a.bindings else found
        if isinstance(a, Sequence):
            found = a.rest if a.rest is not None else BOTTOM
            for each in a.elements:
                found = join(found, each)
            return found
        if isinstance(a, Object) and isinstance(a.kind, str):
            return self.items(a) if a.kind != "dict" else UNKNOWN
        if isinstance(a, Object):
            maker = self.attribute(a, "__iter__")
            one: Value = BOTTOM
            for method in maker:
                if isinstance(method, Function):
                    inner = self.result_of(method, Arguments())
                    one = join(one, self.element(frozenset(i for i in inner if i != a)) if inner else BOTTOM)
                    if a in inner:
                        for step in self.attribute(a, "__next__"):
                            if isinstance(step, Function):
                                one = join(one, self.result_of(step, Arguments()))
            return one or UNKNOWN
        if isinstance(a, Constant) and a.kind == "NoneType":
            return BOTTOM
        return UNKNOWN

    def is_generator(self, a: Alternative | None) -> TypeGuard[Object]:
        """Whether a value is what a call of a generator function gives: an object whose kind is the function."""
        return isinstance(a, Object) and isinstance(a.kind, FunctionRef) and self.project.function(a.kind).generator

    def items(self, a: Object) -> Value:
        """Any element of a container."""
        found = self.cells.read(("item", a.site, a.kind, ANY))
        return self.substitution(dict(a.bindings)).value(found) if a.bindings else found

    def item(self, a: Alternative, key: Constant | None) -> Value:
        """The element of a container under a key, or any."""
        if isinstance(a, Sequence):
            if key is not None and isinstance(key.value, int) and a.rest is None:
                index = int(key.value)
                return a.elements[index] if -len(a.elements) <= index < len(a.elements) else BOTTOM
            return self.element_of(a)
        if isinstance(a, Keywords):
            if key is not None:
                return dict(a.items).get(str(key.value), UNKNOWN if a.open else BOTTOM)
            return UNKNOWN
        if isinstance(a, Object) and isinstance(a.kind, str):
            if key is None:
                return self.items(a)
            own = self.cells.read(("item", a.site, a.kind, key))
            other = self.cells.read(("item", a.site, a.kind, None))
            found = join(own, other)
            return self.substitution(dict(a.bindings)).value(found) if a.bindings else found
        if isinstance(a, Object):
            found = BOTTOM
            for getter in self.attribute(a, "__getitem__"):
                if isinstance(getter, Function):
                    found = join(found, self.result_of(getter, Arguments((UNKNOWN,))))
            return found or UNKNOWN
        return UNKNOWN

    def put(self, a: Object, key: Constant | None, value: Value) -> None:
        """Put an element into a container."""
        self.cells.write(("item", a.site, a.kind, key), value)
        self.cells.write(("item", a.site, a.kind, ANY), value)


class Visit:
    """One forward pass over one function."""

    def __init__(self, evaluation: Evaluation, ref: FunctionRef) -> None:
        self.ev = evaluation
        self.ref = ref
        self.path = ref.path
        self.function = evaluation.project.function(ref)
        self.operations = self.function.operations
        self.ssa = evaluation.structure.ssa(ref)
        self.values: list[Value] = []
        self.phis: list[Value] = [BOTTOM] * len(self.ssa.phis)
        self._joined: set[int] = set()
        """The phis that were joined in this pass: one that only others read is joined when they are."""
        self.calls: dict[int, Call] = {}
        self.live: set[int] = set()
        self.edges: set[tuple[int, int]] = set()
        self._results: list[Value] = []
        self._yields: Value = BOTTOM

    def run(self) -> Evaluated:
        """Evaluate the function and write what it gives to others."""
        loops = self.ssa.goes_back
        template, blocks = self._plan()
        self.values = list(template)
        self.live.add(s.ENTRY)
        for _ in range(MAX_PASSES):
            before = list(self.phis)
            self._joined.clear()
            self._yields = BOTTOM
            for block, steps in blocks:
                if block in self.live:
                    self._block(block, steps)
            for position, phi in enumerate(self.ssa.phis):
                self.phis[position] = self._phi(phi)
            if not loops or before == self.phis:
                break
        self._publish()
        return Evaluated(self.values, self.phis, self.calls, frozenset(self.live))

    def _block(self, number: int, steps: Steps) -> None:
        values = self.values
        for n, operation, handler in steps:
            values[n] = handler(self, n, operation)
        block = self.function.blocks[number]
        arm = self._decided(number, block) if block.test is not None else None
        for edge in block.edges:
            if arm is None or edge.target == arm or edge.kind not in ("true", "false"):
                self.live.add(edge.target)
                self.edges.add((number, edge.target))

    def _plan(self) -> tuple[list[Value], list[tuple[int, Steps]]]:
        """The values of constants, and for each block, in order, the operations that have values."""
        known = self.ev.plans.get(self.ref)
        if known is None:
            operations = self.operations
            values: list[Value] = [UNKNOWN] * len(operations)
            blocks = []
            for block in self.ssa.order:
                steps = []
                for n in self.function.blocks[block].operations:
                    operation = operations[n]
                    if isinstance(operation, s.Const):
                        values[n] = self.ev.literal(operation.value)
                    else:
                        handler = _HANDLERS.get(type(operation))
                        if handler is not None:
                            steps.append((n, operation, handler))
                blocks.append((block, steps))
            known = self.ev.plans[self.ref] = (values, blocks)
        return known

    def _decided(self, number: int, block: s.Block) -> int | None:
        """The target of a branch whose condition is known."""
        arms = self.ssa.arms(number)
        if arms is None or block.test is None:
            return None
        truth = truth_of(self.values[block.test])
        return None if truth is None else arms[0] if truth else arms[1]

    def _definition(self, definition: Definition) -> Value:
        if definition >= 0:
            return self.values[definition]
        if definition == NOTHING:
            return BOTTOM
        position = NOTHING - 1 - definition
        self._joined.add(position)
        self.phis[position] = found = self._phi(self.ssa.phis[position])
        return found

    def _phi(self, phi: Phi) -> Value:
        found: Value = BOTTOM
        for source, definition in phi.operands:
            if (source, phi.block) in self.edges:
                if definition >= 0:
                    each = self.values[definition]
                elif definition == NOTHING:
                    each = JUST_NONE if phi.name == RESULT else BOTTOM
                else:
                    position = NOTHING - 1 - definition
                    each = self.phis[position] if position in self._joined else self._definition(definition)
                found = join(found, each)
        return found

    # -- what the function gives to others

    def _publish(self) -> None:
        if self.function.kind in ("module", "class"):
            self._publish_names()
        else:
            result = self.ssa.result
            value = JUST_NONE if result == NOTHING else self._definition(result)
            self.ev.cells.write(("result", self.ref), self._yields if self.function.generator else value)
        self._publish_outer_names()
        if self.function.kind != "module":
            for name in self.ev.structure.captured(self.ref):
                for number in self._live_stores(name):
                    self.ev.cells.write(("variable", self.ref, name), self.values[number])

    def _publish_names(self) -> None:
        """What a module or class binds."""
        is_module = self.function.kind == "module"
        owner: Hashable = self.path if is_module else self.ref
        for name, definition in self.ssa.finals.items():
            if name != RESULT:
                self.ev.cells.write(("global" if is_module else "attribute", owner, name), self._definition(definition))
        if not is_module:
            for name in self.ev.structure.declared(self.ref):
                self.ev.cells.write(("field", self.ref, name), frozenset((Parameter(self.ref, name),)))

    def _publish_outer_names(self) -> None:
        """What a function binds outside itself."""
        summary = self.ev.project.modules[self.path].summary
        for name in sorted(self.function.globals):
            for number in self._live_stores(name):
                self.ev.cells.write(("global", self.path, name), self.ev.resolved(self.values[number]))
        for name in sorted(self.function.nonlocals):
            scope = summary.scope_of(self.function, name)
            for number in self._live_stores(name) if scope is not None else ():
                owner = self.ev.project.ref(self.path, scope.index)  # type: ignore[union-attr]
                self.ev.cells.write(("variable", owner, name), self.values[number])

    def _live_stores(self, name: str) -> list[int]:
        block_of = self.function.block_of
        return [number for number in self.function.stores.get(name, ()) if block_of[number] in self.live]

    # -- operations

    def load(self, n: int, o: s.Load) -> Value:
        definition = self.ssa.loads.get(n)
        if definition != NOTHING:
            return self.name(o.name) if definition is None else self._definition(definition)
        if self.function.kind == "class":
            return self.ev.global_name(self.path, o.name)  # `loss = loss`: the class does not have it yet
        return self.name(o.name)

    def name(self, name: str) -> Value:
        """A name that is not a local one in SSA form."""
        function = self.function
        if function.kind != "module":
            scope = self.ev.project.modules[self.path].summary.scope_of(function, name)
            if scope is not None and scope is not function:
                return self.ev.cells.read(("variable", self.ev.project.ref(self.path, scope.index), name))
            if scope is function and name in function.stores and name not in function.globals:
                return self.ev.cells.read(("variable", self.ref, name))
        return self.ev.global_name(self.path, name)

    def const(self, n: int, o: s.Const) -> Value:
        return self.ev.literal(o.value)

    def parameter(self, n: int, o: s.Parameter) -> Value:
        return frozenset((Parameter(self.ref, o.name),))

    def store(self, n: int, o: s.Store) -> Value:
        if o.annotation is not None and self.function.kind == "class":
            self.ev.cells.write(("annotation", self.ref, o.name), self.annotated(o.annotation))
        return self.values[o.value]

    def attribute(self, n: int, o: s.Attribute) -> Value:
        found: Value = BOTTOM
        for a in self.values[o.base]:
            found = join(found, self.ev.attribute(a, o.name))
        return found

    def subscript(self, n: int, o: s.Subscript) -> Value:
        found: Value = BOTTOM
        index = only(self.values[o.index])
        key = index if isinstance(index, Constant) else None
        for a in self.ev.resolved(self.values[o.base]):
            found = join(found, self.ev.item(a, key))
        return found

    def unary(self, n: int, o: s.Unary) -> Value:
        if o.operator == "not":
            truth = truth_of(self.values[o.operand])
            return UNKNOWN if truth is None else self.ev.literal(not truth)
        value = only(self.values[o.operand])
        if o.operator == "-" and isinstance(value, Constant) and isinstance(value.value, (int, float)):
            return self.ev.literal(-value.value)
        return UNKNOWN

    def binary(self, n: int, o: s.Binary) -> Value:
        left, right = only(self.values[o.left]), only(self.values[o.right])
        if isinstance(left, Constant) and isinstance(right, Constant):
            return self._folded(o.operator, left.value, right.value)
        if o.operator == "+" and isinstance(left, Sequence) and isinstance(right, Sequence) and left.rest is None:
            return frozenset((make_sequence((*left.elements, *right.elements), right.rest),))
        if o.operator in ("+", "|"):  # lists, sets and dictionaries together
            return self._together(n, o)
        return UNKNOWN

    def _together(self, n: int, o: s.Binary) -> Value:
        sides = [a for side in (o.left, o.right) for a in self.ev.resolved(self.values[side])]
        kept = [a for a in sides if isinstance(a, Object) and a.kind in _CONTAINERS]
        if not kept or len(kept) != len(sides):
            return UNKNOWN
        made = Object(Site(self.ref, n), kept[0].kind)
        for a in kept:
            self.ev.put(made, None, self.ev.items(a))
        return frozenset((made,))

    def _folded(self, sign: str, left: object, right: object) -> Value:
        fold = _BINARY.get(sign)
        numbers = all(isinstance(each, int) and abs(each) < _SMALL for each in (left, right))
        strings = sign == "+" and isinstance(left, str) and isinstance(right, str) and len(left + right) < 200
        if fold is None or not (numbers or strings):
            return UNKNOWN
        try:
            return self.ev.literal(fold(left, right))
        except (ArithmeticError, ValueError):
            return UNKNOWN

    def compare(self, n: int, o: s.Compare) -> Value:
        if len(o.operators) != 1:
            return UNKNOWN
        left, right = (only(self.values[each]) for each in o.operands)
        sign = o.operators[0]
        if sign in ("is", "is not") and right == NONE:
            if left is not None and type(left) in (Constant, Function, Class, Object, Sequence, ModuleValue):
                return self.ev.literal((left == NONE) == (sign == "is"))
            return UNKNOWN
        if isinstance(left, Constant) and isinstance(right, Constant) and sign in ("==", "!="):
            return self.ev.literal((left.value == right.value) == (sign == "=="))
        return UNKNOWN

    def boolop(self, n: int, o: s.BoolOp) -> Value:
        found: Value = BOTTOM
        for position, operand in enumerate(o.operands):
            value = self.values[operand]
            last = position == len(o.operands) - 1
            if last:
                return join(found, value)
            goes_on = o.operator == "and"
            found = join(found, frozenset(a for a in value if truth_of_one(a) is not goes_on))
            if truth_of(value) is (not goes_on):
                return found
        return found

    def ifexp(self, n: int, o: s.IfExp) -> Value:
        truth = truth_of(self.values[o.test])
        if truth is None:
            return join(self.values[o.body], self.values[o.orelse])
        return self.values[o.body if truth else o.orelse]

    def display(self, n: int, o: s.Display) -> Value:
        elements = [self.values[each] for each in o.elements]
        if o.kind == "tuple":
            if not o.starred:
                return frozenset((make_sequence(elements),))
            first = o.starred[0]
            rest: Value = BOTTOM
            for position in range(first, len(elements)):
                each = elements[position]
                rest = join(rest, self.ev.element(each) if position in o.starred else each)
            return frozenset((make_sequence(elements[:first], rest),))
        made = Object(Site(self.ref, n), o.kind)
        for position, each in enumerate(elements):
            if position in o.starred:
                self.ev.put(made, None, self.ev.element(each))
            else:
                known = o.kind == "list" and not o.starred
                self.ev.put(made, constant(position) if known else None, each)
        return frozenset((made,))

    def dictionary(self, n: int, o: s.DictDisplay) -> Value:
        made = Object(Site(self.ref, n), "dict")
        for key, value in zip(o.keys, o.values, strict=True):
            if key is None:
                for a in self.ev.resolved(self.values[value]):
                    if isinstance(a, Object) and a.kind == "dict":
                        self.ev.put(made, None, self.ev.items(a))
                    else:
                        self.ev.put(made, None, UNKNOWN)
                continue
            known = only(self.values[key])
            self.ev.put(made, known if isinstance(known, Constant) else None, self.values[value])
        return frozenset((made,))

    def collected(self, n: int, o: s.Collected) -> Value:
        element = self.values[o.element]
        if o.kind == "generator":
            return frozenset((make_sequence((), element),))
        made = Object(Site(self.ref, n), "dict" if o.kind == "dict" else o.kind)
        self.ev.put(made, None, element)
        return frozenset((made,))

    def next(self, n: int, o: s.Next) -> Value:
        return self.ev.element(self.values[o.iterable])

    def item(self, n: int, o: s.Item) -> Value:
        found: Value = BOTTOM
        for a in self.ev.resolved(self.values[o.value]):
            if o.star:
                rest: Value = self.ev.element_of(a)
                found = join(found, frozenset((make_sequence((), rest),)))
            elif isinstance(a, Sequence) and a.rest is None:
                known = -len(a.elements) <= o.index < len(a.elements)
                found = join(found, a.elements[o.index] if known else BOTTOM)
            else:
                found = join(found, self.ev.item(a, constant(o.index)))
        return found

    def enter(self, n: int, o: s.Enter) -> Value:
        found: Value = BOTTOM
        for a in self.ev.resolved(self.values[o.manager]):
            if self.ev.is_generator(a):
                found = join(found, self.ev.element(frozenset((a,))))
            elif isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                inner: Value = BOTTOM
                for each in self.ev.attribute(a, "__enter__"):
                    if isinstance(each, Function):
                        inner = join(inner, self.ev.result_of(each, Arguments()))
                found = join(found, inner or UNKNOWN)
            elif isinstance(a, Sequence):
                found = join(found, self.ev.element_of(a))
            else:
                found = join(found, frozenset((a,)))
        return found

    def awaited(self, n: int, o: s.Await) -> Value:
        return self.values[o.value]

    def yielded(self, n: int, o: s.Yield) -> Value:
        given = self.values[o.value] if o.value is not None else JUST_NONE
        self._yields = join(self._yields, self.ev.element(given) if o.delegate else given)
        return UNKNOWN

    def returned(self, n: int, o: s.Return) -> Value:
        return self.values[o.value] if o.value is not None else JUST_NONE

    def annotated(self, number: int) -> Value:
        """An object of the class that an annotation names; nothing if it says something else."""
        o = self.operations[number]
        if isinstance(o, s.Const):
            name = o.value.strip().removesuffix("| None").rstrip() if isinstance(o.value, str) else ""
            return self._instances(self.name(name)) if name.isidentifier() else BOTTOM
        if isinstance(o, s.Subscript):
            base = only(self.values[o.base])
            row = self.ev.row(base.name) if isinstance(base, External) else None
            if row is not None and row.role == "optional":
                return self.annotated(o.index)
            if row is not None and row.elements:
                index = self.operations[o.index]
                inner = index.elements[-1] if isinstance(index, s.Display) and index.elements else o.index
                if isinstance(index, s.Display) and len(index.elements) == 2 and row.makes is None:
                    inner = index.elements[0]
                element = self.annotated(inner)
                if not element:
                    return BOTTOM
                if row.makes is None:
                    return frozenset((make_sequence((), element),))
                made = Object(Site(self.ref, number), row.makes)
                self.ev.put(made, None, element)
                return frozenset((made,))
            return BOTTOM
        if isinstance(o, s.Binary) and o.operator == "|":
            sides = [side for side in (o.left, o.right) if self.values[side] != JUST_NONE]
            return self.annotated(sides[0]) if len(sides) == 1 else BOTTOM
        return self._instances(self.values[number])

    def _instances(self, classes: Value) -> Value:
        a = only(classes)
        if isinstance(a, Class):
            return frozenset((Object(None, a.ref),))
        if isinstance(a, External) and a.name in self.ev.owners:
            return frozenset((Result(a.name, Site(self.ref, 0), _NOT_KEPT),))
        return BOTTOM

    def declare(self, n: int, o: s.Declare) -> Value:
        self.ev.cells.write(("annotation", self.ref, o.name), self.annotated(o.annotation))
        return BOTTOM

    def make_function(self, n: int, o: s.MakeFunction) -> Value:
        ref = self.ev.project.ref(self.path, o.function)
        for name, value in o.annotations:
            self.ev.cells.write(("annotation", ref, name), self.annotated(value))
        for name, value in o.defaults:
            self.ev.cells.write(("default", ref, name), self.ev.resolved(self.values[value]))
        return frozenset((Function(ref),))

    def make_class(self, n: int, o: s.MakeClass) -> Value:
        ref = self.ev.project.ref(self.path, o.body)
        bases = [self.ev.resolved(self.values[each]) for each in o.bases]
        self.ev.cells.write(("bases", ref), frozenset((Sequence(tuple(bases)),)))
        for base in bases:
            for a in base:
                if isinstance(a, Class):
                    self.ev.cells.write(("derived", a.ref), frozenset((Class(ref),)))
        return frozenset((Class(ref),))

    def import_(self, n: int, o: s.Import) -> Value:
        return self.ev.imported(self.path, o)

    def store_attribute(self, n: int, o: s.StoreAttribute) -> Value:
        value = self.values[o.value]
        for a in self.values[o.base]:
            if isinstance(a, Parameter) and self.ev.structure.receiver(a.ref) == a.name:
                owner = self.ev.structure.owner(a.ref)
                self.ev.cells.write(("field", owner, o.name), value)
                continue
            for each in self.ev.resolved(frozenset((a,))):
                if isinstance(each, Object) and isinstance(each.kind, FunctionRef):
                    self.ev.cells.write(("field", each.kind, o.name), self.ev.resolved(value))
                elif isinstance(each, Class):
                    self.ev.cells.write(("attribute", each.ref, o.name), self.ev.resolved(value))
                elif isinstance(each, ModuleValue):
                    self.ev.cells.write(("global", each.path, o.name), self.ev.resolved(value))
        return value

    def store_subscript(self, n: int, o: s.StoreSubscript) -> Value:
        index = only(self.values[o.index])
        key = index if isinstance(index, Constant) else None
        for a in self.ev.resolved(self.values[o.base]):
            if isinstance(a, Object) and isinstance(a.kind, str):
                self.ev.put(a, key, self.values[o.value])
        return self.values[o.value]

    # -- calls

    def call(self, n: int, o: s.Call) -> Value:
        arguments = self._arguments(o)
        value = self.values[o.function]
        callees = self.ev.callees(value)
        self.calls[n] = Call(value, arguments)
        found: Value = BOTTOM
        for a in callees:
            found = join(found, self._called(n, o, a, arguments))
        return found

    def _arguments(self, o: s.Call) -> Arguments:
        positional: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        star: Value | None = None
        double: Value | None = None
        unknown = False
        for argument in o.arguments:
            value = self.values[argument.value]
            if argument.star == "*":
                if star is not None:
                    unknown = True
                star = self._spreadable(value)
            elif argument.star == "**":
                unknown = unknown or double is not None
                double = self._spreadable(value)
            elif argument.keyword is not None:
                keywords.append((argument.keyword, value))
            elif star is not None:
                unknown = True
            else:
                positional.append(value)
        return Arguments(tuple(positional), tuple(keywords), unknown, star, double)

    def _spreadable(self, value: Value) -> Value:
        """What a star spreads, in a form that can be spread: a list or dictionary by its elements."""
        a = only(value)
        if isinstance(a, Object) and a.kind == "list":
            elements: list[Value] = []
            while True:
                each = self.ev.cells.read(("item", a.site, a.kind, constant(len(elements))))
                if not each:
                    break
                elements.append(each)
            other = self.ev.cells.read(("item", a.site, a.kind, None))
            return frozenset((make_sequence(elements, other or None),))
        return value

    def _called(self, n: int, o: s.Call, a: Alternative, arguments: Arguments) -> Value:
        if isinstance(a, Function):
            return self.ev.result_of(a, arguments)
        if isinstance(a, Class):
            return self.ev.constructed(a.ref, arguments, Site(self.ref, n))
        if isinstance(a, External):
            return self._of_library(n, o, a, arguments)
        if isinstance(a, Result):
            return self._of_result(n, o, a, arguments)
        if isinstance(a, Member):
            return self._of_member(n, a, arguments)
        return UNKNOWN if a is OPEN or not isinstance(a, Constant) else BOTTOM

    def _of_library(self, n: int, o: s.Call, a: External, arguments: Arguments) -> Value:
        row, known = self.ev.row(a.name), self.ev.knowledge.get(a.name)
        if row is not None:
            found = self._by_row(n, o, a, row, arguments)
            if found is not None:
                return found
            if row.role == "wraps":
                return frozenset((make_result(a.name, Site(self.ref, n), arguments),))
        if known is not None and known.kind in ("decorator", "identity") and arguments.positional:
            return arguments.positional[0]
        if known is not None and known.kind == "apply":
            self._applies(known.function, known.positional, arguments)
        if o.decorator and (known is None or not known.kind) and row is None:
            return self._decorated_by_unknown(arguments)
        # What goes into a function that nobody knows is of no use later, and nests without end.
        needed = known is not None and (known.kind is not None or known.checkpoint)
        kept = arguments if needed or row is not None else _NOT_KEPT
        return frozenset((make_result(a.name, Site(self.ref, n), kept),))

    @staticmethod
    def _decorated_by_unknown(arguments: Arguments) -> Value:
        """A decorator that nobody knows: most give a function that does the same."""
        return arguments.positional[0] if arguments.positional else UNKNOWN

    def _applies(self, names: tuple[str, ...], positional: tuple[str, ...], arguments: Arguments) -> None:
        """Functions that the library calls with arguments of its own."""
        for name in names:
            given = arguments.get(name, positional.index(name) if name in positional else None)
            for each in self.ev.callees(given) if given is not None else ():
                if isinstance(each, Function):
                    self.ev.result_of(each, Arguments(open=True))

    def _of_result(self, n: int, o: s.Call, a: Result, arguments: Arguments) -> Value:
        """A call of what a library made: a partial, a compiled or transformed function, a decorator with options."""
        known, row = self.ev.knowledge.get(a.name), self.ev.row(a.name)
        if row is not None and row.role == "wraps":
            return arguments.positional[0] if arguments.positional else UNKNOWN
        if known is None:
            if o.decorator and row is None:
                return self._decorated_by_unknown(arguments)
            return UNKNOWN
        if known.kind == "currying":
            return self.curried(n, o, a, arguments)
        if known.kind in ("decorator", "identity") and arguments.positional:
            return arguments.positional[0]
        inner = self.ev.wrapped(a)
        if known.kind in ("map", "jit", "transform") and not inner and arguments.positional:
            merged = Arguments((*arguments.positional, *a.arguments.positional), a.arguments.keywords)
            return frozenset((make_result(a.name, Site(self.ref, n), merged),))
        found: Value = BOTTOM
        for each in self.ev.callees(inner):
            if isinstance(each, Function):
                found = join(found, self.ev.result_of(each, arguments))
        managed = row is not None and row.role == "manager"
        return found if managed and found else UNKNOWN

    def curried(self, n: int, o: s.Call, a: Result, arguments: Arguments) -> Value:
        """A call of a partial: its function with both sets of arguments."""
        held = a.arguments
        if not held.positional:
            return UNKNOWN
        merged = Arguments(
            (*held.positional[1:], *arguments.positional),
            (*(pair for pair in held.keywords if pair[0] not in dict(arguments.keywords)), *arguments.keywords),
            held.open or arguments.open,
            arguments.star if arguments.star is not None else held.star,
            arguments.double if arguments.double is not None else held.double,
        )
        found: Value = BOTTOM
        for each in self.ev.callees(held.positional[0]):
            found = join(found, self._called(n, o, each, merged))
        return found

    def _of_member(self, n: int, a: Member, arguments: Arguments) -> Value:
        """A method of a container or of a library's object."""
        row = self.ev.rows.methods.get(a.name)
        base = a.base
        if isinstance(base, Object) and isinstance(base.kind, str) and row is not None:
            return self._of_container(n, base, row, arguments)
        if isinstance(base, Result):
            if row is not None and row.role == "copy":
                return frozenset((base,))
            name = self.ev.knowledge.outside(f"{base.name}.{a.name}")
            known = self.ev.knowledge.get(name)
            kept = arguments if known is not None and known.kind is not None else _NOT_KEPT
            return frozenset((make_result(name, Site(self.ref, n), kept),))
        return UNKNOWN

    def _of_container(self, n: int, base: Object, row: Row, arguments: Arguments) -> Value:
        ev = self.ev
        if row.stores is not None:
            given = arguments.get(None, row.stores)
            if given is not None:
                ev.put(base, None, given)
            return JUST_NONE
        if row.stores_all is not None:
            given = arguments.get(None, row.stores_all)
            if given is not None:
                ev.put(base, None, ev.element(given))
            return JUST_NONE
        if row.role == "update":
            for name, value in arguments.keywords:
                ev.put(base, constant(name), value)
            for given in arguments.positional:
                for each in ev.resolved(given):
                    known = isinstance(each, Object) and isinstance(each.kind, str)
                    ev.put(base, None, ev.items(each) if known else UNKNOWN)  # type: ignore[arg-type]
            return JUST_NONE
        if row.role == "get":
            key = only(arguments.positional[0]) if arguments.positional else None
            found = ev.item(base, key if isinstance(key, Constant) and base.kind == "dict" else None)
            if len(arguments.positional) > 1:
                return join(found, arguments.positional[1])
            return found
        if row.role == "items":
            return frozenset((make_sequence((), frozenset((make_sequence((UNKNOWN, ev.items(base))),))),))
        if row.role == "values":
            return frozenset((make_sequence((), ev.items(base)),))
        return frozenset((base,)) if row.role == "copy" else UNKNOWN

    def _by_row(self, n: int, o: s.Call, a: External, row: Row, arguments: Arguments) -> Value | None:
        """What a function gives by its row; None if the row says nothing about it."""
        ev, first = self.ev, arguments.get(None, 0)
        if row.same is not None:
            return arguments.get(None, row.same) or UNKNOWN
        if row.element is not None:
            given = arguments.get(None, row.element)
            more = arguments.positional[1:]
            if given is None:
                return UNKNOWN
            return join(ev.element(given), more[0]) if more else ev.element(given)
        if row.makes is not None:
            made = Object(Site(self.ref, n), row.makes)
            for name, value in arguments.keywords:
                ev.put(made, constant(name), value)
            for position in row.elements:
                given = arguments.get(None, position)  # type: ignore[arg-type]
                if given is not None:
                    ev.put(made, None, ev.element(given))
            return frozenset((made,))
        if row.elements:
            positions = tuple(range(len(arguments.positional))) if row.elements == "all" else row.elements
            rest: Value = BOTTOM
            for position in positions:
                given = arguments.get(None, position)
                if given is not None:
                    rest = join(rest, ev.element(given))
            return frozenset((make_sequence((), rest),))
        handler = _ROLES.get(row.role or "")
        return handler(self, n, a, arguments, first) if handler is not None else None

    # -- the language's own functions

    def _as_property(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        return self._marked("property", first)

    def _as_static(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        return self._marked("static", first)

    def _as_class(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        return self._marked("class", first)

    def _marked(self, role: str, first: Value | None) -> Value:
        for each in first or ():
            if isinstance(each, Function):
                self.ev.roles[each.ref] = role
        return first or UNKNOWN

    def _super(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        """The receiver, seen as an object of the class that the method's own class is derived from."""
        owner = self._method_class()
        if owner is None:
            return UNKNOWN
        lineage = self.ev.lineage(owner)[1:]
        name = self.ev.structure.receiver(self.ref)
        receiver = Parameter(self.ref, name) if name is not None else Object(None, owner)
        return frozenset((Super(lineage[0], receiver),)) if lineage else UNKNOWN

    def _method_class(self) -> FunctionRef | None:
        ref: FunctionRef | None = self.ref
        while ref is not None:
            owner = self.ev.structure.owner(ref)
            if owner is not None:
                return owner
            parent = self.ev.project.function(ref).parent
            ref = self.ev.project.ref(ref.path, parent) if parent is not None else None
        return None

    def _getattr(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        if first is None or len(arguments.positional) < 2:
            return UNKNOWN
        found = arguments.positional[2] if len(arguments.positional) > 2 else BOTTOM
        for name in self.ev.resolved(arguments.positional[1]):
            if not isinstance(name, Constant) or not isinstance(name.value, str):
                return UNKNOWN
            for each in first:
                found = join(found, self.ev.attribute(each, name.value))
        return found

    def _type(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        found: Value = BOTTOM
        for each in self.ev.resolved(first) if first is not None else ():
            is_own = isinstance(each, Object) and isinstance(each.kind, FunctionRef)
            found = join(found, frozenset((Class(each.kind),)) if is_own else UNKNOWN)  # type: ignore[union-attr,arg-type]
        return found

    def _replace(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        """A copy of a record with other fields: fields are kept by class, so that it is the same to us."""
        for each in self.ev.resolved(first) if first is not None else ():
            if isinstance(each, Object) and isinstance(each.kind, FunctionRef):
                for name, value in arguments.keywords:
                    self.ev.cells.write(("field", each.kind, name), value)
        return first or UNKNOWN

    def _bool(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        truth = truth_of(first) if first is not None else None
        return UNKNOWN if truth is None else self.ev.literal(truth)

    def _enumerate(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        element = self.ev.element(first) if first is not None else UNKNOWN
        return frozenset((make_sequence((), frozenset((make_sequence((UNKNOWN, element)),))),))

    def _zip(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        elements = [self.ev.element(each) for each in arguments.positional]
        return frozenset((make_sequence((), frozenset((make_sequence(elements),))),))

    def _map(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        given = Arguments(tuple([self.ev.element(each) for each in arguments.positional[1:]]))
        found: Value = BOTTOM
        for each in self.ev.callees(first) if first is not None else ():
            found = join(found, self.ev.result_of(each, given) if isinstance(each, Function) else UNKNOWN)
        return frozenset((make_sequence((), found),))

    def _namespace(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        return frozenset((make_keywords(arguments.keywords, arguments.open),))

    def _manager(self, n: int, a: External, arguments: Arguments, first: Value | None) -> Value:
        return first or UNKNOWN


def truth_of_one(a: Alternative) -> bool | None:
    """Whether an alternative is true as a condition; None if that is not known."""
    if isinstance(a, Constant):
        return bool(a.value)
    return True if isinstance(a, (Function, Class, ModuleValue)) else None


def truth_of(value: Value) -> bool | None:
    """Whether all alternatives of a value are true, or all are false; None if that is not known."""
    found: bool | None = None
    for a in value:
        truth = truth_of_one(a)
        if truth is None or (found is not None and truth is not found):
            return None
        found = truth
    return found


_HANDLERS: Mapping[type, Callable[[Visit, int, Any], Value]] = {
    s.Load: Visit.load, s.Const: Visit.const, s.Parameter: Visit.parameter, s.Store: Visit.store,
    s.Attribute: Visit.attribute, s.Subscript: Visit.subscript, s.Unary: Visit.unary, s.Binary: Visit.binary,
    s.Compare: Visit.compare, s.BoolOp: Visit.boolop, s.IfExp: Visit.ifexp, s.Display: Visit.display,
    s.DictDisplay: Visit.dictionary, s.Collected: Visit.collected, s.Next: Visit.next, s.Item: Visit.item,
    s.Enter: Visit.enter, s.Await: Visit.awaited, s.Yield: Visit.yielded, s.Return: Visit.returned,
    s.MakeFunction: Visit.make_function, s.MakeClass: Visit.make_class, s.Import: Visit.import_,
    s.StoreAttribute: Visit.store_attribute, s.Declare: Visit.declare,
    s.StoreSubscript: Visit.store_subscript, s.Call: Visit.call,
}  # fmt: skip
_ROLES: Mapping[str, Callable[[Visit, int, External, Arguments, Value | None], Value]] = {
    "property": Visit._as_property, "static": Visit._as_static, "class": Visit._as_class, "super": Visit._super,
    "getattr": Visit._getattr, "type": Visit._type, "bool": Visit._bool, "enumerate": Visit._enumerate,
    "zip": Visit._zip, "map": Visit._map, "namespace": Visit._namespace, "replace": Visit._replace,
    "manager": Visit._manager,
}  # fmt: skip
