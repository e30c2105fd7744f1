"""The end of a job of which a process was interrupted, while others go on or cannot act on their own interrupt.

What an interrupted process has not done is no divergence: the job is over because somebody wanted it so.
"""

from __future__ import annotations

from collections.abc import Mapping

from spmdlint.runtime_checks.agreement.others import Whereabouts
from spmdlint.runtime_checks.recording.this_process import ThisProcess
from spmdlint.runtime_checks.records import Place, State
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report, interrupted, reported
from spmdlint.runtime_checks.reporting.sentences import call_words, ended_word, name_processes, place
from spmdlint.runtime_checks.transport.job import Job

ASKED = 64  # processes that are asked where they are


def interruption(job: Job, own: ThisProcess, asked: Whereabouts, ended: Mapping[int, State]) -> Report:
    """Who was interrupted, where, and where the others are; ``ended`` is how those ended that did, this one included.

    A process that has not ended is this one, interrupted where it is, or another, which is asked.
    """
    processes: dict[int, ProcessReport] = {}
    words: dict[str, list[int]] = {}
    for number in sorted({*ended, *range(min(job.count, ASKED))}):
        processes[number], told = _process(job, own, asked, number, ended.get(number))
        words.setdefault(told, []).append(number)
    first = sorted(words.items(), key=lambda one: not one[0].startswith("interrupted"))
    sentence = "; ".join(f"{name_processes(who)} {_verb(who, how)}{how}" for how, who in first)
    return interrupted(f"{sentence}.", processes)


def _process(
    job: Job, own: ThisProcess, asked: Whereabouts, number: int, ended: State | None
) -> tuple[ProcessReport, str]:
    if ended is not None:
        state = ended_word(ended)
        one = reported(ended, state)
        one.detail = ended.get("detail")
        return one, f"{state}{_at(ended)}{_begun(ended.get('counts'))}"
    where = own.where() if number == job.me else asked.whereabouts(number)
    if where is None:
        return ProcessReport("unknown"), "not answering"
    one = reported(where, "interrupted" if number == job.me else "late")
    one.stack = where.get("stack")
    return one, f"{'interrupted ' if number == job.me else ''}{_at(where).strip()}{_begun(where.get('counts'))}"


def _verb(who: list[int], how: str) -> str:
    if how.startswith("interrupted"):
        return "was " if len(who) == 1 else "were "
    if how.startswith(("finished", "exited", "raised", "died")):
        return ""
    return "is " if len(who) == 1 else "are "


def _at(record: Place) -> str:
    at = place(record)
    if not at:
        return " at an unknown line"
    return f" at {at}" if record.get("function") == "<module>" else f" in {call_words(record)}"


def _begun(counts: Mapping[str, int] | None) -> str:
    total = sum((counts or {}).values())
    return f", {total} parallel call{'' if total == 1 else 's'} begun"
