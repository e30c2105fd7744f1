"""Which programs are written for several processes, judging by the process-related names in their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from spmdlint.heuristics.spreading import starts, starts_processes
from spmdlint.program import summary as s
from spmdlint.program.link import Project
from spmdlint.program.testfiles import is_named_as_test

_SIGNS = frozenset(
    "process_index process_count host_id host_count multihost_utils process_allgather sync_global_devices "
    "broadcast_one_to_all local_devices make_array_from_process_local_data make_array_from_callback "
    "make_array_from_single_device_arrays host_local_array_to_global_array addressable_shards addressable_data "
    "save_checkpoint_multiprocess".split()
)
# Single-process code uses these names as well, for its devices and for the parts of an array on them.
_WEAK = frozenset(("local_devices", "addressable_shards", "addressable_data"))
_OF_ARRAYS = _WEAK | {name for name in _SIGNS if name.startswith("make_array_")}
_WORDS = _SIGNS | {"initialize", "mpi4py"}  # a file without any of these has no sign
_SERVICE = "multihost_utils"
_COUNTS = frozenset(("process_count", "host_count"))


class MultiProcess:
    """Looks for signs of several processes, file by file. ``always``: the user has said so."""

    def __init__(self, project: Project, *, always: bool) -> None:
        self.project = project
        self.always = always
        self._found: dict[Path, tuple[s.Operation, ...]] = {}
        self._around: dict[tuple[Path | int, Callable[[Path], bool]], bool] = {}

    def counts_lengths(self, user: Path, source: Path, *, preview: bool) -> bool:
        """Whether row lengths read in one file count as those of a process's own examples if another file uses them.

        They do in code that looks like a multi-process program, and in what it imports; in any other file only in
        preview, and only if they do not leave it: every value has a length, and most are the same everywhere.
        """
        if user == source:
            return preview or self.runs_several(user)
        return self.always or (self.says(user) and (self.says(source) or source in self._imports[user]))

    def acts_for(self, path: Path) -> bool:
        """Whether a program does anything that only several processes need, besides asking how many there are."""
        return self._any_around(path, self._acts)

    def _acts(self, path: Path) -> bool:
        return any(not isinstance(o, (s.Attribute, s.Import)) or o.name not in _COUNTS for o in self._signs(path))

    def runs_several(self, path: Path) -> bool:
        """Whether a file is part of a program that names anything which only several processes need."""
        return self._any_around(path, self.says)

    def surely_runs_several(self, path: Path) -> bool:
        """The same, but a program's use of its own devices is no sign: one for a single process does that as well."""
        return self._any_around(path, self.needs)

    def _any_around(self, path: Path, asks: Callable[[Path], bool]) -> bool:
        if self.always or is_named_as_test(path):
            return self.always or asks(path)  # a test sets up its processes itself
        one = path if path in self.programs else self.project.component[path]
        if (known := self._around.get((one, asks))) is None:
            known = self._around[one, asks] = any(map(asks, self._program(path)))
        return known

    @cached_property
    def programs(self) -> dict[Path, list[Path]]:
        """The files that are run, as they ask whether they are, and none imports; each with all that it imports."""
        asking = (p for p, each in self.project.modules.items() if s.Const("__main__") in each.top.operations)
        found = {path: [path] for path in asking if not self.importers[path]}
        for files in found.values():
            for each in files:
                files += sorted(self._imports[each].difference(files))
        return found

    def _program(self, path: Path) -> Iterable[Path]:
        """A script with what it imports, and not its neighbours; of other files, all that are near."""
        component = self.project.component
        near = (other for other in self.project.modules if component[other] == component[path])
        return self.programs.get(path, near)

    def says(self, path: Path) -> bool:
        """Whether a file itself names such a thing."""
        return self.always or bool(self._signs(path))

    def needs(self, path: Path) -> bool:
        """Whether a file names something that is of no use to a single process."""
        return self.always or any(getattr(sign, "name", "") not in _WEAK for sign in self._signs(path))

    def joins(self, path: Path) -> bool:
        """Whether processes certainly know one another: through JAX's service, or as they meet anywhere."""
        return self._meets(path) or self.starts(path)

    def starts(self, path: Path) -> bool:
        """Whether a program joins JAX's service; if not, each process lists its own CPUs."""
        return self.always or self._any_around(path, self._starts)

    def meets(self, path: Path) -> bool:
        """Whether the processes of a program meet anywhere: they know one another, if not one another's CPUs."""
        return self.joins(path) or self._any_around(path, self._meets)

    def _meets(self, path: Path) -> bool:
        functions = self.project.modules[path].summary.functions
        return any(_meets(operation) for function in functions for operation in function.operations)

    def _starts(self, path: Path) -> bool:
        return starts_processes(self.project.modules[path])

    def tests_one_process(self, path: Path) -> bool:
        """Whether a file is a test, by its name, that names arrays over devices at most, but no processes."""
        signs = self._signs(path)  # read for tests only
        return not self.always and is_named_as_test(path) and all(getattr(o, "name", None) in _OF_ARRAYS for o in signs)

    def _signs(self, path: Path) -> tuple[s.Operation, ...]:
        if (known := self._found.get(path)) is None:
            module = self.project.modules[path]
            other = "torch" in module.words and "jax" not in module.words  # PyTorch names its processes alike
            functions = () if other or module.words.isdisjoint(_WORDS) else module.summary.functions
            self._found[path] = known = tuple(o for f in functions for o in f.operations if self._is_sign(path, f, o))
        return known

    def _is_sign(self, path: Path, function: s.Function, operation: s.Operation) -> bool:
        if isinstance(operation, s.Attribute):
            return operation.name in _SIGNS or starts(function, operation)
        if not isinstance(operation, s.Import) or _SIGNS.isdisjoint((operation.name, *operation.module.split("."))):
            return False
        # A module of the project that is called like one of JAX is a sign only for what stands in it.
        module = self.project.modules[path]
        dotted = self.project.absolute(module, operation.module, operation.level)
        whole = dotted if operation.name is None else f"{dotted}.{operation.name}"
        return self.project.find_module(whole, module) is None and self.project.find_module(dotted, module) is None

    @cached_property
    def _imports(self) -> dict[Path, set[Path]]:
        return {path: self._imported(path) for path in self.project.modules}

    @cached_property
    def importers(self) -> dict[Path, set[Path]]:
        """For each file, those that import it, or something in it by name."""
        found: dict[Path, set[Path]] = {path: set() for path in self.project.modules}
        for path in found:
            for other in self._imports[path]:
                found[other].add(path)
        return found

    def _imported(self, path: Path) -> set[Path]:
        """The files that a file imports, or of which it imports something by name."""
        module = self.project.modules[path]
        dotted = [(self.project.absolute(module, each.module, each.level), each.name) for each in module.imports]
        every = [o for o in module.top.operations if isinstance(o, s.ImportStar)]
        dotted += [(self.project.absolute(module, each.module, each.level), None) for each in every]
        names = [name for home, part in dotted for name in (f"{home}.{part}", home)]
        return {other for name in names if (other := self.project.find_module(name, module)) is not None}


def _meets(operation: s.Operation) -> bool:
    if isinstance(operation, s.Import):
        ours = operation.module.startswith("jax.")  # projects have modules of that name as well
        return ours and (operation.module.endswith(_SERVICE) or operation.name == _SERVICE)
    return isinstance(operation, s.Attribute) and operation.name == _SERVICE
