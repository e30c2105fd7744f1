"""Sets of axis names, with the sizes of the axes if they are known."""

from __future__ import annotations

from msgspec import Struct


class Axes(Struct, frozen=True):
    """Axis names; ``open`` if there may be others. ``sizes``: pairs of a name and a possible size, None if unknown."""

    names: frozenset[str] = frozenset()
    open: bool = False
    sizes: frozenset[tuple[str, int | None]] = frozenset()

    def __or__(self, other: Axes) -> Axes:
        found = Axes(self.names | other.names, self.open or other.open, self.sizes | other.sizes)
        return self if found == self else found

    def __and__(self, names: frozenset[str]) -> Axes:
        """The axes whose name is one of these."""
        return Axes(self.names & names, self.open, frozenset(pair for pair in self.sizes if pair[0] in names))

    def sizes_of(self, name: str) -> frozenset[int]:
        """The sizes that an axis may have; none if one of them is unknown."""
        found = {size for axis, size in self.sizes if axis == name}
        return frozenset(size for size in found if size is not None) if None not in found else frozenset()


NO_AXES = Axes()
ANY_AXES = Axes(open=True)
