"""Comparing: the first process of a group compares the samples of the others with its own calls.

A sample that does not match is only the reason to ask for the last calls of both; these are the proof.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from spmdlint.runtime_checks.agreement.history import ENDED, History, judge
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.background.lateness import Lateness
from spmdlint.runtime_checks.background.publishing import PROCESSES_A_SECOND, Sample
from spmdlint.runtime_checks.calls.ledger import Group
from spmdlint.runtime_checks.recording.journal import WINDOW
from spmdlint.runtime_checks.records import State, read_record
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import Report
from spmdlint.runtime_checks.reporting.sentences import name_processes
from spmdlint.runtime_checks.transport.bounded import BoundedLock

if TYPE_CHECKING:
    from spmdlint.runtime_checks.background.member import Background

AFTER = 1.5  # seconds without a call in this process, after which it asks how others ended
SELDOM = 60.0  # at most this many seconds between two questions
USUAL = 256  # calls that are requested, plus twice the distance between the first and the last process
ASKED = 6  # processes whose calls are requested; in a smaller group, all
SMALL = 64  # processes in a job in which each reports on all on demand, and all are asked at the end
STUCK = 1.5  # seconds, or twice the interval, without a call although counts differ
STUCK_AFTER_ABORT = 0.5  # the same once a process is being aborted
GRACE, ROUNDS = 0.3, 4  # seconds for the others of a small group to arrive after two were found to differ
AGAIN = 2.0  # seconds until an inquiry that proved nothing is repeated, then doubled
# Why a process is not compared any more, though its digests differ.
_EXCUSES = {
    "given": "What calls of process {process} are given is no longer compared within {named} while the job runs: "
    "processes know other parts of it, and what all know does not differ.",
    "calls": "Process {process} is no longer compared within {named} while the job runs: the digests of its calls "
    "differ from those of process {me}, but no field known on both sides does.",
    "threads": "Process {process} is no longer compared within {named} while the job runs: threads make calls on "
    "different devices, which come in another order on each process.",
}


class _Watched:
    """The samples seen of one group; ``absent`` are members that ended without a call of it, and published nothing.

    ``differ`` are those that differ, in their "calls" or only in what these are "given", and ``excused`` those that are
    not compared any more, each with that in which they are not.
    """

    def __init__(self) -> None:
        self.samples: dict[int, Sample] = {}
        self.moved: dict[int, float] = {}
        self.ahead: dict[int, Sample] = {}
        self.differ: dict[int, str] = {}
        self.absent: dict[int, Sample] = {}
        self.excused: set[tuple[int, str]] = set()
        self.published: dict[int, tuple[str, Sample]] = {}
        self.asked_after = -1  # so many calls of this process
        self.ask_at = self.ask_pause = 0.0
        self.looked_into: object = None
        self.again = 0.0
        self.pause = AGAIN


class Leader:
    """The groups that this process compares. Used by the watcher thread, and by the main thread at the end."""

    def __init__(self, parts: Parts, background: Background) -> None:
        self._job, self._own, self._others = parts.job, parts.own, parts.others
        self._checks, self._ending = parts.checks, parts.ending
        self._background = background
        self._watched: defaultdict[str, _Watched] = defaultdict(_Watched)
        self._lock = BoundedLock()
        self._proclaimed = False
        self.lateness = Lateness(self._job, parts.others)

    def look(self, now: float) -> None:
        """Compare the published samples in all groups that this process leads."""
        for group in self._own.ledger.groups():
            if self._leads(group, now) and self._look_at(group, now):
                return

    def _leads(self, group: Group, now: float) -> bool:
        """Whether all members before this one are gone, or have ended without a call of the group."""
        if self._job.me not in group.processes:
            return False
        before = group.processes[: group.processes.index(self._job.me)]
        absent = self._absent(group, before, now) if before else {}
        return all(self._job.gone(process) is not None or process in absent for process in before)

    def _absent(self, group: Group, processes: Iterable[int], now: float) -> Mapping[int, Sample]:
        """Those that have ended without a call of the group; asked less and less often, while no calls are made."""
        watched, made = self._watched[group.key], self._own.journal.made
        if made != watched.asked_after:
            watched.asked_after, watched.ask_pause = made, max(AFTER, self._job.count / PROCESSES_A_SECOND)
            watched.ask_at = now + watched.ask_pause
        elif now >= watched.ask_at:
            watched.ask_pause = min(SELDOM, 2 * watched.ask_pause)
            watched.ask_at = now + watched.ask_pause
            for process, ended in self._others.ended_among(set(processes) - set(watched.absent)).items():
                if not ended["counts"].get(group.key):
                    watched.absent[process] = Sample(0, 0, state=str(ended.get("state")))
        return watched.absent

    def _look_at(self, group: Group, now: float) -> bool:
        """Compare the samples of a group; returns whether they have led to a verdict."""
        watched = self._watched[group.key]
        changed = self._read(group, watched, now)
        samples = watched.samples
        most = max(sample.count for sample in samples.values())
        to_check = {process for process in {*changed, *watched.ahead, *watched.differ} if process in samples}
        differ = watched.differ = {p: what for p in to_check if (what := self._differs_in(group, p, watched))}
        gone = {process for process in samples if self._job.gone(process) is not None}
        short = gone | {p for p, sample in samples.items() if sample.state in ENDED and sample.count < most}
        uneven = len({sample.count for sample in samples.values()}) > 1
        patience = STUCK_AFTER_ABORT if self._background.hurries else max(STUCK, 2 * self._background.cadence.interval)
        still = now - max(watched.moved.values()) > patience
        if differ or short or (uneven and still):
            seen = (frozenset(differ), frozenset(short), *sorted((p, s.count) for p, s in samples.items()))
            if seen != watched.looked_into or ((differ or short) and now > watched.again):
                watched.pause = AGAIN if seen != watched.looked_into else watched.pause * 2
                watched.looked_into, watched.again = seen, now + watched.pause
                with self._lock:  # also until it is told: the end of the program waits for that
                    report = self._inquire(group, {*differ, *short}, watched)
                    if report is not None:
                        self._proclaimed = True
                        self._ending.proclaim(report)
                        return True
        self.lateness.look(group, samples, watched.moved, now)
        return False

    def _read(self, group: Group, watched: _Watched, now: float) -> list[int]:
        """Read the samples of a group; returns the processes that have published since the last look."""
        found = self._published(group)
        found[self._job.me] = self._background.own_sample(group)
        silent = (process for process in group.processes if process not in found)
        for process, sample in self._absent(group, silent, now).items():
            found.setdefault(process, sample)
        changed = []
        for process, sample in found.items():
            before = watched.samples.get(process)
            if before is sample:
                continue
            changed.append(process)
            if before is None or (before.serial, before.state) != (sample.serial, sample.state):
                watched.moved[process] = now
        watched.samples = found
        return changed

    def _differs_in(self, group: Group, process: int, watched: _Watched) -> str:
        """In what a process differs as far as it is compared, "" if in nothing."""
        if process == self._job.me or group.trail is None:
            return ""
        # A process that is ahead is compared once this process has made the same number of calls.
        sample = watched.ahead.get(process) or watched.samples[process]
        if sample.count > group.count:
            watched.ahead[process] = sample
            return ""
        watched.ahead.pop(process, None)
        calls, values = group.trail.at(sample.count) or (sample.prefix, sample.given)
        what = "calls" if calls != sample.prefix else "given" if values != sample.given else ""
        return what if (process, what) not in watched.excused else ""

    def _inquire(self, group: Group, suspects: Iterable[int], watched: _Watched) -> Report | None:
        """Request the calls of processes that seem to differ, and of some others; returns the verdict, if any."""
        suspected, samples = sorted(suspects)[:ASKED], watched.samples
        others = sorted(samples, key=lambda process: (-samples[process].count, process))
        others = [process for process in others if process not in suspected][: max(2, ASKED - len(suspected))]
        wanted = dict.fromkeys([*suspected, *others, self._job.me])
        spread = max(sample.count for sample in samples.values()) - min(sample.count for sample in samples.values())
        all_calls = suspected or len(group.threads) > 1  # calls of threads are told apart from the first on
        histories = self._others.histories(wanted, WINDOW if all_calls else min(WINDOW, USUAL + 2 * spread))
        report = judge(histories, self._others)
        if report is not None and len(group.processes) <= ASKED:
            report = self._with_all(group, histories, report)
        if report is None:
            # Both are known and nothing is proven: an unknown field agrees with anything, but changes the hash.
            for process in suspected:
                what = watched.differ.get(process)
                if what and process in histories and histories[process].state not in ENDED:
                    watched.excused |= {(process, "given"), (process, what)}
                    threaded = any(history.is_threaded(group.key) for history in histories.values())
                    why = _EXCUSES["threads" if threaded and what == "calls" else what]
                    named = name_processes(group.processes)
                    self._checks.note(why.format(process=process, named=named, me=self._job.me))
        return report

    def _with_all(self, group: Group, histories: dict[int, History], report: Report) -> Report:
        """The verdict, including the processes of a small group that were about to make the call or publish it."""
        for _ in range(ROUNDS):
            missing = [process for process in group.processes if str(process) not in report.processes]
            if not missing:
                break
            time.sleep(GRACE)
            histories.update(self._others.histories(missing, WINDOW))
            report = judge(histories, self._others) or report
        return report

    def last_look(self, ended: Mapping[int, State]) -> Report | None:
        """When all have ended: compare the final counts and prefixes of all groups, whichever process leads them."""
        # A process that exited without a message published no final counts either: its recording has them.
        died = [p for p, told in ended.items() if told.get("state") == "died" or "finals" not in told]
        uneven = _uneven(ended.values())
        if not uneven and not died:
            return None
        if len(ended) <= SMALL:
            # All are asked: a group that differs need not be one of this process, and a cycle has several.
            return self.judge(ended)
        # One process for each way in which a group has ended.
        finals = {process: told.get("finals") or {} for process, told in ended.items()}
        ways = {(key, one.get(key)): p for key in sorted(uneven) for p, one in finals.items() if key in one}
        return self.judge([self._job.me, *died[:ASKED], *list(ways.values())[:ASKED]])

    def report_on_demand(self) -> None:
        """Write where all processes are; in a large job only the first process does, as the signal may go to all."""
        job, own = self._job, self._own
        self._own.journal.drain()  # calls that are not numbered yet would count as not made
        lines: list[str] = []
        tells_of_all = job.me == 0 or job.count <= SMALL
        for group in own.ledger.groups() if tells_of_all else ():
            samples = {**self._published(group), job.me: self._background.own_sample(group)}
            lines.append("spmdlint: " + self.lateness.words(group, samples, None))
        where = own.where()
        lines.append(f"spmdlint: process {job.me} is at {where['place'] or 'an unknown line'}")
        lines += [f"      {frame}" for frame in where["stack"] or ()]
        write_error("\n".join(lines) + "\n")

    def _published(self, group: Group) -> dict[int, Sample]:
        """The samples of a group: the same objects as in the last look if nothing new was published."""
        known = self._watched[group.key].published
        for process, text in self._job.samples(group.key).items():
            if process not in known or known[process][0] != text:
                known[process] = (text, read_record(text, Sample, f"{group.key}/{process}"))
        return {process: sample for process, (_, sample) in known.items()}

    def judge(self, processes: Iterable[int]) -> Report | None:
        """The verdict from the calls of processes; of those killed under a launcher, from their recordings."""
        with self._lock:
            if self._proclaimed:
                return None  # the others, who act on it, might not answer any more
            self._own.journal.drain()
            return judge(self._others.histories(dict.fromkeys(processes), WINDOW), self._others)


def _uneven(ended: Iterable[State]) -> set[str]:
    """The groups in which processes ended after different calls; who made none there has not said so."""
    finals: dict[str, list[tuple[int, str]]] = {}
    sizes: dict[str, int] = {}
    for told in ended:
        sizes.update(told.get("sizes") or {})
        for key, final in (told.get("finals") or {}).items():
            finals.setdefault(key, []).append(final)
    none = (0, "0 0")
    return {
        key for key, found in finals.items() if len({*found, *([none] if len(found) < sizes.get(key, 0) else [])}) > 1
    }
