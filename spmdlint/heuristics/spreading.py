"""Programs that put no array on the devices of several processes: each bare `jit` in them is local to a process."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from spmdlint.program import summary as s
from spmdlint.program.link import Module, Project

# Parts of names, in any library, of what puts an array on devices of several processes, or computes there.
_SPREADING = ("shard", "partitionspec", "partitioner", "pmap", "xmap", "pjit", "make_array", "host_local_array")
_MESHES = frozenset("make_mesh get_mesh set_mesh use_mesh device_mesh create_device_mesh mesh_utils".split())
_STARTING = frozenset(("initialize", "mpi4py"))
_OTHERS = frozenset(("torch", "tensorflow", "paddle"))
_OURS = frozenset(("jax", "flax", "mpi4py"))
# JAX's own names for these; a project may give them to its own functions as well.
_OF_JAX = _MESHES | frozenset(
    "pmap xmap pjit shard_map partitionspec namedsharding positionalsharding with_sharding_constraint".split()
)
# These work on the rows of this process's devices, or put them there.
_BY_HAND = ("pmap", "device_put_sharded", "device_put_replicated")
# These split data sets into shards, or give each local device its rows.
_LOCAL = frozenset(("shard", "shard_prng_key", "unshard", "addressable_shards"))


class Spreading:
    """Examines the names in a program, that is, in the files of a component. One per run."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[int, frozenset[str]] = {}
        self._starting: dict[int, bool] = {}

    def keeps_to_itself(self, path: Path) -> bool:
        """Whether a program that starts its processes itself leaves each array on its own devices (MPI does the rest).

        A program that does not start them may well be part of one that shards its arrays elsewhere.
        """
        component = self.project.component[path]
        if component not in self._starting:
            self._starting[component] = any(map(starts_processes, self._modules(component)))
        return self._starting[component] and not self._names(component)

    def maps_alone(self, path: Path) -> bool:
        """Whether a program uses several devices by `pmap` alone, whose outputs are on this process's devices."""
        names = self._names(self.project.component[path])
        return bool(names) and all(any(part in name for part in _BY_HAND) for name in names)

    def _names(self, component: int) -> frozenset[str]:
        """The names in the files of a component that put arrays on several processes, or may do so."""
        if component not in self._known:
            words = frozenset().union(*(module.words for module in self._modules(component)))
            self._known[component] = frozenset(filter(self._spreads, words))
        return self._known[component]

    def _spreads(self, name: str) -> bool:
        word = name.lower()
        if word in _OF_JAX or name == "Mesh":
            return True
        if word in _LOCAL or name in self._own:
            return False
        return word == "mesh" or any(part in word for part in _SPREADING)

    def _modules(self, component: int) -> list[Module]:
        found = [m for path, m in self.project.modules.items() if self.project.component[path] == component]
        return [module for module in found if not _of_others(module)]

    @cached_property
    def _own(self) -> frozenset[str]:
        """The names that the project itself defines: whether they spread arrays depends on what they use."""
        functions = [f for module in self.project.modules.values() for f in module.summary.functions]
        fields = {o.name for f in functions for o in f.operations if type(o) is s.StoreAttribute}
        return frozenset(fields.union((f.name for f in functions), (path.stem for path in self.project.modules)))


def _of_others(module: Module) -> bool:
    """Whether a file is written for a different array library, whose names for such things say nothing about JAX."""
    packages = {each.module.partition(".")[0] for each in module.imports}
    return not packages.isdisjoint(_OTHERS) and packages.isdisjoint(_OURS)


def starts_processes(module: Module) -> bool:
    """Whether a file starts JAX's processes itself, or is started by MPI."""
    if module.words.isdisjoint(_STARTING):
        return False
    return any(starts(function, o) for function in module.summary.functions for o in function.operations)


def starts(function: s.Function, operation: s.Operation) -> bool:
    """Whether an operation is ``jax.distributed.initialize``, not for one process alone, or imports ``mpi4py``."""
    if isinstance(operation, s.Import):
        return operation.module.partition(".")[0] == "mpi4py"
    if not isinstance(operation, s.Attribute) or operation.name != "initialize":
        return False
    operations, base = function.operations, function.operations[operation.base]
    calls = (o for o in operations if isinstance(o, s.Call) and operations[o.function] is operation)
    given = (each for call in calls for each in enumerate(call.arguments))
    numbers = (a.value for place, a in given if a.keyword == "num_processes" or (place == 1 and a.keyword is None))
    alone = any(operations[number] == s.Const(1) for number in numbers)
    return isinstance(base, (s.Attribute, s.Load)) and base.name == "distributed" and not alone
