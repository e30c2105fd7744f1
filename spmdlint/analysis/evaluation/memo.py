"""Memoisation for functions that may need their own result.

A result that needs itself starts from a given bottom. Results computed on the basis of that bottom may be too small;
they are kept while the result that they started from is being computed, so that nothing is computed twice meanwhile,
and dropped when it is done. This is one pass from the bottom, not an iteration to the fixpoint: enough to see through
recursion once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Key = TypeVar("Key")
Another = TypeVar("Another")
_NO_CYCLE = 1 << 30
MAX_DEPTH = 250
"""The depth to which results that need one another are followed."""


class Memo(Generic[Result]):
    """Results by key; ``too_deep`` is the result of computations nested deeper than :data:`MAX_DEPTH`.

    ``shares``: equal results are interned. This needs hashable results and pays off if most equal one another.
    """

    def __init__(self, bottom: Result, too_deep: Result, *, shares: bool = False) -> None:
        self.bottom = bottom
        self.too_deep = too_deep
        self._known: dict[object, Result] = {}
        self._shared: dict[Result, Result] | None = {bottom: bottom, too_deep: too_deep} if shares else None
        self._active: dict[object, int] = {}
        self._provisional: list[tuple[dict[Any, Any], object]] = []
        self._cycle = _NO_CYCLE  # the depth of the outermost computation that a cycle came back to

    def get(self, key: object) -> Result | None:
        """The result for a key; None if it is not known."""
        return self._known.get(key)

    def once(self, key: object, compute: Callable[[], Result]) -> Result:
        """The result for a key, computed if it is not known."""
        known = self._known.get(key)
        return known if known is not None else self.at(self._known, key, key, compute)

    def at(
        self,
        store: dict[Key, Result],
        place: Key,
        key: object,
        compute: Callable[..., Result],
        *args: object,
    ) -> Result:
        """The result for a key, computed and stored at a place in a store that does not have it yet."""
        active = self._active
        begun = active.get(key)
        if begun is not None:
            if begun < self._cycle:
                self._cycle = begun
            return self.bottom
        depth = len(active)
        if depth >= MAX_DEPTH:
            self._cycle = 0  # a later query from elsewhere may have enough depth left
            return self.too_deep
        active[key] = depth
        outer, self._cycle = self._cycle, _NO_CYCLE
        kept = len(self._provisional)
        try:
            result = compute(*args)
        finally:
            del active[key]
            reached = self._cycle
            self._cycle = reached if reached < depth and reached < outer else outer
        if reached >= depth:
            if len(self._provisional) > kept:
                for other, provisional in self._provisional[kept:]:
                    other.pop(provisional, None)
                del self._provisional[kept:]
        else:
            self._provisional.append((store, place))
        if self._shared is not None:
            result = self._shared.setdefault(result, result)
        store[place] = result
        return result

    def settle(self) -> None:
        """Empty the table of interned results: most are known by now, and few later ones are equal to them."""
        if self._shared is not None:
            self._shared = {self.bottom: self.bottom, self.too_deep: self.too_deep}

    def shared(self, result: Result) -> Result:
        """The interned object for a result, if this memo shares results."""
        return self._shared.setdefault(result, result) if self._shared is not None else result

    def came_back(self, key: object) -> bool:
        """Whether :meth:`assuming` is computing this key; the caller must then go on with an assumption."""
        depth = self._active.get(key)
        if depth is None:
            return False
        self._cycle = min(self._cycle, depth)
        return True

    def assuming(
        self,
        store: dict[Key, Another],
        place: Key,
        key: object,
        compute: Callable[[], Another],
        assumed: Callable[[Another], bool],
    ) -> Another:
        """The result for a key, of a different type than the memo's results, stored at a place in a store.

        The computation may come back to its own key, which :meth:`came_back` detects, and go on with an assumption
        there; what was found on the way is kept only if the result is the one ``assumed``. If it differs, it is a
        better assumption, and the result is computed once more with it.
        """
        active = self._active
        depth = len(active)
        active[key] = depth
        outer, self._cycle = self._cycle, _NO_CYCLE
        kept = len(self._provisional)
        try:
            result = compute()
        finally:
            del active[key]
            reached = self._cycle
            self._cycle = min(outer, reached) if reached < depth else outer
        if reached < depth:
            self._provisional.append((store, place))
        elif len(self._provisional) > kept:
            if not assumed(result):
                for other, provisional in self._provisional[kept:]:
                    other.pop(provisional, None)
            del self._provisional[kept:]
        store[place] = result
        if reached == depth and not assumed(result):
            outer, self._cycle = self._cycle, _NO_CYCLE
            again = compute()
            if self._cycle == _NO_CYCLE:
                store[place] = result = again
            self._cycle = min(outer, self._cycle)
        return result
