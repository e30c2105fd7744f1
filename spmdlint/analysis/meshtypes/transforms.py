"""Types functions that run functions: vectorising, loops, branches, maps over pytrees."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import UNKNOWN as UNKNOWN_VALUE
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    Free,
    FunctionValue,
    Site,
    Value,
    certain,
)
from spmdlint.analysis.meshtypes import application, derivatives
from spmdlint.analysis.meshtypes.passed import Passed
from spmdlint.analysis.meshtypes.primitives import repeated
from spmdlint.analysis.meshtypes.scopes import Scope
from spmdlint.analysis.meshtypes.states import (
    LITERAL,
    UNKNOWN,
    Held,
    Leaf,
    Many,
    Record,
    Row,
    Type,
    changed,
    either_type,
    element_of,
    flat,
    leaf_of,
    without_layout,
)
from spmdlint.analysis.meshtypes.symbols import bound_axes
from spmdlint.analysis.meshtypes.typer import Typer
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_ROUNDS = 4
_DEPTH = 4


def run(typer: Typer, scope: Scope, function: Value, types: Sequence[Type], site: Site) -> Type:
    """The result of a function on arguments of which only the types are known."""
    passed = Passed(tuple(types), (), Arguments(), False)
    if isinstance(function, FunctionValue):
        frame = typer.ev.entered_frame(function, Arguments(), scope.frame.depth + 1, arrays=True)
        if frame is None:
            return UNKNOWN
        return application.enter_frame(typer, scope, frame, application.bind_types(typer, function, passed), site)
    return application.apply(typer, scope, function, passed, site) or UNKNOWN


def transformed(typer: Typer, scope: Scope, callee: Applied, known: Known, passed: Passed, site: Site) -> Type | None:
    """The result of calling a transformed function."""
    functions = list(typer.calls.functions_in(known, callee.arguments))
    rule = typer.table.rules.get(callee.name)
    with_value = rule == "value_and_grad"
    if not functions and not passed.open and rule in ("grad", "value_and_grad"):
        # Nothing is known about the loss except what it is computed from.
        return derivatives.by_argument(typer, scope, callee, UNKNOWN_VALUE, passed, site, with_value=with_value)
    if not functions:
        one_of = _alternatives(typer, callee, known) if rule == "vmap" and not passed.open else []
        if not one_of:
            return application.anything(typer, passed, site)
        results = [_vectorised(typer, scope, callee, each, passed, site) for each in one_of]
        return either_type(results, told_apart=False)
    if len(functions) != 1 or passed.open:
        return UNKNOWN
    function = functions[0]
    if callee.receiver is not None and isinstance(function, FunctionValue):
        function = replace(function, receiver=callee.receiver)
    if rule in ("grad", "value_and_grad"):
        return derivatives.by_argument(typer, scope, callee, function, passed, site, with_value=with_value)
    if rule == "through":
        return application.apply(typer, scope, function, passed, site)
    if rule == "vmap":
        return _vectorised(typer, scope, callee, function, passed, site)
    return UNKNOWN


def _alternatives(typer: Typer, callee: Applied, known: Known) -> list[Value]:
    """The functions of the project among which one was chosen before it was transformed, as from a table by name."""
    given = typer.ev.argument(callee, known.function[0]) if len(known.function) == 1 else None
    found = list(typer.ev.in_order(given)) if given is not None else []
    of_project = len(found) <= application.MAX_ALTERNATIVES and all(isinstance(each, FunctionValue) for each in found)
    return found if of_project else []


# -- vectorising


def _vectorised(typer: Typer, scope: Scope, callee: Applied, function: Value, passed: Passed, site: Site) -> Type:
    """`vmap`: what it computes per row is not a share of anything; an axis that it binds ends with it."""
    bound = bound_axes(typer.calls, callee)
    if bound.open:
        return UNKNOWN
    names = bound.names

    def enter(leaf: Leaf) -> Leaf:
        axes = [*leaf.axes, *((name, Held("varying", site)) for name in names)]
        return leaf_of(axes, leaf.default, leaf.marks, leaf.literal and not names, leaf.rows)

    def leave(leaf: Leaf) -> Leaf:
        axes = [(n, Held("varying", h.origin) if h.state == "partial" else h) for n, h in leaf.axes if n not in names]
        kept = frozenset(m for m in leaf.marks if m.axis not in names and m.fact in ("summed", "averaged", "drawn"))
        return leaf_of(axes, leaf.default, kept, leaf.literal, leaf.rows)

    entered = replace(
        passed,
        types=tuple(changed(each, enter) for each in passed.types),
        keywords=tuple((name, changed(each, enter)) for name, each in passed.keywords),
        values=Arguments(),
    )
    typer.vectorised += 1
    typer.stacked += sorted(names)
    try:
        if isinstance(function, FunctionValue) and not passed.keywords:
            return changed(run(typer, scope, function, entered.types, site), leave)
        if isinstance(function, Free):
            # An unknown function of single examples hardly reduces over devices.
            return changed(application.of_model(typer, [], entered, site), leave)
        return changed(application.apply(typer, scope, function, entered, site) or UNKNOWN, leave)
    finally:
        typer.vectorised -= 1
        del typer.stacked[len(typer.stacked) - len(names) :]


# -- loops and branches


def applied(typer: Typer, scope: Scope, name: str, known: Known, passed: Passed, site: Site) -> Type | None:
    """The result of a library function that runs functions at once."""
    functions = list(typer.calls.functions_in(known, passed.values))
    rule = typer.table.rules.get(name)
    if rule == "vjp" and not passed.open:
        return derivatives.with_pullback(typer, scope, functions, passed, site)
    if passed.open or not functions:
        return UNKNOWN
    if rule == "scan":
        return _scan(typer, scope, functions[0], passed, site)
    if rule == "fori":
        start = passed.get(3, "init_val") or UNKNOWN
        after = _settle(start, lambda c: run(typer, scope, functions[0], (LITERAL, c), site), typer, site)
        _repeats(typer, scope, functions, typer.combine("joined", [flat(t) for t in passed.types[:2]], site), site)
        return after
    if rule == "while" and len(functions) == 2:
        start = passed.get(2, "init_val") or UNKNOWN
        return _while(typer, scope, functions, start, site)
    if rule == "cond":
        return (
            _branches(typer, scope, functions, passed.types[3:], passed.types[:1], site)
            if len(functions) == 2
            else None
        )
    if rule == "switch":
        return _branches(typer, scope, functions, passed.types[2:], passed.types[:1], site)
    if rule == "rows":
        xs = passed.get(1, "xs") or UNKNOWN
        return changed(run(typer, scope, functions[0], (changed(xs, without_layout),), site), without_layout)
    if rule == "tree":
        return _over_tree(typer, scope, functions[0], passed.types[1:], site)
    if rule == "paths":
        return _over_tree(typer, scope, functions[0], passed.types[1:], site, before=(LITERAL,))
    if rule == "reduce":
        return _reduce(typer, scope, functions[0], passed, site)
    if rule == "shapes":
        return LITERAL
    return UNKNOWN


def _scan(typer: Typer, scope: Scope, body: Value, passed: Passed, site: Site) -> Type:
    start = passed.get(1, "init") or UNKNOWN
    given = passed.get(2, "xs") or LITERAL
    xs = element_of(given) if isinstance(given, Many) else changed(given, without_layout)
    collected: list[Type] = []

    def step(carry: Type) -> Type:
        result = run(typer, scope, body, (carry, xs), site)
        if not isinstance(result, Row) or len(result.elements) != 2:
            collected.append(UNKNOWN)
            return UNKNOWN
        collected.append(result.elements[1])
        return result.elements[0]

    carry = _settle(start, step, typer, site)
    return Row((carry, changed(collected[-1], without_layout)))  # in the result, the iterations come first


def _settle(start: Type, step: object, typer: Typer, site: Site) -> Type:
    """The carry of a loop: it varies if any iteration makes it vary."""
    assert callable(step)
    carry = start
    used: tuple[set[int], ...] | None = None
    for _ in range(_ROUNDS):
        given = step(carry)
        after = _both(typer, carry, given, site)
        # In the first iteration each argument is still itself; later carries are made from several.
        used = used or (set(typer.copies), set(typer.derived), set(typer.keys))
        if after == carry:
            break
        carry = after
    if used is not None:
        typer.copies, typer.derived, typer.keys = used
    return _after(carry, given)


def _after(carry: Type, given: Type) -> Type:
    """The carry after a loop; unknown where the result of an iteration is unknown, whatever the loop began with."""
    if isinstance(given, Leaf):
        return given if given.default == "unknown" and not given.axes else carry
    if isinstance(carry, Row) and isinstance(given, Row) and len(carry.elements) == len(given.elements):
        return Row(tuple(_after(a, b) for a, b in zip(carry.elements, given.elements, strict=True)))
    return carry


def _both(typer: Typer, first: Type, second: Type, site: Site) -> Type:
    """The merge of two types by structure, which varies where either does."""
    if isinstance(first, Row) and isinstance(second, Row) and len(first.elements) == len(second.elements):
        pairs = zip(first.elements, second.elements, strict=True)
        return Row(tuple(_both(typer, a, b, site) for a, b in pairs))
    if isinstance(first, Record) and isinstance(second, Record) and first.rest is None and second.rest is None:
        keys = [key for key, _ in first.items]
        if keys == [key for key, _ in second.items]:
            return Record(
                tuple((k, _both(typer, first.get(k) or UNKNOWN, second.get(k) or UNKNOWN, site)) for k in keys)
            )
    if first == second:
        return first
    return typer.combine("sumlike", [flat(first), flat(second)], site)


def _while(typer: Typer, scope: Scope, functions: list[Value], start: Type, site: Site) -> Type:
    condition, body = functions
    carry = _settle(start, lambda c: run(typer, scope, body, (c,), site), typer, site)
    rounds = flat(run(typer, scope, condition, (carry,), site))
    _repeats(typer, scope, functions, rounds, site)
    return changed(carry, lambda leaf: typer.combine("joined", [leaf, replace(rounds, marks=frozenset())], site))


def _branches(
    typer: Typer, scope: Scope, functions: list[Value], operands: Sequence[Type], test: Sequence[Type], site: Site
) -> Type:
    results = [run(typer, scope, function, operands, site) for function in functions]
    result = either_type(results)
    chosen = flat(test[0]) if test else UNKNOWN
    if not (typer.region.by_hand and _counts(scope, site)):
        _repeats(typer, scope, functions, chosen, site)
    return changed(result, lambda leaf: typer.combine("joined", [leaf, replace(chosen, marks=frozenset())], site))


def _repeats(typer: Typer, scope: Scope, functions: Sequence[Value], chosen: Leaf, site: Site) -> None:
    """Records the collectives of functions that run depending on a predicate. Under `vmap` both branches run."""
    if typer.vectorised:
        return
    for function in functions:
        inner = called_in(function)
        if inner is not None:
            typer.tell(repeated(chosen, scope.communication(inner), site))


def _counts(scope: Scope, site: Site) -> bool:
    """Whether a predicate compares a number for equality: a counter, which is in the rows but the same in all."""
    code = scope.frame.code
    call = code.operations[site.number] if site.ref == scope.frame.ref else None
    number = call.arguments[0].value if isinstance(call, s.Call) and call.arguments else None
    for _ in range(_DEPTH):
        asked = code.operations[code.root_of(number)] if number is not None else None
        if isinstance(asked, s.Compare):
            return asked.operators == ("==",)
        number = asked.arguments[0].value if isinstance(asked, s.Call) and asked.arguments else None
    return False


def called_in(function: Value | None) -> FunctionRef | None:
    """The project function that a value is, possibly with some arguments bound; None otherwise."""
    while isinstance(function, Applied) and function.arguments.positional:
        function = certain(function.arguments.positional[0])
    return function.ref if isinstance(function, FunctionValue) else None


def _reduce(typer: Typer, scope: Scope, function: Value, passed: Passed, site: Site) -> Type:
    """A reduction of a pytree's leaves, or of a sequence: each in turn is combined with the result so far."""
    leaf = flat(passed.get(1, "tree") or UNKNOWN)
    start = passed.get(2, "initializer") or leaf
    return _settle(start, lambda before: run(typer, scope, function, (before, leaf), site), typer, site)


def _over_tree(
    typer: Typer, scope: Scope, function: Value, trees: Sequence[Type], site: Site, before: tuple[Type, ...] = ()
) -> Type:
    """A function of each leaf, with the leaves at the same path in other trees; ``before``: further arguments."""
    if not trees:
        return UNKNOWN
    first, *rest = trees

    def below(*leaves: Type) -> Type:
        return _over_tree(typer, scope, function, leaves, site, before)

    if isinstance(first, Row):
        columns = [
            other.elements if isinstance(other, Row) and len(other.elements) == len(first.elements)
            else (flat(other),) * len(first.elements)
            for other in rest
        ]  # fmt: skip
        return Row(
            tuple(below(element, *(column[n] for column in columns)) for n, element in enumerate(first.elements))
        )
    if isinstance(first, Record):
        items = tuple((key, below(each, *(_at_key(other, key) for other in rest))) for key, each in first.items)
        others = None if first.rest is None else below(first.rest, *(flat(other) for other in rest))
        return Record(items, others)
    if isinstance(first, Many):
        return Many(below(first.element, *(element_of(other) for other in rest)))
    return run(typer, scope, function, (*before, first, *(flat(other) for other in rest)), site)


def _at_key(tree: Type, key: object) -> Type:
    return tree.get(key) or UNKNOWN if isinstance(tree, Record) else flat(tree)
