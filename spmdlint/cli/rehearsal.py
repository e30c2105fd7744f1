"""The verdict of a rehearsal in the formats of findings, so that a CI server shows it at its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from spmdlint.cli.writing import write_file
from spmdlint.diagnostics import Diagnostic, Location, Place, Related, sentence
from spmdlint.files.ignore import git_root
from spmdlint.files.read import Source, read
from spmdlint.output import renderer
from spmdlint.output.report import Description
from spmdlint.output.report import Report as Found
from spmdlint.runtime_checks.reporting.report import ADVICE, ProcessReport, Report
from spmdlint.runtime_checks.reporting.sentences import name_processes

SUMMARIES: Mapping[str, str] = {
    "diverged-sequence": "The processes make different parallel calls at the same position.",
    "diverged-arguments": "The processes make the same parallel call with different arguments.",
    "diverged-program": "The processes compile different programs for the same parallel call.",
    "diverged-missing": "A process ended, and others wait for it.",
    "diverged-setup": "The processes start with different devices, versions or configuration.",
    "diverged-value": "A value that should be the same everywhere is not.",
    "late": "The rehearsal did not end in time.",
    "failed": "The rehearsal failed.",
}


def workflow_commands(report: Report, script: Path) -> Iterator[str]:
    """Workflow commands for GitHub Actions; none if the rehearsal went well."""
    yield from renderer("github")(_as_findings(report, script))


def write_sarif(report: Report, script: Path, path: Path) -> None:
    """Write SARIF, without a result if the rehearsal went well.

    Raises:
        UsageError: the file cannot be written.

    """
    write_file(path, "".join(renderer("sarif")(_as_findings(report, script))))


def _as_findings(report: Report, script: Path) -> Found:
    found = _finding(report, script)
    paths = set() if found is None else {found.place.path, *(related.place.path for related in found.related)}
    sources = {path: source for path in paths if isinstance(source := read(path), Source)}
    if found is not None:
        related = tuple(replace(each, place=_whole_row(each.place, sources)) for each in found.related)
        found = replace(found, place=_whole_row(found.place, sources), related=related)
    return Found(
        () if found is None else (found,),
        sources,
        top=git_root(Path.cwd()) or Path.cwd(),
        rules=tuple(_description(code) for code in SUMMARIES),
    )


def _finding(report: Report, script: Path) -> Diagnostic | None:
    code = f"diverged-{report.kind}" if report.verdict == "diverged" else report.verdict
    if code not in SUMMARIES:
        return None
    places: dict[Place, list[tuple[int, ProcessReport]]] = {}
    for number, process in sorted(report.processes.items(), key=lambda item: int(item[0])):
        if process.filename and process.line:
            places.setdefault(_row(Path(process.filename).resolve(), process.line), []).append((int(number), process))
    related = tuple(Related(place, _words(there)) for place, there in places.items())
    place = next(iter(places), _row(script.resolve(), 1))
    rules = ", ".join(report.explained_by)
    help_text = " ".join(
        text for text in (report.advice, f"Rules that may explain it: {rules}." if rules else "") if text
    )
    return Diagnostic(code, "rehearsal", "error", sentence(report.message.rstrip(".")), place, help_text, related)


def _words(there: list[tuple[int, ProcessReport]]) -> str:
    """The processes at a place, and what they were doing."""
    numbers, first = [number for number, _ in there], there[0][1]
    named = name_processes(numbers)
    called = f": {first.function}" if first.function else ""
    at = f", call {first.index}" if first.index is not None else ""
    return f"{named[0].upper()}{named[1:]} {'is' if len(numbers) == 1 else 'are'} here ({first.state}{at}){called}."


def _row(path: Path, row: int) -> Place:
    return Place(path, Location(row, 1), Location(row, 2))


def _whole_row(place: Place, sources: Mapping[Path, Source]) -> Place:
    """The place of the code on a row; the runtime checks have no columns."""
    rows = sources[place.path].lines() if place.path in sources else []
    row = place.start.row
    if row > len(rows) or not rows[row - 1].strip():
        return place
    text = rows[row - 1]
    start, end = len(text) - len(text.lstrip()) + 1, len(text.rstrip()) + 1
    return Place(place.path, Location(row, start), Location(row, end))


def _description(code: str) -> Description:
    advice = ADVICE.get(code.removeprefix("diverged-"), "")
    return Description(code, code, "error", SUMMARIES[code], f"{SUMMARIES[code]}\n\n{advice}".rstrip() + "\n")
