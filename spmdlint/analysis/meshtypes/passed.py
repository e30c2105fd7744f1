"""The arguments of a call in a mapped body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Arguments
from spmdlint.analysis.meshtypes.scopes import Scope
from spmdlint.analysis.meshtypes.states import ALL_ALIKE, Leaf, Record, Row, Type, flat
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.meshtypes.typer import Typer


class Passed(Struct, frozen=True):
    """The arguments of a call: their types, and their values as far as the evaluator knows them.

    ``receiver`` is the type of the object whose method is called.
    """

    types: tuple[Type, ...]
    keywords: tuple[tuple[str, Type], ...]
    values: Arguments
    open: bool = False
    receiver: Type = ALL_ALIKE

    def keyword(self, name: str) -> Type | None:
        return next((each for key, each in self.keywords if key == name), None)

    def get(self, position: int, name: str = "") -> Type | None:
        found = self.keyword(name) if name else None
        return found if found is not None else self.types[position] if position < len(self.types) else None

    def all(self) -> list[Leaf]:
        return [flat(each) for each in (*self.types, *(each for _, each in self.keywords))]


def passed_by(typer: Typer, scope: Scope, operation: s.Call) -> Passed:
    types: list[Type] = []
    keywords: list[tuple[str, Type]] = []
    is_open = False
    for argument in operation.arguments:
        given = typer.type(scope, argument.value)
        if argument.star == "*" and isinstance(given, Row):
            types.extend(given.elements)
        elif argument.star == "**" and isinstance(given, Record) and given.rest is None:
            keywords.extend((str(key), each) for key, each in given.items)
        elif argument.star:
            is_open = True
        elif argument.keyword is not None:
            keywords.append((argument.keyword, given))
        elif not is_open:
            types.append(given)
    return Passed(tuple(types), tuple(keywords), typer.ev.arguments(scope.frame, operation), is_open)


def with_first(passed: Passed, base: Type) -> Passed:
    return replace(passed, types=(base, *passed.types))
