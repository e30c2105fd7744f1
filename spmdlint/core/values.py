"""Values: sets of alternatives, symbolic in parameters, and what a call substitutes for them.

A value is a set of *alternatives*. An empty one means that nothing gets here. :data:`OPEN` among them means that there
may be others which nobody knows. A :class:`Parameter` stands for whatever is passed; functions and objects carry
*bindings*, the values of the parameters that they can see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from spmdlint.program.link import FunctionRef

WIDTH = 8
"""The most alternatives of a value; more of them are unknown."""
DEPTH = 4
"""How deeply symbols, bindings and arguments nest; deeper ones are unknown."""


class Site(Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """An operation of a function."""

    ref: FunctionRef
    number: int


class Open(Struct, frozen=True, gc=False):
    """There may be other alternatives."""


class External(Struct, frozen=True, cache_hash=True, gc=False):
    """Something of a library, by its canonical dotted name."""

    name: str


class ModuleValue(Struct, frozen=True, cache_hash=True, gc=False):
    """A module of the project."""

    path: Path


class Constant(Struct, frozen=True, cache_hash=True, gc=False):
    """A literal; ``kind`` keeps 1, 1.0 and True apart."""

    value: object
    kind: str


class Parameter(Struct, frozen=True, cache_hash=True, gc=False):
    """What a caller passes: the argument of a function, or a field that the constructor of a record sets."""

    ref: FunctionRef
    name: str


class Member(Struct, frozen=True, cache_hash=True, gc=False):
    """An attribute of a symbol or of a library's object."""

    base: Alternative
    name: str
    depth: int


class Function(Struct, frozen=True, cache_hash=True, gc=False):
    """A function of the project; ``receiver`` is the object or class that a method is bound to."""

    ref: FunctionRef
    receiver: Alternative | None = None
    bindings: Bindings = ()
    depth: int = 1


class Class(Struct, frozen=True, cache_hash=True, gc=False):
    """A class of the project, by the function that is its body."""

    ref: FunctionRef


class Super(Struct, frozen=True, cache_hash=True, gc=False):
    """A receiver as an object of the class that a method's own class is derived from."""

    ref: FunctionRef
    receiver: Alternative


class Object(Struct, frozen=True, cache_hash=True, gc=False):
    """An object by the site that makes it: an instance of a class, or a container of the kind ``list``, ``dict``, ...

    ``site`` is None for the receiver of a method that nobody has called yet: any object of the class or a derived one.
    """

    site: Site | None
    kind: FunctionRef | str
    bindings: Bindings = ()
    depth: int = 1


class Sequence(Struct, frozen=True, cache_hash=True, gc=False):
    """A tuple. ``rest`` is what follows the elements, if their number is unknown, or what an iterator gives."""

    elements: tuple[Value, ...]
    rest: Value | None = None
    depth: int = 1


class Keywords(Struct, frozen=True, cache_hash=True, gc=False):
    """The keyword arguments that a function takes by two stars; ``open``: and perhaps others."""

    items: tuple[tuple[str, Value], ...]
    open: bool = False
    depth: int = 1


class Result(Struct, frozen=True, cache_hash=True, gc=False):
    """What a call of a library's function gives."""

    name: str
    site: Site
    arguments: Arguments
    depth: int = 1


class Arguments(Struct, frozen=True, cache_hash=True, gc=False):
    """The arguments of a call. ``open``: there may be others; ``star`` and ``double``: what is spread into them."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    open: bool = False
    star: Value | None = None
    double: Value | None = None

    def get(self, name: str | None, position: int | None) -> Value | None:
        """An argument by its keyword, or else by its position."""
        for keyword, value in self.keywords:
            if keyword == name:
                return value
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None

    def all(self) -> Iterable[Value]:
        """Every argument, in the order in which they are written."""
        yield from self.positional
        for _, value in self.keywords:
            yield value
        yield from (each for each in (self.star, self.double) if each is not None)

    def mapped(self, change: Callable[[Value], Value]) -> Arguments:
        """The same arguments with every value changed."""
        return Arguments(
            tuple([change(each) for each in self.positional]),
            tuple([(keyword, change(each)) for keyword, each in self.keywords]),
            self.open,
            change(self.star) if self.star is not None else None,
            change(self.double) if self.double is not None else None,
        )

    def spread(self) -> Arguments:
        """The same arguments, with what a star or two spread in their places where that is known."""
        if self.star is None and self.double is None:
            return self
        positional, keywords, unknown = self.positional, dict(self.keywords), self.open
        if self.star is not None:
            items = only(self.star)
            if isinstance(items, Sequence):
                positional, unknown = positional + items.elements, unknown or items.rest is not None
            else:
                unknown = True
        if self.double is not None:
            items = only(self.double)
            if isinstance(items, Keywords):
                keywords.update(items.items)
                unknown = unknown or items.open
            else:
                unknown = True
        return Arguments(positional, tuple(keywords.items()), unknown)


Alternative: TypeAlias = (
    Open | External | ModuleValue | Constant | Parameter | Member | Function | Class | Object | Sequence
    | Keywords | Result | Super
)  # fmt: skip
Value: TypeAlias = frozenset[Alternative]
Bindings: TypeAlias = tuple[tuple[Parameter, Value], ...]

OPEN = Open()
UNKNOWN: Value = frozenset((OPEN,))
BOTTOM: Value = frozenset()
NONE = Constant(None, "NoneType")
JUST_NONE: Value = frozenset((NONE,))
NESTED = (Member, Function, Object, Sequence, Keywords, Result)


def constant(value: object) -> Constant:
    """The constant for a literal."""
    return Constant(value, type(value).__name__)


def join(one: Value, other: Value) -> Value:
    """Both sets of alternatives; unknown if they are too many."""
    if one is other or not other:
        return one
    if not one:
        return other
    both = one | other
    if len(both) > WIDTH:
        return widened(both)
    return one if both == one else both


def widened(value: Value) -> Value:
    """A value with too many alternatives: bindings go first, then constants, then all."""
    kept = frozenset(flat(a) if isinstance(a, (Function, Object)) else a for a in value)
    if len(kept) > WIDTH:
        kept = frozenset(a for a in kept if type(a) is not Constant) | UNKNOWN
    return kept if len(kept) <= WIDTH else UNKNOWN


def depth(value: Value) -> int:
    """How deeply a value nests."""
    return max((a.depth for a in value if isinstance(a, NESTED)), default=0)


def shallow(value: Value) -> Value:
    """A value that may become part of another one: what nests too deeply is unknown."""
    if all(not isinstance(a, NESTED) or a.depth < DEPTH for a in value):
        return value
    return frozenset(flat(a) if isinstance(a, NESTED) and a.depth >= DEPTH else a for a in value)


def flat(alternative: Alternative) -> Alternative:
    """An alternative without what makes it deep."""
    if isinstance(alternative, Function) and (alternative.receiver is None or depth_of(alternative.receiver) < DEPTH):
        return Function(alternative.ref, alternative.receiver, (), 1 + depth_of(alternative.receiver))
    if isinstance(alternative, Object):
        return Object(alternative.site, alternative.kind)
    if isinstance(alternative, Result):
        return Result(alternative.name, alternative.site, Arguments(open=True))
    return OPEN


def depth_of(alternative: Alternative | None) -> int:
    """How deeply one alternative nests."""
    return alternative.depth if isinstance(alternative, NESTED) else 0


def only(value: Value) -> Alternative | None:
    """The single alternative of a value; None if there are others, or none."""
    if len(value) != 1:
        return None
    (alternative,) = value
    return None if alternative is OPEN or isinstance(alternative, Open) else alternative


def element_kind(a: Alternative) -> FunctionRef | None:
    """What tells the elements of a container apart: the class of an object, a function."""
    if isinstance(a, Object):
        return a.kind if isinstance(a.kind, FunctionRef) else None
    return a.ref if isinstance(a, (Function, Class)) else None


def in_order(a: Alternative) -> tuple[str, str]:
    """A fixed order of alternatives."""
    return (type(a).__name__, repr(a))


def make_result(name: str, site: Site, arguments: Arguments) -> Result:
    """The result of a call of a library's function, with arguments that do not nest too deeply."""
    kept = arguments.mapped(shallow)
    return Result(name, site, kept, 1 + max((depth(each) for each in kept.all()), default=0))


def make_sequence(elements: Iterable[Value], rest: Value | None = None) -> Sequence:
    """A tuple, or what an iterator gives."""
    kept = tuple(shallow(each) for each in elements)
    end = shallow(rest) if rest is not None else None
    return Sequence(kept, end, 1 + max((depth(each) for each in (*kept, end or BOTTOM)), default=0))


def make_keywords(items: Iterable[tuple[str, Value]], unknown: bool) -> Keywords:
    """Keyword arguments that a function takes by two stars."""
    kept = tuple([(name, shallow(value)) for name, value in items])
    return Keywords(kept, unknown, 1 + max((depth(value) for _, value in kept), default=0))


def make_member(base: Alternative, name: str) -> Alternative:
    """An attribute of a symbol; unknown if it nests too deeply."""
    level = depth_of(base)
    return Member(base, name, level + 1) if level < DEPTH else OPEN


def bind(given: Mapping[Parameter, Value]) -> Bindings:
    """Bindings in one order; of what is unknown nothing is kept."""
    kept = [(p, shallow(v)) for p, v in given.items() if v and v != UNKNOWN and v != frozenset((p,))]
    kept.sort(key=lambda pair: (pair[0].ref, pair[0].name))
    return tuple(kept)


def nesting(bindings: Bindings) -> int:
    """How deeply bindings nest."""
    return max((depth(value) for _, value in bindings), default=0)


class Substitution:
    """The substitution of values for the parameters of one call, or of one object.

    ``around`` gives the functions around a function, whose parameters can be seen in it, and ``attribute`` an
    attribute of an alternative.
    """

    def __init__(
        self,
        given: Mapping[Parameter, Value],
        around: Callable[[FunctionRef], frozenset[FunctionRef]],
        attribute: Callable[[Alternative, str], Value],
    ) -> None:
        self.given = given
        self.around = around
        self.attribute = attribute
        self._owners = frozenset(parameter.ref for parameter in given)
        self._memo: dict[Alternative, Value] = {}

    def value(self, value: Value) -> Value:
        """A value with its parameters replaced."""
        if not self.given or not value:
            return value
        found: Value = BOTTOM
        same = True
        for alternative in value:
            new = self.alternative(alternative)
            if same and (len(new) != 1 or alternative not in new):
                same = False
            found = new if not found else found | new
        if same:
            return value
        return widened(found) if len(found) > WIDTH else found

    def alternative(self, a: Alternative) -> Value:
        """What one alternative becomes."""
        kind = type(a)
        if kind is Parameter:
            return self.given.get(a, None) or frozenset((a,))  # type: ignore[arg-type]
        if isinstance(a, Super):
            return frozenset(Super(a.ref, each) for each in self.alternative(a.receiver))
        if kind not in NESTED:
            return frozenset((a,))
        known = self._memo.get(a)
        if known is None:
            self._memo[a] = frozenset((a,))  # what contains itself stays as it is
            known = self._memo[a] = self._nested(a)
        return known

    def _nested(self, a: Alternative) -> Value:
        if isinstance(a, Function):
            receivers: Iterable[Alternative | None] = (None,)
            if a.receiver is not None:
                receivers = self.alternative(a.receiver)
            bindings = self._bindings(a.bindings, self.around(a.ref))
            level = nesting(bindings)
            return frozenset(
                Function(a.ref, each, bindings, 1 + max(level, depth_of(each))) if depth_of(each) < DEPTH else OPEN
                for each in receivers
            )
        if isinstance(a, Object):
            around = self.around(a.site.ref) | {a.site.ref} if a.site is not None else frozenset()
            bindings = self._bindings(a.bindings, around)
            return frozenset((Object(a.site, a.kind, bindings, 1 + nesting(bindings)),))
        if isinstance(a, Sequence):
            rest = self.value(a.rest) if a.rest is not None else None
            return frozenset((make_sequence((self.value(each) for each in a.elements), rest),))
        if isinstance(a, Keywords):
            return frozenset((make_keywords(((name, self.value(each)) for name, each in a.items), a.open),))
        if isinstance(a, Result):
            return frozenset((make_result(a.name, a.site, a.arguments.mapped(self.value)),))
        if isinstance(a, Member):
            found: Value = BOTTOM
            for base in self.alternative(a.base):
                found |= self.attribute(base, a.name)
            return found
        return frozenset((a,))

    def _bindings(self, bindings: Bindings, around: frozenset[FunctionRef]) -> Bindings:
        """The bindings of a function or object, with those added that it sees and did not know."""
        if not bindings and not (around & self._owners):
            return bindings
        found = {parameter: self.value(value) for parameter, value in bindings}
        if around & self._owners:
            for parameter, value in self.given.items():
                if parameter.ref in around and parameter not in found:
                    found[parameter] = value
        return bind(found)
