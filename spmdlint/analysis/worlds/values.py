"""The values that a process of a small world computes with, and how its run may end without an answer."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from spmdlint.program.link import FunctionRef

if TYPE_CHECKING:
    from spmdlint.analysis.worlds.process import Activation

Key = tuple[Hashable, ...]


class UndecidedError(Exception):
    """Something decides that may differ between processes, or that cannot be run."""


class VoidError(Exception):
    """The world says nothing: the program fails in it, or does not end."""


class LeftError(Exception):
    """The process ends in an exception of its own."""


class ExitedError(Exception):
    """The process ends without an error, as by ``sys.exit(0)``: it makes no more calls."""


class TogetherError(Exception):
    """The process waits for the others: they do something together, to which each gives a number."""

    def __init__(self, place: Hashable, number: float) -> None:
        super().__init__(place, number)
        self.place = place
        self.number = number


class Together(Struct, frozen=True):
    """What the processes have done together at a place, and the number that each gave."""

    place: Hashable
    numbers: tuple[float, ...]


class Unknown:
    """A value of which only the name is known: the same on every process, or ``loose``, which decides nothing."""

    __slots__ = ("key", "loose")

    def __init__(self, key: Key, *, loose: bool) -> None:
        self.key = key
        self.loose = loose


class Closure:
    """A function that is made in one that runs."""

    __slots__ = ("outer", "ref")

    def __init__(self, ref: FunctionRef, outer: Activation) -> None:
        self.ref = ref
        self.outer = outer


class Method:
    """An attribute of a value, to be called."""

    __slots__ = ("base", "name")

    def __init__(self, base: Any, name: str) -> None:
        self.base = base
        self.name = name


class Rows(list[Any]):
    """A sequence that may be an array or a list; as an array, it has as many rows as elements."""


class Array(Rows):
    """An array by its rows."""


class Entries(list[Any]):
    """The values of a dictionary that a comprehension makes; of its keys, which are distinct, nothing is known."""


class Shape:
    """The first size of a shape whose other sizes are not known one by one."""

    __slots__ = ("first",)

    def __init__(self, first: Any) -> None:
        self.first = first
