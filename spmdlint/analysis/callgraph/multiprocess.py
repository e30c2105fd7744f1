"""Which files are written for several processes: what they, or the modules they import, say about processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from spmdlint.analysis.callgraph.spreading import starts
from spmdlint.program import summary as s
from spmdlint.program.link import Project

_SIGNS = frozenset(
    "process_index process_count host_id host_count multihost_utils process_allgather sync_global_devices "
    "broadcast_one_to_all local_devices make_array_from_process_local_data make_array_from_callback "
    "make_array_from_single_device_arrays host_local_array_to_global_array addressable_shards addressable_data".split()
)
# Code for one process asks for its devices, and for the parts of an array on them, by these names, too.
_WEAK = frozenset(("local_devices", "addressable_shards", "addressable_data"))
_OF_ARRAYS = _WEAK | {name for name in _SIGNS if name.startswith("make_array_")}
_SERVICE = "multihost_utils"
_COUNTS = frozenset(("process_count", "host_count"))


MAX_STEPS = 8
"""Steps over which lengths of rows are followed from one file to another."""


class MultiProcess:
    """Looks for signs of several processes, file by file. ``always``: the user has said so."""

    def __init__(self, project: Project, *, always: bool) -> None:
        self.project = project
        self.always = always
        self._known: dict[Path, bool] = {}
        self._written: dict[Path, bool] = {}

    def written_for(self, path: Path) -> bool:
        """Does a file name anything that several processes need, or import by name what nobody else does."""
        return self.always or self.says(path) or self._imports_needed(path)

    def surely_written_for(self, path: Path) -> bool:
        """The same where asking for one's own devices is no sign: code for one process does, too."""
        return self.always or self.needs(path) or self._imports_needed(path)

    def _imports_needed(self, path: Path) -> bool:
        if path not in self._written:
            self._written[path] = any(
                self.needs(other) and (name is None or self._part_needs(other, name))
                for other, name in self._imports(path)
            )
        return self._written[path]

    def counts_lengths(self, user: Path, source: Path, steps: int, *, preview: bool) -> bool:
        """Do lengths of rows that one file asks for count as a process's own examples', where another file uses them.

        They do in code that speaks of processes itself, and in what it imports; in any other file they do for a
        preview, if they do not leave it. Everything has lengths, and most of them are alike everywhere, so those that
        come over many ``steps`` do not count.
        """
        if user == source:
            return preview or self.written_for(user)
        if steps > MAX_STEPS:
            return False
        return self.always or (self.says(user) and (self.says(source) or source in self._imported(user)))

    def acts_for(self, path: Path) -> bool:
        """Does a file do something that only several processes need, besides asking how many there are."""
        functions = self.project.modules[path].summary.functions
        return self.always or any(_sign(f, o) and not _asks(o) for f in functions for o in f.operations)

    def around(self, path: Path) -> bool:
        """Does any of the files that a file hangs together with say so."""
        return self._any_around(path, self.says)

    def surely_around(self, path: Path) -> bool:
        """Does any of them name a thing that has no use for one process."""
        return self._any_around(path, self.needs)

    def _any_around(self, path: Path, asks: Callable[[Path], bool]) -> bool:
        component = self.project.component
        return self.always or any(asks(other) for other in self.project.modules if component[other] == component[path])

    def says(self, path: Path) -> bool:
        """Does a file itself name such a thing."""
        if path not in self._known:
            functions = self.project.modules[path].summary.functions
            self._known[path] = any(_sign(f, operation) for f in functions for operation in f.operations)
        return self._known[path]

    def needs(self, path: Path) -> bool:
        """Does a file name a thing that has no use for one process."""
        if not self.says(path):
            return False
        functions = self.project.modules[path].summary.functions
        return any(_sign(f, o) and getattr(o, "name", "") not in _WEAK for f in functions for o in f.operations)

    def joins(self, path: Path) -> bool:
        """Do its processes surely know one another through JAX's service: where they do not, each lists its own CPUs.

        Its program starts that service, or the file uses what needs it.
        """
        functions = self.project.modules[path].summary.functions
        uses = any(_meets(operation) for function in functions for operation in function.operations)
        return self.always or uses or self._any_around(path, self._starts)

    def _starts(self, path: Path) -> bool:
        functions = self.project.modules[path].summary.functions
        return any(starts(function, operation) for function in functions for operation in function.operations)

    def tests_one_process(self, path: Path) -> bool:
        """Is a file a test, by its name, that names no process, but arrays over devices at most."""
        if self.always or not (path.stem.startswith("test_") or path.stem.endswith("_test")):
            return False
        functions = self.project.modules[path].summary.functions
        names = {getattr(o, "name", None) for f in functions for o in f.operations if _sign(f, o)}
        return names <= _OF_ARRAYS

    def counts_both(self, path: Path) -> bool:
        """Does a function ask for the number of all devices and for that of its own: they differ for several processes.

        Others take the one for the other, which is no sign.
        """
        for function in self.project.modules[path].summary.functions:
            asked = {operation.name for operation in function.operations if isinstance(operation, s.Attribute)}
            if {"device_count", "local_device_count"} <= asked:
                return True
        return False

    def _part_needs(self, path: Path, name: str) -> bool:
        """Does a function or class of a file, or what it names there, need several processes; others may."""
        functions = self.project.modules[path].summary.functions
        tops = {f.name: f.index for f in functions if f.parent == 0}
        if name not in tops:
            return True
        seen: set[int] = set()
        pending = [tops[name]]
        while pending:
            index = pending.pop()
            if index in seen:
                continue
            seen.add(index)
            function = functions[index]
            pending += [inner.index for inner in functions if inner.parent == index]
            for operation in function.operations:
                if _sign(function, operation) and getattr(operation, "name", "") not in _WEAK:
                    return True
                if isinstance(operation, s.Load) and operation.name in tops:
                    pending.append(tops[operation.name])
        return False

    def _imported(self, path: Path) -> set[Path]:
        return {other for other, _ in self._imports(path)}

    def _imports(self, path: Path) -> Iterator[tuple[Path, str | None]]:
        """The files that a file imports, each with the name that it takes from there, None for all of it."""
        module = self.project.modules[path]
        for function in module.summary.functions:
            for operation in function.operations:
                if isinstance(operation, s.Import):
                    dotted = self.project.absolute(module, operation.module, operation.level)
                    whole = self.project.find_module(f"{dotted}.{operation.name}", module)
                    if whole is not None:
                        yield whole, None
                    other = self.project.find_module(dotted, module)
                    if other is not None:
                        yield other, operation.name


def _asks(operation: s.Operation) -> bool:
    return isinstance(operation, (s.Attribute, s.Import)) and operation.name in _COUNTS


def _meets(operation: s.Operation) -> bool:
    if isinstance(operation, s.Import):
        ours = operation.module.startswith("jax.")  # projects have modules of that name, too
        return ours and (operation.module.endswith(_SERVICE) or operation.name == _SERVICE)
    return isinstance(operation, s.Attribute) and operation.name == _SERVICE


def _sign(function: s.Function, operation: s.Operation) -> bool:
    if isinstance(operation, s.Attribute):
        return operation.name in _SIGNS or starts(function, operation)
    return isinstance(operation, s.Import) and (
        operation.name in _SIGNS or not _SIGNS.isdisjoint(operation.module.split("."))
    )
