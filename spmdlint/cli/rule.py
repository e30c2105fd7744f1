"""``spmdlint rule``: explain a rule, or list all rules."""

from __future__ import annotations

import argparse
import json
import sys

from spmdlint.cli.commands import SUCCESS
from spmdlint.errors import UsageError
from spmdlint.output.rules import as_object, listing, page
from spmdlint.rule import load_rules
from spmdlint.selection import ALL, matches, suggestion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "rule", nargs="?", metavar="RULE", help="a code or a name, such as SPMD301, or a family, such as SPMD3"
    )
    which.add_argument("--all", action="store_true", help="list all rules (default)")
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="text is the default")


def main(options: argparse.Namespace) -> int:
    """Write the description."""
    rules = load_rules()
    codes = matches(options.rule if options.rule is not None else ALL, rules)
    family = [rule for rule in rules if rule.code in codes]
    if options.rule is None or len(family) > 1:
        as_json: object = [as_object(rule) for rule in family]
        text = listing(family)
    else:
        found = next((rule for rule in rules if options.rule in (rule.code, rule.name)), None)
        if found is None:
            raise UsageError(
                f"There is no rule {options.rule!r}.{suggestion(options.rule, rules)} "
                "'spmdlint rule --all' lists the rules."
            )
        as_json, text = as_object(found), page(found)
    if options.output_format == "json":
        sys.stdout.write(json.dumps(as_json, indent=2) + "\n")
    elif text.startswith("#") and sys.stdout.isatty():
        from spmdlint.output.terminal import show  # rich, which nothing else needs

        show(text)
    else:
        sys.stdout.write(text)
    return SUCCESS
