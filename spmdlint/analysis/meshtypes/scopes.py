"""Functions while they are typed: the types of their parameters, and where they find the names of others."""

from __future__ import annotations

from dataclasses import dataclass, field

from spmdlint.analysis.meshtypes.states import Type
from spmdlint.analysis.values import Frame


@dataclass(frozen=True)
class Region:
    """A mapped body: the axes that are bound (None: not known), and how JAX treats it.

    ``checked``: JAX types it and sums derivatives by itself. ``by_hand``: a map over rows, as `pmap`, which says of no
    argument that it is alike on all devices.
    """

    checked: bool
    by_hand: bool


@dataclass(eq=False)
class Scope:
    """One function with the types of its parameters, in the scope that called it."""

    frame: Frame
    parameters: dict[str, Type]
    caller: Scope | None
    depth: int
    inner: list[Scope] = field(default_factory=list)

    def of(self, frame: Frame) -> Scope | None:
        """The scope of a frame: of this function, of one that called it, or one that these have called."""
        scope: Scope | None = self
        while scope is not None:
            if scope.frame is frame:
                return scope
            scope = scope.caller
        return self._root()._below(frame)

    def _root(self) -> Scope:
        scope = self
        while scope.caller is not None:
            scope = scope.caller
        return scope

    def _below(self, frame: Frame) -> Scope | None:
        pending = [self]
        while pending:
            scope = pending.pop()
            if scope.frame is frame:
                return scope
            pending.extend(scope.inner)
        return None
