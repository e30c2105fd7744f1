"""Meshes with more or fewer axis names than their device array has dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.axes.specs import Specs
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.standard import listed
from spmdlint.analysis.evaluation.values import (
    Applied,
    Called,
    Collection,
    Constant,
    External,
    Member,
    Site,
    Values,
    certain,
    constant,
)
from spmdlint.program import summary as s

_ARRAYS = ("numpy.array", "numpy.asarray")
_LISTS = ("jax.devices", "jax.local_devices")


class WrongRank(Struct, frozen=True):
    """A mesh, the number of dimensions of its devices, and its axis names."""

    site: Site
    dimensions: int
    names: tuple[str, ...]
    by_shape: bool


class MeshRanks:
    """Compares names and dimensions. One per run."""

    def __init__(self, evaluator: Evaluator, specs: Specs) -> None:
        self.ev = evaluator
        self.specs = specs

    def wrong(self) -> Iterator[WrongRank]:
        """The meshes that JAX refuses to make."""
        for use in self.specs.applications:
            known = self.ev.knowledge.get(use.applied.name)
            if known is None or known.kind != "mesh" or known.axes is None or known.sizes is None:
                continue
            names = self._names(self.ev.argument(use.applied, known.axes))
            given = self.ev.argument(use.applied, known.sizes)
            if names is None or given is None:
                continue
            by_shape = known.sizes != "devices"
            rank = self._length(given) if by_shape else self._rank(given)
            if rank is not None and rank != len(names):
                yield WrongRank(use.site, rank, names, by_shape)

    @staticmethod
    def _names(given: Values | None) -> tuple[str, ...] | None:
        value = certain(given) if given is not None else None
        if isinstance(value, Constant) and isinstance(value.value, str):
            return (value.value,)
        spelled = listed(given) if given is not None and isinstance(value, Collection) else None
        names = [constant(each) for each in spelled or ()]
        if spelled is None or any(name is None or not isinstance(name.value, str) for name in names):
            return None
        return tuple(str(name.value) for name in names if name is not None)

    def _rank(self, values: Values) -> int | None:
        """The number of dimensions of an array of devices."""
        value = certain(values)
        if isinstance(value, Called):
            return self._of_method(value)
        if not isinstance(value, Applied):
            return None
        if value.name in _LISTS:
            return 1
        if value.name in _ARRAYS and len(value.arguments.positional) == 1:
            return self._rank(value.arguments.positional[0])
        if value.name == "numpy.reshape" and len(value.arguments.positional) == 2:
            return self._length(value.arguments.positional[1])
        known = self.ev.knowledge.get(value.name)
        shape = self.ev.argument(value, known.sizes) if known is not None and known.sizes is not None else None
        return self._length(shape) if shape is not None and known is not None and known.kind != "mesh" else None

    def _of_method(self, value: Called) -> int | None:
        """The same for the result of a method: ``devices.reshape(2, 4)``, ``devices.flatten()``."""
        if isinstance(value.function, External):
            return 1 if value.function.name in _LISTS else None
        if not isinstance(value.function, Member):
            return None
        call = self.ev.project.function(value.site.ref).operations[value.site.number]
        if not isinstance(call, s.Call) or any(argument.star or argument.keyword for argument in call.arguments):
            return None
        if value.function.name in ("flatten", "ravel"):
            return 1
        if value.function.name != "reshape" or not call.arguments:
            return None
        return len(call.arguments) if len(call.arguments) > 1 else self._one_argument(value.site, call)

    def _one_argument(self, site: Site, call: s.Call) -> int | None:
        return self._length(self.ev.value(self.ev.free_frame(site.ref), call.arguments[0].value))

    @staticmethod
    def _length(values: Values) -> int | None:
        """The length of a shape: of a tuple or list; 1 for a number."""
        value = certain(values)
        if isinstance(value, Constant) and type(value.value) is int:
            return 1
        elements = listed(values) if isinstance(value, Collection) else None
        return len(elements) if elements is not None else None
