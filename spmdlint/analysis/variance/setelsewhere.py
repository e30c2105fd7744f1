"""Stores to a name that stand in another function than the name: by ``global`` and by ``nonlocal``."""

from __future__ import annotations

from pathlib import Path

from spmdlint.analysis.evaluation.code import Code
from spmdlint.program.link import FunctionRef, Project

Stores = list[tuple[FunctionRef, int]]


class SetElsewhere:
    """Finds them, file by file. One per run."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._globals: dict[Path, dict[str, Stores]] = {}

    def of_module(self, path: Path, name: str) -> Stores:
        """The stores to a name of a module that its functions make."""
        if path not in self._globals:
            found: dict[str, Stores] = {}
            for function in self.project.modules[path].summary.functions:
                for each in sorted(function.globals):
                    ref = FunctionRef(path, function.index)
                    found.setdefault(each, []).extend((ref, n) for n in function.stores.get(each, ()))
            self._globals[path] = found
        return self._globals[path].get(name, [])

    def of_function(self, code: Code, ref: FunctionRef, name: str) -> Stores:
        """The stores to a name of a function that those make which are defined in it."""
        functions = code.summary.functions
        inside = code.set_inside.get(name, ())
        return [(FunctionRef(ref.path, index), n) for index in inside for n in functions[index].stores[name]]
