"""Descriptions of rules: their pages, and the table of all rules."""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.rule import Rule


def page(rule: Rule) -> str:
    """The page of one rule, as Markdown."""
    facts = [f"Severity: {rule.severity}."]
    facts += ["This is a preview rule: it runs only with `--preview`."] if rule.preview else []
    facts += ["Partly preview: some of its findings are shown only with `--preview`."] if rule.partly_preview else []
    facts += [f"Part of this rule now: {', '.join(rule.merged)}."] if rule.merged else []
    said = "\n\n".join(facts)
    return f"# {rule.code} {rule.name}\n\n{rule.page().rstrip()}\n\n---\n\n{said}\n"


def index(rules: Sequence[Rule]) -> str:
    """The table of all rules, as Markdown."""
    rows = [f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.summary()}{_mark(rule, '*')} |" for rule in rules]
    return "\n".join(["# Rules", "", "| Code | Name | What it reports |", "|---|---|---|", *rows, ""])


def listing(rules: Sequence[Rule]) -> str:
    """The table of all rules, for a terminal."""
    code = max((len(rule.code) for rule in rules), default=0)
    name = max((len(rule.name) for rule in rules), default=0)
    return "".join(f"{rule.code:<{code}}  {rule.name:<{name}}  {rule.summary()}{_mark(rule)}\n" for rule in rules)


def as_object(rule: Rule) -> dict[str, object]:
    """One rule as a JSON object."""
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "preview": rule.preview,
        "partly_preview": rule.partly_preview,
        "merged": list(rule.merged),
        "summary": rule.summary(),
        "explanation": rule.page(),
        "url": rule.url,
    }


def _mark(rule: Rule, emphasis: str = "") -> str:
    """What is said after the summary of a rule that does not show all findings by default."""
    words = "preview" if rule.preview else "partly preview" if rule.partly_preview else ""
    return f" {emphasis}({words}){emphasis}" if words else ""
