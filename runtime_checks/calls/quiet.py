"""The calls of programs that span processes and have no collective between them.

They are not compared: one process may make them alone. But if the placement of an argument or an axis differs, one
process has nothing to exchange in the very call in which the others wait for it. So the last of these calls are kept,
each with its place in the sequence of calls that are compared.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.frames import Site, site_data
from spmdlint.runtime_checks.calls.ledger import Group
from spmdlint.runtime_checks.calls.provenance import Provenance
from spmdlint.runtime_checks.calls.recent import Recent
from spmdlint.runtime_checks.records import ProgramRecord, QuietRecord

KEPT = 64  # programs and lines for each set of processes
TOLD = 32  # of these, how many another process is told of
ARGUMENTS = 4000  # of all that are told
DEVICES = 256  # of a program; more are not told


class QuietCalls:
    """The last such calls of this process, by program and line. Threads of the program write, those of the checks read.

    ``times`` of a call is 0 if only the first one was seen, as on the fast path.
    """

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance
        self._groups: dict[str, Recent[tuple[str, Site | None], QuietRecord]] = {}
        self._lock = threading.Lock()

    def note(self, group: Group, call: Call, after: int, *, each: bool) -> None:
        """Keep a call that was made after so many calls that are compared; ``each`` is whether every one is noted."""
        key = (call.program.digest, call.site)
        with self._lock:
            calls = self._groups.setdefault(group.key, Recent(KEPT))
            if key not in calls:
                calls[key] = self._record(call, after)
            if each:
                found = calls[key]
                found["times"] = found["times"] + 1 if found["after"] == after else 1
                found["after"] = after
                calls.move_to_end(key)

    def _record(self, call: Call, after: int) -> QuietRecord:
        program = call.program
        known: ProgramRecord = program.decisive()
        if len(program.devices) > DEVICES:
            known["devices"] = None  # unknown: what is told stays short in a job of any size
        explained: ProgramRecord = {"arguments": call.explained(self._provenance), "static": dict(call.static)}
        about = QuietRecord(digest=program.digest, after=after, times=0)
        return {**about, **site_data(call.site, program.function), **known, **explained}

    def told(self, groups: Iterable[Group], *, recent: bool = False) -> dict[str, list[QuietRecord]]:
        """All about the calls that are kept, or about those since the last but one call that is compared."""
        left = ARGUMENTS
        told: dict[str, list[QuietRecord]] = {}
        for group in groups:
            after = group.count - 1 if recent else 0
            with self._lock:
                kept = [one.copy() for one in self._groups.get(group.key, {}).values() if one["after"] >= after]
            for one in reversed(kept[-TOLD:]):
                left -= len(one["arguments"] or ())
                if left < 0:
                    del one["arguments"]  # unknown, as if there were none they would differ
                told.setdefault(group.key, []).insert(0, one)
        return told
