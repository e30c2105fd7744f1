"""``spmdlint ledger``: compare the recordings of a job after it has ended, or show them on a page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from spmdlint.cli.commands import SUCCESS, complain
from spmdlint.cli.writing import write_file
from spmdlint.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    kinds = parser.add_subparsers(dest="what", required=True, metavar="diff|html")
    diff = _kind(kinds, "diff", "report the first call at which the processes differ")
    diff.add_argument("--output-format", choices=["text", "json"], default="text", help="text is the default")
    html = _kind(kinds, "html", "write a page that shows all calls")
    where = "write to this file, instead of standard output"
    html.add_argument("-o", "--output-file", type=Path, metavar="FILE", help=where)


def _kind(kinds: argparse._SubParsersAction[Any], name: str, what: str) -> argparse.ArgumentParser:
    told = f"{what[0].upper()}{what[1:]}."
    parser: argparse.ArgumentParser = kinds.add_parser(name, help=what, description=told, allow_abbrev=False)
    folder = "the folder of --ledger or SPMDLINT_LEDGER, or of one of the jobs in it"
    parser.add_argument("folder", type=Path, metavar="DIR", help=folder)
    return parser


def main(options: argparse.Namespace) -> int:
    """Compare, or write the page; returns 3 if the processes differ, 2 if there is nothing to read."""
    folder: Path = options.folder
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}; name the one that was given to --ledger or SPMDLINT_LEDGER.")
    if options.what == "diff":
        return _diff(folder, options.output_format)
    return _page(folder, options.output_file)


def _diff(folder: Path, form: str) -> int:
    from spmdlint.runtime_checks.agreement.offline import compare, explain, load

    if form == "text":
        return explain(folder)
    recorded = load(folder)
    if not recorded.rows:
        raise UsageError(recorded.nothing_in(folder))
    found = compare(recorded)
    told = {
        "differs": None if not found.differs and not found.agrees else found.differs,
        "processes": sorted(recorded.rows),
        "report": None if found.report is None else found.report.as_data(),
        "earlier": found.earlier,
        "notes": found.notes,
        "versions": recorded.build.get("versions", {}),
        "layers": recorded.build.get("layers", {}),
        "earlier_jobs": [str(path) for path in recorded.earlier],
    }
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return found.status


def _page(folder: Path, path: Path | None) -> int:
    from spmdlint.runtime_checks.agreement.offline import load
    from spmdlint.runtime_checks.page.jobs import page, recorded_job
    from spmdlint.runtime_checks.recording.reading import damage_sentences
    from spmdlint.runtime_checks.reporting.sentences import name_processes

    recorded = load(folder)
    if not recorded.rows:
        raise UsageError(recorded.nothing_in(folder))
    for sentence in damage_sentences(recorded.damaged):
        complain(sentence)  # the page itself may go to standard output
    text = page(recorded_job(recorded))
    if path is None:
        sys.stdout.write(text)
    else:
        write_file(path, text)
        complain(f"{path} shows the calls of {name_processes(recorded.rows)}; open it in a browser.")
    return SUCCESS
