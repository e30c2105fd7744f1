"""The table of subcommands, and what happens around each of them: options, errors, interrupts.

Nothing heavy is imported here, because editors and hooks call ``spmdlint --version`` first.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from spmdlint._version import __version__
from spmdlint.cli.parsing import Parser, nearest
from spmdlint.errors import UsageError

SUCCESS = 0
FAILURE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

TRACEBACK_VARIABLE = "SPMDLINT_TRACEBACK"


class Command(NamedTuple):
    """A subcommand; ``module`` offers ``add_arguments(parser)`` and ``main(options) -> int``.

    It may have ``USUAL_OPTIONS``, the only ones that ``--help`` lists, where there are more than people read.
    """

    name: str
    module: str
    summary: str

    def exists(self) -> bool:
        """Whether this installation has the subcommand."""
        return importlib.util.find_spec(self.module) is not None

    def load(self) -> ModuleType:
        """The module of this subcommand."""
        return importlib.import_module(self.module)

    def parser(self, module: ModuleType) -> Parser:
        """The parser of its options."""
        parser = Parser(prog=f"spmdlint {self.name}", description=self.summary, allow_abbrev=False)
        module.add_arguments(parser)
        if usual := getattr(module, "USUAL_OPTIONS", ()):
            parser.hide_all_but(usual)
        return parser


COMMANDS = (
    Command("check", "spmdlint.cli.check", "Find SPMD hazards in files and folders."),
    Command("rule", "spmdlint.cli.rule", "Explain a rule, or list all rules."),
    Command("explain", "spmdlint.cli.explain", "Show what the linter knows about a line, and what it does not."),
    Command("server", "spmdlint.cli.server", "Serve an editor: findings while you type."),
    Command("schema", "spmdlint.cli.schema", "Print a JSON schema of the configuration, for editors."),
    Command("clean", "spmdlint.cli.clean", "Delete the cache of earlier runs."),
    Command("run", "spmdlint.cli.run", "Rehearse a program on several processes on this machine."),
    Command("ledger", "spmdlint.cli.ledger", "Compare the recordings of a job, or show them on a page."),
    Command("completion", "spmdlint.cli.completion", "Print a script that completes commands in a shell."),
)


def dispatch(argv: Sequence[str]) -> int:
    """Run the subcommand that ``argv`` names."""
    _survive_narrow_encodings()
    try:
        return _dispatch(argv)
    except SystemExit as stop:  # argparse exits in this way, after --help as well as after an error
        return stop.code if isinstance(stop.code, int) else FAILURE
    except UsageError as error:
        complain(str(error))
        return FAILURE
    except KeyboardInterrupt:
        complain("Interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has gone.
        _close_output()
        return BROKEN_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            _close_output()
            complain("The findings cannot be written: there is no space left.")
            return FAILURE
        if isinstance(error, PermissionError) and error.filename is not None and not wants_traceback():
            complain(f"There is no access to {os.fsdecode(error.filename)} ({error.strerror}); change its permissions.")
            return FAILURE
        complain(
            f"Internal error: {type(error).__name__}: {error}. This is a bug in spmdlint; "
            f"please report it with the traceback that {TRACEBACK_VARIABLE}=1 prints."
        )
        if wants_traceback():
            import traceback

            traceback.print_exc()
        return FAILURE


def _close_output() -> None:
    """Drop output that can no longer be written: Python would complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(sentence: str) -> None:
    """Print a sentence to standard error."""
    print(f"spmdlint: {sentence}", file=sys.stderr)


def wants_traceback() -> bool:
    """Whether the environment asks for the traceback of an internal error."""
    return bool(os.environ.get(TRACEBACK_VARIABLE))


def _dispatch(argv: Sequence[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        from spmdlint.cli.completion import answer

        answer()
    top = _top_parser()
    if not argv:
        top.print_help(sys.stderr)
        return FAILURE
    if argv[0] == "help":
        argv = [*argv[1:2], "--help"]
    command = next((c for c in COMMANDS if c.name == argv[0] and c.exists()), None)
    if command is None:
        if argv[0].startswith("-"):
            top.read([argv[0]])  # which prints the help or the version, or refuses the option
        raise UsageError(_no_command(argv[0]))
    module = command.load()
    status: int = module.main(command.parser(module).read(argv[1:]))
    sys.stdout.flush()
    return status


def _no_command(word: str) -> str:
    names = [command.name for command in COMMANDS if command.exists()]
    near = nearest(word, names)
    hint = f" Did you mean {near!r}?" if near else ""
    if near is None and Path(word).exists():
        hint = f" 'spmdlint check {word}' lints it."
    return f"There is no command {word!r}.{hint} The commands are {', '.join(names)}."


def _top_parser() -> Parser:
    commands = [command for command in COMMANDS if command.exists()]
    width = max(len(command.name) for command in commands)
    listing = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in commands)
    parser = Parser(
        prog="spmdlint",
        usage="spmdlint [-h] [-V] COMMAND ...",
        description="A linter and a runtime checker for SPMD correctness hazards in JAX programs.",
        epilog=f"commands:\n{listing}\n\n'spmdlint COMMAND --help' lists the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"spmdlint {__version__}")
    return parser


def _survive_narrow_encodings() -> None:
    """Print characters that the terminal's encoding lacks as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
