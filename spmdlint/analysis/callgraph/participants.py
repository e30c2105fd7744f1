"""Libraries that are told which processes take part: Orbax, by its ``MultiprocessingOptions``, or by a patch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import managers_around
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    Collection,
    Constant,
    Frame,
    FunctionValue,
    Instance,
    Value,
    certain,
    constant,
)
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s
from spmdlint.program.link import Module

_DEPTH = 4
_PATCH = frozenset(("patch", "object"))
_APART = frozenset(("process_index", "process_count"))
_TOLD_BY = "MultiprocessingOptions"


def told_who_takes_part(ev: Evaluator, frame: Frame, call: s.Call) -> bool:
    """Whether a call of a checkpointer, or of one of its methods, involves only the processes that its options name."""
    method = frame.code.operations[call.function]
    owners = ev.value(frame, method.base) if isinstance(method, s.Attribute) else frozenset()
    made = [v.arguments for v in owners if isinstance(v, (Applied, Instance)) and v.arguments is not None]
    return any(names_participants(ev, arguments) for arguments in (*made, ev.arguments(frame, call)))


def pretends_to_be_one(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether an operation is inside a `with` whose context manager patches the functions that identify processes."""
    return any(_pretends(ev, frame, manager, _DEPTH) for manager in managers_around(frame, number))


def _pretends(ev: Evaluator, frame: Frame, manager: s.Call, depth: int) -> bool:
    """Whether a context manager that a call makes does so, directly or through one that it returns."""
    for made in ev.value(frame, manager.function):
        inner = certain(made.arguments.positional[0]) if _is_manager(made, ev) else made
        if not isinstance(inner, FunctionValue):
            continue
        body = ev.free_frame(inner.ref)
        returned = [body.code.operations[given.value] for _, given in body.code.returns if given.value is not None]
        handed_on = [call for call in returned if isinstance(call, s.Call)]
        if any(map(_replaces, _constants(ev, inner))):
            return True
        if depth > 0 and any(_pretends(ev, body, call, depth - 1) for call in handed_on):
            return True
    return False


def _is_manager(value: Value, ev: Evaluator) -> TypeGuard[Applied]:
    if not isinstance(value, Applied) or not value.arguments.positional:
        return False
    known = ev.knowledge.get(value.name)
    return known is not None and known.manages


def _constants(ev: Evaluator, function: FunctionValue) -> Iterator[object]:
    """The constants in the arguments of calls of `patch` in a function."""
    code = ev.code(function.ref)
    for call in code.calls_named(_PATCH).values():
        for argument in call.arguments:
            operation = code.operations[argument.value]
            yield operation.value if isinstance(operation, s.Const) else None


def _replaces(given: object) -> bool:
    return isinstance(given, str) and given.rpartition(".")[2] in _APART


def names_participants(ev: Evaluator, arguments: Arguments) -> bool:
    """Whether a call says which processes take part, in an argument or in one of its options."""
    return any(_says(ev, value, _DEPTH) for value in _given(arguments))


def _says(ev: Evaluator, value: Value, depth: int) -> bool:
    if isinstance(value, Collection):
        return depth > 0 and any(_says(ev, each, depth - 1) for element in value.elements for each in element)
    if isinstance(value, Applied):
        name, arguments = value.name.rpartition(".")[2], value.arguments
    elif isinstance(value, Instance) and value.arguments is not None:
        name, arguments = ev.project.function(value.cls.ref).name, value.arguments
    else:
        return False
    if name == _TOLD_BY:
        return _leaves_some_out(arguments)
    return depth > 0 and any(_says(ev, each, depth - 1) for each in _given(arguments))


def _leaves_some_out(options: Arguments) -> bool:
    """Whether not all processes take part: some are named, or each is its own primary."""
    active, primary = options.keyword("active_processes"), options.keyword("primary_host")
    named = active is not None and constant(active) != Constant(None)
    return named or options.open or (primary is not None and constant(primary) == Constant(None))


def _given(arguments: Arguments) -> list[Value]:
    each = (*arguments.positional, *(values for _, values in arguments.keywords))
    return [value for values in each for value in values]


def is_older(ev: Evaluator, frame: Frame, known: Known) -> bool:
    """Whether a program uses a name that only releases have in which a function is no parallel call yet."""
    home, _, last = known.until.rpartition(".")
    component = ev.project.component
    same = (each for path, each in ev.project.modules.items() if component[path] == component[frame.ref.path])
    return bool(known.until) and any(last in each.words and _names(each, home, last) for each in same)


def _names(module: Module, home: str, last: str) -> bool:
    """Whether a file imports a name of a module, or asks the module for it."""
    if any((each.module, each.name) == (home, last) or each.module == f"{home}.{last}" for each in module.imports):
        return True
    asked = ((f, each) for f in module.summary.functions for each in f.operations if isinstance(each, s.Attribute))
    return any(each.name == last and f.operations[each.base] == s.Load(home) for f, each in asked)
