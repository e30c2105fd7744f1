"""The recordings of a job, read after it: the calls of each process, and the first call at which they differ.

A ring buffer that has wrapped around has lost its beginning; the rest is aligned by the numbers of the calls, never by
guessing. Each row carries a digest of all calls before it, so that a difference in the lost part is still noticed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spmdlint.runtime_checks.agreement.history import History, groups_of, judge, read_history
from spmdlint.runtime_checks.agreement.judging import Evidence
from spmdlint.runtime_checks.options import DIVERGED_STATUS
from spmdlint.runtime_checks.recording.reading import Row, damage_sentences, damaged_in, read, read_lines, recorded_in
from spmdlint.runtime_checks.recording.writing import jobs_in
from spmdlint.runtime_checks.records import Build, ProgramRecord, State
from spmdlint.runtime_checks.reporting.report import Report, as_text
from spmdlint.runtime_checks.reporting.sentences import alike, name_processes, place, sides

INCOMPLETE_STATUS = 2


@dataclass(frozen=True, slots=True)
class Recorded:
    """The rows and programs of each process, by its number.

    ``omitted`` is what is not recorded, in words. ``ends`` is how the programs ended, if that is recorded.
    ``damaged`` is what is wrong with the files of a process, whether something can be read or not. ``build`` is what
    the first process that says so ran with. ``folder`` is where they are, and ``earlier`` those of other jobs there.
    """

    rows: Mapping[int, list[Row]]
    programs: Mapping[int, Mapping[str, ProgramRecord]]
    omitted: Mapping[int, list[str]] = field(default_factory=dict)
    ends: Mapping[int, State] = field(default_factory=dict)
    damaged: Mapping[int, Sequence[str]] = field(default_factory=dict)
    build: Build = field(default_factory=lambda: Build())
    folder: Path = Path()
    earlier: Sequence[Path] = ()

    def nothing_in(self, folder: Path) -> str:
        """The sentence if there is no call in any recording."""
        if not self.damaged:
            return f"There are no recordings of calls in {folder}; run with --ledger, or set SPMDLINT_LEDGER."
        return " ".join([f"There are no calls that can be read in {folder}.", *damage_sentences(self.damaged)])

    def histories(self) -> dict[int, History]:
        """The histories for the verdict; one without an end may have been killed before its next call."""
        return {process: read_history(found, self.ends.get(process, State())) for process, found in self.rows.items()}


@dataclass(slots=True)
class Comparison:
    """``report`` if a difference is seen; ``earlier`` if there is one in the lost part; ``notes`` in any case.

    ``absent``: the processes that made calls with others, and of which there is no recording. ``behind``: by the set of
    processes, the fewest calls that one of them made, if others made more. ``open`` are sentences on calls that may
    differ, though no recorded field proves it.
    """

    report: Report | None = None
    earlier: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    absent: set[int] = field(default_factory=set)
    behind: dict[tuple[int, ...], int] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The exit status: an incomplete comparison without a difference proves nothing."""
        return DIVERGED_STATUS if self.differs else 0 if self.agrees else INCOMPLETE_STATUS

    @property
    def differs(self) -> bool:
        return self.report is not None or bool(self.earlier)

    @property
    def agrees(self) -> bool:
        """True if all made the same calls from the same lines, as far as they are recorded."""
        return not (self.differs or self.absent or self.behind or self.open)

    def compare_lost(self, named: str, rows: Mapping[int, Mapping[int, Row]]) -> None:
        """Note where the calls that all still have begin, and whether the calls before were the same."""
        rows = {process: known for process, known in rows.items() if known}
        if len(rows) < 2:
            return
        shared = set.intersection(*(set(known) for known in rows.values()))
        if not shared:
            spans = "; ".join(f"process {process} {min(known)} to {max(known)}" for process, known in rows.items())
            self.notes.append(f"No call of {named} is recorded by all of them: {spans}.")
            return
        first = min(shared)
        if first > 1:
            self.notes.append(f"The calls of {named} before number {first} are no longer recorded by all of them.")
        before = alike({process: known[first].prefix for process, known in rows.items()})
        if len({known[first].digest for known in rows.values()}) == 1 and len(before) > 1:
            who = " and ".join(name_processes(processes) for processes in before.values())
            self.earlier.append(
                f"{who} made different calls before number {first} of {named}, the first that all of them still have; "
                "the point of divergence is no longer recorded. Background mode reports it while the job runs."
            )

    def compare_places(
        self,
        named: str,
        rows: Mapping[int, Mapping[int, Row]],
        programs: Mapping[int, Mapping[str, ProgramRecord]],
    ) -> None:
        """Note the first call of which the recordings prove no difference, and which may differ all the same."""
        for index in sorted({index for known in rows.values() for index in known}):
            there = {process: known[index] for process, known in rows.items() if index in known}
            places = {process: at for process, row in there.items() if (at := place(row.place()))}
            if len(set(places.values())) > 1:
                self.open.append(
                    f"Call {index} of {named} is made from different lines: {sides(places)}. What is "
                    "recorded of it is the same; where its arguments come from is not compared after a job."
                )
                return
            unknown = [process for process, row in there.items() if row.digest not in programs[process]]
            if unknown and len({row.digest for row in there.values()}) > 1:
                what = "but its arguments and program are not recorded"
                self.open.append(f"Call {index} of {named} is not the same everywhere, {what}.")
                return


def load(folder: Path) -> Recorded:
    """The recordings of the last job in a folder, or in the folder itself; empty if none can be read."""
    jobs = jobs_in(folder)
    inside = jobs.pop(0) if jobs else folder
    damaged = damaged_in(inside)
    files = {process: inside / f"{process}.ledger" for process in recorded_in(inside)}
    rows = {process: found for process, path in files.items() if (found := read(path))}
    lines = {process: read_lines(files[process]) for process in rows}
    omitted = {process: told.omitted for process, told in lines.items() if told.omitted}
    # Where lines are lost, calls may be: such a process has not ended with fewer calls than others.
    ends = {process: told.end for process, told in lines.items() if process not in damaged and told.end}
    programs = {process: told.programs for process, told in lines.items()}
    build = next((told.build for _, told in sorted(lines.items()) if told.build), Build())
    return Recorded(rows, programs, omitted, ends, damaged, build, inside, jobs)


def earlier_jobs(recorded: Recorded) -> list[str]:
    """The sentence on other jobs that are recorded there, if there are any."""
    return [f"Earlier jobs are recorded in {', '.join(map(str, recorded.earlier))}."] if recorded.earlier else []


def not_recorded(omitted: Mapping[int, list[str]]) -> list[str]:
    """Sentences on recordings that were full."""
    return [
        f"The recording of process {process} was full: {' and '.join(words)} are not in it."
        for process, words in omitted.items()
        if words
    ]


def compare(recorded: Recorded) -> Comparison:
    histories = recorded.histories()
    programs = recorded.programs
    found = Comparison(judge(histories, Evidence(programs)))
    if found.report is not None:
        found.report.add_build(recorded.build)
    for key, group, inside in sorted(groups_of(histories), key=lambda one: one[1]):
        found.absent.update(set(group) - set(histories))
        absent = set(group) - set(histories) - set(recorded.damaged)
        if absent:
            found.notes.append(f"There is no recording of {name_processes(absent)}.")
        rows = {process: history.rows.get(key, {}) for process, history in inside.items()}
        named = name_processes(group)
        found.compare_lost(named, rows)
        counts = {process: history.counts.get(key, 0) for process, history in inside.items()}
        if len(set(counts.values())) > 1:  # if nothing differs, the one with fewer calls is the one to look at
            found.behind[group] = min(counts.values())
            told = sorted(alike(counts).items())
            words = "; ".join(f"{name_processes(processes)} after call {count}" for count, processes in told)
            found.notes.append(f"The recordings of {named} end at different calls: {words}.")
        if not found.differs:
            found.compare_places(named, rows, programs)
    found.open += damage_sentences(recorded.damaged)
    found.notes += found.open
    found.notes += not_recorded(recorded.omitted)
    found.notes = list(dict.fromkeys(found.notes))
    return found


LAST = 5


def explain(folder: Path) -> int:
    """Print the verdict over all recordings in a folder, or each process's last calls; returns the exit status."""
    recorded = load(folder)
    if not recorded.rows:
        sys.stderr.write(f"spmdlint: {recorded.nothing_in(folder)}\n")
        return 2
    found = compare(recorded)
    if found.report is not None:
        sys.stdout.write(as_text(found.report))
    for sentence in (*found.earlier, *found.notes, *earlier_jobs(recorded)):
        sys.stdout.write(f"{sentence}\n")
    if found.differs:
        return found.status
    if len(recorded.rows) > 1 and not found.agrees:
        sys.stdout.write(f"This proves neither that {name_processes(recorded.rows)} differ nor that they agree.\n")
    elif len(recorded.rows) > 1:
        sys.stdout.write(f"The last calls of {name_processes(recorded.rows)} agree as far as they are recorded.\n")
    for process, rows in recorded.rows.items():
        sys.stdout.write(f"\n  Process {process}, oldest first:\n")
        for row in rows[-LAST:]:
            at = f"{row.filename}:{row.line}" if row.filename else "an unknown line"
            sys.stdout.write(f"    call {row.index} of {name_processes(row.members)}: {row.function}  at {at}\n")
    return found.status
