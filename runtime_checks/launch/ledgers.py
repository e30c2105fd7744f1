"""After a crash: what the records of the processes, left by ``SPMDLINT_LEDGER`` or ``--ledger``, say together."""

from __future__ import annotations

import sys
from pathlib import Path

from spmdlint.runtime_checks.history import judge, read_history
from spmdlint.runtime_checks.options import DIVERGED_STATUS
from spmdlint.runtime_checks.recording import read, read_programs
from spmdlint.runtime_checks.report import as_text
from spmdlint.runtime_checks.sentences import name_processes

LAST = 5


def explain(folder: Path) -> int:
    """Print the verdict over all records in a folder, or each process's last calls; the exit status that fits."""
    files = {int(path.stem): path for path in folder.glob("*.ledger") if path.stem.isdigit()}
    rows = {process: read(path) for process, path in sorted(files.items())}
    if not any(rows.values()):
        sys.stderr.write(f"There are no records of calls in {folder}: run with --ledger, or SPMDLINT_LEDGER set.\n")
        return 2
    programs = {process: read_programs(path) for process, path in files.items()}
    # How they ended is not recorded: who made fewer calls may have been killed first, or last.
    histories = {process: read_history("running", found) for process, found in rows.items()}
    report = judge(histories, lambda process, digest: programs[process].get(digest, {}))
    if report is not None:
        sys.stdout.write(as_text(report))
        return DIVERGED_STATUS
    sys.stdout.write(f"The last calls of {name_processes(rows)} agree as far as they are recorded.\n")
    for process, found in rows.items():
        sys.stdout.write(f"\n  Process {process}, oldest first:\n")
        for _group, members, index, _prefix, _digest, function, filename, line, _others in found[-LAST:]:
            place = f"{filename}:{line}" if filename else "an unknown line"
            sys.stdout.write(f"    call {index} of {name_processes(members)}: {function}  at {place}\n")
    return 0
