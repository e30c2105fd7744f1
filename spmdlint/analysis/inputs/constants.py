"""Varying values that become part of the program JAX traces, so that processes compile different programs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls, says_who
from spmdlint.analysis.callgraph.participants import on_local_devices, sharded
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.callgraph.tracing import way_from_tracing
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Site
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Reason
from spmdlint.analysis.variance.reason import of_kind
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.files import names
from spmdlint.knowledge.typing import typing_table
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_TRACED = names("constant_makers")
# An optimizer made outside of traced code: its settings become constants of the program.
_STEPS = frozenset(("update",))
_ARITHMETIC = frozenset("+ - * / // **".split())
_KINDS = ("identity", "group", "clock", "entropy", "host", "data")


class TracedConstant(Struct, frozen=True):
    """A JAX operation in traced code that is given a value of this process, and the path by which it is traced.

    ``shapes``: the shape of its result depends on that value, so that the programs differ in form.
    """

    site: Site
    name: str
    reason: Reason
    way: tuple[Site, ...]
    shapes: bool


def traced_constants(
    evaluator: Evaluator, calls: Calls, reach: Reach, facets: Facets, multi: MultiProcess, *, preview: bool
) -> Iterator[TracedConstant]:
    """Every operation in certainly traced code whose argument differs between processes because of traced code.

    Also because of what the host computed, if the program's shardings show that it is for the devices of several
    processes; with ``preview``, in any program, although the function may well be for local devices.
    """
    over_all = _over_all(evaluator, calls, reach)
    told: dict[Site, TracedConstant] = {}
    for ref in sorted(reach.traced - reach.host, key=lambda r: (r.path, r.index)):
        frame = evaluator.free_frame(ref)
        for at, name, reason, shapes in _in_function(evaluator, reach, facets, frame, over_all=ref in over_all):
            files = {ref.path, *(step.site.ref.path for step in reason.chain())}
            several = any(map(multi.surely_runs_several, files))  # written for it, or passed through what is
            computed = ref in over_all and reason.kind != "data" and several
            if preview or _inside(reach, reason) or computed:
                way = way_from_tracing(reach, ref, sure=False)  # whatever leads there, it is traced
                source = reason.cause.site
                # One value may be passed on to many functions: the place to fix is where it comes in.
                if way is not None and (source not in told or source.ref == ref):
                    told[source] = TracedConstant(at, name, reason, way, shapes)
                break
    yield from told.values()


def _in_function(
    evaluator: Evaluator, reach: Reach, facets: Facets, frame: Frame, *, over_all: bool
) -> Iterator[tuple[Site, str, Reason, bool]]:
    """Each operation of a function that is given such a value, its name, why it differs, and if it decides the shape.

    Arithmetic with what the host has computed, and the state of a library's object, count only if the function is for
    all devices: in a map that the host runs at once, they are numbers, static arguments or tables.
    """
    function = evaluator.function(frame)
    certain_blocks = reach.certainty.blocks(frame)
    for block in sorted(evaluator.live_blocks(frame)):
        for number in function.blocks[block].operations:
            operation = function.operations[number]
            name, given = _given_to_jax(evaluator, frame, operation)
            worked_on = not given
            if worked_on:
                name, given = _worked_on(frame, operation)
            for value in given:
                reason = of_kind(facets.content.why(frame, value), *_KINDS)
                if reason is None:
                    continue
                counts = over_all and not isinstance(operation, s.Subscript)
                inside = isinstance(operation, (s.Binary, s.Subscript)) and _inside(reach, reason)
                if worked_on and not inside and not counts:
                    continue
                # A setting chooses the block; testing for the process inside it is a fault under that setting.
                if block in certain_blocks or (reason.kind == "identity" and reason.source.site.ref == frame.ref):
                    shapes = _decides_shape(name, operation, value)
                    yield Site(frame.ref, number), name, reason, shapes


def _given_to_jax(evaluator: Evaluator, frame: Frame, operation: s.Operation) -> tuple[str, list[int]]:
    """The name of a JAX operation, and its arguments."""
    callee = evaluator.callee(frame, operation)
    if not isinstance(operation, s.Call) or not isinstance(callee, External) or not callee.name.startswith(_TRACED):
        return "", []
    told = set(says_who(evaluator, frame, operation))  # reported as a different hazard
    return callee.name, [a.value for a in operation.arguments if a.value not in told]


def _decides_shape(name: str, operation: s.Operation, value: int) -> bool:
    """Whether the shape of a JAX operation's result depends on a value that it is given."""
    deciding = typing_table().shaped_by.get(name)
    if deciding is None or not isinstance(operation, s.Call):
        return False
    starred = any(argument.star for argument in operation.arguments)
    return any(
        argument.value == value and (starred or (argument.keyword or place) in deciding)
        for place, argument in enumerate(operation.arguments)
    )


def _worked_on(frame: Frame, operation: s.Operation) -> tuple[str, list[int]]:
    """An index, both operands of arithmetic with the function's arguments, or the library object that makes a step."""
    if isinstance(operation, s.Subscript):
        return "The subscript", [operation.index]
    if isinstance(operation, s.Binary):
        sides = [operation.left, operation.right]
        given = any(_is_given(frame, side) for side in sides)
        return f"The operator {operation.operator}", sides if given and operation.operator in _ARITHMETIC else []
    method = frame.code.operations[operation.function] if isinstance(operation, s.Call) else None
    if not isinstance(operation, s.Call) or not isinstance(method, s.Attribute) or len(operation.arguments) < 2:
        return "", []
    if method.name not in _STEPS or _is_given(frame, method.base):
        return "", []
    return f"The object of .{method.name}()", [method.base]


def _is_given(frame: Frame, number: int) -> bool:
    """Whether a value is a parameter of the function, and therefore traced."""
    return isinstance(frame.code.operations[frame.code.root_of(number)], s.Parameter)


def _over_all(evaluator: Evaluator, calls: Calls, reach: Reach) -> set[FunctionRef]:
    """The functions over the devices of all processes: in jits with shardings, and in maps with a named axis."""
    found: set[FunctionRef] = set()
    for use in reach.uses:
        known = evaluator.knowledge.get(use.applied.name)
        if known is not None and (
            (known.kind == "jit" and sharded(evaluator, use.applied))
            or (known.by_hand and evaluator.argument(use.applied, "axis_name") is not None)
        ):
            functions = calls.functions_in(known, use.applied.arguments) if not on_local_devices(use.applied) else ()
            found.update(function.ref for function in functions if isinstance(function, FunctionValue))
    return found


def _inside(reach: Reach, reason: Reason) -> bool:
    """Whether a value becomes one of this process, as numbers do where they are drawn, in code that is only traced."""
    steps = reason.chain()
    return all(reach.only_traced(step.site.ref) for step in steps[steps.index(reason.cause) :])
