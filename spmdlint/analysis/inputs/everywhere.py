"""Shardings over the devices of all processes."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Frame, Site, Values, certain
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s

_DEPTH = 6
_SHARDINGS = frozenset(("jax.sharding.NamedSharding",))


class Everywhere:
    """Recognises such shardings. One per run."""

    def __init__(self, evaluator: Evaluator, quantities: Quantities) -> None:
        self.ev = evaluator
        self.quantities = quantities

    def mesh_of(self, given: Values | None) -> Site | None:
        """Where the mesh of a sharding is made; None if it is not certainly over the devices of all processes."""
        sharding = certain(given) if given is not None else None
        if not isinstance(sharding, Applied) or sharding.name not in _SHARDINGS:
            return None
        meshes = self.ev.argument(sharding, "mesh")
        mesh = certain(meshes) if meshes is not None else None
        if not isinstance(mesh, Applied):
            return None
        if mesh.name in self.quantities.table.meshes:
            return mesh.site if self._takes_all(mesh) else None
        made = self.ev.free_frame(mesh.site.ref)
        call = made.code.operations[mesh.site.number]
        devices = call.arguments[0].value if isinstance(call, s.Call) and call.arguments else None
        return mesh.site if devices is not None and self._are_all(made, devices, _DEPTH) else None

    def _are_all(self, frame: Frame, number: int, depth: int) -> bool:
        """Whether these are all devices, in any arrangement."""
        listed = self.quantities.of(frame, number)
        if listed is not None:
            return (listed.role, listed.unit) == ("list", "device")
        number = resolved(self.ev, frame, number)
        made, arranged = certain(self.ev.value(frame, number)), frame.code.operations[number]
        if isinstance(made, Applied) and made.name in self.quantities.table.meshes:
            return self._takes_all(made)
        method = frame.code.operations[arranged.function] if isinstance(arranged, s.Call) else None
        if isinstance(method, s.Attribute) and method.name == "reshape":
            return bool(depth) and self._are_all(frame, method.base, depth - 1)
        return False

    def _takes_all(self, made: Applied) -> bool:
        """Whether the function that makes a mesh, or lists devices for one, takes all devices: it is given none."""
        return self.ev.argument(made, self.quantities.table.devices) is None
