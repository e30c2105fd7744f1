"""The search behind :mod:`origins`: every place once, whatever asks for it.

Walks that ask one another share one :class:`Walk`, so that a circle which leads through several of them is seen as one.
A place that was searched in vain while one that it came to is still being searched may yet be reached through that; it
is settled when that one is, as in Tarjan's algorithm for strongly connected components. Everything else is settled as
soon as it is done, so that the work of all questions together grows with the number of places.
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
"""Steps followed back from one value; half of them are followed from every value."""
_SETTLED = 1 << 30


class Context(Struct, eq=False):
    """The call by which a function was entered, whose arguments its parameters are. ``before``: the one outside."""

    frame: Frame
    caller: Frame
    number: int
    before: Context | None = None


Place: TypeAlias = tuple[Frame, object]
_Key: TypeAlias = tuple[Context, Frame, object] | Place
"""A place as it is seen from inside of a call, or from none."""
_State: TypeAlias = tuple["Known", _Key]


class Known(Struct, eq=False):
    """What one walk has found: of places seen from inside of one call, and of those that are alike from everywhere."""

    within: dict[_Key, tuple[Reason | None, frozenset[object]]] = field(default_factory=dict)
    anywhere: dict[Place, Reason | None] = field(default_factory=dict)
    cut: dict[_Key, bool] = field(default_factory=dict)
    """Places whose search was cut short, and whether at least half of the steps were left for it."""


class _Search(Struct):
    """How deep a place lies, later the outermost open place that it leads back to; is it near the question."""

    back: int
    near: bool
    cut: bool = False


class Walk:
    """The state of the search that is under way."""

    def __init__(self) -> None:
        self._vain: dict[frozenset[object], tuple[None, frozenset[object]]] = {}
        self.context: Context | None = None
        self.cut = False
        """Was the search of the last place cut short."""
        self._contexts: dict[tuple[object, ...], Context] = {}
        self._open: dict[_State, int] = {}
        self._left: dict[_State, _Search] = {}
        self._trail: list[_State] = []
        self._back = _SETTLED  # the outermost open place that the search of this one came to
        self._used: set[object] = set()  # the contexts that it asked

    # -- contexts

    def made(self, frame: Frame, caller: Frame, number: int) -> Context:
        """The context of a call; calls inside calls inside calls are not told apart."""
        before = self.of_frame(caller)
        if before is not None and before.before is not None:
            before = None
        key = (frame, caller, number, before)
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = Context(frame, caller, number, before)
        return found

    def of_frame(self, frame: Frame) -> Context | None:
        """The context that a frame is seen in."""
        context = self.context
        return context if context is not None and context.frame is frame else None

    def asks(self, frame: Frame) -> Context | None:
        """The same, for a place that looks what the context says."""
        context = self.of_frame(frame)
        self._used.add(frame if context is None else context)
        return context

    def frame_of(self, ref: FunctionRef) -> Frame | None:
        """The frame in which a function was entered by the call that is followed."""
        context = self.context
        if context is None or context.frame.ref != ref:
            return None
        self._used.add(context)
        return context.frame

    @contextmanager
    def inside(self, context: Context | None) -> Iterator[None]:
        """Follow values as seen from inside of one call."""
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
        """Follow values as seen from where a call is made."""
        inside, self.context = self.context, context.before
        try:
            yield
        finally:
            self.context = inside

    # -- places

    def find(self, known: Known, place: Place, search: Callable[[], Reason | None]) -> Reason | None:
        """What the search of a place finds: done once, and not at all while it is under way."""
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
        """Keep what a search found, and with it what it left behind."""
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
        """What is kept of a place that was searched in vain, which most are: the same for all that are alike."""
        return self._vain.setdefault(seen_from, (None, seen_from))


def _seen(key: _Key) -> tuple[Context | None, Place]:
    """The call that a place is seen from, and the place."""
    return (None, key) if len(key) == 2 else (key[0], key[1:])
