"""Descriptions of rules: their pages, and the table of all rules."""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.rule import Rule


def page(rule: Rule) -> str:
    """The page of one rule, as Markdown."""
    preview = "\n\nThis is a preview rule: it runs only with `--preview`." if rule.preview else ""
    facts = f"Severity: {rule.severity}.{preview}"
    return f"# {rule.code} {rule.name}\n\n{rule.page().rstrip()}\n\n---\n\n{facts}\n"


def index(rules: Sequence[Rule]) -> str:
    """The table of all rules, as Markdown."""
    rows = [
        f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.summary()}{' *(preview)*' if rule.preview else ''} |"
        for rule in rules
    ]
    return "\n".join(["# Rules", "", "| Code | Name | What it reports |", "|---|---|---|", *rows, ""])


def listing(rules: Sequence[Rule]) -> str:
    """The table of all rules, for a terminal."""
    code = max((len(rule.code) for rule in rules), default=0)
    name = max((len(rule.name) for rule in rules), default=0)
    return "".join(
        f"{rule.code:<{code}}  {rule.name:<{name}}  {rule.summary()}{' (preview)' if rule.preview else ''}\n"
        for rule in rules
    )


def as_object(rule: Rule) -> dict[str, object]:
    """One rule as a JSON object."""
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "preview": rule.preview,
        "summary": rule.summary(),
        "explanation": rule.page(),
        "url": rule.url,
    }
