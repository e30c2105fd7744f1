"""The page of a job as one file; the job is a rehearsal that has just ended, or one of which the recordings are left.

A policy in it keeps the browser from loading anything else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import shlex
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from string import Template

from spmdlint.runtime_checks.agreement.offline import Comparison, Recorded, compare, earlier_jobs, load
from spmdlint.runtime_checks.launch import findings
from spmdlint.runtime_checks.page.document import Job, Sources, document
from spmdlint.runtime_checks.recording.writing import jobs_in
from spmdlint.runtime_checks.reporting.report import Report, as_text
from spmdlint.runtime_checks.reporting.sentences import name_processes


def rehearsed_job(report: Report, command: Sequence[str], ledgers: Path, *before: Path) -> Job:
    """A rehearsal, with its recordings: none, if it came to no call, but those of the jobs ``before`` it."""
    own = [job for job in jobs_in(ledgers) if job not in before]
    recorded = load(own[0]) if own else Recorded({}, {})
    script = [] if command[0] == "-m" else [Path(command[0]).resolve().parent]
    return Job(
        report,
        recorded,
        Sources([Path.cwd(), *script]),
        _marks(report, compare(recorded)),
        command=shlex.join(command),
        made=_written(datetime.now()),
    )


def recorded_job(recorded: Recorded) -> Job:
    """A job whose recordings were gathered; the linter is asked about its lines if its files are here."""
    found = compare(recorded)
    report = found.report or _without_difference(recorded, found)
    findings.join(report, ())
    ended = max((recorded.folder / f"{process}.ledger").stat().st_mtime for process in recorded.rows)
    told = [*found.earlier, *found.notes, *earlier_jobs(recorded)]
    sources = Sources([Path.cwd()], ended)
    made = _written(datetime.fromtimestamp(ended))
    return Job(report, recorded, sources, _marks(report, found), made=made, told=told)


def _marks(report: Report, found: Comparison) -> list[tuple[Sequence[int], int]]:
    """The call that the report is about; if nothing differs, the first of each set that not all have made."""
    if report.verdict == "diverged":
        return [] if report.index is None else [(report.group, report.index)]
    return [] if report.verdict == "clean" else [(group, made + 1) for group, made in found.behind.items()]


def _without_difference(recorded: Recorded, found: Comparison) -> Report:
    """The report if the first call that differs is not known."""
    processes = name_processes(recorded.rows)
    if found.earlier:
        return Report("diverged", found.earlier[0])
    if len(recorded.rows) == 1:
        return Report("unchecked", f"There are recordings of {processes} only, so nothing was compared.")
    agree = f"The calls of {processes} agree as far as they are recorded"
    if found.agrees:
        return Report("clean", f"{agree}.")
    if not found.behind:
        return Report("unchecked", " ".join(found.notes))
    group, made = min(found.behind.items())
    made_by = {process: [row.index for row in rows if row.members == group] for process, rows in recorded.rows.items()}
    late = [process for process in group if process in made_by and max(made_by[process], default=0) == made]
    told = f"{agree}, but {name_processes(late)} made only {made} calls of {name_processes(group)}"
    return Report("late", f"{told}: look at what came after these.")


def _written(when: datetime) -> str:
    return f"{when.astimezone():%Y-%m-%d %H:%M %Z}"


def page(job: Job) -> str:
    folder = files(__package__ or "")
    style, script, markup = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js", "html"))
    kind = f" ({job.report.kind})" if job.report.kind else ""
    data = json.dumps(document(job), separators=(",", ":"))
    return Template(markup).substitute(
        title=html.escape(f"spmdlint: {job.report.verdict}{kind}"),
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'",
        style=style,
        script=script,
        # Nothing in it ends the script element that it stands in, or begins another.
        data=data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
        text=html.escape(as_text(job.report)),
    )


def _hash(text: str) -> str:
    """The name of an inline style or script in a policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
