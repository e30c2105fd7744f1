"""``spmdlint completion``: what a shell needs to complete our commands and options, and the answers to it.

The script that a shell loads starts ``spmdlint`` with ``_ARGCOMPLETE`` in its environment at each press of Tab;
:func:`answer` replies. Other runs do not import argcomplete.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence

from spmdlint.cli.commands import COMMANDS, SUCCESS, Command
from spmdlint.cli.parsing import HELP_ALL

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def main(options: argparse.Namespace) -> int:
    """Print the script for the shell."""
    from argcomplete.shell_integration import shellcode

    sys.stdout.write(shellcode(["spmdlint"], shell=options.shell).strip() + "\n")
    return SUCCESS


def answer() -> None:
    """Answer the shell that asks, and end the process."""
    import argcomplete

    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 0) or None]
    argcomplete.autocomplete(_parser(line.split()), always_complete_options=False)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """All commands, with the options of the one on the line: the others need not be imported."""
    parser = argparse.ArgumentParser(prog="spmdlint")
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers()
    for command in COMMANDS:
        if command.exists():
            made = commands.add_parser(command.name, help=command.summary, allow_abbrev=False)
            if command.name in words[1:2]:
                _fill(made, command)
    return parser


def _fill(parser: argparse.ArgumentParser, command: Command) -> None:
    module = command.load()
    module.add_arguments(parser)
    if hasattr(module, "USUAL_OPTIONS"):
        parser.add_argument(HELP_ALL, action="store_true", help="list all options")
    for action in parser._actions:
        if action.metavar in ("RULE", "RULES"):
            setattr(action, "completer", _rules)  # noqa: B010 - argcomplete looks for an attribute


def _rules(prefix: str, **_: object) -> Iterator[str]:
    """The codes of rules after the last comma; names where a name has begun."""
    from spmdlint.rule import load_rules

    before, comma, begun = prefix.rpartition(",")
    for rule in load_rules():
        name = rule.name if begun[:1].islower() else rule.code
        if name.startswith(begun):
            yield f"{before}{comma}{name}"
