"""What processes say to each other through the key-value store, as types.

Everything that is read is decoded into one of these, and is as long and as deep as they allow. Fields may be absent:
a record of another release may have fewer, or more, which are dropped. A field of another type makes the record
unknown.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, TypeVar

import msgspec

MAX_VALUE = 8 << 20  # characters

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Hash = Annotated[int, msgspec.Meta(ge=0)]
T = TypeVar("T")


class UnknownRecordError(RuntimeError):
    """A value in the store is not what it should be; the message names its key."""


class JobName(TypedDict):
    """The name of the job, which is part of names of files."""

    name: Annotated[str, msgspec.Meta(pattern=r"^\w{1,40}\Z")]


class Place(TypedDict, total=False):
    """A call, or the line at which a process is; ``callers`` are the user's lines that led there."""

    index: Count
    function: str | None
    filename: str | None
    line: Count | None
    callers: list[str]


class Argument(TypedDict, total=False):
    """One argument of a call."""

    path: str
    shape: list[Count]
    dtype: str
    spec: str | None
    shard: list[Count] | None
    origin: str | None
    value: str | None


class ProgramRecord(TypedDict, total=False):
    """The decisive fields of a program, and in background mode what explains it."""

    environment: dict[str, str] | None
    function: str | None
    defined_at: str | None
    name: str | None
    value: str | None
    devices: list[Count] | None
    module: str | None
    executable: str | None
    order: str | None
    keys: str | None
    static: dict[str, str]
    arguments: list[Argument]


class QuietRecord(ProgramRecord, Place, total=False):
    """A call without a collective: after which compared call it was made, how often since, and all that explains it.

    ``times`` is 0 where only the first call of a program was seen.
    """

    digest: str
    after: Count
    times: Count
    texts: dict[str, str]


class QuietRecords(TypedDict, total=False):
    """The last calls without a collective of a process, by set of processes."""

    calls: dict[str, list[QuietRecord]]


class Message(Place, total=False):
    """The call that a process is about to make, in lockstep."""

    digest: str
    tags: str
    source: bool


class Details(Place, total=False):
    """All that explains one side of a difference."""

    arguments: list[Argument] | None
    static: dict[str, str] | None
    recent: list[Place]
    threads: list[str]
    texts: dict[str, str]


class Subtree(TypedDict, total=False):
    """The message of a subtree to its root, or of the root to all."""

    same: bool
    digest: str
    tags: str
    sources: Count


class WaitRecord(Place, total=False):
    """A process that waits, and for whom."""

    group: str
    processes: list[Count]
    counts: dict[str, Count]
    single: bool


class Where(Place, total=False):
    """Where a process is now."""

    number: Count
    counts: dict[str, Count]
    stack: list[str]
    place: str | None
    uncounted: dict[str, list[QuietRecord]]


class State(Place, total=False):
    """How a process ended."""

    state: str
    detail: str | None
    counts: dict[str, Count]
    finals: dict[str, tuple[Count, str]]
    sizes: dict[str, Count]
    quiet: dict[str, Count]
    undecided: dict[str, Count]
    off: list[str]
    unplaced: list[str]
    stack: list[str] | None


class PreflightRecord(TypedDict, total=False):
    """How a process is set up."""

    devices: Count
    kind: str
    jax: str
    jaxlib: str
    python: str
    flags: list[str]
    sources: dict[str, str]


class SampleRecord(TypedDict):
    """A position in a group; see :class:`~spmdlint.runtime_checks.samples.Sample`."""

    c: Count
    x: str
    n: Count
    s: str
    l: bool  # noqa: E741 - the name in the store
    p: tuple[str | None, str | None, Count | None, str | None]


class EventRecord(TypedDict, total=False):
    """A program called from a line; ``aside`` if in another thread than the main one."""

    group: str
    digest: str
    function: str
    filename: str
    line: Count
    callers: list[str]
    defined_at: str | None
    aside: bool


class HistoryRecord(TypedDict):
    """The last calls of a process: a table of events, and places in it."""

    state: str
    end: State
    members: dict[str, list[Count]]
    groups: dict[str, tuple[Count, Hash]]
    table: list[EventRecord]
    calls: str
    quiet: dict[str, list[QuietRecord]]


class Question(TypedDict, total=False):
    """What one process asks another in background mode."""

    number: Count
    history: Count
    program: str
    texts: str
    stack: bool


class Answer(TypedDict, total=False):
    """The answer; ``aside`` is whether the process is no longer checked."""

    number: Count
    aside: bool
    history: HistoryRecord
    program: ProgramRecord
    texts: dict[str, str]
    where: Where


class ShortVerdict(TypedDict, total=False):
    """A verdict for processes that only repeat it."""

    verdict: str
    kind: str | None
    index: Count | None
    message: str


class Word(TypedDict, total=False):
    """What a process is woken with."""

    verdict: ShortVerdict
    abort: Count


class Aside(TypedDict, total=False):
    """Why the checks are over."""

    reason: str


class Ask(TypedDict, total=False):
    """A request for a stack, in lockstep."""

    number: Count


class Nothing(TypedDict, total=False):
    """A record whose presence says it all."""


def read_record(text: Any, kind: type[T], key: str) -> T:
    """Decode a value; raises :class:`UnknownRecordError` for anything else than a record of this kind."""
    if isinstance(text, str | bytes) and len(text) <= MAX_VALUE:
        try:
            return msgspec.json.decode(text, type=kind)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
            words = str(error).partition("\n")[0][:200]
    else:
        words = f"a value of {len(text)} characters" if isinstance(text, str | bytes) else type(text).__name__
    raise UnknownRecordError(f"The record {key} in the job's key-value store cannot be read ({words}).")
