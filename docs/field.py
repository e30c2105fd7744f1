"""Write the tables of the field report from the verdicts in docs/field.

``python docs/field.py`` writes them; a test checks that the page is up to date. ``findings.jsonl`` has one line for
each finding that was reviewed by hand, ``packages.jsonl`` one for each code base that was linted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spmdlint.rule import Rule, load_rules

DOCS = Path(__file__).parent
PAGE = DOCS / "field-report.md"
FINDINGS, PACKAGES = DOCS / "field" / "findings.jsonl", DOCS / "field" / "packages.jsonl"
BEGIN = "<!-- Generated from docs/field/*.jsonl by docs/field.py. -->\n"
END = "<!-- End of what is generated. -->\n"


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
    findings, packages = records(FINDINGS), records(PACKAGES)
    rules = [rule for rule in load_rules() if type(rule).__module__.startswith("spmdlint.rules.")]
    return f"{before}{BEGIN}{_packages(packages, findings)}{_rules(rules, findings)}{END}{after}"


def _packages(packages: list[dict[str, Any]], findings: list[dict[str, Any]]) -> str:
    head = [
        "code base", "version", "files", "lines", "findings", "right", "more with `--preview`", "right",
        "processor seconds", "per 1,000 lines",
    ]  # fmt: skip
    rows = [_package(package, findings) for package in packages]
    files, lines, seconds = (sum(package[key] for package in packages) for key in ("files", "lines", "seconds"))
    rows.append(["**all**", "", f"{files:,}", f"{lines:,}", *_counts(findings), f"{seconds:,.0f}", ""])
    return _table(head, rows)


def _package(package: dict[str, Any], findings: list[dict[str, Any]]) -> list[str]:
    own = [finding for finding in findings if finding["package"] == package["package"]]
    seconds, lines = package["seconds"], package["lines"]
    size = [package["package"], package["version"], f"{package['files']:,}", f"{lines:,}"]
    return [*size, *_counts(own), f"{seconds:.1f}", f"{1000 * seconds / lines:.2f}"]


def _counts(findings: list[dict[str, Any]]) -> Iterator[str]:
    """The numbers of findings and of right ones, by default and with --preview."""
    for trial in (False, True):
        among = [finding for finding in findings if finding["preview"] == trial]
        yield str(len(among))
        yield str(sum(finding["right"] for finding in among)) if among else ""


def _rules(rules: list[Rule], findings: list[dict[str, Any]]) -> str:
    head = ["rule", "runs", "findings", "right", "wrong"]
    rows, silent = [], []
    for rule in rules:
        told = False
        for trial in (False, True):
            own = [f for f in findings if f["code"] == rule.code and f["preview"] == trial]
            if own:
                told, right = True, sum(f["right"] for f in own)
                runs = "with `--preview`" if trial else "by default"
                link = f"[{rule.code} {rule.name}](rules/{rule.code}.md)"
                rows.append([link, runs, str(len(own)), str(right), str(len(own) - right)])
        if not told:
            silent.append(f"{rule.code} (preview)" if rule.preview else rule.code)
    return f"\n## By rule\n{_table(head, rows)}\nNo findings from these rules: {', '.join(silent)}.\n"


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
