"""Write the tables of the field report from the verdicts in docs/field.

``python docs/field.py`` writes them; a test checks that the page is up to date. ``packages.jsonl`` has one line for
each code base: ``source`` is the version that can be fetched again, ``only`` the folders that are linted; for some,
``files``, ``lines`` and the processor ``seconds`` of a run were measured. ``findings.jsonl`` has one line for each
finding in them: ``text`` is a digest of the line's text, ``preview`` whether it needs ``--preview``, ``verdict`` is
right, debatable, wrong or unread, and ``missed`` says that it was reported once, and not any more when the data was
written. ``benchmarks/field.py`` fetches the code bases and compares what a linter finds there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spmdlint.rule import Rule, load_rules
from spmdlint.selection import codes_by_selector

DOCS = Path(__file__).parent
PAGE = DOCS / "field-report.md"
FINDINGS, PACKAGES = DOCS / "field" / "findings.jsonl", DOCS / "field" / "packages.jsonl"
BEGIN = "<!-- Generated from docs/field/*.jsonl by docs/field.py. -->\n"
END = "<!-- End of what is generated. -->\n"
VERDICTS = ("right", "debatable", "wrong", "unread")
FROZEN = """
Code bases whose version can be fetched again, with the findings of the linter of 25 November 2026, also those with
`--preview`, and without SPMD602 and files that do not parse, unless they were judged. `python
benchmarks/field.py` fetches them and tells which findings a linter has lost and gained since.
"""


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def order(finding: dict[str, Any]) -> tuple[object, ...]:
    """The sort key of findings in their file."""
    return tuple(finding[key] for key in ("package", "file", "line", "code"))


def page() -> str:
    """The page with its generated part replaced."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    packages = records(PACKAGES)
    findings = [finding for finding in records(FINDINGS) if not finding.get("missed")]
    rules = [rule for rule in load_rules() if type(rule).__module__.startswith("spmdlint.rules.")]
    now = codes_by_selector(rules)
    findings = [finding | {"code": now.get(finding["code"], finding["code"])} for finding in findings]
    parts = [_measured(packages, findings), _rules(rules, findings), _frozen(packages, findings)]
    return f"{before}{BEGIN}{''.join(parts)}{END}{after}"


def _measured(packages: list[dict[str, Any]], findings: list[dict[str, Any]]) -> str:
    head = [
        "code base", "version", "files", "lines", "findings", "right", "debatable", "wrong",
        "processor seconds", "per 1,000 lines",
    ]  # fmt: skip
    measured = [package for package in packages if "seconds" in package]
    names = {package["package"] for package in measured}
    rows = [_package(package, findings) for package in measured]
    files, lines, seconds = (sum(package[key] for package in measured) for key in ("files", "lines", "seconds"))
    own = [finding for finding in findings if finding["package"] in names and not finding["preview"]]
    rows.append(["**all**", "", f"{files:,}", f"{lines:,}", str(len(own)), *_verdicts(own), f"{seconds:,.0f}", ""])
    return _table(head, rows)


def _package(package: dict[str, Any], findings: list[dict[str, Any]]) -> list[str]:
    own = [f for f in findings if f["package"] == package["package"] and not f["preview"]]
    seconds, lines = package["seconds"], package["lines"]
    size = [package["package"], package["version"], f"{package['files']:,}", f"{lines:,}"]
    return [*size, str(len(own)), *_verdicts(own), f"{seconds:.1f}", f"{1000 * seconds / lines:.2f}"]


def _verdicts(findings: list[dict[str, Any]], verdicts: Iterable[str] = VERDICTS[:3]) -> Iterator[str]:
    """The numbers of findings by verdict; those that are zero are left out."""
    for verdict in verdicts:
        yield str(sum(finding["verdict"] == verdict for finding in findings) or "")


def _rules(rules: list[Rule], findings: list[dict[str, Any]]) -> str:
    head = ["rule", "runs", "findings", *VERDICTS]
    rows, silent = [], []
    for rule in rules:
        told = False
        for trial in (False, True):
            own = [f for f in findings if f["code"] == rule.code and f["preview"] == trial]
            if own:
                told = True
                runs = "with `--preview`" if trial else "by default"
                link = f"[{rule.code} {rule.name}](rules/{rule.code}.md)"
                rows.append([link, runs, str(len(own)), *_verdicts(own, VERDICTS)])
        if not told:
            silent.append(f"{rule.code} (preview)" if rule.preview else rule.code)
    return f"\n## By rule\n{_table(head, rows)}\nNo findings from these rules: {', '.join(silent)}.\n"


def _frozen(packages: list[dict[str, Any]], findings: list[dict[str, Any]]) -> str:
    head = ["code base", "release or commit", *VERDICTS]
    rows = []
    for package in packages:
        own = [finding for finding in findings if finding["package"] == package["package"]]
        if own:
            rows.append([package["package"], _link(package["source"]), *_verdicts(own, VERDICTS)])
    rows.append(["**all**", "", *_verdicts(findings, VERDICTS)])
    return f"\n## Findings that can be checked again\n{FROZEN}{_table(head, rows)}"


def _link(source: dict[str, str]) -> str:
    if "pypi" in source:
        return source["pypi"]
    return f"[{source['commit'][:12]}]({source['git']}/tree/{source['commit']})"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *map(list, rows)]
    return "\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> None:
    """Sort the findings and write the page."""
    findings = sorted(records(FINDINGS), key=order)
    FINDINGS.write_text("".join(json.dumps(finding) + "\n" for finding in findings), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
