"""The search behind :mod:`origins`: every place is searched once, whoever asks for it.

Walks that query one another share one :class:`Walk`, so that a cycle through several of them is seen as one. If the
search of a place fails after it met a place whose own search is still under way, the property may yet be found through
that one; so the first is settled together with the second, as in Tarjan's algorithm for strongly connected components.
Everything else is settled as soon as it is done, so that the work of all queries together grows with the number of
places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from msgspec import Struct, field

from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.reason import Reason
from spmdlint.program.link import FunctionRef

MAX_DEPTH = 400
"""The most steps followed back from one value; at least half of them are followed from every value."""
_SETTLED = 1 << 30


class Context(Struct, eq=False):
    """The call by which a function was entered, which gives its parameters. ``before``: the call outside of it."""

    frame: Frame
    caller: Frame
    number: int
    before: Context | None = None


Place: TypeAlias = tuple[Frame, object]
_Key: TypeAlias = tuple[Context, Frame, object] | Place
"""A place as seen from inside a call, or from no call."""
_State: TypeAlias = tuple["Known", _Key]


class Known(Struct, eq=False):
    """The results of one walk: for places as seen from inside one call, and for those that do not depend on a call."""

    within: dict[_Key, tuple[Reason | None, frozenset[object]]] = field(default_factory=dict)
    anywhere: dict[Place, Reason | None] = field(default_factory=dict)
    cut: dict[_Key, bool] = field(default_factory=dict)
    """Places whose search was cut short, and whether at least half of the steps were left for it."""


class _Search(Struct):
    """The depth of a place, later the outermost open place it leads back to; whether it is near the question."""

    back: int
    near: bool
    cut: bool = False


class Walk:
    """The state of the search that is under way."""

    def __init__(self) -> None:
        self._vain: dict[frozenset[object], tuple[None, frozenset[object]]] = {}
        self.context: Context | None = None
        self.cut = False
        """Whether the search of the last place was cut short."""
        self._contexts: dict[tuple[object, ...], Context] = {}
        self._open: dict[_State, int] = {}
        self._left: dict[_State, _Search] = {}
        self._trail: list[_State] = []
        self._back = _SETTLED  # the outermost open place that the search of this one reached
        self._used: set[object] = set()  # the contexts that it used

    @property
    def is_open(self) -> bool:
        """Whether the search of any place is under way."""
        return bool(self._open)

    # -- contexts

    def made(self, frame: Frame, caller: Frame, number: int) -> Context:
        """The context of a call, with one call around it at most; deeper nesting is not distinguished."""
        before = self.of_frame(caller)
        if before is not None and before.before is not None:
            before = None
        key = (frame, caller, number, before)
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = Context(frame, caller, number, before)
        return found

    def of_frame(self, frame: Frame) -> Context | None:
        """The context in which a frame is seen."""
        context = self.context
        return context if context is not None and context.frame is frame else None

    def asks(self, frame: Frame) -> Context | None:
        """The context of a frame, for a place that uses what the context says."""
        context = self.of_frame(frame)
        self._used.add(frame if context is None else context)
        return context

    def frame_of(self, ref: FunctionRef) -> Frame | None:
        """The frame in which a function was entered by the call that is being followed."""
        context = self.context
        if context is None or context.frame.ref != ref:
            return None
        self._used.add(context)
        return context.frame

    @contextmanager
    def inside(self, context: Context | None) -> Iterator[None]:
        """Follows values as seen from inside one call."""
        outside, self.context = self.context, context
        used, self._used = self._used, set()
        try:
            yield
        finally:
            self._used.discard(context)
            used |= self._used
            self.context, self._used = outside, used

    @contextmanager
    def outside(self, context: Context) -> Iterator[None]:
        """Follows values as seen from where a call is made."""
        inside, self.context = self.context, context.before
        try:
            yield
        finally:
            self.context = inside

    # -- places

    def find(self, known: Known, place: Place, search: Callable[[], Reason | None]) -> Reason | None:
        """The result of searching a place: the search is done once, and not started while it is under way."""
        if not self._open:
            self.cut = False
        if place in known.anywhere:
            return known.anywhere[place]
        context = self.of_frame(place[0])
        key: _Key = place if context is None else (context, *place)
        entry = known.within.get(key)
        if entry is not None:
            self._used |= entry[1]
            return entry[0]
        state = (known, key)
        if state in self._open:
            self._back = min(self._back, self._open[state])
            return None
        if state in self._left:
            left = self._left[state]
            self._back, self.cut = min(self._back, left.back), self.cut or left.cut
            return None
        depth = len(self._open)
        near = depth * 2 < MAX_DEPTH
        if depth >= MAX_DEPTH or known.cut.get(key, -1) >= near:
            self.cut = True
            return None
        return self._search(state, _Search(depth, near), search)

    def _search(self, state: _State, own: _Search, search: Callable[[], Reason | None]) -> Reason | None:
        around, used, cut, trail = self._back, self._used, self.cut, len(self._trail)
        self._open[state] = own.back
        self._back, self._used, self.cut = _SETTLED, set(), False
        found: Reason | None = None
        own.cut = True
        try:
            found = search()
            own.cut = self.cut and found is None
        finally:
            del self._open[state]
            inside, back = self._used, self._back
            self._back, self._used, self.cut = around, used, cut or own.cut
            behind = self._trail[trail:]
            if found is None and back < own.back:
                self._back, own.back = min(around, back), back
                self._left[state] = own
                self._trail.append(state)
            else:
                del self._trail[trail:]
                self._settle(state, found, own, inside, behind)
        context, (frame, _) = _seen(state[1])
        used |= inside if context is not None else inside & {frame}
        return found

    def _settle(
        self, state: _State, found: Reason | None, own: _Search, used: set[object], behind: list[_State]
    ) -> None:
        """Keeps the result of a search, and settles the places that it left open."""
        for other in behind:
            left = self._left.pop(other)
            known, key = other
            if found is None and own.cut:
                known.cut[key] = left.near
            elif found is None:
                known.within[key] = self._in_vain(frozenset((*used, key[0])))
        known, key = state
        context, place = _seen(key)
        asked = context or place[0]
        if own.cut:
            known.cut[key] = own.near
        elif asked not in used:
            known.anywhere[place] = found
        else:
            seen_from = frozenset(used) if context is not None else frozenset((asked,))
            known.within[key] = self._in_vain(seen_from) if found is None else (found, seen_from)

    def _in_vain(self, seen_from: frozenset[object]) -> tuple[None, frozenset[object]]:
        """The entry for a place that was searched in vain, as most are; equal entries are one object."""
        return self._vain.setdefault(seen_from, (None, seen_from))


def _seen(key: _Key) -> tuple[Context | None, Place]:
    """The call that a place is seen from, and the place."""
    return (None, key) if len(key) == 2 else (key[0], key[1:])
