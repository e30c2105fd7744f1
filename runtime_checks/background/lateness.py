"""A hang, explained while it lasts: which processes are late, by how many calls, where; or that all agree.

Late is not a verdict: compiles and restores of half an hour are real. So the report is a few lines on the standard
error of one process, at longer and longer intervals.
"""

from __future__ import annotations

from collections.abc import Mapping

from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.background.publishing import Sample
from spmdlint.runtime_checks.calls.ledger import Group
from spmdlint.runtime_checks.records import Place, State
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.sentences import count_of, name_processes, sides
from spmdlint.runtime_checks.transport.exchange import Job

AGREEING = 5  # factor on the delay before it is reported that all agree
SHOWN = 3  # late processes whose stacks are shown
FRAMES = 8


class Lateness:
    """The reports on each group, and when the next one is due."""

    def __init__(self, job: Job, others: OtherProcesses) -> None:
        self._job = job
        self._others = others
        self._told: dict[str, tuple[object, float]] = {}  # of each group: at which place, and when it is told again

    def look(self, group: Group, samples: Mapping[int, Sample], moved: Mapping[int, float], now: float) -> None:
        """Report a hang, if no process has made a call for some time and it was not reported yet."""
        still = now - max(moved[process] for process in samples)
        if still < self._job.options.late_after:
            return
        running = {process: sample for process, sample in samples.items() if sample.state == "running"}
        most = max(sample.count for sample in samples.values())
        waits = any(sample.call and sample.count == most for sample in samples.values())
        behind = {process: sample for process, sample in running.items() if sample.count < most}
        if not waits or most == 0 or not running:
            return
        place = tuple(sorted((process, sample.serial) for process, sample in samples.items()))
        alone = len(samples) < 2  # all others have made no call
        first = self._job.options.late_after * (1 if behind or alone else AGREEING)
        told_at, again = self._told.get(group.key, (None, 0.0))
        if still < max(first, again if told_at == place else 0.0):
            return
        self._told[group.key] = place, 2 * still
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
        call = next((sample.call for sample in there.values() if sample.call), Place())
        line = call.get("filename") and f"{call.get('function') or '?'}, {call.get('filename')}:{call.get('line')}"
        at = f"call {most} of {name_processes(group.processes)} ({line or 'an unknown line'})"
        # Which process compiles which program: different programs explain compilers that wait for each other.
        programs = {process: sample.compiling for process, sample in samples.items() if sample.compiling}
        compiling = sides(programs, "compiling {}".format)
        if not behind and not absent:
            if still is None:
                return f"all processes are at {at}" + (f"; {compiling}" if compiling else "")
            return f"no parallel call for {still:.0f} s: all processes are at {at} and agree" + (
                f"; {compiling}." if compiling else ": check the network, or that call."
            )
        ago = "" if still is None else f", {still:.0f} s ago"
        lines = [f"{'' if still is None else 'late: '}{name_processes(there)} reached {at}{ago}"]
        shown = sorted(behind)[:SHOWN]
        wheres = self._others.whereabouts([*shown, *absent[:SHOWN]])
        # By now, a process may have made more calls than it had published.
        counts = {process: wheres.get(process, State()).get("counts", {}).get(group.key, 0) for process in behind}
        left = {process: most - max(sample.count, counts[process]) for process, sample in behind.items()}
        if still is not None and behind and max(left.values()) <= 0:
            return ""
        for process in shown:
            by = f"{count_of(left[process])} behind"
            if process in wheres:
                said = f"is {by}" if left[process] > 0 else "has arrived since"
                lines += _at(f"process {process} {said}, at", wheres[process])
            else:
                why = "does not answer: it is stopped or holds the GIL"
                lines.append(f"  process {process}, {by} when last heard of, {why}")
        if len(behind) > SHOWN:
            lines.append(f"  {name_processes(sorted(behind)[SHOWN:])} are also behind")
        if absent:
            lines.append(f"  {name_processes(absent)} made no call yet")
            for process in absent[:SHOWN]:
                lines += _at(f"process {process} is at", wheres[process]) if process in wheres else []
        return "\n".join(lines + ([f"  {compiling}"] if compiling else []))


def _at(words: str, where: State) -> list[str]:
    frames = [f"      {frame}" for frame in (where.get("stack") or [])[-FRAMES:]]
    return [f"  {words} {where.get('place') or 'an unknown line'}", *frames]
