"""``spmdlint explain FILE:LINE``: what the linter knows about a line, and what it does not."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from spmdlint.cli import keeping
from spmdlint.cli.commands import SUCCESS, complain
from spmdlint.config import override
from spmdlint.errors import UsageError
from spmdlint.explaining import explain
from spmdlint.files.find import SUFFIXES
from spmdlint.files.reach import refuse_closed, refuse_unlike_files
from spmdlint.files.read import Source, is_notebook, read
from spmdlint.files.root import absolute, configure_named
from spmdlint.output.explanation import Writer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "line",
        metavar="FILE:LINE",
        help="a file and a line in it, counted from 1: train.py:31, or 'train.ipynb:cell 3:2'",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="read the configuration from this file")
    parser.add_argument(
        "--preview",
        action=argparse.BooleanOptionalAction,
        help="as in check: count the findings of preview rules among the usual ones",
    )
    parser.add_argument("--whole-program", action="store_true", help="tell the facts from all files, not the near ones")
    keeping.add_arguments(parser)
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="text is the default")


def main(options: argparse.Namespace) -> int:
    """Explain the line, including findings of preview rules."""
    name, row = _in_cell(options.line) or _parse(options.line)
    path = absolute(name)
    found = configure_named([name], Path.cwd(), options.config, force_exclude=False)
    config = override(found, {"preview": options.preview})
    known = explain(config, path, row, cache=keeping.folder(options, config), whole=options.whole_program)
    for note in known.notes:
        complain(note)
    writer = Writer(known.program, known.texts, config.root, known.on_trial, known.suppressed)
    about = known.explanation, known.findings
    in_json = options.output_format == "json"
    sys.stdout.write(json.dumps(writer.as_object(*about), indent=2) + "\n" if in_json else writer.text(*about))
    return SUCCESS


def _in_cell(argument: str) -> tuple[str, int] | None:
    """The name of the notebook, and the row of its module, for ``train.ipynb:cell 3:2``; None for another argument."""
    match = re.fullmatch(r"(?P<path>.+\.ipynb):cell ?(?P<cell>\d+):(?P<row>\d+)(?::\d+)?", argument)
    if match is None:
        return None
    path = absolute(match["path"])
    refuse_closed(path)
    if not path.is_file():
        return None
    from spmdlint.files.notebooks import Cell, Cells

    source = read(path)
    row = None
    if isinstance(source, Source):
        row = Cells(source.text).row_of(Cell(int(match["cell"]), int(match["row"])))
    if row is None:
        raise UsageError(f"{match['path']} has no line {match['row']} in a code cell {match['cell']}.")
    return match["path"], row


def _parse(argument: str) -> tuple[str, int]:
    """The name of the file, and the line; a column after them, as copied from an editor, is accepted and ignored."""
    match = re.fullmatch(r"(?P<path>.+?):(?P<row>\d+)(?::\d+)?", argument)
    if match is not None and is_notebook(Path(match["path"])):
        raise UsageError(f"{match['path']} is a notebook; name the cell too, such as '{match['path']}:cell 3:2'.")
    cell = re.fullmatch(r".+\.ipynb:cell ?\d+:?", argument)
    if cell is not None:
        raise UsageError(f"{argument!r} names a cell; name the line in it too: '{argument.rstrip(':')}:LINE'.")
    if match is None:
        raise UsageError(f"{argument!r} does not name a line; write the file and the line, such as train.py:31.")
    path = absolute(match["path"])
    refuse_closed(path)
    refuse_unlike_files(path)
    if not path.is_file():
        raise UsageError(f"There is no file {match['path']}; name one that exists.")
    if path.suffix not in (*SUFFIXES, ""):
        raise UsageError(f"{match['path']} cannot be explained: it is neither a .py file nor a notebook.")
    return match["path"], int(match["row"])
