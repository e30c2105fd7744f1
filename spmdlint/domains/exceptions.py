"""Which exceptions an operation may raise where others do not, and which clause of which handler catches them.

An exception is known by where it comes from: a class that the program raises itself, by name or by definition; a read
of something outside the program, which fails on one process and not on another; any other call of a library, of which
only a handler that names such a failure says that it may happen.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from spmdlint.core.evaluation import Evaluation
from spmdlint.core.ssa import Clause
from spmdlint.core.values import (
    Alternative,
    Class,
    External,
    Function,
    Member,
    Object,
    Open,
    Parameter,
    Result,
    Sequence,
    Value,
)
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

Kind: TypeAlias = "FunctionRef | str"
"""A class of exceptions: the project's, or a library's by name; or one of the two that follow."""
READ = "<read>"
"""What a read of something outside the program raises."""
OUTSIDE = "<outside>"
"""What a library's function may raise of which nothing is known."""


class Exceptions:
    """The queries that need the text and the values of operations only. One per run."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.ev = evaluation
        self._caught: dict[tuple[FunctionRef, int, Kind], Clause | None] = {}
        self._clauses: dict[tuple[FunctionRef, int], tuple[Alternative, ...] | None] = {}

    # -- what is raised

    def raised_by(self, ref: FunctionRef, n: int, o: s.Raise) -> Iterator[Kind]:
        """The classes of a ``raise``; none for a failed ``assert``, which says that the program is wrong."""
        value = self.ev.functions[ref].values[o.exception] if o.exception is not None else frozenset()
        found = False
        for a in self.ev.resolved(value):
            kind = self._kind(a)
            if kind is not None:
                found = True
                if not self._is_mistake(kind):
                    yield kind
        if not found and o.exception is None:
            for clause in self._around(ref, self.ev.project.function(ref).block_of[n]):
                yield from self._named(ref, clause)
                return

    def _is_mistake(self, kind: Kind) -> bool:
        """Whether an exception says that the program is wrong, which it is on all processes."""
        names = [kind] if isinstance(kind, str) else self._library_bases(kind)
        rows = (self.ev.row(name) for name in names)
        return any(row is not None and row.role == "mistake" for row in rows)

    def _kind(self, a: Alternative) -> Kind | None:
        if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
            return a.kind
        if isinstance(a, Class):
            return a.ref
        return a.name if isinstance(a, (External, Result)) else None

    def _around(self, ref: FunctionRef, block: int) -> Iterator[Clause]:
        """The clauses in whose handlers a block is, the innermost first."""
        ssa = self.ev.structure.ssa(ref)
        clauses = [c for each in ssa.tries for c in each.clauses if ssa.dominates(c.target, block)]
        yield from sorted(clauses, key=lambda c: -sum(ssa.dominates(other.target, c.target) for other in clauses))

    def _named(self, ref: FunctionRef, clause: Clause) -> Iterator[Kind]:
        for a in self.kinds(ref, clause) or ():
            kind = self._kind(a)
            if kind is not None:
                yield kind

    def raised_by_library(self, a: Alternative) -> Kind | None:
        """What a call of something that is not the project's may raise on one process only; None if nothing."""
        name = a.name if isinstance(a, (External, Result)) else None
        if isinstance(a, Member) and isinstance(a.base, Result):
            name = self.ev.knowledge.outside(f"{a.base.name}.{a.name}")
        if name is None:
            return OUTSIDE if isinstance(a, (Open, Member, Parameter)) else None
        known = self.ev.knowledge.get(name)
        if known is not None and (known.reads or known.source in ("files", "completion")):
            return READ
        if known is not None and (known.parallel or known.source is not None or known.kind is not None):
            return None
        return None if self.ev.rows.never_fails(name) else OUTSIDE

    # -- what is caught

    def kinds(self, ref: FunctionRef, clause: Clause) -> tuple[Alternative, ...] | None:
        """The classes that a clause names; None for a bare one."""
        key = (ref, clause.number)
        if key not in self._clauses:
            caught = self.ev.project.function(ref).operations[clause.number]
            assert isinstance(caught, s.Caught)
            if caught.kind is None:
                self._clauses[key] = None
            else:
                self._clauses[key] = tuple(self._flat(self.ev.functions[ref].values[caught.kind]))
        return self._clauses[key]

    def _flat(self, value: Value) -> Iterator[Alternative]:
        for a in self.ev.resolved(value):
            if isinstance(a, Sequence):
                for each in a.elements:
                    yield from self._flat(each)
            else:
                yield a

    def catches(self, ref: FunctionRef, clause: Clause, raised: Kind) -> bool:
        """Whether a clause is for exceptions of a kind."""
        kinds = self.kinds(ref, clause)
        if kinds is None:
            return raised != OUTSIDE
        return any(self._is_one(raised, each) for each in kinds)

    def _is_one(self, raised: Kind, a: Alternative) -> bool:
        if isinstance(a, External) and self._is_any(a):
            return raised != OUTSIDE
        if raised in (READ, OUTSIDE):
            return self.cause(a) is not None
        if isinstance(raised, FunctionRef):
            if isinstance(a, Class):
                return a.ref in self.ev.lineage(raised)
            return isinstance(a, External) and any(_derives(each, a.name) for each in self._library_bases(raised))
        return isinstance(a, External) and _derives(raised, a.name)

    def _is_any(self, a: External) -> bool:
        row = self.ev.row(a.name)
        return row is not None and row.role == "any exception"

    def cause(self, a: Alternative) -> str | None:
        """The cause outside the program that an exception of a class has; None if it has none that is known."""
        if isinstance(a, Class):
            names: Iterable[str] = self._library_bases(a.ref)
        else:
            names = (a.name,) if isinstance(a, External) else ()
        for name in names:
            known = self.ev.knowledge.get(name)
            if known is not None and known.raised is not None:
                return known.raised
        return None

    def _library_bases(self, cls: FunctionRef) -> list[str]:
        bases = (a for each in self.ev.lineage(cls) for base in self.ev.bases(each) for a in base)
        return sorted({a.name for a in bases if isinstance(a, External)})

    def caught(self, ref: FunctionRef, block: int, raised: Kind) -> Clause | None:
        """The clause of a function that catches what is raised in a block; None if it leaves the function."""
        key = (ref, block, raised)
        if key not in self._caught:
            self._caught[key] = self._find(ref, block, raised)
        return self._caught[key]

    def _find(self, ref: FunctionRef, block: int, raised: Kind) -> Clause | None:
        for each in self.ev.structure.ssa(ref).tries:
            if block in each.blocks:
                for clause in each.clauses:
                    if self.catches(ref, clause, raised):
                        return clause
        return None

    # -- where it matters

    @cached_property
    def watched(self) -> frozenset[FunctionRef]:
        """The functions that have handlers, and those that run within a try statement."""
        found: set[FunctionRef] = set()
        pending: list[FunctionRef] = []
        for ref in self.ev.functions:
            if not any(type(o) is s.Caught for o in self.ev.project.function(ref).operations):
                continue
            found.add(ref)
            guarded = frozenset(b for each in self.ev.structure.ssa(ref).tries for b in each.blocks)
            pending.extend(self._run_in(ref, guarded))
        while pending:
            ref = pending.pop()
            if ref not in found:
                found.add(ref)
                pending.extend(self._run_in(ref, None))
        return frozenset(found)

    def _run_in(self, ref: FunctionRef, blocks: frozenset[int] | None) -> Iterator[FunctionRef]:
        """The functions that some blocks run: those called there, and generators that are passed or iterated over."""
        evaluated, function = self.ev.functions.get(ref), self.ev.project.function(ref)
        if evaluated is None:
            return
        for n, call in evaluated.calls.items():
            if blocks is None or function.block_of[n] in blocks:
                yield from (a.ref for a in self.ev.callees(call.callees) if isinstance(a, Function))
                for value in call.arguments.all():
                    yield from self._generators(value)
        for n, o in enumerate(function.operations):
            if type(o) is s.Next and (blocks is None or function.block_of[n] in blocks):
                yield from self._generators(evaluated.values[o.iterable])

    def _generators(self, value: Value) -> Iterator[FunctionRef]:
        for a in self.ev.resolved(value):
            if self.ev.is_generator(a):
                assert isinstance(a.kind, FunctionRef)
                yield a.kind


def _derives(name: str, base: str) -> bool:
    """Whether one of the language's exceptions is another one or is derived from it."""
    if name == base:
        return True
    module, _, last = name.rpartition(".")
    other, _, wanted = base.rpartition(".")
    if module != "builtins" or other != "builtins":
        return False
    one, two = getattr(builtins, last, None), getattr(builtins, wanted, None)
    return isinstance(one, type) and isinstance(two, type) and issubclass(one, two)
