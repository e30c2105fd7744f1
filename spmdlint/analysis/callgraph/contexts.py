"""Meshes that are set as a context: the axes that a map without a mesh of its own may be over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from spmdlint.analysis.callgraph.arguments import ANY_AXES, NO_AXES, Axes
from spmdlint.analysis.evaluation.values import Applied, Constant, External, Frame, Site, certain, constant
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.callgraph.calls import Calls


class Contexts:
    """Answers per component: a mesh that is set in one file may be in effect in any other file of the component."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.ev = calls.ev
        self._known: dict[int, Axes] = {}

    def axes(self, path: Path) -> Axes:
        """The axes of all meshes that may be set around code of a file; any axes if one of the meshes is unknown."""
        component = self.ev.project.component[path]
        if component not in self._known:
            self._known[component] = ANY_AXES
            self._known[component] = self._find(component)
        return self._known[component]

    def _find(self, component: int) -> Axes:
        found, is_set = NO_AXES, False
        for frame in self._frames(component):
            for number, operation in enumerate(self.ev.function(frame).operations):
                if isinstance(operation, s.Call):
                    axes, sets = self._of_call(frame, number, operation)
                    found, is_set = found | axes, is_set or sets
                elif isinstance(operation, s.Enter):
                    axes = self._of_block(frame, operation)
                    found, is_set = found | axes, is_set or bool(axes.names)
                if found.open:
                    return ANY_AXES
        return found if is_set else ANY_AXES

    def _frames(self, component: int) -> Iterator[Frame]:
        for ref in self.ev.project.functions():
            if self.ev.project.component[ref.path] == component:
                yield self.ev.free_frame(ref)

    def _of_call(self, frame: Frame, number: int, operation: s.Call) -> tuple[Axes, bool]:
        """The axes that a call makes known, and whether it sets a mesh."""
        callee = self.ev.callee(frame, operation)
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        if known is None or known.kind not in ("mesh", "context", "map"):
            return NO_AXES, False
        assert isinstance(callee, External)
        applied = Applied(callee.name, self.ev.arguments(frame, operation), Site(frame.ref, number))
        if known.kind == "mesh":
            return self.calls.of_mesh(frozenset((applied,))), False
        given = self.ev.argument(applied, known.mesh) if known.mesh is not None else None
        if given is None or constant(given) == Constant(None):
            return NO_AXES, False
        return self.calls.of_mesh(given), known.kind == "context"

    def _of_block(self, frame: Frame, operation: s.Enter) -> Axes:
        """The axes of the mesh that `with mesh:` sets, the old way; an unknown context manager may be a mesh."""
        manager = certain(self.ev.value(frame, operation.manager))
        source = self.ev.function(frame).operations[operation.manager]
        if isinstance(manager, Applied):
            return self.calls.of_mesh(frozenset((manager,))) if self._is_mesh(manager) else NO_AXES
        return ANY_AXES if manager is None and not isinstance(source, s.Call) else NO_AXES

    def _is_mesh(self, applied: Applied) -> bool:
        known = self.ev.knowledge.get(applied.name)
        return known is not None and known.kind == "mesh"
