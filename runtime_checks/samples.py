"""The position of a process, as it publishes it from time to time, and which processes read it.

The members of a group are cut into sections. The first of each section compares the section with its own calls, and
the first of all compares those: so no process reads more than :data:`SECTION` samples, however large the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spmdlint.runtime_checks.records import SampleRecord, UnknownRecordError, read_record

SECTION = 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """A process's count and prefix in one group.

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

    def data(self) -> dict[str, Any]:
        """The sample in the form in which it is published."""
        place = [self.function, self.filename, self.line, self.compiling]
        return {"c": self.count, "x": f"{self.prefix:x}", "n": self.serial, "s": self.state, "l": self.last, "p": place}


def read_sample(text: str, key: str) -> Sample:
    """A published sample; raises :class:`UnknownRecordError` if the text is not one."""
    data = read_record(text, SampleRecord, key)
    try:
        prefix = int(data["x"], 16)
    except ValueError as error:
        raise UnknownRecordError(f"The record {key} in the job's key-value store holds no prefix.") from error
    function, filename, line, compiling = data["p"]
    return Sample(data["c"], prefix, data["n"], data["s"], data["l"], function, filename, line, compiling)


def publishes_in(group: str, members: Sequence[int], process: int) -> list[str]:
    """The folders in which a member publishes its samples."""
    place = list(members).index(process)
    folders = [f"now/{group}/{place // SECTION}"]
    if len(members) > SECTION and place % SECTION == 0:
        folders.append(f"now/{group}/top")
    return folders


def leads(group: str, members: Sequence[int], process: int) -> list[str]:
    """The folders whose samples a member compares with its own calls."""
    place = list(members).index(process)
    folders = [f"now/{group}/{place // SECTION}"] if place % SECTION == 0 else []
    if len(members) > SECTION and place == 0:
        folders.append(f"now/{group}/top")
    return folders


def members_in(folder: str, members: Sequence[int]) -> Sequence[int]:
    """The members of a group that publish in the folder of a section."""
    section = folder.rpartition("/")[2]
    return members[int(section) * SECTION :][:SECTION] if section.isdigit() else ()
