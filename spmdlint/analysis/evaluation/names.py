"""Resolves names: the possible values of a local, a global, an import or an attribute of a module."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.filled import filled_name
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    UNKNOWN,
    Collection,
    DictionaryValue,
    External,
    Frame,
    ModuleValue,
    Namespace,
    Values,
    join,
    one,
)
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Module

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator


class Names:
    """Looks names up. One per evaluator; a separate file only to keep both short."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._rebound: dict[Path, dict[str, list[int]]] = {}
        self._changing: dict[Path, dict[str, list[Code]]] = {}
        self._declared: dict[Path, Mapping[str, str]] = {}

    def load(self, frame: Frame, number: int, operation: s.Load) -> Values:
        module = self.ev.project.modules[frame.ref.path]
        code = frame.code
        function = code.function
        scope = code.scope_of(operation.name)
        if scope is function:
            stores = self.ev.reaching(frame, number, operation.name)
            values = join(*(self.ev.value(frame, store) for store in stores))
            if not stores and function.kind == "class":
                return self.global_name(module, operation.name)
            if values and operation.name in code.set_inside:
                values = join(values, *self._set_by(module.path, code.set_inside[operation.name], operation.name))
            return self._opened(values, frame, operation.name, number)
        if scope is not None:
            outer: Frame | None = frame.outer
            while outer is not None and outer.code.function is not scope:
                outer = outer.outer
            if outer is None:
                return ANYTHING
            return self.name_in(outer, operation.name)
        if function.kind == "module" and operation.name in function.stores:
            values = self._top(frame, module, self.ev.reaching(frame, number, operation.name))
            if values:  # a function that sets the global may have run by now
                values = join(
                    values, *self._set_by(module.path, self.setters(module).get(operation.name, ()), operation.name)
                )
            return self._opened(values, frame, operation.name, number) or self.global_name(module, operation.name)
        values = self.global_name(module, operation.name)
        if operation.name in function.globals and operation.name in function.stores and frame.given:
            # What this very call sets, with what it was given, in place of what any call sets.
            free, own = self.ev.free_frame(frame.ref), sorted(function.stores[operation.name])
            values -= join(*(self.ev.value(free, store) for store in own))
            values = join(values, *(self.ev.value(frame, store) for store in own))
        return values

    def name_in(self, frame: Frame, name: str) -> Values:
        """The possible values of a name of an enclosing function: any of its stores that can run."""
        scope = frame.code.function
        live = self.ev.live_blocks(frame)
        stores = [number for number in scope.stores.get(name, ()) if scope.block_of[number] in live]
        values = join(*(self.ev.value(frame, n) for n in stores if isinstance(scope.operations[n], s.Store)))
        if values and name in frame.code.set_inside:
            values = join(values, *self._set_by(frame.ref.path, frame.code.set_inside[name], name))
        return self._opened(values, frame, name)

    def _opened(self, values: Values, frame: Frame, name: str, number: int | None = None) -> Values:
        """The values of a name after changes in place: anything, or what is put there if it is only filled."""
        if not any(isinstance(v, (Collection, DictionaryValue)) for v in values):
            return values
        if name not in frame.code.mutated_names and name not in self.changing(frame.ref.path):
            return values
        return filled_name(self.ev, frame, name, values, number) or frozenset((*values, UNKNOWN))

    def global_name(self, module: Module, name: str) -> Values:
        """The possible values of a module's global, or of a builtin."""
        return self.ev.memo.once((module.path, name), lambda: self._global_name(module, name))

    def _global_name(self, module: Module, name: str) -> Values:
        frame = self.ev.free_frame(FunctionRef(module.path, 0))
        stores = frozenset(module.top.stores.get(name, ()))
        # A function usually runs when the module is done and sees the last store; in scripts it may run in between.
        last = self.ev.flow(frame.ref).at_end(name) or stores
        if len(stores) > 1 and _calls_between(module.top, min(stores), max(last)):
            last = stores
        values = self._top(frame, module, last)
        sets = [values] if values else []
        sets += self._set_by(module.path, self.setters(module).get(name, ()), name)
        if sets:
            return self._opened(join(*sets), frame, name)
        for operation in frame.code.stars:
            dotted = self.ev.project.absolute(module, operation.module, operation.level)
            path = self.ev.project.find_module(dotted, module)
            if path is None:
                candidate = External(self.ev.knowledge.canonical(f"{dotted}.{name}"))
                if self.ev.knowledge.get(candidate.name) is not None:
                    return one(candidate)
            elif path != module.path:
                values = self.global_name(self.ev.project.modules[path], name)
                if values and values != ANYTHING:
                    return values
        if hasattr(builtins, name):
            return one(External(f"builtins.{name}"))
        return ANYTHING

    def _set_by(self, path: Path, functions: Iterable[int], name: str) -> Iterator[Values]:
        """The values that nested or other functions of a file assign to a name outside them."""
        for index in functions:
            frame = self.ev.free_frame(FunctionRef(path, index))
            for number in frame.code.function.stores[name]:
                known = isinstance(frame.code.operations[number], s.Store)
                yield self.ev.value(frame, number) if known else ANYTHING

    def setters(self, module: Module) -> dict[str, list[int]]:
        """The functions of a module that assign to one of its globals, by the name of the global."""
        found = self._rebound.get(module.path)
        if found is None:
            found = self._rebound[module.path] = {}
            for function in module.summary.functions[1:]:
                for name in sorted(function.globals):
                    if name in function.stores:
                        found.setdefault(name, []).append(function.index)
        return found

    def changing(self, path: Path) -> dict[str, list[Code]]:
        """The functions of a file that change the value of a name in place, by the name."""
        found = self._changing.get(path)
        if found is None:
            found = self._changing[path] = {}
            for function in self.ev.project.modules[path].summary.functions:
                code = self.ev.code(FunctionRef(path, function.index))
                for name in code.mutated_names:
                    found.setdefault(name, []).append(code)
        return found

    def _top(self, frame: Frame, module: Module, stores: frozenset[int]) -> Values:
        """The values of the given stores at the top level of a module, of those that can run."""
        live = self.ev.live_blocks(frame)
        top = module.top
        declared = self.declared(module.path)
        found = []
        for number in sorted(stores):
            store = top.operations[number]
            if isinstance(store, s.Store) and top.block_of[number] in live:
                name = declared.get(store.name)
                found.append(self.ev.value(frame, number) if name is None else one(External(name)))
        return join(*found)

    # -- what the user declares

    def declared(self, path: Path) -> Mapping[str, str]:
        """What the user's own tables say of what a module defines: names in there, and the names in the tables.

        A class of which nothing is said but how it is called is not another object: its constructor is declared.
        """
        found = self._declared.get(path)
        if found is None:
            found = self._declared[path] = dict(self._find_declared(path)) if self.ev.knowledge.declared else {}
        return found

    def _find_declared(self, path: Path) -> Iterator[tuple[str, str]]:
        module = self.ev.project.modules[path]
        classes = {each.qualname for each in module.summary.functions if each.kind == "class"}
        for name in sorted(self.ev.knowledge.declared):
            canonical = self.ev.knowledge.canonical(name)
            known = self.ev.knowledge.get(canonical)
            parts = name.split(".")
            for end in range(1, len(parts)) if known is not None else ():
                if self.ev.project.find_module(".".join(parts[:end]), module) != path:
                    continue
                own = ".".join(parts[end:])
                constructor = own in classes and known is not None and known.kind is None
                yield (f"{own}.__init__" if constructor else own), canonical

    def _is_constructed(self, path: Path | None, name: str) -> bool:
        """Whether the user declares the constructor of a class of the project, whose methods are still known."""
        return path is not None and f"{name}.__init__" in self.declared(path) and name not in self.declared(path)

    def import_(self, frame: Frame, number: int, operation: s.Import) -> Values:
        module = self.ev.project.modules[frame.ref.path]
        dotted = self.ev.project.absolute(module, operation.module, operation.level)
        if operation.root:
            return self.dotted_name(dotted.split(".")[0], module)
        if operation.name is None:
            return self.dotted_name(dotted, module)
        full = f"{dotted}.{operation.name}" if dotted else operation.name
        canonical = self.ev.knowledge.canonical(full)
        path = self.ev.project.find_module(dotted, module)
        if self.ev.knowledge.get(canonical) is not None and not self._is_constructed(path, operation.name):
            return one(External(canonical))
        if path is not None and path != module.path:
            home = self.ev.project.modules[path]
            values = self._or_submodule(self.global_name(home, operation.name), home, operation.name)
            if values and values != ANYTHING:
                return values
        return self.dotted_name(full, module)

    def certainly_imports(self, frame: Frame, test: int) -> bool:
        """Whether a handler has nothing to catch: the body of its `try` only imports what the project has."""
        module = self.ev.project.modules[frame.ref.path]
        imports = frame.code.only_imports(test)
        return bool(imports) and all(self._has(module, each) for each in imports or ())

    def _has(self, module: Module, imported: s.Import) -> bool:
        dotted = self.ev.project.absolute(module, imported.module, imported.level)
        path = self.ev.project.find_module(dotted, module)
        if path is None or path == module.path:
            return False
        name = imported.name
        known = name is None or name in self.ev.project.modules[path].top.stores
        return known or self.ev.project.find_module(f"{dotted}.{name}", module) is not None

    def dotted_name(self, dotted: str, module: Module) -> Values:
        path = self.ev.project.find_module(dotted, module)
        if path is not None:
            return one(ModuleValue(path))
        if self.ev.project.is_namespace(dotted, module):
            return one(Namespace(dotted, module.path))
        return one(External(self.ev.knowledge.outside(dotted)))

    def module_attribute(self, module: Module, name: str) -> Values:
        full = self.ev.knowledge.canonical(f"{module.name}.{name}")
        if self.ev.knowledge.get(full) is not None and not self._is_constructed(module.path, name):
            return one(External(full))
        is_bound = name in module.top.stores or self.ev.code(FunctionRef(module.path, 0)).stars
        return self._or_submodule(self.global_name(module, name) if is_bound else ANYTHING, module, name)

    def _or_submodule(self, values: Values, module: Module, name: str) -> Values:
        """What a name of a module is; a submodule if that is unknown, or imported from outside, which may never run."""
        vague = values == ANYTHING or all(isinstance(value, External) for value in values)
        path = self.ev.project.find_module(f"{module.name}.{name}", module) if vague and module.is_package else None
        return values if path is None else one(ModuleValue(path))


def _calls_between(top: s.Function, first: int, last: int) -> bool:
    """Whether a module calls a function that it defines between two of its operations."""
    for number in range(first, last):
        call = top.operations[number]
        called = top.operations[call.function] if isinstance(call, s.Call) and not call.decorator else None
        if isinstance(called, s.Load) and any(
            isinstance(store := top.operations[n], s.Store) and isinstance(top.operations[store.value], s.MakeFunction)
            for n in top.stores.get(called.name, ())
        ):
            return True
    return False
