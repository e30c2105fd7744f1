"""Which functions may reach a call of a library function, directly, or by calls, imports or class statements."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Module, Project


def upstream(project: Project, reach: Reach, names: Collection[str]) -> set[FunctionRef]:
    """Every function that may reach a call of one of these names; an over-approximation."""
    found: set[FunctionRef] = set()
    pending = reach.calling(names)
    if not pending:
        return found
    entered = _entered(project)
    while pending:
        ref = pending.pop()
        if ref not in found:
            found.add(ref)
            pending.extend(edge.caller.ref for edge in reach.callers.get(ref, ()))
            pending.extend(entered.get(ref, ()))
    return found


def imported(project: Project, module: Module, operation: s.Import) -> Iterator[Path]:
    """The files of the project that run when a name is imported, packages first."""
    dotted = project.absolute(module, operation.module, operation.level)
    names = [dotted, f"{dotted}.{operation.name}"] if operation.name is not None else [dotted]
    parts = dotted.split(".")
    for name in [".".join(parts[:end]) for end in range(1, len(parts))] + names:
        path = project.find_module(name, module)
        if path is not None and path != module.path:
            yield path


def _entered(project: Project) -> dict[FunctionRef, list[FunctionRef]]:
    """The functions that run a module by importing it, or a class body by defining the class."""
    found: dict[FunctionRef, list[FunctionRef]] = {}
    for path, module in project.modules.items():
        for function in module.summary.functions:
            ref = FunctionRef(path, function.index)
            for operation in function.operations:
                if not isinstance(operation, (s.Import, s.MakeClass)):
                    continue
                if isinstance(operation, s.Import):
                    for other in imported(project, module, operation):
                        found.setdefault(FunctionRef(other, 0), []).append(ref)
                else:
                    found.setdefault(FunctionRef(path, operation.body), []).append(ref)
    return found
