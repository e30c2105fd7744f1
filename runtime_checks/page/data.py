"""The data of the page, as its script reads them."""

from __future__ import annotations

from typing import TypedDict

from spmdlint.runtime_checks.records import Step


class Words(TypedDict):
    """An argument in words, and whether it is among those that differ."""

    words: str
    differs: bool


class ShownSide(TypedDict):
    """Processes of the report at one place; ``more`` is how many of their arguments are left out."""

    processes: list[int]
    named: str
    state: str
    index: int | None
    function: str | None
    file: str | None
    line: int | None
    detail: str | None
    static: list[Words]
    arguments: list[Words]
    more: int
    stack: list[str]


class ShownModuleSide(TypedDict):
    """A line of a lowered module in three parts, of which the middle one differs."""

    named: str
    before: str
    differs: str
    after: str
    source: str | None


class ShownModule(TypedDict):
    """The first line at which the lowered modules differ."""

    line: int
    sides: list[ShownModuleSide]


class ShownFinding(TypedDict):
    """A finding of the linter, with its steps."""

    code: str
    place: str
    message: str
    steps: list[Step]


class ShownGroup(TypedDict):
    """A set of processes."""

    members: list[int]
    named: str


class Rows(TypedDict):
    """The rows of the table by column: the number of the group, of the call there, and of what is usually called."""

    group: list[int]
    index: list[int]
    call: list[int]


class ShownLane(TypedDict):
    """A process: its first and last call by group, and in turn each row and call in which it differs from the usual."""

    process: int
    spans: dict[str, tuple[int, int]]
    other: list[int]


class ShownProgram(TypedDict, total=False):
    """What is known of a program."""

    name: str
    value: str
    defined_at: str
    static: dict[str, str]
    arguments: list[str]


class Table(TypedDict):
    """The table of calls; a call is the number of its program, the function, the number of its file, and the line."""

    groups: list[ShownGroup]
    rows: Rows
    lanes: list[ShownLane]
    calls: list[tuple[int, str, int, int | None]]
    files: list[str | None]
    programs: list[ShownProgram | None]
    mark: int | None


class Document(TypedDict):
    """All that the page shows; ``omitted`` is how many rows before and after the table are left out."""

    made_by: str
    made: str
    command: str
    verdict: str
    kind: str | None
    message: str
    advice: str | None
    rules: list[str]
    sides: list[ShownSide]
    module: ShownModule | None
    findings: list[ShownFinding]
    notes: list[str]
    versions: dict[str, str]
    layers: dict[str, str]
    states: dict[str, str]
    calls: Table
    omitted: list[int]
    excerpts: dict[str, list[tuple[int, str]]]
