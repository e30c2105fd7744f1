"""Layer A: the meaning of one file, without anything from other files, libraries or configuration.

A module is a list of *functions* (the module's top level, class bodies, lambdas and `def`s alike). A function is a
control-flow graph of basic blocks. A block is an ordered list of operations. An operation that yields a value is
referred to by its number, so the operations of a function are also its value graph. Names are not resolved here, only
classified by Python's own scoping rules, which need no other file.

Everything is made of tuples, strings and numbers, so that a summary can be serialised and read back (`written.py`).
Positions in the text are kept separately, in the layout of the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from spmdlint.program.layout import Layout, Span
from spmdlint.program.sharing import shared

ValueId: TypeAlias = int
"""The number of an operation in its function; used to refer to the operation's value."""


class _Operation(Struct, array_like=True, tag=True, gc=False):
    """The common base of operations: how they are serialised."""


class Const(_Operation):
    """A literal."""

    value: Any


class Load(_Operation):
    """The value of a name, looked up by :meth:`Function.scope_of`."""

    name: str


class Parameter(_Operation):
    """The argument that a caller passes; emitted at the start of the entry block, followed by its :class:`Store`."""

    name: str


class Attribute(_Operation):
    base: ValueId
    name: str


class Subscript(_Operation):
    base: ValueId
    index: ValueId


class Slice(_Operation):
    lower: ValueId | None
    upper: ValueId | None
    step: ValueId | None


class Unary(_Operation):
    operator: str
    operand: ValueId


class Binary(_Operation):
    """``inplace`` marks an augmented assignment; its store follows."""

    operator: str
    left: ValueId
    right: ValueId
    inplace: bool = False


class Compare(_Operation):
    """``operands[0] operators[0] operands[1] operators[1] ...``."""

    operators: tuple[str, ...]
    operands: tuple[ValueId, ...]


class BoolOp(_Operation):
    """The value of `and` / `or`; operands that call something are in separate blocks."""

    operator: Literal["and", "or"]
    operands: tuple[ValueId, ...]


class IfExp(_Operation):
    test: ValueId
    body: ValueId
    orelse: ValueId


class Display(_Operation):
    """A tuple, list or set; ``starred`` holds the positions of unpacked elements."""

    kind: Literal["tuple", "list", "set"]
    elements: tuple[ValueId, ...]
    starred: tuple[int, ...] = ()


class DictDisplay(_Operation):
    """A key of None means ``**value``."""

    keys: tuple[ValueId | None, ...]
    values: tuple[ValueId, ...]

    @property
    def elements(self) -> tuple[ValueId, ...]:
        """What it holds, as for a list."""
        return self.values


class Collected(_Operation):
    """The value of a comprehension, whose loop is in the blocks before it. ``loops`` are its :class:`Next`."""

    kind: Literal["list", "set", "dict", "generator"]
    element: ValueId
    key: ValueId | None
    loops: tuple[ValueId, ...]


class FString(_Operation):
    parts: tuple[ValueId, ...]


class Argument(Struct, array_like=True, gc=False):
    """One argument of a call; ``star`` is '', '*' or '**'."""

    value: ValueId
    keyword: str | None = None
    star: str = ""


class Call(_Operation):
    """A call; ``decorator`` marks the application of a decorator, which is represented as a call."""

    function: ValueId
    arguments: tuple[Argument, ...]
    decorator: bool = False


class MakeFunction(_Operation):
    """The evaluation of a `def` or lambda; defaults belong to the scope that evaluates it."""

    function: int
    defaults: tuple[tuple[str, ValueId], ...] = ()
    annotations: tuple[tuple[str, ValueId], ...] = ()


class MakeClass(_Operation):
    """The evaluation of a class statement; ``body`` is the number of the function that is its body."""

    body: int
    bases: tuple[ValueId, ...]
    keywords: tuple[Argument, ...] = ()


class Import(_Operation):
    """``import module`` (name None; ``root``: only the first part is bound) or one name of ``from module import``."""

    module: str
    level: int = 0
    name: str | None = None
    root: bool = False


class ImportStar(_Operation):
    module: str
    level: int = 0


class Next(_Operation):
    """The element that a loop takes from its iterable in one iteration."""

    iterable: ValueId
    asynchronous: bool = False


class Item(_Operation):
    """One target's part of an unpacked value: position ``index`` of ``total`` (negative after a star)."""

    value: ValueId
    index: int
    total: int
    star: bool = False


class Enter(_Operation):
    """The value that a context manager binds; its :class:`Leave` is on every path out of the block."""

    manager: ValueId


class Leave(_Operation):
    manager: ValueId


class Caught(_Operation):
    """The exception bound by a handler; ``kind`` is None for a bare `except`."""

    kind: ValueId | None


class Matches(_Operation):
    """Whether the subject of a `match` matches a pattern, with the values that the pattern compares with."""

    subject: ValueId
    values: tuple[ValueId, ...]
    irrefutable: bool = False


class Captured(_Operation):
    """A name bound by a pattern, somewhere inside the subject."""

    subject: ValueId


class Await(_Operation):
    value: ValueId


class Yield(_Operation):
    value: ValueId | None
    delegate: bool = False


class Store(_Operation):
    name: str
    value: ValueId
    annotation: ValueId | None = None


class Declare(_Operation):
    """An annotation without a value: a field of a dataclass, or a hint."""

    name: str
    annotation: ValueId


class StoreAttribute(_Operation):
    base: ValueId
    name: str
    value: ValueId


class StoreSubscript(_Operation):
    base: ValueId
    index: ValueId
    value: ValueId


class Delete(_Operation):
    """``del`` of a name, of an attribute (of ``base``), or of what is at an ``index`` of it."""

    name: str | None
    base: ValueId | None = None
    index: ValueId | None = None


class Return(_Operation):
    value: ValueId | None


class Raise(_Operation):
    exception: ValueId | None


Operation: TypeAlias = (
    Const | Load | Parameter | Attribute | Subscript | Slice | Unary | Binary | Compare | BoolOp | IfExp
    | Display | DictDisplay | Collected | FString | Call | MakeFunction | MakeClass | Import | ImportStar
    | Next | Item | Enter | Leave | Caught | Matches | Captured | Await | Yield
    | Store | Declare | StoreAttribute | StoreSubscript | Delete | Return | Raise
)  # fmt: skip

EdgeKind = Literal[
    "next", "true", "false", "iterate", "exhausted", "back", "break", "continue", "except", "return", "raise"
]


class Edge(Struct, array_like=True, gc=False):
    kind: EdgeKind
    target: int


class Block(Struct, array_like=True, gc=False):
    """Operations without a branch between them.

    ``test`` decides between the edges *true* and *false*, or is the :class:`Next` of a loop, which decides between
    *iterate* and *exhausted*, or the :class:`Caught` of a handler, which decides between *except* and *false*.
    """

    operations: Sequence[ValueId] = msgspec.field(default_factory=list)
    test: ValueId | None = None
    edges: Sequence[Edge] = msgspec.field(default_factory=list)


FunctionKind = Literal["module", "class", "function", "lambda"]
ParameterKind = Literal["positional-only", "standard", "*", "keyword-only", "**"]
Scope = Literal["local", "enclosing", "global"]


class Formal(Struct, array_like=True, gc=False):
    """A parameter: its name, how it is passed, whether it has a default."""

    name: str
    kind: ParameterKind
    default: bool = False


ENTRY, EXIT, FAILURE = 0, 1, 2
"""Blocks that every function has: where it begins, where it returns, where it leaves by an exception."""


_BINDING = frozenset((Store, Declare))


class Function(Struct, dict=True):
    """A scope with code. ``parent`` is the number of the enclosing scope (None for the module)."""

    index: int
    kind: FunctionKind
    name: str
    qualname: str
    parent: int | None
    layout: Layout
    formals: tuple[Formal, ...] = ()
    asynchronous: bool = False
    generator: bool = False
    globals: frozenset[str] = frozenset()
    nonlocals: frozenset[str] = frozenset()
    operations: list[Operation] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        """The span of each operation."""
        return self.layout.places.spans[self.index]

    def holds(self, outer: ValueId, inner: ValueId) -> bool:
        """Whether one operation is inside another."""
        return self.layout.holds(self.index, outer, inner)

    @property
    def start(self) -> int:
        """The offset at which the function's name begins."""
        return self.layout.places.extents[self.index][0]

    @cached_property
    def stores(self) -> dict[str, tuple[ValueId, ...]]:
        """The numbers of the stores to each name, in source order."""
        found: dict[str, list[ValueId]] = {}
        for number, operation in enumerate(self.operations):
            if type(operation) in _BINDING and isinstance(operation, (Store, Declare)):  # a few of many
                found.setdefault(operation.name, []).append(number)
        return {name: shared(tuple(numbers)) for name, numbers in found.items()}

    def binds(self, name: str) -> bool:
        """Whether the name is local here, by Python's rules."""
        return name in self.stores and name not in self.globals and name not in self.nonlocals

    @cached_property
    def block_of(self) -> Sequence[int]:
        """The block of each operation, by the operation's number."""
        found = array("i", [0]) * len(self.operations)
        for number, block in enumerate(self.blocks):
            for operation in block.operations:
                found[operation] = number
        return found


_NONE: frozenset[str] = frozenset()


def compact(functions: Iterable[Function]) -> None:
    """Reduce the memory that functions take: a block's operations are consecutive, and most edges equal others.

    A third of all operations are loads or constants, of which a file has few different ones.
    """
    alike: dict[tuple[tuple[EdgeKind, int], ...], tuple[Edge, ...]] = {}
    loads: dict[str, Load] = {}
    constants: dict[str, Const] = {}
    for function in functions:
        operations = function.operations
        for number, operation in enumerate(operations):
            if type(operation) is Load:
                operations[number] = loads.setdefault(operation.name, operation)
            elif type(operation) is Const and type(operation.value) is str:
                operations[number] = constants.setdefault(operation.value, operation)
        function.globals = function.globals or _NONE
        function.nonlocals = function.nonlocals or _NONE
        for block in function.blocks:
            numbers = block.operations
            if numbers and numbers[-1] - numbers[0] == len(numbers) - 1:
                block.operations = range(numbers[0], numbers[-1] + 1)
            elif not numbers:
                block.operations = ()
            key = tuple([(edge.kind, edge.target) for edge in block.edges])
            edges = alike.get(key)
            if edges is None:
                edges = alike[key] = tuple(block.edges)
            block.edges = edges


class Comment(Struct, array_like=True, frozen=True):
    """A comment that may be addressed to a linter; row and column from 1; ``own_line``: no code precedes it."""

    row: int
    column: int
    text: str
    own_line: bool


class Idle(Struct, array_like=True, frozen=True):
    """A name that idle code binds (`idle.py`), and a digest of the code.

    ``module``: the first part of the module it is imported from, empty if it is defined here.
    """

    name: str
    digest: bytes
    module: str = ""


class Essence(Struct):
    """The functions of a file without its idle code, and the removed names that other files might use."""

    functions: list[Function]
    idle: tuple[Idle, ...]


class Summary(Struct, dict=True):
    """Layer A of one file. ``functions[0]`` is the top level. ``essence`` is None if equal or not asked for."""

    functions: list[Function]
    layout: Layout
    comments: tuple[Comment, ...] = ()
    essence: Essence | None = None

    @cached_property
    def set_inside(self) -> dict[int, dict[str, tuple[int, ...]]]:
        """By function: the names that nested functions set by ``nonlocal``, with the numbers of those functions."""
        found: dict[int, dict[str, tuple[int, ...]]] = {}
        for inner in self.functions:
            for name in sorted(inner.nonlocals):
                scope = self.scope_of(inner, name) if name in inner.stores else None
                if scope is not None:
                    names = found.setdefault(scope.index, {})
                    names[name] = (*names.get(name, ()), inner.index)
        return found

    def position(self, offset: int) -> tuple[int, int]:
        """Row and column, both from 1, of an offset in characters."""
        return self.layout.places.position(offset)

    def scope_of(self, function: Function, name: str) -> Function | None:
        """The scope that binds a name used in a function; None if the name is global or built in.

        Class bodies are invisible from the functions inside them.
        """
        if name in function.globals:
            return None
        scope: Function | None = function
        first = True
        while scope is not None and scope.kind != "module":
            if (first or scope.kind != "class") and scope.binds(name):
                return scope
            scope = self.functions[scope.parent] if scope.parent is not None else None
            first = False
        return None
