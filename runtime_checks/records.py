"""What processes say to each other, as types: through the key-value store, and through the files of a rehearsal.

Everything that is read is decoded into one of these, and is as long and as deep as they allow. Fields may be absent:
a record of another release may have fewer, or more, which are dropped. A field of another type makes the record
unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, TypedDict, TypeVar

import msgspec

MAX_VALUE = 8 << 20  # characters

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Hash = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(pattern=r"^\w{1,40}\Z")]
Verdict = Literal["clean", "failed", "late", "diverged", "unchecked"]
Kind = Literal["sequence", "arguments", "program", "missing", "setup", "value"]
T = TypeVar("T")


class UnknownRecordError(RuntimeError):
    """A value that another process has written is not what it should be; the message names its key."""


class JobName(TypedDict):
    """The name of the job, which is part of names of files."""

    name: Name


class Place(TypedDict, total=False):
    """A call, or the line at which a process is; ``callers`` are the user's lines that led there.

    ``defined_at`` is where the function is defined.
    """

    index: Count | None
    function: str | None
    defined_at: str | None
    filename: str | None
    line: Count | None
    callers: list[str]


class Argument(TypedDict, total=False):
    path: str
    shape: list[Count]
    dtype: str
    spec: str | None
    shard: list[Count] | None
    origin: str | None
    value: str | None


class ProgramRecord(TypedDict, total=False):
    """What has to agree of a program, and what explains it; None is unknown, and agrees with anything."""

    environment: dict[str, str] | None
    function: str | None
    defined_at: str | None
    name: str | None
    value: str | None
    module: str | None
    order: str | None
    devices: list[Count] | None
    static: dict[str, str] | None
    arguments: list[Argument] | None


class Side(ProgramRecord, Place, total=False):
    """All that is known of a call of one process, for a comparison; ``texts`` is its lowered module, packed.

    ``given`` has the tags of what is meant to be one value, by the number of the argument, counted from the last,
    ``tags`` those of the arguments' origins, and ``source`` is whether it is that of a broadcast.
    """

    digest: str
    given: dict[str, str]
    texts: dict[str, str]
    tags: str
    source: bool


class QuietRecord(Side, total=False):
    """A call without a collective: after which compared call it was made, how often since, and all that explains it.

    ``times`` is 0 where only the first call of a program was seen.
    """

    after: Count
    times: Count


class _Announced(TypedDict):
    digest: str  # without it nothing could be compared: such a record cannot be read


class Message(_Announced, Place, total=False):
    """The call that a process is about to make, in lockstep."""

    tags: str
    source: bool
    given: dict[str, str]


class Details(Side, total=False):
    """All that explains one side of a difference."""

    threads: list[str]


class WaitRecord(Place, total=False):
    """A process that waits, and for whom."""

    group: str
    processes: list[Count]
    counts: dict[str, Count]
    single: bool


class Build(TypedDict, total=False):
    """What a process runs with: versions of Python and JAX, and the layers of interception, "on" or why not."""

    versions: dict[str, str]
    layers: dict[str, str]


class State(Place, Build, total=False):
    """How a process ended, or where it is now.

    Its ``state`` is "disabled" if the program has ended the checks itself, and may go on. ``call`` is the last call of
    a process that runs, which it may have left behind or still be in, and ``compiling`` what its compiler has been
    working on for some time, None if it is not.
    """

    call: Place | None
    compiling: str | None
    state: str
    detail: str | None
    counts: dict[str, Count]
    finals: dict[str, tuple[Count, str]]
    sizes: dict[str, Count]
    quiet: dict[str, Count]
    off: list[str]
    unplaced: list[str]
    threads: list[str]
    stack: list[str] | None
    place: str | None


class Gone(TypedDict):
    """The exit status of a process that has ended, as its launcher saw it; negative: the signal."""

    status: int


class HealthNumbers(TypedDict, total=False):
    """The health of the checks of a process; times are in seconds. The last two are those of background mode."""

    self_test: str
    self_test_age: float | None
    watcher_age: float
    store_failures: int
    layers_off: list[str]
    not_numbered: int
    published_age: float | None


class PreflightRecord(TypedDict, total=False):
    """How a process is set up, by what it is in words, and digests of its source files, by their paths."""

    facts: dict[str, str]
    sources: dict[str, str]


class EventRecord(Place, total=False):
    """A program called from a line; ``aside`` if in another thread than the main one."""

    group: str
    digest: str
    aside: bool


class HistoryRecord(TypedDict):
    """The last calls of a process: a table of events, and places in it.

    ``given`` has a digest of what calls are given, by their group and number.
    """

    end: State
    members: dict[str, list[Count]]
    groups: dict[str, tuple[Count, Hash]]
    table: list[EventRecord]
    calls: str
    given: list[tuple[str, Count, Hash]]
    quiet: dict[str, list[QuietRecord]]


class Question(TypedDict, total=False):
    """What one process asks another; all but the stack in background mode."""

    number: Count
    history: Count
    program: str
    texts: str
    given: tuple[str, Count]
    stack: bool


class GivenRecord(TypedDict, total=False):
    """What a call is given as one argument: its tag, the value in words, and what made an array of it, if known."""

    tag: str
    words: str
    maker: str | None


class Answer(TypedDict, total=False):
    """The answer; it is empty of a process that is no longer checked."""

    number: Count
    history: HistoryRecord
    program: ProgramRecord
    texts: dict[str, str]
    given: dict[str, GivenRecord]
    where: State


class ModuleSide(TypedDict):
    """The line of a lowered module, on the processes that have it, and the line of the source that it comes from."""

    processes: list[Count]
    text: str
    source: str | None


class ModuleDifference(TypedDict):
    """The first line at which the lowered modules of processes differ."""

    line: Count
    sides: list[ModuleSide]


class Step(TypedDict):
    """A place that leads to a finding of the linter."""

    place: str
    message: str


class Finding(TypedDict):
    """A finding of the linter on a line of a report."""

    code: str
    message: str
    place: str
    related: list[Step]


class Word(TypedDict, total=False):
    """What a process is woken with: the number of one that is being aborted, if that is why."""

    abort: Count


class Aside(TypedDict, total=False):
    """Why the checks are over; ``by_program`` if the program ended them, by ``disable()`` or an interrupt."""

    reason: str
    by_program: bool


class Nothing(TypedDict, total=False):
    """A record whose presence says it all."""


# msgspec looks at a type when it meets it for the first time. If two threads do that at once, one of them reads what
# the other has not finished, and the process ends by SIGSEGV (0.22; eight threads and records of forty fields show it).
_FIRST_LOOK = threading.RLock()


_built: Callable[[Any], msgspec.json.Decoder[Any]] = cache(msgspec.json.Decoder)


def read_record(
    text: object, kind: type[T], key: str, where: str = "in the job's key-value store", most: int = MAX_VALUE
) -> T:
    """Decode a value; raises :class:`UnknownRecordError` for anything else than a record of this kind."""
    if isinstance(text, str | bytes) and len(text) <= most:
        try:
            known: Any = kind  # types can be hashed, which their type does not say
            with _FIRST_LOOK:
                decoder = _built(known)
            found: T = decoder.decode(text)
            return found
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
            words = str(error).partition("\n")[0][:200]
    else:
        words = f"a value of {len(text)} characters" if isinstance(text, str | bytes) else type(text).__name__
    raise UnknownRecordError(f"The record {key} {where} cannot be read ({words}).")
