"""Stratum 2: conditions in normal form, what is known at a point, and what follows from it.

An *expression* is a value number: equal expressions have equal values. It is built from constants, parameters, fields
that only a constructor sets, the number of the process and of processes, and pure operations on these; whatever
else there is stands for itself, by its place. A *literal* is an expression that is used as a condition, in one
spelling: without `not`, with one of `<` and `==`, with operands in one order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from spmdlint.core.evaluation import Evaluation
from spmdlint.core.ssa import NOTHING, Phi
from spmdlint.core.values import Alternative, Class, Constant, External, Function, Object, Sequence, Site, Value, only
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.uniform import Uniform

Expression: TypeAlias = tuple[Any, ...]
Literal: TypeAlias = tuple[Expression, bool]
"""A condition in normal form, and whether it holds when the normal form does."""
World: TypeAlias = tuple[int, int]
"""The number of a process, and of processes."""
RANK: Expression = ("rank",)
COUNT: Expression = ("count",)
WORLDS: tuple[World, ...] = tuple((rank, count) for count in (1, 2, 3, 4) for rank in range(count))
SEVERAL: tuple[World, ...] = tuple(world for world in WORLDS if world[1] > 1)
"""The worlds of several processes."""
DEPTH = 10
_COMPARED: Mapping[str, tuple[str, bool, bool]] = {
    "==": ("==", False, False), "!=": ("==", False, True), "is": ("is", False, False), "is not": ("is", False, True),
    "in": ("in", False, False), "not in": ("in", False, True), "<": ("<", False, False), ">": ("<", True, False),
    ">=": ("<", False, True), "<=": ("<", True, True),
}  # fmt: skip
_LEAVES = frozenset(("constant", "object", "at", "phi", "name", "rank", "count", "parameter", "inner"))
TRUE: Expression = ("constant", "bool", True)
FALSE: Expression = ("constant", "bool", False)
NONE: Expression = ("constant", "NoneType", None)
_COMPARING = frozenset(("==", "<", "is", "in", "and", "or", "not", "constant", "isinstance"))
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


class Conditions:
    """Makes expressions and literals. One per run."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.ev = evaluation
        self.uniform = Uniform(evaluation.project)
        self._known: dict[tuple[FunctionRef, int], Expression] = {}

    # -- expressions

    def expression(self, ref: FunctionRef, number: int, depth: int = DEPTH) -> Expression:
        """The value number of an operation."""
        key = (ref, number)
        known = self._known.get(key)
        if known is None:
            self._known[key] = ("at", ref, number)  # what depends on itself stands for itself
            known = self._known[key] = self._expression(ref, number, depth)
        return known

    def is_something(self, value: Alternative) -> bool:
        """Whether a value is an object that is certainly true as a condition."""
        if isinstance(value, (Function, Class)):
            return True
        if not isinstance(value, Object) or value.site is None or not isinstance(value.kind, FunctionRef):
            return False
        return not any(self.ev.method(value.kind, name) for name in ("__len__", "__bool__"))

    def _expression(self, ref: FunctionRef, number: int, depth: int) -> Expression:
        function = self.ev.project.function(ref)
        o = function.operations[number]
        itself: Expression = ("at", ref, number)
        if depth == 0:
            return itself
        value = only(self.ev.functions[ref].values[number])
        if isinstance(value, Constant):
            return ("constant", value.kind, value.value)
        if value is not None and self.is_something(value):
            return ("object", value)
        if self.uniform.stored(ref, number):
            return itself
        handler = _EXPRESSIONS.get(type(o))
        return handler(self, ref, number, o, depth) or itself if handler is not None else itself

    def _parameter(self, ref: FunctionRef, number: int, o: s.Parameter, depth: int) -> Expression | None:
        return ("parameter", ref, o.name)

    def _load(self, ref: FunctionRef, number: int, o: s.Load, depth: int) -> Expression | None:
        definition = self.ev.structure.ssa(ref).loads.get(number)
        if definition is None or definition == NOTHING:
            return self._outer(ref, o.name, ("at", ref, number))
        return self.of_definition(ref, definition, depth)

    def _return(self, ref: FunctionRef, number: int, o: s.Return, depth: int) -> Expression | None:
        return self.expression(ref, o.value, depth) if o.value is not None else ("constant", "NoneType", None)

    def _same(self, ref: FunctionRef, number: int, o: s.Store | s.Await, depth: int) -> Expression | None:
        return self.expression(ref, o.value, depth)

    def _unary(self, ref: FunctionRef, number: int, o: s.Unary, depth: int) -> Expression | None:
        inner = self.expression(ref, o.operand, depth - 1)
        return ("not", inner) if o.operator == "not" else ("unary", o.operator, inner)

    def _binary(self, ref: FunctionRef, number: int, o: s.Binary, depth: int) -> Expression | None:
        sides = [self.expression(ref, each, depth - 1) for each in (o.left, o.right)]
        return ("binary", o.operator, *sides)

    def _boolop(self, ref: FunctionRef, number: int, o: s.BoolOp, depth: int) -> Expression | None:
        return (o.operator, *(self.expression(ref, each, depth - 1) for each in o.operands))

    def _ifexp(self, ref: FunctionRef, number: int, o: s.IfExp, depth: int) -> Expression | None:
        return ("if", *(self.expression(ref, each, depth - 1) for each in (o.test, o.body, o.orelse)))

    def _matches(self, ref: FunctionRef, number: int, o: s.Matches, depth: int) -> Expression | None:
        if not o.values or o.irrefutable:
            return None
        subject = self.expression(ref, o.subject, depth - 1)
        cases = [equal(subject, self.expression(ref, each, depth - 1)) for each in o.values]
        return cases[0] if len(cases) == 1 else ("or", *cases)

    def _subscript(self, ref: FunctionRef, number: int, o: s.Subscript, depth: int) -> Expression | None:
        return RANK if self._reads_rank(ref, o) else None

    def of_definition(self, ref: FunctionRef, definition: int, depth: int = DEPTH) -> Expression:
        """The expression of a definition; a phi of branches is a conditional expression."""
        if definition >= 0:
            return self.expression(ref, definition, depth)
        itself: Expression = ("phi", ref, definition)
        ssa = self.ev.structure.ssa(ref)
        phi = ssa.phi(definition)
        if phi is None or depth <= 1 or (ref, definition) in self._known:
            return self._known.get((ref, definition), itself)
        self._known[ref, definition] = itself
        gates = frozenset(ssa.deciding(phi, lambda each: each))
        if ssa.loop_at(phi.block) is None:
            self._known[ref, definition] = self._decided(ref, phi, gates, depth) or itself
        return self._known[ref, definition]

    def _decided(self, ref: FunctionRef, phi: Phi, gates: frozenset[int], depth: int) -> Expression | None:
        """What a phi is, by the branches that decide it; None if these are no tree."""
        ssa = self.ev.structure.ssa(ref)
        gate = next((g for g in sorted(gates) if all(ssa.dominates(g, each) for each in gates)), None)
        arms = ssa.arms(gate) if gate is not None else None
        test = ssa.blocks[gate].test if gate is not None else None
        if gate is None or arms is None or test is None or len(gates) > depth:
            return None
        sides: list[Expression] = []
        for target in arms:
            way = ssa.along(gate, target, phi)
            if len(way) == 1:
                sides.append(self.of_definition(ref, way.pop(), depth - 1))
                continue
            inner = frozenset(each for each in gates - {gate} if target != phi.block and ssa.dominates(target, each))
            side = self._decided(ref, phi, inner, depth - 1) if inner else None
            if side is None:
                return None
            sides.append(side)
        return either(self.expression(ref, test, depth - 1), *sides)

    def _reads_rank(self, ref: FunctionRef, o: s.Subscript) -> bool:
        base = only(self.ev.functions[ref].values[o.base])
        row = self.ev.row(base.name) if isinstance(base, External) else None
        name = only(self.ev.functions[ref].values[o.index])
        is_rank = isinstance(name, Constant) and self.ev.knowledge.is_rank(name.value)
        return row is not None and row.role == "environment" and is_rank

    def _comparison(self, ref: FunctionRef, number: int, o: s.Compare, depth: int) -> Expression | None:
        if len(o.operators) != 1:
            return None
        sides = [self.expression(ref, each, depth - 1) for each in o.operands]
        sign, swapped, negated = _COMPARED[o.operators[0]]
        if swapped:
            sides.reverse()
        elif sign in ("==", "is"):
            sides = _in_order(*sides)
        found: Expression = (sign, *sides)
        return ("not", found) if negated else found

    def _outer(self, ref: FunctionRef, name: str, itself: Expression) -> Expression:
        """A name from outside the function: it is the same everywhere if only one store gives it a value."""
        summary = self.ev.project.modules[ref.path].summary
        scope = summary.scope_of(self.ev.project.function(ref), name)
        owner = scope if scope is not None else summary.functions[0]
        rebound = (
            name in self.ev.structure.globals_set(ref.path)
            if scope is None
            else name in summary.set_inside.get(scope.index, {})
        )
        stores = owner.stores.get(name, ())
        if rebound or len(stores) != 1:
            return ("name", ref.path, owner.index, name) if stores and not rebound else itself
        home = self.ev.project.ref(ref.path, owner.index)
        return self.expression(home, stores[0], DEPTH - 4) if home in self.ev.functions else itself

    def _attribute(self, ref: FunctionRef, number: int, o: s.Attribute, depth: int) -> Expression | None:
        a = only(self.ev.functions[ref].values[number])
        if isinstance(a, External):
            known = self.ev.knowledge.get(a.name)
            if known is not None and known.attribute and known.source == "identity":
                return RANK
        field = self._field(ref, o)
        if field is not None:
            return field
        return ("attribute", self.expression(ref, o.base, depth - 1), o.name)

    def _field(self, ref: FunctionRef, o: s.Attribute) -> Expression | None:
        """What a field is that one constructor sets from the number of the process alone."""
        found: set[Expression] = set()
        for a in self.ev.resolved(self.ev.functions[ref].values[o.base]):
            if not isinstance(a, Object) or not isinstance(a.kind, FunctionRef):
                return None
            held = self.ev.class_attribute(a.kind, o.name)
            for each in held or ():
                if isinstance(each, Function) and self.ev.roles.get(each.ref) == "property":
                    found.add(self.result(each.ref, DEPTH - 4) or ("at", each.ref, 0))
            for owner in self.ev.lineage(a.kind):
                for method, number in self.ev.structure.field_stores(owner).get(o.name, ()):
                    if self.uniform.stored(method, number):
                        return None
                    stored = self.ev.project.function(method).operations[number]
                    assert isinstance(stored, s.StoreAttribute)
                    found.add(self.expression(method, stored.value, DEPTH - 4))
        if len(found) == 1:
            (only_one,) = found
            if is_about_process(only_one):
                return only_one
        return None

    def _call(self, ref: FunctionRef, number: int, o: s.Call, depth: int) -> Expression | None:
        call = self.ev.functions[ref].calls.get(number)
        callee = only(self.ev.callees(call.callees)) if call is not None else None
        made = only(self.ev.functions[ref].values[number])
        if isinstance(made, Object) and isinstance(made.kind, str):
            return None  # a container: what is put into it after it was made counts
        if isinstance(callee, External):
            return self._of_library(ref, o, callee.name, depth)
        if not isinstance(callee, Function):
            return None
        returned = self.result(callee.ref, depth - 1)
        if returned is None or is_about_process(returned):
            return returned
        inner = [self.expression(ref, each.value, depth - 1) for each in o.arguments if not each.star]
        done = substituted(returned, self.parameters(callee, inner, ref, o, depth))
        return _seen_from(done, callee.ref, ref, number)

    def _of_library(self, ref: FunctionRef, o: s.Call, name: str, depth: int) -> Expression | None:
        known, row = self.ev.knowledge.get(name), self.ev.row(name)
        role = row.role if row is not None else None
        values = self.ev.functions[ref].values
        if known is not None and known.source == "identity" and not o.arguments:
            return RANK
        if role == "count":
            return COUNT
        if role == "isinstance" and len(o.arguments) == 2:
            return ("isinstance", self.expression(ref, o.arguments[0].value, depth - 1), values[o.arguments[1].value])
        if role == "environment" and o.arguments:
            variable = only(values[o.arguments[0].value])
            if isinstance(variable, Constant) and self.ev.knowledge.is_rank(variable.value):
                return RANK
        inner = [self.expression(ref, each.value, depth - 1) for each in o.arguments if not each.star]
        if role == "number" and len(inner) == 1:
            return inner[0]
        if role == "bool" and len(inner) == 1:
            return ("not", ("not", inner[0]))
        is_pure = self.ev.rows.is_pure(name) and (known is None or known.source is None)
        return ("call", name, *inner) if is_pure else None

    def parameters(
        self, callee: Function, inner: list[Expression], ref: FunctionRef, o: s.Call, depth: int
    ) -> dict[tuple[FunctionRef, str], Expression]:
        """The expression of each argument of a call, by the parameter of the callee."""
        formals = [f.name for f in self.ev.project.function(callee.ref).formals]
        method = self.ev.project.function(ref).operations[o.function]
        found: dict[tuple[FunctionRef, str], Expression] = {}
        if callee.receiver is not None and formals:
            base = (
                self.expression(ref, method.base, depth - 1)
                if isinstance(method, s.Attribute)
                else ("at", ref, o.function)
            )
            found[callee.ref, formals.pop(0)] = base
        position = 0
        for argument in o.arguments:
            if argument.star:
                continue
            expression = inner[position]
            position += 1
            if argument.keyword is not None:
                found[callee.ref, argument.keyword] = expression
            elif formals:
                found[callee.ref, formals.pop(0)] = expression
        for name in formals:
            default = only(self.ev.cells.read(("default", callee.ref, name)))
            if (callee.ref, name) not in found and isinstance(default, Constant):
                found[callee.ref, name] = ("constant", default.kind, default.value)
        return found

    def result(self, ref: FunctionRef, depth: int) -> Expression | None:
        """The expression that a function returns, if it is one."""
        definition = self.ev.structure.ssa(ref).result
        function = self.ev.project.function(ref)
        if definition == NOTHING or function.generator or depth <= 0 or self.uniform.returned(ref):
            return None
        if definition < NOTHING:
            found = self.of_definition(ref, definition, depth)
            return found if found[0] in ("if", "and", "or", "not", "constant") else None
        returned = function.operations[definition]
        if not isinstance(returned, s.Return) or returned.value is None:
            return None
        return self.expression(ref, returned.value, depth - 1)

    def with_classes(self, expression: Expression) -> Expression:
        """An expression in which `isinstance` of known objects is decided."""
        head = expression[0]
        if head in _LEAVES:
            return expression
        if head == "isinstance":
            answer = self._is_instance(expression[1], expression[2])
            return expression if answer is None else TRUE if answer else FALSE
        return tuple(self.with_classes(part) if type(part) is tuple and part else part for part in expression)

    def of_element(self, expression: Expression, ref: FunctionRef, number: int, kind: FunctionRef) -> Literal:
        """A condition in a loop for one kind of element, which an operation of the loop gives."""
        is_function = self.ev.project.function(kind).kind not in ("class",)
        element: Alternative = Function(kind) if is_function else Object(Site(kind, 0), kind)
        found = self._with_element(expression, ("at", ref, number), element)
        return normal(simplified(self.with_classes(found), lambda _: None), True)

    def _with_element(self, expression: Expression, place: Expression, element: Alternative) -> Expression:
        if expression == place:
            return ("object", element)
        if expression[0] == "attribute" and expression[1] == place and isinstance(element, Object):
            assert isinstance(element.kind, FunctionRef)
            if expression[2] not in self.ev.structure.stored_fields(element.kind):
                held = only(self.ev.class_attribute(element.kind, expression[2]) or frozenset())
                if isinstance(held, Constant):
                    return ("constant", held.kind, held.value)
            return expression
        if expression[0] in _LEAVES:
            return expression
        return tuple(self._with_element(p, place, element) if type(p) is tuple and p else p for p in expression)

    def _is_instance(self, of: Expression, classes: Value) -> bool | None:
        wanted: set[object] = set()
        for a in classes:
            for each in (x for v in a.elements for x in v) if isinstance(a, Sequence) else (a,):
                if not isinstance(each, (Class, External)):
                    return None
                wanted.add(each.ref if isinstance(each, Class) else each.name)
        if of[0] == "constant":
            return f"builtins.{of[1]}" in wanted
        if of[0] == "object" and isinstance(of[1], Object) and isinstance(of[1].kind, FunctionRef):
            if any(cls in wanted for cls in self.ev.lineage(of[1].kind)):
                return True
            return None if self.ev.has_open_base(of[1].kind) else False
        return None

    # -- literals

    def literal(self, ref: FunctionRef, test: int) -> Literal:
        """A condition in normal form."""
        return normal(self.expression(ref, test), True)

    def guards(self, ref: FunctionRef, block: int) -> Iterator[Literal]:
        """What is known to hold in a block: the literals of the branches that lead to it."""
        ssa = self.ev.structure.ssa(ref)
        for branch, answer in ssa.branches_before(block):
            test = ssa.blocks[branch].test
            if test is not None:
                yield from split(*self.literal(ref, test), answer)


def equal(one: Expression, other: Expression) -> Expression:
    """That two expressions are equal, with their sides in one order."""
    return ("==", *sorted((one, other), key=_rank_first))


def either(condition: Expression, yes: Expression, no: Expression) -> Expression:
    """A conditional expression; with True or False on a side it is a conjunction or a disjunction."""
    if yes == no:
        return yes
    if (yes, no) in ((TRUE, FALSE), (FALSE, TRUE)):
        return condition if yes == TRUE else ("not", condition)
    if yes == TRUE:
        return ("or", condition, no)
    if yes == FALSE:
        return ("and", ("not", condition), no)
    if no == TRUE:
        return ("or", ("not", condition), yes)
    if no == FALSE:
        return ("and", condition, yes)
    return ("if", condition, yes, no)


def _rank_first(side: Expression) -> tuple[bool, bool, str]:
    return side != RANK, side != COUNT, repr(side)


def simplified(expression: Expression, decide: Callable[[Expression], bool | None]) -> Expression:
    """An expression with the conditions in it that are decided taken away."""
    head = expression[0]
    if head in _LEAVES:
        return expression
    if head == "if":
        condition, holds = normal(expression[1], True)
        known = decide(condition)
        if known is None and _is_closed(condition) and not _mentions_rank(condition):
            known = decided_in(condition, (0, 1))
        if known is not None:
            return simplified(expression[2 if known == holds else 3], decide)
    if head in ("and", "or"):
        kept = []
        for part in expression[1:]:
            small = simplified(part, decide)
            literal, holds = normal(small, True)
            known = decide(literal)
            if known is None and _is_closed(literal) and not _mentions_rank(literal):
                known = decided_in(literal, (0, 1))
            if known is None:
                kept.append(small)
            elif (known == holds) == (head == "or"):  # what comes after it is never asked for
                kept.append(small)
                break
        if len(kept) == 1:
            return kept[0]
        return (head, *kept) if kept else TRUE if head == "and" else FALSE
    return tuple(simplified(part, decide) if type(part) is tuple and part else part for part in expression)


def leaves(expression: Expression, without: frozenset[Expression] = frozenset()) -> Iterator[Expression]:
    """What an expression is made of: operations and names that stand for themselves, parameters, the process."""
    head = expression[0]
    if head in ("constant", "object", "count") or expression in without:
        return
    if head in _LEAVES or head == "attribute":  # what an object is says nothing about what is in it
        yield expression
        return
    for part in expression[1:]:
        if type(part) is tuple and part:
            yield from leaves(part, without)


def _order(expression: Expression) -> str:
    return repr(expression[0]) + str(len(expression))


def _in_order(one: Expression, other: Expression) -> list[Expression]:
    """Two sides of a comparison that may be swapped, in one order."""
    return [other, one] if _order(other) < _order(one) else [one, other]


def normal(expression: Expression, holds: bool) -> Literal:
    """An expression as a condition, without `not`; a number is compared with zero."""
    while expression[0] == "not":
        expression, holds = expression[1], not holds
    if expression == RANK:
        return ("==", RANK, ("constant", "int", 0)), not holds
    if expression[0] == "==" and len(expression) == 3:
        expression = equal(expression[1], expression[2])
    return expression, holds


def split(expression: Expression, holds: bool, answer: bool) -> Iterator[Literal]:
    """The literals that hold if a condition has an answer: all parts of a conjunction that is true, and so on."""
    truth = holds == answer
    if (expression[0] == "and" and truth) or (expression[0] == "or" and not truth):
        for part in expression[1:]:
            yield from split(*normal(part, True), truth)
    yield expression, truth


def consequences(expression: Expression, *, holds: bool) -> dict[Expression, bool]:
    """The literals that hold if a literal does: its parts, and that what is true is not None, and None is not true."""
    found: dict[Expression, bool] = {}
    for literal, truth in split(expression, True, holds):
        found[literal] = truth
        if truth and literal[0] == "is" and NONE in literal[1:]:
            found[literal[2] if literal[1] == NONE else literal[1]] = False
        elif truth and literal[0] not in _COMPARING:
            one, other = _in_order(literal, NONE)
            found["is", one, other] = False
    return found


def substituted(expression: Expression, given: Mapping[tuple[FunctionRef, str], Expression]) -> Expression:
    """An expression of a callee in terms of its caller."""
    if expression[0] == "parameter":
        return given.get((expression[1], expression[2]), expression)
    if expression[0] in _LEAVES:
        return expression
    return tuple(substituted(part, given) if type(part) is tuple else part for part in expression)


def _seen_from(expression: Expression, callee: FunctionRef, ref: FunctionRef, number: int) -> Expression:
    """An expression in which what stands for itself in a callee does so for one call of it."""
    if expression[0] in _LEAVES:
        return ("inner", ref, number, expression) if len(expression) > 1 and expression[1] == callee else expression
    return tuple(_seen_from(part, callee, ref, number) if type(part) is tuple and part else part for part in expression)


def is_about_process(expression: Expression) -> bool:
    """Whether an expression is made of nothing but the number of the process, of processes, and constants."""
    head = expression[0]
    if head in ("rank", "count"):
        return True
    return _is_closed(expression) and _mentions_rank(expression)


def _is_closed(expression: Expression) -> bool:
    head = expression[0]
    if head in ("rank", "count", "constant", "object"):
        return True
    if head in ("not", "binary", "==", "<", "is", "and", "or", "unary", "if"):
        return all(_is_closed(part) for part in expression[1:] if type(part) is tuple)
    return False


def _mentions_rank(expression: Expression) -> bool:
    if expression[0] in ("constant", "object"):
        return False
    return expression[0] in ("rank", "count") or any(
        type(part) is tuple and part and expression[0] not in ("constant", "object") and _mentions_rank(part)
        for part in expression[1:]
    )


def evaluated(expression: Expression, world: World) -> Any:
    """What an expression about the process is in a world.

    Raises:
        ValueError: it is about something else, or has no value there.

    """
    head = expression[0]
    if head == "rank":
        return world[0]
    if head == "count":
        return world[1]
    if head in ("constant", "object"):
        return _number(expression[-1])
    combine = _COMBINED.get(head)
    if combine is None:
        raise ValueError(expression)
    try:
        return combine(expression, world)
    except (TypeError, ArithmeticError, KeyError) as error:
        raise ValueError(expression) from error


_COMBINED: Mapping[str, Callable[[Expression, World], Any]] = {
    "not": lambda e, w: not evaluated(e[1], w),
    "and": lambda e, w: all(evaluated(part, w) for part in e[1:]),
    "or": lambda e, w: any(evaluated(part, w) for part in e[1:]),
    "if": lambda e, w: evaluated(e[2 if evaluated(e[1], w) else 3], w),
    "binary": lambda e, w: _ARITHMETIC[e[1]](evaluated(e[2], w), evaluated(e[3], w)),
    "==": lambda e, w: evaluated(e[1], w) == evaluated(e[2], w),
    "is": lambda e, w: evaluated(e[1], w) == evaluated(e[2], w),
    "<": lambda e, w: evaluated(e[1], w) < evaluated(e[2], w),
    "unary": lambda e, w: {"-": operator.neg}[e[1]](evaluated(e[2], w)),
}


def _number(value: object) -> object:
    """Launchers pass numbers as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def decided_in(literal: Expression, world: World) -> bool | None:
    """Whether a literal holds in a world; None if it is about something else."""
    try:
        return bool(evaluated(literal, world))
    except ValueError:
        return None


_EXPRESSIONS: Mapping[type, Callable[[Conditions, FunctionRef, int, Any, int], Expression | None]] = {
    s.Parameter: Conditions._parameter, s.Load: Conditions._load, s.Return: Conditions._return,
    s.Store: Conditions._same, s.Await: Conditions._same, s.Unary: Conditions._unary, s.Binary: Conditions._binary,
    s.Compare: Conditions._comparison, s.BoolOp: Conditions._boolop, s.IfExp: Conditions._ifexp,
    s.Matches: Conditions._matches, s.Subscript: Conditions._subscript, s.Attribute: Conditions._attribute,
    s.Call: Conditions._call,
}  # fmt: skip
