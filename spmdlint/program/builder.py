"""Builds the control-flow graph of one function, block by block."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from spmdlint.program.layout import Span
from spmdlint.program.summary import (
    ENTRY,
    EXIT,
    FAILURE,
    Block,
    Edge,
    EdgeKind,
    Function,
    Operation,
    Store,
    ValueId,
)


class Loop(Struct):
    """The targets of `break` and `continue`, and the number of cleanups that were open when the loop began."""

    header: int
    after: int
    cleanups: int


class Builder(Struct):
    """The function under construction, the block that is being filled, and the state around it.

    ``current`` is None where control cannot arrive; operations there go into an unreachable block, because dropping
    code that only looks dead would lose definitions.
    """

    function: Function
    spans: list[Span]
    current: int = ENTRY
    reachable: bool = True
    loops: list[Loop] = field(default_factory=list)
    # What must run on every way out: `finally` bodies and the ends of `with` blocks, innermost last.
    cleanups: list[Callable[[], None]] = field(default_factory=list)
    # Where an exception goes: the dispatch block of the innermost `try`, or the failure block.
    handlers: list[int] = field(default_factory=lambda: [FAILURE])
    # The renamings of comprehension variables, innermost last: a comprehension has its own scope.
    renamings: list[dict[str, str]] = field(default_factory=list)
    comprehensions: int = 0
    entered: set[int] = field(default_factory=set)
    # The numbers of the operations in the block that is being filled.
    filled: list[ValueId] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.function.blocks:
            self.function.blocks.extend([Block(), Block(), Block()])
        self.begin(self.current)

    # -- operations

    def emit(self, operation: Operation, span: Span) -> ValueId:
        """Append an operation to the current block and return its number."""
        operations = self.function.operations
        number = len(operations)
        operations.append(operation)
        self.spans.append(span)
        self.filled.append(number)
        return number

    def store(self, name: str, value: ValueId, span: Span, annotation: ValueId | None = None) -> None:
        """Bind a name, under the name that the innermost comprehension gave it."""
        self.emit(Store(self.renamed(name), value, annotation), span)

    def renamed(self, name: str) -> str:
        """The name as it is stored: comprehension variables carry a number that no source can contain."""
        for renaming in reversed(self.renamings):
            if name in renaming:
                return renaming[name]
        return name

    # -- blocks

    def block(self) -> int:
        """A new, empty block without predecessors."""
        self.function.blocks.append(Block())
        return len(self.function.blocks) - 1

    def edge(self, source: int, kind: EdgeKind, target: int) -> None:
        """Add an edge from one block to another, unless it exists."""
        edges = self.function.blocks[source].edges
        assert isinstance(edges, list)
        if not any(e.kind == kind and e.target == target for e in edges):
            edges.append(Edge(kind, target))
            self.entered.add(target)

    def go(self, kind: EdgeKind, target: int) -> None:
        """Add an edge from the current block to another, if control can be here."""
        if self.reachable:
            self.edge(self.current, kind, target)

    def begin(self, block: int, *, reachable: bool = True) -> None:
        """Make this the current block."""
        self.current, self.reachable = block, reachable
        filled = self.function.blocks[block].operations
        assert isinstance(filled, list)
        self.filled = filled

    def dead(self) -> None:
        """Control cannot reach this point: the code that follows goes into a separate block."""
        self.begin(self.block(), reachable=False)

    def test(self, value: ValueId) -> tuple[int, int]:
        """End the current block with a branch on a value; returns the blocks for true and for false."""
        self.function.blocks[self.current].test = value
        yes, no = self.block(), self.block()
        self.go("true", yes)
        self.go("false", no)
        return yes, no

    def arrives(self, block: int) -> bool:
        """Whether any edge leads to this block."""
        return block in self.entered

    # -- ways out

    def unwind(self, depth: int) -> None:
        """Run the cleanups above a depth, innermost first, on the way out through them."""
        held = self.cleanups
        while len(self.cleanups) > depth:
            cleanup = self.cleanups[-1]
            # While it runs, it and those inside it are no longer open.
            self.cleanups = self.cleanups[:-1]
            cleanup()
        self.cleanups = held

    def leave(self, kind: EdgeKind, target: int, depth: int = 0) -> None:
        """Jump out: run the cleanups above ``depth``, then go to the target."""
        if self.reachable:
            self.unwind(depth)
        self.go(kind, target)
        self.dead()

    def leave_function(self) -> None:
        """Go to the exit."""
        self.leave("return", EXIT)

    def throw(self) -> None:
        """Go where exceptions go from here. A `finally` around it is already on that path."""
        self.go("raise", self.handlers[-1])
        self.dead()
