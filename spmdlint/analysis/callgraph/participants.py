"""Which processes take part: in maps that are restricted to this one, and in calls of libraries that are told.

Orbax is told by its ``MultiprocessingOptions``, or by a patch.
"""

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
    DictionaryValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    Value,
    certain,
    constant,
)
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Known
from spmdlint.knowledge.reading import reading
from spmdlint.knowledge.units import units
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
        if any(isinstance(given, str) and given.rpartition(".")[2] in _APART for given in _constants(ev, inner)):
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


DEPTH = 24
_MESHES = names("meshes")
_SHAPED = names("shaped_meshes")
_PLACES = ("device", "backend", "devices")


def on_local_devices(value: Value, depth: int = DEPTH) -> bool:
    """Whether a map or jit is restricted to local devices, to a few listed ones, or to a named device or backend."""
    if not isinstance(value, Applied) or depth == 0:
        return False
    if value.name in reading().local | {reading().one_device} or _on_listed_devices(value) or _of_own_size(value):
        return True
    inside = [*value.arguments.positional, *(v for _, v in value.arguments.keywords)]
    for name, values in value.arguments.keywords:
        if name in ("device", "backend") and all(isinstance(v, (Applied, Member, External)) for v in values):
            return True
        if name in _PLACES and any(getattr(v, "value", None) == "cpu" for v in values):
            return True
    parts = [part for values in inside for part in values]
    parts += [p for part in parts if isinstance(part, Collection) for e in part.elements for p in e]
    return any(on_local_devices(part, depth - 1) for part in parts)


def _on_listed_devices(mesh: Applied) -> bool:
    """Whether a mesh is of devices that are listed one by one: processes that own none of them do not take part."""
    if mesh.name not in _MESHES:
        return False
    given = mesh.arguments.keyword("devices")
    if given is None and mesh.name == _MESHES[0] and mesh.arguments.positional:
        given = mesh.arguments.positional[0]
    return given is not None and bool(given) and all(map(_is_written_out, given))


def _of_own_size(mesh: Applied) -> bool:
    """Whether a mesh has one device, or as many as this process: with several processes, JAX refuses to make that."""
    if mesh.name not in _SHAPED:
        return False
    shapes = [certain(values) for values in (*mesh.arguments.positional[:1], *(v for _, v in mesh.arguments.keywords))]
    sizes = {certain(each) for shape in shapes if isinstance(shape, Collection) for each in shape.elements}
    own = any(isinstance(size, Applied) and units().counts.get(size.name) == "local" for size in sizes)
    return own or sizes == {Constant(1)}


def _is_written_out(devices: Value) -> bool:
    if isinstance(devices, Applied) and devices.name.startswith("numpy.") and len(devices.arguments.positional) == 1:
        return all(map(_is_written_out, devices.arguments.positional[0]))
    return isinstance(devices, Collection) and bool(devices.elements) and not devices.open


def sharded(evaluator: Evaluator, value: Applied) -> bool:
    """Whether a jit is given shardings over devices for its inputs or outputs."""
    for parameter in ("in_shardings", "out_shardings"):
        given = evaluator.argument(value, parameter)
        if given is not None and any(_spans(part) for part in given):
            return True
    return False


def _spans(sharding: Value) -> bool:
    """Whether the value is a sharding or a pytree of shardings; the sharding of a single device does not count."""
    if isinstance(sharding, Constant):
        return False
    if isinstance(sharding, Applied):
        return sharding.name != reading().one_device
    if isinstance(sharding, Collection):
        return any(_spans(part) for element in sharding.elements for part in element)
    if isinstance(sharding, DictionaryValue):
        return any(_spans(part) for _, element in sharding.items for part in element)
    return True
