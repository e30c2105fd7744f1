"""What a process publishes of its position from time to time: in which form, where, and when.

The members of a group are cut into sections. The first of each section compares the section with its own calls, and
the first of all compares those: so no process reads more than :data:`SECTION` samples, however large the job.

Most of the cost of a publication is waking the threads of the coordination service: many at a time cost less than half
of what they cost one by one. So processes publish together, in slots of the wall clock. If clocks differ or jump,
publications come at other times and cost more; nothing else changes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from spmdlint.runtime_checks.records import Place, SampleRecord, UnknownRecordError, read_record

SECTION = 1024
SHORTEST = 0.25  # seconds between two publications, in a small job
PROCESSES_A_SECOND = 256  # publications per second for the coordination service
SLOT = 1.0  # seconds; the processes that are due in this time publish together
LOOKS_AN_INTERVAL = 8
LOOK_AFTER = 0.2  # fraction of the look interval after the start of a slot, when its publications have arrived
EARLY = 0.25  # fraction of an interval: a publication this early counts for the slot


@dataclass(frozen=True, slots=True)
class Sample:
    """A process's count in one group, and the digests of its calls there and of what they are given.

    ``last`` is whether its last call was in this group; ``serial`` counts the calls of all groups. ``compiling`` is the
    program that the process has been compiling for some time.
    """

    count: int
    prefix: int
    serial: int = 0
    state: str = "running"
    last: bool = False
    function: str | None = None
    filename: str | None = None
    line: int | None = None
    compiling: str | None = None
    given: int = 0

    def call(self) -> Place:
        """The last call of the process."""
        return {"function": self.function, "filename": self.filename, "line": self.line}

    def data(self) -> SampleRecord:
        """The sample in the form in which it is published."""
        place = (self.function, self.filename, self.line, self.compiling)
        digests = f"{self.prefix:x} {self.given:x}"
        return {"c": self.count, "x": digests, "n": self.serial, "s": self.state, "l": self.last, "p": place}


def read_sample(text: str, key: str) -> Sample:
    """A published sample; raises :class:`UnknownRecordError` if the text is not one."""
    data = read_record(text, SampleRecord, key)
    try:
        prefix, given = (int(digest, 16) for digest in data["x"].split())
    except ValueError as error:
        raise UnknownRecordError(f"The record {key} in the job's key-value store holds no digests.") from error
    function, filename, line, compiling = data["p"]
    return Sample(data["c"], prefix, data["n"], data["s"], data["l"], function, filename, line, compiling, given)


def publishes_in(group: str, members: Sequence[int], process: int) -> list[str]:
    """The folders in which a member publishes its samples."""
    place = list(members).index(process)
    folders = [f"{group}/{place // SECTION}"]
    if len(members) > SECTION and place % SECTION == 0:
        folders.append(f"{group}/top")
    return folders


def leads(group: str, members: Sequence[int], process: int) -> list[str]:
    """The folders whose samples a member compares with its own calls."""
    place = list(members).index(process)
    folders = [f"{group}/{place // SECTION}"] if place % SECTION == 0 else []
    if len(members) > SECTION and place == 0:
        folders.append(f"{group}/top")
    return folders


def members_in(folder: str, members: Sequence[int]) -> Sequence[int]:
    """The members of a group that publish in the folder of a section."""
    section = folder.rpartition("/")[2]
    return members[int(section) * SECTION :][:SECTION] if section.isdigit() else ()


class Cadence:
    """The schedule of one process: it publishes at ``publish_at`` and looks at ``look_at`` of the monotonic clock."""

    def __init__(self, me: int, count: int) -> None:
        self.interval = max(SHORTEST, count / PROCESSES_A_SECOND)
        slots = max(1, round(self.interval / SLOT))
        self._phase = self.interval * (me % slots) / slots
        between = min(SLOT, count / PROCESSES_A_SECOND / 2)
        self._between_looks = max(SHORTEST, between, self.interval / LOOKS_AN_INTERVAL)
        self.publish_at = self.look_at = 0.0

    def published(self, keys: int) -> None:
        """Keys were published now: the next publication is in the next slot, and later for each further key."""
        wait = _until(self._phase, self.interval)
        if wait < EARLY * self.interval:
            wait += self.interval
        self.publish_at = time.monotonic() + wait + max(0, keys - 1) * self.interval

    def looked(self) -> None:
        """The publications of the others were read now."""
        wait = _until(LOOK_AFTER * self._between_looks, self._between_looks)
        if wait < EARLY * self._between_looks:
            wait += self._between_looks
        self.look_at = time.monotonic() + wait


def _until(phase: float, period: float) -> float:
    """Seconds until the wall clock reaches this phase of a period: less than a period, even if the clock jumps."""
    return (phase - time.time()) % period
