"""A hang, explained while it lasts: which processes are late, by how many calls, where; or that all agree.

Late is not a verdict: compiles and restores of half an hour are real. So the report is a few lines on the standard
error of one process, at longer and longer intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.background.publishing import Sample
from spmdlint.runtime_checks.calls.ledger import Group
from spmdlint.runtime_checks.recording.this_process import ThisProcess
from spmdlint.runtime_checks.records import Where
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.sentences import name_processes
from spmdlint.runtime_checks.transport.job import Job

AGREEING = 5  # factor on the delay before it is reported that all agree
SHOWN = 3  # late processes whose stacks are shown
FRAMES = 8


class Lateness:
    """The reports on each group, and when the next one is due."""

    def __init__(self, job: Job, own: ThisProcess, others: OtherProcesses) -> None:
        self._job = job
        self._own = own
        self._others = others
        self._next: dict[str, float] = {}
        self._stuck_at: dict[str, object] = {}

    def look(self, group: Group, samples: Mapping[int, Sample], moved: Mapping[int, float], now: float) -> None:
        """Report a hang, if no process has made a call for some time and it was not reported yet."""
        still = now - max(moved[process] for process in samples)
        if still < self._job.options.late_after:
            return
        running = {process: sample for process, sample in samples.items() if sample.state == "running"}
        most = max(sample.count for sample in samples.values())
        waits = any(sample.last and sample.count == most for sample in samples.values())
        behind = {process: sample for process, sample in running.items() if sample.count < most}
        if not waits or most == 0 or not running:
            return
        place = tuple(sorted((process, sample.serial) for process, sample in samples.items()))
        alone = len(samples) < 2  # all others have made no call
        first = self._job.options.late_after * (1 if behind or alone else AGREEING)
        if self._stuck_at.get(group.key) != place:
            self._stuck_at[group.key] = place
            self._next[group.key] = first
        if still < max(first, self._next[group.key]):
            return
        self._next[group.key] = 2 * still
        words = self.words(group, samples, still)
        if words:
            write_error(f"spmdlint: {words}\n")

    def words(self, group: Group, samples: Mapping[int, Sample], still: float | None) -> str:
        """The positions of the processes of a group, with stacks of late ones; "" if all late ones have arrived since.

        ``still`` is for how long no process has made a call, None if it is not asked who is late.
        """
        most = max(sample.count for sample in samples.values())
        absent = [process for process in group.processes if process not in samples]
        there = {process: sample for process, sample in samples.items() if sample.count == most}
        behind = {p: s for p, s in samples.items() if s.count < most and s.state == "running"}
        first = next(iter(there.values()))
        at = f"call {most} of {name_processes(group.processes)} ({_place(first)})"
        if not behind and not absent:
            compiling = _compiling(samples)
            if still is None:
                return f"all processes are at {at}" + (f"; {compiling}" if compiling else "")
            return f"no parallel call for {still:.0f} s: all processes are at {at} and agree" + (
                f"; {compiling}." if compiling else ": check the network, or that call."
            )
        ago = "" if still is None else f", {still:.0f} s ago"
        arrived = 0
        lines = [f"{'' if still is None else 'late: '}{name_processes(there)} reached {at}{ago}"]
        asked = [process for process in sorted(behind)[:SHOWN] if process != self._job.me]
        answers = self._others.ask(asked, {"stack": True}) if asked else {}
        for process, sample in sorted(behind.items())[:SHOWN]:
            if process in answers:
                where = answers[process].get("where") or Where()
            elif process == self._job.me:
                where = self._own.where()
            else:
                by = _calls(most - sample.count)
                lines.append(
                    f"  process {process}, {by} behind when last heard of, does not answer: it is stopped or "
                    "holds the GIL"
                )
                continue
            by = _calls(most - _counted(where, group, sample))
            arrived += not by
            place = where.get("place") or "an unknown line"
            lines.append(f"  process {process} {f'is {by} behind' if by else 'has arrived since'}, at {place}")
            lines += [f"      {frame}" for frame in (where.get("stack") or [])[-FRAMES:]]
        if len(behind) > SHOWN:
            lines.append(f"  {name_processes(sorted(behind)[SHOWN:])} are also behind")
        if absent:
            lines += [f"  {name_processes(absent)} made no call yet", *self._places(absent[:SHOWN])]
        if still is not None and behind and arrived == len(behind):
            return ""
        compiling = _compiling(samples)
        return "\n".join(lines + ([f"  {compiling}"] if compiling else []))

    def _places(self, processes: Sequence[int]) -> list[str]:
        """Where processes are that have made no call in a group, as far as they answer."""
        lines = []
        for process, answer in self._others.ask(processes, {"stack": True}).items():
            where = answer.get("where") or Where()
            lines.append(f"  process {process} is at {where.get('place') or 'an unknown line'}")
            lines += [f"      {frame}" for frame in (where.get("stack") or [])[-FRAMES:]]
        return lines


def _counted(where: Where, group: Group, sample: Sample) -> int:
    """The call count of a process that has answered: by now it may have made more calls than it had published."""
    return max(sample.count, (where.get("counts") or {}).get(group.key, 0))


def _calls(number: int) -> str:
    return f"{number} call{'s' if number > 1 else ''}" if number > 0 else ""


def _place(sample: Sample) -> str:
    return f"{sample.function or '?'}, {sample.filename}:{sample.line}" if sample.filename else "an unknown line"


def _compiling(samples: Mapping[int, Sample]) -> str:
    """Which process compiles which program: different programs explain compilers that wait for each other."""
    sides: dict[str, list[int]] = {}
    for process, sample in samples.items():
        if sample.compiling:
            sides.setdefault(sample.compiling, []).append(process)
    return "; ".join(f"{name_processes(numbers)}: compiling {words}" for words, numbers in sorted(sides.items()))
