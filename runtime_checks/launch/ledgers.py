"""After a crash: compares the recordings of the processes, made by ``SPMDLINT_LEDGER`` or ``--ledger``."""

from __future__ import annotations

import sys
from pathlib import Path

from spmdlint.runtime_checks.agreement.offline import compare, load
from spmdlint.runtime_checks.recording.retention import earlier
from spmdlint.runtime_checks.reporting.report import as_text
from spmdlint.runtime_checks.reporting.sentences import name_processes

LAST = 5


def explain(folder: Path) -> int:
    """Print the verdict over all recordings in a folder, or each process's last calls; returns the exit status."""
    recorded = load(folder)
    if not recorded.rows:
        sys.stderr.write(f"{recorded.nothing_in(folder)}\n")
        return 2
    found = compare(recorded)
    if found.report is not None:
        sys.stdout.write(as_text(found.report))
    before = ", ".join(str(path) for path in earlier(folder))
    for sentence in (*found.earlier, *found.notes, *([f"Earlier jobs are recorded in {before}."] if before else [])):
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
            place = f"{row.filename}:{row.line}" if row.filename else "an unknown line"
            sys.stdout.write(f"    call {row.index} of {name_processes(row.members)}: {row.function}  at {place}\n")
    return found.status
