"""Linking: which file an imported name comes from, over all modules of the project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from spmdlint.files.read import is_notebook
from spmdlint.program.summary import Attribute, Call, Const, Function, Import, Load, StoreAttribute, Summary


class FunctionRef(Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """One function of the project: its file and its number there."""

    path: Path
    index: int


class Module(Struct, dict=True):
    """A file of the project with the dotted name that it may be imported by.

    ``folder`` is what Python puts on its path for a script there: the nearest enclosing folder without `__init__.py`.
    """

    path: Path
    summary: Summary
    folder: Path
    name: str
    is_package: bool

    @property
    def top(self) -> Function:
        return self.summary.functions[0]

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """The imports anywhere in the file, except of all names of a module."""
        return tuple([o for function in self.summary.functions for o in function.operations if type(o) is Import])

    @cached_property
    def words(self) -> frozenset[str]:
        """The names of the attributes that the file reads, and of what it imports: most questions end with these."""
        read = {o.name for function in self.summary.functions for o in function.operations if type(o) is Attribute}
        for each in self.imports:
            read.update(each.module.split("."), (each.name or "",))
        return frozenset(read)


class Project(Struct, dict=True):
    """All modules, and how their names are looked up.

    ``roots`` are the folders from which imports start for every file (the configured `src`, the project's root); before
    them comes the importing file's own folder, so that twenty `examples/*/train.py` do not mix. Nothing is looked up
    across ``component``s, the sets of files that name one another.
    """

    modules: Mapping[Path, Module]
    roots: tuple[Path, ...]
    component: Mapping[Path, int]
    _found: dict[tuple[Path, int, str], Path | None] = field(default_factory=dict)
    _refs: dict[Path, list[FunctionRef]] = field(default_factory=dict)

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        names: dict[str, list[Path]] = {}
        for module in self.modules.values():
            names.setdefault(module.name, []).append(module.path)
        return names

    @cached_property
    def _packages(self) -> frozenset[Path]:
        """Folders that hold a module at any depth: namespace packages have no file of their own."""
        return frozenset(parent for path in self.modules for parent in path.parents)

    def tail(self, path: Path) -> str:
        """The shortest end of a file's path, below the last root, that no other file of its component has."""
        namesakes = [other for other in self._by_file_name[self.component[path], path.name] if other != path]
        inside = any(base in path.parents for base in self.roots[-1:])
        parts = path.relative_to(self.roots[-1]).parts if inside else path.parts
        ends = (parts[-length:] for length in range(1, len(parts)))
        unlike = (end for end in ends if all(other.parts[-len(end) :] != end for other in namesakes))
        return "/".join(next(unlike, parts))

    @cached_property
    def _by_file_name(self) -> dict[tuple[int, str], list[Path]]:
        names: dict[tuple[int, str], list[Path]] = {}
        for path in self.modules:
            names.setdefault((self.component[path], path.name), []).append(path)
        return names

    def function(self, ref: FunctionRef) -> Function:
        return self.modules[ref.path].summary.functions[ref.index]

    def functions(self) -> Sequence[FunctionRef]:
        """Every function of the project, file by file in source order."""
        return self._functions

    @cached_property
    def _functions(self) -> tuple[FunctionRef, ...]:
        numbers = ((path, range(len(self.modules[path].summary.functions))) for path in sorted(self.modules))
        return tuple([self.ref(path, index) for path, indices in numbers for index in indices])

    def ref(self, path: Path, index: int) -> FunctionRef:
        """The reference to a function by its number; it is interned, because many values hold it."""
        refs = self._refs.get(path)
        if refs is None:
            functions = self.modules[path].summary.functions
            refs = self._refs[path] = [FunctionRef(path, number) for number in range(len(functions))]
        return refs[index]

    # -- imports

    def find_module(self, dotted: str, importer: Module) -> Path | None:
        """The file of the module with this absolute name, as the importer sees it; None if it is not in the project."""
        key = (importer.folder, self.component[importer.path], dotted)
        if key not in self._found:
            self._found[key] = self._find(dotted, importer)
        return self._found[key]

    def _find(self, dotted: str, importer: Module) -> Path | None:
        parts = dotted.split(".")
        for root in self._bases(parts[0], importer):
            base = root.joinpath(*parts)
            file = base.with_name(base.name + ".py") if base.name else base  # the root of all folders has no name
            for candidate in (base / "__init__.py", file):
                if candidate in self.modules:
                    return candidate
        owners = [
            path for path in self._by_name.get(dotted, ()) if self.component[path] == self.component[importer.path]
        ]
        return owners[0] if len(owners) == 1 else None

    def is_namespace(self, dotted: str, importer: Module) -> bool:
        """Whether this is a folder of the project that is a namespace package."""
        parts = dotted.split(".")
        return any(root.joinpath(*parts) in self._packages for root in self._bases(parts[0], importer))

    def _bases(self, top: str, importer: Module) -> Iterator[Path]:
        """The folders in which a name that begins with ``top`` may be found, the first that has it first.

        If no root has anything of this name, but the last one or a folder above it is called so, that folder is a
        namespace package: nothing in it says so, but the names of its own modules begin with it.
        """
        bases = (importer.folder, *self.roots)
        yield from bases
        root = self.roots[-1] if self.roots else None
        if root is not None and not any(self._has(base, top) for base in bases):
            yield from (folder.parent for folder in (root, *root.parents) if folder.name == top)

    def _has(self, base: Path, name: str) -> bool:
        """Whether a folder has a module or a package of the project with this name."""
        return base / name in self._packages or base / f"{name}.py" in self.modules

    def absolute(self, module: Module, name: str, level: int) -> str:
        """The absolute dotted name of a possibly relative import."""
        if level == 0:
            return name
        parts = module.name.split(".")
        drop = level - 1 if module.is_package else level
        base = parts[: len(parts) - drop]
        if drop > len(parts):  # the folders above are packages, although no file of theirs says so
            folder = module.path.parents[min(level, len(module.path.parents)) - 1]
            root = next((root for root in self.roots if folder.is_relative_to(root)), folder)
            base = list(folder.relative_to(root).parts)
        return ".".join([*base, *([name] if name else [])])

    # -- classes

    def methods(self, class_ref: FunctionRef) -> dict[str, FunctionRef]:
        """The functions defined by `def` in a class body, by name; the last definition counts."""
        return self._methods.get(class_ref, {})

    @cached_property
    def _methods(self) -> dict[FunctionRef, dict[str, FunctionRef]]:
        found: dict[FunctionRef, dict[str, FunctionRef]] = {}
        for path, module in self.modules.items():
            for function in module.summary.functions:
                if function.parent is not None and function.kind == "function":
                    own = found.setdefault(self.ref(path, function.parent), {})
                    own[function.name] = self.ref(path, function.index)
        return found

    @cached_property
    def methods_by_name(self) -> dict[str, list[FunctionRef]]:
        """Every method of the project by its bare name."""
        found: dict[str, list[FunctionRef]] = {}
        for path, module in self.modules.items():
            functions = module.summary.functions
            for function in functions:
                parent = function.parent
                if function.kind == "function" and parent is not None and functions[parent].kind == "class":
                    found.setdefault(function.name, []).append(self.ref(path, function.index))
        return found

    @cached_property
    def attributes_set(self) -> dict[str, list[tuple[FunctionRef, int]]]:
        """The objects, other than a method's receiver, on which an attribute is set; by the attribute's name."""
        found: dict[str, list[tuple[FunctionRef, int]]] = {}
        for name, stores in self.fields_of_others.items():
            made = ((ref, self.function(ref).operations[number]) for ref, number in stores)
            found[name] = [(ref, store.base) for ref, store in made if isinstance(store, StoreAttribute)]
        for ref in self.functions():
            function = self.function(ref)
            for call in (each for each in function.operations if type(each) is Call):
                for name, number in _set_by_name(function, call):
                    found.setdefault(name, []).append((ref, number))
        return found

    @cached_property
    def fields_of_others(self) -> dict[str, list[tuple[FunctionRef, int]]]:
        """The stores to attributes of any object other than a method's receiver, by the attribute's name."""
        found: dict[str, list[tuple[FunctionRef, int]]] = {}
        for ref in self.functions():
            function = self.function(ref)
            receiver = self._receiver(ref)
            for number, operation in enumerate(function.operations):
                if type(operation) is StoreAttribute:
                    base = function.operations[operation.base]
                    if not isinstance(base, Load) or base.name != receiver:
                        found.setdefault(operation.name, []).append((ref, number))
        return found

    def _receiver(self, ref: FunctionRef) -> str | None:
        """The name of a method's first parameter; None for other functions."""
        formals = self.function(ref).formals
        return formals[0].name if formals and self.enclosing_class(ref) is not None else None

    def enclosing_class(self, ref: FunctionRef) -> FunctionRef | None:
        """The class in whose body a function is defined, if any."""
        parent = self.function(ref).parent
        if parent is not None and self.modules[ref.path].summary.functions[parent].kind == "class":
            return self.ref(ref.path, parent)
        return None


def _set_by_name(function: Function, call: Call) -> Iterator[tuple[str, int]]:
    """The attribute that `setattr` with a literal name sets, and the object."""
    callee = function.operations[call.function]
    if isinstance(callee, Load) and callee.name == "setattr" and len(call.arguments) == 3:
        name = function.operations[call.arguments[1].value]
        if isinstance(name, Const) and isinstance(name.value, str):
            yield name.value, call.arguments[0].value


def link(
    summaries: Mapping[Path, Summary], roots: Iterable[Path], component: Mapping[Path, int] | None = None
) -> Project:
    """The project that these files form; without ``component`` they are all in one component."""
    packages = {path.parent for path in summaries if path.name == "__init__.py"}
    modules = {}
    for path, summary in summaries.items():
        folder = path.parent
        while folder in packages and folder.parent != folder:
            folder = folder.parent
        own = path.relative_to(folder)
        parts = list(own.with_suffix("").parts if not is_notebook(path) else own.parts)  # nothing imports a notebook
        is_package = path.name == "__init__.py"
        if is_package:
            parts = parts[:-1]
        modules[path] = Module(path, summary, folder, ".".join(parts), is_package)
    return Project(modules, tuple(roots), component or dict.fromkeys(modules, 0))
