"""Types calls in a mapped body: of project functions, of library functions, and of methods of values."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    ClassValue,
    Collection,
    Constant,
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    Site,
    Value,
    certain,
    constant,
)
from spmdlint.analysis.meshtypes import derivatives, transforms
from spmdlint.analysis.meshtypes.alternatives import chosen_freely
from spmdlint.analysis.meshtypes.collectives import collective
from spmdlint.analysis.meshtypes.contractions import (
    is_elementwise,
    laid_out,
    layout_of_letters,
    over_letters,
    over_matrices,
    reduced,
    summand,
)
from spmdlint.analysis.meshtypes.dimensions import of_product, piled_in
from spmdlint.analysis.meshtypes.passed import Passed, passed_by, with_first
from spmdlint.analysis.meshtypes.primitives import EVERY_AXIS, cut_out, drawn, shared_draws
from spmdlint.analysis.meshtypes.scalars import is_reduction, reduced_to_one, with_spread
from spmdlint.analysis.meshtypes.scopes import Scope
from spmdlint.analysis.meshtypes.states import (
    ALL_ALIKE,
    LITERAL,
    UNKNOWN,
    Leaf,
    Many,
    Mark,
    Pullback,
    Record,
    Row,
    Type,
    changed,
    either_type,
    element_of,
    flat,
    rows_of,
)
from spmdlint.analysis.meshtypes.typer import Typer, from_here
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.files import names
from spmdlint.knowledge.typing import Optimizers, Typed
from spmdlint.program import summary as s

MAX_DEPTH = 16
MAX_ALTERNATIVES = 4
"""The most functions that a call may choose from; with more, its result is unknown."""
MAX_SCOPES = 1000
"""The most calls followed in one mapped body, with different types or call sites; beyond, results are unknown."""
_EINSUM = frozenset(names("einsum"))
_MATMUL = frozenset(names("matmul"))
_LEAST = 1e-3
"""A lower bound up to this only prevents a division by zero or a rounding error."""


def call(typer: Typer, scope: Scope, number: int, operation: s.Call) -> Type:
    """The type of a call's result."""
    site = Site(scope.frame.ref, number)
    passed = passed_by(typer, scope, operation)
    callee = typer.ev.callee(scope.frame, operation)
    method = typer.ev.function(scope.frame).operations[operation.function]
    if isinstance(callee, Instance):
        passed = replace(passed, receiver=typer.type(scope, operation.function))
    elif isinstance(method, s.Attribute):
        passed = replace(passed, receiver=typer.type(scope, method.base))
    if callee is not None:
        found = apply(typer, scope, callee, passed, site)
        if found is not None:
            return found
    elif (found := _one_of(typer, scope, operation, passed, site)) is not None:
        return found
    if isinstance(method, s.Attribute) and not isinstance(callee, External):
        return _method(typer, scope, method, callee, passed, site)
    made = typer.type(scope, operation.function)
    if isinstance(made, Pullback) and not passed.open:
        return derivatives.pulled_back(typer, made, passed, site)
    function = flat(made)
    if isinstance(method, s.Load) and function.default != "unknown" and not function.literal and function != ALL_ALIKE:
        return of_model(typer, [function], passed, site)
    # Keys are passed to an unknown function as to the `apply` of a library's model, under the name `apply_fn`.
    with_keys = len(passed.types) > 1 and any(name in typer.table.methods.keys for name, _ in passed.keywords)
    if isinstance(method, s.Load) and with_keys:
        return _applied(typer, [], passed, site)
    return anything(typer, passed, site)


def _applied(typer: Typer, model: list[Leaf], passed: Passed, site: Site) -> Type:
    """The result of a model's ``apply``: with several arguments, the first are its variables, copies of one value."""
    if len(passed.types) > 1:
        typer.copies.update(flat(passed.types[0]).rows)
    return of_model(typer, model, passed, site)


def _one_of(typer: Typer, scope: Scope, operation: s.Call, passed: Passed, site: Site) -> Type | None:
    """The result of a call of one of several project functions, chosen by a conditional expression."""
    callees = list(typer.ev.in_order(typer.ev.value(scope.frame, operation.function)))
    functions = [callee for callee in callees if isinstance(callee, FunctionValue)]
    if not 1 < len(functions) == len(callees) <= MAX_ALTERNATIVES:
        return None
    if not chosen_freely(typer.ev, scope.frame, operation.function):
        return None
    types = [(_enter(typer, scope, function, passed, site), _gives(typer, function) or site) for function in functions]
    return either_type([changed(each, partial(from_here, place)) for each, place in types])


def _gives(typer: Typer, function: FunctionValue) -> Site | None:
    """The only site where a function returns; None if there are several."""
    returns = list(typer.ev.code(function.ref).of_kind(s.Return))
    return Site(function.ref, returns[0][0]) if len(returns) == 1 else None


def anything(typer: Typer, passed: Passed, site: Site) -> Type:
    """The result of an unknown function; random numbers among its arguments may be combined with the others there."""
    if not passed.open:
        typer.tell(shared_draws("joined", passed.all(), site))
    return _unknown(passed)


def of_model(typer: Typer, model: list[Leaf], passed: Passed, site: Site) -> Type:
    """The result of a library model, or of a callable pytree, on arrays: it varies if one of them does."""
    if passed.open or any(name in typer.table.methods.other_results for name, _ in passed.keywords):
        return _unknown(replace(passed, open=True))
    keys = [flat(each) for name, each in passed.keywords if name in typer.table.methods.keys]
    if _draws_nothing(typer, passed):
        keys = []
    arrays = [flat(each) for each in passed.types]
    arrays += [flat(each) for name, each in passed.keywords if name not in typer.table.methods.keys]
    typer.keys.update(rows_of(keys))
    for key in (each for each in keys if not each.literal):  # None is not a key
        typer.tell(shared_draws("joined", [drawn(key, site), *arrays], site))
    return typer.combine("joined", [*model, *arrays], site)


def _draws_nothing(typer: Typer, passed: Passed) -> bool:
    """Whether a model is told by a keyword that it is not trained; it then needs its keys for nothing that matters."""
    switches = typer.table.methods.fixed
    return any(
        known is not None and switches.get(name) is bool(known.value)
        for name, known in ((name, constant(values)) for name, values in passed.values.keywords if name in switches)
    )


def _unknown(passed: Passed) -> Type:
    """The result of an unknown function: replicated if computed from replicated values alone, unknown otherwise."""
    leaves = passed.all()
    alike = leaves and all(leaf.default == "invariant" and not leaf.axes for leaf in leaves)
    return ALL_ALIKE if alike and not passed.open else replace(UNKNOWN, rows=rows_of(leaves))


def apply(typer: Typer, scope: Scope, callee: Value, passed: Passed, site: Site) -> Type | None:
    """The result of calling a value; None if nothing is known about it."""
    if scope.depth > MAX_DEPTH:
        return UNKNOWN
    if isinstance(callee, FunctionValue):
        return _enter(typer, scope, callee, passed, site)
    if isinstance(callee, Instance):
        inner = certain(typer.ev.objects.attribute(callee, "__call__"))
        return apply(typer, scope, inner, passed, site) if isinstance(inner, FunctionValue) else None
    if isinstance(callee, External):
        return _library(typer, scope, callee.name, passed, site)
    if isinstance(callee, ClassValue):
        return _made(typer, callee, passed)
    if isinstance(callee, Applied):
        known = typer.ev.knowledge.get(callee.name)
        if known is not None and known.kind == "currying":
            return _partial(typer, scope, callee, passed, site)
        if known is not None and known.function:
            return transforms.transformed(typer, scope, callee, known, passed, site)
    return None


def _enter(typer: Typer, scope: Scope, function: FunctionValue, passed: Passed, site: Site) -> Type:
    """The result of a project function, typed in its own scope."""
    values = Arguments() if passed.open else passed.values
    frame = typer.ev.entered_frame(function, values, scope.frame.depth + 1)
    if frame is None or passed.open:
        return UNKNOWN
    return enter_frame(typer, scope, frame, bind_types(typer, function, passed), site)


def enter_frame(typer: Typer, scope: Scope, frame: Frame, parameters: dict[str, Type], site: Site) -> Type:
    """The result of a function in a frame; all calls from a scope with the same types share one scope.

    A nested function sees the names around it as they are where it is called.
    """
    at = site.number if frame.outer is scope.frame and site.ref == scope.frame.ref else None
    inner = next((i for i in scope.inner if i.frame is frame and i.at == at and i.parameters == parameters), None)
    if inner is None:
        if typer.scopes >= MAX_SCOPES or scope.depth > MAX_DEPTH:
            return UNKNOWN
        typer.scopes += 1
        inner = Scope(frame, parameters, scope, scope.depth + 1, at)
        scope.inner.append(inner)
    return typer.entered(inner, site)


def bind_types(typer: Typer, function: FunctionValue, passed: Passed) -> dict[str, Type]:
    """The types of a function's parameters in a call."""
    definition = typer.ev.project.function(function.ref)
    given: list[Type] = list(passed.types)
    if function.receiver is not None:
        given.insert(0, passed.receiver)
    positional = [f.name for f in definition.formals if f.kind in ("positional-only", "standard")]
    bound: dict[str, Type] = dict(zip(positional, given, strict=False))
    extra: list[tuple[object, Type]] = []
    names = {f.name for f in definition.formals if f.kind in ("standard", "keyword-only")}
    for name, each in passed.keywords:
        if name in names:
            bound[name] = each
        else:
            extra.append((name, each))
    for formal in definition.formals:
        if formal.kind == "*":
            bound[formal.name] = Row(tuple(given[len(positional) :]))
        elif formal.kind == "**":
            bound[formal.name] = Record(tuple(extra))
        elif formal.name not in bound:
            bound[formal.name] = ALL_ALIKE if formal.default else UNKNOWN
    return bound


def _made(typer: Typer, cls: ClassValue, passed: Passed) -> Type | None:
    """An object whose fields are the constructor's arguments; the contents of any other object are unknown."""
    fields = typer.ev.objects.field_names(cls)
    if fields is None or passed.open:
        return UNKNOWN
    items: dict[object, Type] = dict(zip(fields, passed.types, strict=False))
    items.update(passed.keywords)
    return Record(tuple(items.items()))


def _partial(typer: Typer, scope: Scope, callee: Applied, passed: Passed, site: Site) -> Type | None:
    first = certain(callee.arguments.positional[0]) if callee.arguments.positional else None
    if first is None:
        return None
    before = _bound_before(typer, scope, callee)
    merged = Passed(
        (*before.types[1:], *passed.types),
        (*before.keywords, *passed.keywords),
        Arguments(
            (*callee.arguments.positional[1:], *passed.values.positional),
            (*callee.arguments.keywords, *passed.values.keywords),
            callee.arguments.open or passed.values.open,
        ),
        before.open or passed.open,
    )
    return apply(typer, scope, first, merged, site)


def _bound_before(typer: Typer, scope: Scope, callee: Applied) -> Passed:
    """The arguments that a partial was made with; outside the body, they are the same everywhere."""
    current: Scope | None = scope
    while current is not None and current.frame.ref != callee.site.ref:
        current = current.caller
    operation = typer.ev.project.function(callee.site.ref).operations[callee.site.number]
    # The outermost scope is where the map is made.
    if current is not None and current.caller is not None and isinstance(operation, s.Call):
        return passed_by(typer, current, operation)
    return Passed(
        tuple(ALL_ALIKE for _ in callee.arguments.positional),
        tuple((name, ALL_ALIKE) for name, _ in callee.arguments.keywords),
        callee.arguments,
        callee.arguments.open,
    )


# -- libraries


def _library(typer: Typer, scope: Scope, name: str, passed: Passed, site: Site) -> Type | None:
    known = typer.ev.knowledge.get(name)
    if known is not None and known.kind == "collective":
        return collective(typer, scope, name, known, passed, site)
    if known is not None and known.kind == "apply":
        return transforms.applied(typer, scope, name, known, passed, site)
    if elements().get(name) in ("zip", "enumerate"):
        parts = [element_of(each) for each in passed.types]
        return Many(Row(tuple([LITERAL, *parts[:1]] if elements().get(name) == "enumerate" else parts)))
    if name in ("builtins.tuple", "builtins.list", "builtins.dict", "builtins.reversed") and len(passed.types) == 1:
        return passed.types[0]
    if elements().get(name) == "dictionary" and not passed.types:
        return Record(tuple(passed.keywords))
    found = _typed(typer, name, passed, site)
    return with_spread(typer.ev, scope, found, site) if isinstance(found, Leaf) else found


def _typed(typer: Typer, name: str, passed: Passed, site: Site) -> Type | None:
    typed = typer.table.typed(name)
    if typed is None or passed.open:
        return None
    if typed == "draw":
        typer.keys.update(flat(passed.types[0]).rows if passed.types else ())
        typer.paths.setdefault(site, tuple(typer.calling))
        is_array = typer.vectorised or not _scalar(passed)  # one number for each row is an array of them
        return drawn(flat(passed.types[0]), site) if passed.types and is_array else UNKNOWN
    if typed == "key":
        first = flat(passed.types[0]) if passed.types else LITERAL
        typer.keys.update(first.rows)
        derived = frozenset((Mark("derived", EVERY_AXIS, site),))
        return Many(replace(typer.combine("joined", passed.all(), site), literal=first.literal, marks=derived))
    if typed == "cut" and passed.types:
        return typer.combine("joined", [cut_out(flat(passed.types[0])), *passed.all()[1:]], site)
    if typed == "update":
        step = _updated(typer, passed.all(), site)
        # What averages the parameters after a step averages models on purpose.
        return replace(step, marks=frozenset(mark for mark in step.marks if mark.fact != "bent"))
    if name in typer.table.stacks and passed.types and isinstance(parts := passed.types[0], Row):
        return typer.combine("linear", [flat(each) for each in parts.elements], site)  # one array that holds them all
    if typed == "linear" and len(passed.types) == 1 and not isinstance(passed.types[0], Leaf):
        return typer.combine("linear", [flat(passed.types[0])], site)
    if typed == "nonlinear" and _guards(name, passed):
        typed = "linear"
    alone = len(passed.types) == 1 and passed.keyword("axis") is None
    whole = alone and passed.keyword("where") is None
    if typed == "mean" and (selected := passed.keyword("where")) is not None:
        return _mean_of_selected(typer, passed.all(), selected, site, alone=alone)
    if name in _EINSUM and len(passed.types) > 1:
        operands = [flat(each) for each in passed.types[1:]]
        equation = passed.values.positional[0]
        product = summand(typer.combine(typed, operands, site), over_letters(equation, operands), site)
        return replace(product, layout=layout_of_letters(equation, operands))
    if name in _MATMUL and len(passed.types) == 2:
        operands = [flat(each) for each in passed.types]
        typer.tell(piled_in(operands[0], operands[1], site))
        product = summand(typer.combine(typed, operands, site), over_matrices(*operands), site)
        return replace(product, layout=of_product(*operands))
    found = typer.combine(typed, passed.all(), site, whole=whole)
    found = _with_layout(found, name, typed, passed.all(), passed.values, site, axis=1)
    return reduced_to_one(found, passed.values, whole=whole) if is_reduction(name) else found


def _mean_of_selected(typer: Typer, operands: list[Leaf], selected: Type, site: Site, *, alone: bool) -> Leaf:
    """The sum of what a mask selects, divided by how much that is."""
    both = [typer.combine("sum", each, site, whole=alone) for each in (operands, [flat(selected)])]
    return typer.combine("quotient" if alone else "joined", both, site)


def _with_layout(
    found: Leaf,
    name: str,
    typed: Typed,
    operands: list[Leaf],
    values: Arguments,
    site: Site,
    axis: int,
) -> Leaf:
    """The result of a function or method with what is known of its dimensions; ``axis`` is that argument's position."""
    if is_elementwise(name):
        alike = bool(operands) and all(operand.scalar for operand in operands)
        return replace(laid_out(found, operands), scalar=alike)
    if typed in ("sum", "mean") and operands:
        over = values.keyword("axis") or next(iter(values.positional[axis : axis + 1]), None)
        return reduced(found, operands[0], over, values.keyword("keepdims"), site)
    return found


def _guards(name: str, passed: Passed) -> bool:
    """Whether a call is ``maximum(x, 0)`` or the like, which only excludes values that never occur."""
    if name.rpartition(".")[2] != "maximum":
        return False
    given = [known.value for values in passed.values.positional if (known := constant(values)) is not None]
    return any(isinstance(each, (int, float)) and abs(each) <= _LEAST for each in given)


def _scalar(passed: Passed) -> bool:
    """Whether a draw gives a single number for all devices; its author knows that it is a single one."""
    # The constants before a shape are the parameters of the distribution.
    rest = [values for values in passed.values.positional[1:] if not isinstance(certain(values), Constant)]
    shape = rest[0] if rest else passed.values.keyword("shape")
    given = certain(shape) if shape is not None else None
    return shape is None or (isinstance(given, Collection) and not given.elements and not given.open)


def _updated(typer: Typer, leaves: list[Leaf], site: Site) -> Leaf:
    """The result of applying gradients to a value."""
    result = typer.combine("sumlike", leaves, site)
    gradients = {mark for leaf in leaves for mark in leaf.marks if mark.fact in ("gradient", "applied")}
    applied = {Mark("applied", mark.axis, site) for mark in gradients}
    for mark in gradients:
        if mark.fact == "gradient" and mark.axis in typer.stacked:
            typer.applied.setdefault(mark, site)
    return replace(result, marks=result.marks | gradients | applied)


# -- methods


def _method(typer: Typer, scope: Scope, method: s.Attribute, callee: Value | None, passed: Passed, site: Site) -> Type:
    base = typer.type(scope, method.base)
    name = method.name
    if name in typer.table.methods.replace:
        rest = base.rest if isinstance(base, Record) else base if isinstance(base, Leaf) else flat(base)
        items = dict(base.items) if isinstance(base, Record) else {}
        items.update(passed.keywords)
        return Record(tuple(items.items()), rest)
    if name in ("items", "values", "keys", "get", "copy", "pop"):
        return _of_mapping(base, name, passed)
    if name in typer.table.methods.apply:
        return _applied(typer, [flat(base)], passed, site)
    unknown = typer.region.own_optimizers and not isinstance(callee, Member)  # it may be one that communicates
    unknown = unknown or _has_own_parts(typer, scope, callee)
    has_gradients = any(mark.fact == "gradient" for leaf in passed.all() for mark in leaf.marks)
    if name in typer.table.methods.update and has_gradients and not unknown:
        for given in map(flat, passed.types[1:]):
            if len(given.rows) == 1:
                typer.copies.update(given.rows)  # the optimizer's state, or the parameters
        updated = _updated(typer, [replace(leaf, default="unknown") for leaf in (*passed.all(), flat(base))], site)
        return updated_by(typer.table.optimizers, callee, updated, site)
    if _is_indexed_update(typer, scope, method):
        return typer.combine("sumlike" if name == "add" else "joined", [flat(base), *passed.all()], site)
    typed = typer.table.typed(typer.table.methods.module + name)
    known_array = isinstance(base, Leaf) and any(
        state != "unknown" for state in (base.default, *(held.state for _, held in base.axes))
    )
    if typed is None or not known_array or name not in _ARRAY_METHODS:
        return anything(typer, with_first(passed, base), site)
    alone = not passed.types and passed.keyword("axis") is None
    whole = alone and passed.keyword("where") is None
    operands = [flat(base), *passed.all()]
    if typed == "mean" and (selected := passed.keyword("where")) is not None:
        return _mean_of_selected(typer, operands, selected, site, alone=alone)
    found = typer.combine(typed, operands, site, whole=whole)
    found = _with_layout(found, name, typed, operands, passed.values, site, axis=0)
    if is_reduction(typer.table.methods.module + name):
        found = reduced_to_one(found, passed.values, whole=whole)
    return with_spread(typer.ev, scope, found, site)


def _has_own_parts(typer: Typer, scope: Scope, method: Value | None) -> bool:
    """Whether a library method runs code that the project passed to its object, or unknown code, which may reduce."""
    known = typer.ev.knowledge.get(method.name) if isinstance(method, Member) else None
    if known is None or known.kind != "forward" or not isinstance(method, Member):
        return False
    if not isinstance(method.base, Applied):
        return True
    for part in map(certain, method.base.arguments.positional):
        inner = None if part is None else certain(typer.ev.attribute(part, known.method or "", scope.frame))
        if not isinstance(inner, Member) or _has_own_parts(typer, scope, inner):
            return True
    return False


def _of_mapping(base: Type, name: str, passed: Passed) -> Type:
    if isinstance(base, Record) and name == "copy":
        return base
    leaf = flat(base)
    if name == "items":
        return Many(Row((LITERAL, leaf)))
    if name == "keys":
        return Many(LITERAL)
    if name == "values":
        return Many(leaf)
    if isinstance(base, Record) and passed.values.positional:
        key = constant(passed.values.positional[0])
        return (base.get(key.value) if key is not None else None) or UNKNOWN
    return leaf


def _is_indexed_update(typer: Typer, scope: Scope, method: s.Attribute) -> bool:
    """Whether a call is ``x.at[i].set(...)`` or the like."""
    operations = typer.ev.function(scope.frame).operations
    base = operations[method.base]
    if not isinstance(base, s.Subscript):
        return False
    at = operations[base.base]
    return isinstance(at, s.Attribute) and at.name == "at"


_ARRAY_METHODS = frozenset(
    "sum mean max min prod std var reshape ravel flatten transpose squeeze astype dot cumsum argmax argmin clip round "
    "any all swapaxes take repeat sort argsort conj copy".split()
)


_DEPTH = 4
_OPTIMIZERS = names("optimizer_modules")


def updated_by(table: Optimizers, method: Value | None, updates: Leaf, site: Site) -> Type:
    """The result of an optimizer's ``update``: updates, and a state, which is not what is applied."""
    made = method.base if isinstance(method, Member) else None
    if not isinstance(method, Member) or not isinstance(made, Applied) or not made.name.startswith(_OPTIMIZERS):
        return updates
    state = replace(updates, marks=frozenset(mark for mark in updates.marks if mark.fact == "gradient"))
    if _bends(table, method.base, _DEPTH):
        shares = {mark.axis for mark in updates.marks if mark.fact == "gradient"}
        updates = replace(updates, marks=updates.marks | {Mark("bent", axis, site) for axis in shares})
    return Row((updates, state))


def _bends(table: Optimizers, optimizer: Value | None, depth: int) -> bool:
    """Whether an optimizer certainly does more than scale and sum."""
    if not isinstance(optimizer, Applied) or depth == 0:
        return False
    if optimizer.name in table.bending:
        return True
    parts = optimizer.arguments.positional if optimizer.name in table.made_of else ()
    return any(_bends(table, certain(part), depth - 1) for part in parts)
