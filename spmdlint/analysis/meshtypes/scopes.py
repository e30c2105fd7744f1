"""Functions while they are typed: the types of their parameters, and the scopes in which names are looked up."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.meshtypes.states import Type
from spmdlint.program.link import FunctionRef


class Region(Struct, frozen=True):
    """A mapped body, and how JAX treats it.

    ``checked``: JAX types it and sums derivatives by itself. ``by_hand``: a map over rows, such as `pmap`, which says
    of no argument that it is the same on all devices. ``own_optimizers``: the program makes some that communicate.
    ``bound`` are the axes that are bound in it, apart from those of maps inside; None if that is not known.
    """

    checked: bool
    by_hand: bool
    own_optimizers: bool = False
    bound: frozenset[str] | None = None


Made = tuple[str, frozenset[str]]
"""A collective: its name and its axes."""


class Scope(Struct, eq=False):
    """One function with the types of its parameters, in the scope that called it.

    ``at`` is where, if it is nested in that one. ``collectives`` are those that it makes itself.
    """

    frame: Frame
    parameters: dict[str, Type]
    caller: Scope | None
    depth: int
    at: int | None = None
    inner: list[Scope] = field(default_factory=list)
    collectives: dict[Site, Made] = field(default_factory=dict)

    def find(self, frame: Frame) -> Scope | None:
        """The scope of a frame: this one, one of its callers, or one that these have called."""
        chain = list(self.chain())
        return next((scope for scope in chain if scope.frame is frame), None) or chain[-1]._below(frame)

    def chain(self) -> Iterator[Scope]:
        """The scope and its callers, outwards."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.caller

    def communication(self, ref: FunctionRef) -> dict[Site, Made]:
        """The collectives that a function called from here makes, directly and in its callees."""
        found: dict[Site, Made] = {}
        pending = [scope for scope in self.inner if scope.frame.ref == ref]
        while pending:
            scope = pending.pop()
            found.update(scope.collectives)
            pending.extend(scope.inner)
        return found

    def _below(self, frame: Frame) -> Scope | None:
        pending = [self]
        while pending:
            scope = pending.pop()
            if scope.frame is frame:
                return scope
            pending.extend(scope.inner)
        return None
