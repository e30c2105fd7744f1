"""Types derivatives in a mapped body: `grad` and the like, and `vjp`, which returns a function."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    Collection,
    FunctionValue,
    Site,
    Value,
    certain,
    constant,
)
from spmdlint.analysis.meshtypes import application
from spmdlint.analysis.meshtypes.passed import Passed
from spmdlint.analysis.meshtypes.primitives import derivative
from spmdlint.analysis.meshtypes.scopes import Scope
from spmdlint.analysis.meshtypes.states import (
    ALL_ALIKE,
    UNKNOWN,
    Leaf,
    Mark,
    Pullback,
    Row,
    Type,
    changed,
    element_of,
    flat,
    leaves_of,
    rows_of,
)
from spmdlint.analysis.meshtypes.typer import Typer
from spmdlint.program import summary as s


def by_argument(
    typer: Typer, scope: Scope, callee: Applied, function: Value, passed: Passed, site: Site, *, with_value: bool
) -> Type:
    """The derivative of a function by some of its arguments, as `grad` returns it; ``with_value``: with the result."""
    result = application.apply(typer, scope, function, passed, site) or replace(UNKNOWN, rows=rows_of(passed.all()))
    # Of a function that is itself differentiated, the gradients are terms of a loss, not training steps.
    steps = ("gradient", "applied")
    result = changed(result, lambda leaf: replace(leaf, marks=frozenset(m for m in leaf.marks if m.fact not in steps)))
    aux = typer.ev.argument(callee, "has_aux")
    has_aux = constant(aux) if aux is not None else None
    if aux is not None and has_aux is None:
        return UNKNOWN
    if has_aux is not None and has_aux.value:
        loss: Type = element_of(result) if not isinstance(result, Row) else result.elements[0]
    else:
        loss = result
    positions = _positions(typer, callee)
    values = [passed.get(position) for position in positions]
    if positions == () or any(value is None for value in values):
        return UNKNOWN
    unused = [isinstance(function, FunctionValue) and not _uses(typer, function, position) for position in positions]
    found = _derived(typer, [value for value in values if value is not None], flat(loss), site)
    found = [ALL_ALIKE if is_unused else each for each, is_unused in zip(found, unused, strict=True)]
    single = typer.ev.argument(callee, "argnums") is None or (len(positions) == 1 and not _listed(typer, callee))
    gradients: Type = found[0] if single else Row(tuple(found))
    if with_value:
        return Row((_of_loss(result), gradients))
    if has_aux is not None and has_aux.value:
        rest = result.elements[1] if isinstance(result, Row) and len(result.elements) == 2 else UNKNOWN
        return Row((gradients, rest))
    return gradients


def _of_loss(result: Type) -> Type:
    """The result of a function that is differentiated, whose loss has no dimensions."""
    if isinstance(result, Leaf):
        return replace(result, scalar=True)
    if isinstance(result, Row) and result.elements and isinstance(loss := result.elements[0], Leaf):
        return Row((replace(loss, scalar=True), *result.elements[1:]))
    return result


def _uses(typer: Typer, function: FunctionValue, position: int) -> bool:
    """Whether a function reads a parameter, directly or in a nested function; the derivative by any other is zero."""
    definition = typer.ev.project.function(function.ref)
    formals = definition.formals[1 if function.receiver is not None else 0 :]
    if position >= len(formals) or formals[position].kind not in ("positional-only", "standard"):
        return True
    inside = {definition.index}
    for each in typer.ev.project.modules[function.ref.path].summary.functions[definition.index :]:
        if each.index in inside or each.parent in inside:
            inside.add(each.index)
            if any(isinstance(o, s.Load) and o.name == formals[position].name for o in each.operations):
                return True
    return False


def _positions(typer: Typer, callee: Applied) -> tuple[int, ...]:
    given = typer.ev.argument(callee, "argnums")
    if given is None:
        return (0,)
    value = certain(given)
    if isinstance(value, Collection) and not value.open:
        known = [constant(element) for element in value.elements]
        return tuple(k.value for k in known if k is not None and isinstance(k.value, int))
    single = constant(given)
    return (single.value,) if single is not None and isinstance(single.value, int) else ()


def _listed(typer: Typer, callee: Applied) -> bool:
    given = typer.ev.argument(callee, "argnums")
    return given is not None and isinstance(certain(given), Collection)


def _derived(typer: Typer, values: Sequence[Type], loss: Leaf, site: Site) -> list[Type]:
    """The derivatives of a loss by the given values."""
    region = typer.region
    for mark in loss.marks:
        if mark.fact in ("summed", "averaged"):
            typer.reduced_losses[Mark("gradient", mark.axis, site)] = mark.site

    def by(leaf: Leaf) -> Leaf:
        return derivative(leaf, loss, site, checked=region.checked, by_hand=region.by_hand)

    if region.by_hand:
        by_rows = rows_of(leaf for value in values for leaf in leaves_of(value))
        typer.copies.update(by_rows)
        typer.derived.update(by_rows)
    return [changed(value, by) for value in values]


# -- vjp


def with_pullback(typer: Typer, scope: Scope, functions: Sequence[Value], passed: Passed, site: Site) -> Type:
    """`vjp`: the result of a function, and the pullback from its derivative to those of the arguments."""
    primals = passed.types[1:]
    result: Type | None = None
    if len(functions) == 1:
        given = Passed(primals, (), Arguments())
        result = application.apply(typer, scope, functions[0], given, site)
    if result is None:
        result = replace(UNKNOWN, rows=rows_of(flat(each) for each in primals))
    if passed.values.keyword("has_aux") is None:
        return Row((result, Pullback(result, primals, site)))
    pair = result.elements if isinstance(result, Row) and len(result.elements) == 2 else (UNKNOWN, UNKNOWN)
    return Row((pair[0], Pullback(pair[0], primals, site), pair[1]))


def pulled_back(typer: Typer, pull: Pullback, passed: Passed, site: Site) -> Type:
    """The derivatives by the arguments of `vjp`, weighted by the cotangent that is passed here."""
    of_result = flat(pull.result)
    loss = replace(typer.combine("joined", [of_result, *passed.all()], site), marks=of_result.marks)
    return Row(tuple(_derived(typer, pull.primals, loss, pull.site)))
