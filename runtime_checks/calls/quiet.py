"""The calls of programs that span processes and have no collective between them.

They are not compared: one process may make them alone. But if the placement of an argument or an axis differs, one
process has nothing to exchange in the very call in which the others wait for it. So the last of these calls are kept,
each with its place in the sequence of calls that are compared.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site, site_data
from spmdlint.runtime_checks.calls.ledger import Group
from spmdlint.runtime_checks.calls.provenance import Provenance
from spmdlint.runtime_checks.records import Argument, ProgramRecord, QuietRecord

KEPT = 64  # programs and lines for each set of processes
TOLD = 32  # of these, how many another process is told of
ARGUMENTS = 4000  # of all that are told
DEVICES = 256  # of a program; more are not told


@dataclass(slots=True)
class QuietCall:
    """A program called from a line, last after call ``after`` of its set of processes, and since then so many times.

    ``times`` is 0 if only the first call was seen, as on the fast path.
    """

    program: Program
    site: Site | None
    arguments: Sequence[Argument]
    static: Mapping[str, str]
    after: int
    times: int


class QuietCalls:
    """The last such calls of this process. Threads of the program write, and those of the checks read."""

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance
        self._groups: dict[str, OrderedDict[tuple[str, Site | None], QuietCall]] = {}
        self._lock = threading.Lock()

    def knows(self, group: Group, call: Call) -> bool:
        """Whether this program was called from this line before."""
        with self._lock:
            return (call.program.digest, call.site) in self._groups.get(group.key, ())

    def note(self, group: Group, call: Call, after: int, *, each: bool) -> None:
        """Keep a call that was made after so many calls that are compared; ``each`` is whether every one is noted."""
        key = (call.program.digest, call.site)
        with self._lock:
            calls = self._groups.setdefault(group.key, OrderedDict())
            found = calls.get(key)
            if found is None:
                found = calls[key] = self._described(call, after)
                while len(calls) > KEPT:
                    calls.popitem(last=False)
            if not each:
                return
            calls.move_to_end(key)
            found.times = found.times + 1 if found.after == after else 1
            found.after = after

    def _described(self, call: Call, after: int) -> QuietCall:
        return QuietCall(call.program, call.site, call.explained(self._provenance), dict(call.static), after, 0)

    def recent(self, groups: Sequence[Group]) -> dict[str, list[QuietRecord]]:
        """All about the calls since the last but one call that is compared."""
        return self._records((group, self._last(group, group.count - 1)) for group in groups)

    def all(self, groups: Sequence[Group]) -> dict[str, list[QuietRecord]]:
        """All about the calls that are kept."""
        return self._records((group, self._last(group, 0)) for group in groups)

    def _records(self, calls: Iterable[tuple[Group, Sequence[QuietCall]]]) -> dict[str, list[QuietRecord]]:
        arguments = ARGUMENTS
        told: dict[str, list[QuietRecord]] = {}
        for group, last in calls:
            for one in reversed(last):
                record = _record(one)
                arguments -= len(one.arguments)
                if arguments < 0:
                    del record["arguments"]  # unknown, as if there were none they would differ
                told.setdefault(group.key, []).insert(0, record)
        return told

    def _last(self, group: Group, after: int) -> list[QuietCall]:
        with self._lock:
            return [one for one in self._groups.get(group.key, {}).values() if one.after >= after][-TOLD:]


def _record(one: QuietCall) -> QuietRecord:
    known: ProgramRecord = {
        **one.program.decisive(),
        "arguments": list(one.arguments),
        "static": dict(one.static),
    }
    if len(one.program.devices) > DEVICES:
        known["devices"] = None  # unknown: what is told stays short in a job of any size
    place = site_data(one.site, one.program.function)
    return {**QuietRecord(digest=one.program.digest, after=one.after, times=one.times), **place, **known}
