"""``spmdlint rule``: explain a rule, list all rules, and write and test rules of one's own."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from spmdlint.cli.commands import SUCCESS, complain
from spmdlint.config import Config
from spmdlint.errors import UsageError
from spmdlint.files.reach import refuse_unlike_files
from spmdlint.files.root import configure
from spmdlint.identity import relative
from spmdlint.output.rules import as_object, listing, page
from spmdlint.rule import Rule, load_rules
from spmdlint.selection import ALL, matches, suggestion

FAILURES = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "rule",
        nargs="?",
        metavar="RULE",
        help="a code or a name, such as SPMD301, or a family, such as SPMD3; for --test also a file or folder",
    )
    which.add_argument("--all", action="store_true", help="list all rules (default)")
    which.add_argument("--new", metavar="NAME", help="write a rule of your own to start from")
    parser.add_argument("--test", action="store_true", help="check the examples of RULE, or of all rules of your own")
    parser.add_argument("--config", type=Path, metavar="FILE", help="read the configuration from this file")
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="text is the default")


def main(options: argparse.Namespace) -> int:
    """Write the description, test the examples, or write a rule."""
    if options.test and options.new is not None:
        raise UsageError("--new writes a rule and --test checks rules: use them in two runs.")
    config = configure([Path.cwd()], options.config, force_exclude=False)
    if options.test:
        return _test(options.rule, config)
    rules = load_rules(config.rules, begun=options.new is None)
    if options.new is not None:
        return _new(options.new, config, rules)
    codes = matches(options.rule if options.rule is not None else ALL, rules)
    family = [rule for rule in rules if rule.code in codes]
    if options.rule is None or len(family) > 1:
        as_json: object = [as_object(rule) for rule in family]
        text = listing(family)
    else:
        found = next((rule for rule in rules if options.rule in rule.selectors()), None)
        if found is None:
            raise _no_rule(options.rule, rules)
        as_json, text = as_object(found), page(found)
    if options.output_format == "json":
        sys.stdout.write(json.dumps(as_json, indent=2) + "\n")
    elif text.startswith("#") and sys.stdout.isatty():
        from spmdlint.output.terminal import show  # rich, which nothing else needs

        show(text)
    else:
        sys.stdout.write(text)
    return SUCCESS


def _no_rule(name: str, rules: Sequence[Rule]) -> UsageError:
    return UsageError(f"There is no rule {name!r}.{suggestion(name, rules)} 'spmdlint rule --all' lists the rules.")


def _test(name: str | None, config: Config) -> int:
    """Test the examples of the project's and of installed rules; the status is 1 if one of them fails."""
    from spmdlint.examples import failures  # LibCST, which the other uses do not need
    from spmdlint.visitor_rule import VisitorRule

    is_place = name is not None and Path(name).exists()
    files = (Path(name).resolve(),) if name is not None and is_place else config.rules
    if is_place:
        refuse_unlike_files(files[0])
    rules = load_rules(files)
    own = [rule for rule in rules if isinstance(rule, VisitorRule)]
    if is_place:
        installed = {rule.code for rule in load_rules()}
        own = [rule for rule in own if rule.code not in installed]
    elif name is not None:
        codes = matches(name, rules)
        if not codes:
            raise _no_rule(name, rules)
        own = [rule for rule in own if rule.code in codes]
    if not own:
        raise UsageError(
            "There is no rule with examples to test: name rules of your own under 'rules' in the configuration, "
            "or pass a file. 'spmdlint rule --new NAME' writes one."
        )
    status = SUCCESS
    for rule in own:
        wrong = list(failures(rule, files))
        examples = len(rule.VALID) + len(rule.INVALID)
        ends = "failure" if len(wrong) == 1 else "failures"
        said = f"{len(wrong)} {ends}:" if wrong else f"{examples} examples pass."
        sys.stdout.write(f"{rule.code} {rule.name}: {said}\n")
        sys.stdout.writelines(f"  {sentence}\n" for sentence in wrong)
        status = FAILURES if wrong else status
    return status


def _new(name: str, config: Config, rules: Sequence[Rule]) -> int:
    from spmdlint.newrule import write_skeleton

    path = write_skeleton(name, config.root, config.rules, rules)
    shown = relative(path, Path.cwd())
    complain(f"{shown} holds the rule; 'spmdlint rule --test {shown}' checks its examples.")
    if path.parent not in config.rules:
        here = path.parent.relative_to(config.root).as_posix()
        complain(f"Add 'rules = [\"{here}\"]' to the configuration, so that it runs.")
    return SUCCESS
