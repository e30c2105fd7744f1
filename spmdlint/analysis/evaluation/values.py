"""The abstract values: what a value of the program may be is a set of them.

A set that holds :data:`UNKNOWN` may hold anything else as well; a set of one value without it is certain. An empty set
means that no value can occur.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from spmdlint.knowledge.elements import Deed, elements
from spmdlint.program.link import FunctionRef
from spmdlint.program.summary import ValueId

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.code import Code


class Site(Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """One operation of the program."""

    ref: FunctionRef
    number: ValueId


class Unknown(Struct, frozen=True):
    """Anything."""


class Constant(Struct, frozen=True):
    """A fully known value; ``value`` is hashable. Constants of different types are different."""

    value: object
    kind: str = ""

    def __post_init__(self) -> None:
        # 1 == True and 1 == 1.0: without the type they would be one value in a set.
        force_setattr(self, "kind", type(self.value).__name__)


class External(Struct, frozen=True):
    """A library's name, in the form that the knowledge base uses."""

    name: str


class ModuleValue(Struct, frozen=True):
    """A module of the project."""

    path: Path


class Namespace(Struct, frozen=True):
    """A package that contains modules of the project, by its dotted name."""

    dotted: str
    importer: Path


class Frame(Struct, eq=False):
    """A function with the bindings of its parameters, in the frame that it was defined in.

    Frames are interned by the evaluator, so identity is equality. Parameters without a binding are free. ``arrays``
    says that the caller is a map or transformation, which passes arrays: parameters with a default keep it. ``names``
    are the bound parameters, ``given`` their values. ``known`` holds the values of operations that the evaluator has
    found so far, ``serial`` is the number of the frame among all frames.
    """

    code: Code
    ref: FunctionRef
    names: tuple[str, ...] = ()
    given: tuple[Values, ...] = ()
    outer: Frame | None = None
    depth: int = 0
    arrays: bool = False
    known: dict[int, Values] = field(default_factory=dict)
    serial: int = 0

    def bound(self, name: str) -> Values | None:
        """The values that a parameter is bound to; None if it is free."""
        return self.given[self.names.index(name)] if name in self.names else None


class FunctionValue(Struct, frozen=True):
    """A function of the project with the frame that it closes over, and its ``receiver`` if it is a bound method."""

    ref: FunctionRef
    outer: Frame | None
    receiver: Value | None = None


class ClassValue(Struct, frozen=True):
    """A class of the project; ``ref`` is its body."""

    ref: FunctionRef
    outer: Frame | None


class Arguments(Struct, frozen=True):
    """The arguments of a call; ``open`` if starred arguments hide some of them."""

    positional: tuple[Values, ...] = ()
    keywords: tuple[tuple[str, Values], ...] = ()
    open: bool = False

    def keyword(self, name: str) -> Values | None:
        return next((values for key, values in self.keywords if key == name), None)


class Instance(Struct, frozen=True):
    """An object of a class of the project; ``arguments`` if the call that made it is known."""

    cls: ClassValue
    arguments: Arguments | None = None


class SuperValue(Struct, frozen=True):
    """``super()`` in a method of a class."""

    cls: ClassValue
    receiver: Value


class Collection(Struct, frozen=True):
    """A tuple, list or set; ``open`` if it may have other elements, which are then ``each``, if that is given."""

    kind: str
    elements: tuple[Values, ...]
    open: bool = False
    each: Values | None = None


class DictionaryValue(Struct, frozen=True):
    """A dictionary by its constant keys; ``open`` if it may have others, whose values are ``each`` if that is given."""

    items: tuple[tuple[object, Values], ...]
    open: bool = False
    each: Values | None = None

    def get(self, key: object) -> Values | None:
        return next((values for k, values in self.items if k == key), None)


class Applied(Struct, frozen=True):
    """The result of a call of a library function, kept as that call."""

    name: str
    arguments: Arguments
    site: Site
    receiver: Value | None = None


class Member(Struct, frozen=True):
    """An attribute of something that a library returned."""

    base: Value
    name: str


class Called(Struct, frozen=True):
    """The result of calling a value that a library returned."""

    function: Value
    site: Site


class Free(Struct, frozen=True):
    """A parameter or field about which nothing is known except which one it is."""

    ref: FunctionRef
    name: str


Value: TypeAlias = (
    Unknown
    | Constant
    | External
    | ModuleValue
    | Namespace
    | FunctionValue
    | ClassValue
    | Instance
    | SuperValue
    | Collection
    | DictionaryValue
    | Applied
    | Member
    | Called
    | Free
)
Values: TypeAlias = frozenset[Value]

UNKNOWN = Unknown()
ANYTHING: Values = frozenset((UNKNOWN,))
NOTHING: Values = frozenset()
WIDTH = 32
"""The most values in a set; a larger set becomes unknown."""


def one(value: Value) -> Values:
    return frozenset((value,))


def join(*sets: Values) -> Values:
    """The union of some sets; anything if it has too many values."""
    if len(sets) == 1:
        return sets[0] if len(sets[0]) <= WIDTH else ANYTHING
    result: Values = NOTHING.union(*sets)
    return ANYTHING if len(result) > WIDTH else result


def certain(values: Values) -> Value | None:
    """The only possible value; None if there may be others."""
    if len(values) == 1:
        (value,) = values
        return None if value is UNKNOWN else value
    return None


def constant(values: Values) -> Constant | None:
    """The only possible value, if it is a constant; None otherwise."""
    value = certain(values)
    return value if isinstance(value, Constant) else None


def text(values: Values) -> str | None:
    """The only possible value, if it is a string; None otherwise."""
    value = constant(values)
    return value.value if value is not None and isinstance(value.value, str) else None


def truth(values: Values) -> bool | None:
    """The truth of a value: True, False, or None if it is not known."""
    answers = {_truth(value) for value in values}
    return answers.pop() if len(answers) == 1 else None


def _truth(value: Value) -> bool | None:
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, (FunctionValue, ClassValue, ModuleValue)):
        return True
    if isinstance(value, External):
        # A library's name may be a flag or a setting as well as a function.
        return True if value.name.startswith("builtins.") else None
    if isinstance(value, Collection):
        return True if value.elements else None if value.open or value.kind != "tuple" else False
    return None


def element_at(base: Value, index: object) -> Values:
    """The element of a known collection or dictionary at a constant index or key."""
    if isinstance(base, Collection) and isinstance(index, int) and base.kind != "set":
        if base.open:
            return base.each or ANYTHING
        if -len(base.elements) <= index < len(base.elements):
            return base.elements[index]
    elif isinstance(base, DictionaryValue):
        return join(base.get(index) or NOTHING, base.each or NOTHING) or ANYTHING
    return ANYTHING


def any_element(base: Value) -> Values:
    """The possible elements of a known collection or dictionary at an unknown index or key."""
    if isinstance(base, Collection) and base.kind != "set":
        known, each = base.elements, base.each
    elif isinstance(base, DictionaryValue):
        known, each = tuple(values for _, values in base.items), base.each
    else:
        return ANYTHING
    if base.open and each is None:
        return ANYTHING
    return join(*known, each or NOTHING) or ANYTHING


def deed(value: Value | None) -> Deed | None:
    """What a function does to the elements of a sequence, such as "zip"; None for other values."""
    return elements().get(value.name) if isinstance(value, External) else None
