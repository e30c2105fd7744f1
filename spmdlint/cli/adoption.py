"""Options for a project that already has findings: baselines, and suppressions written by the linter."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from spmdlint import baseline
from spmdlint.cli.commands import complain
from spmdlint.cli.writing import write_file
from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic
from spmdlint.engine import Checked
from spmdlint.errors import UsageError
from spmdlint.files.write import line_end, rewrite
from spmdlint.known import Known
from spmdlint.rule import about_comments

USUAL = "spmdlint-baseline.json"
"""The name of the file in messages and pages."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("adoption")
    group.add_argument("--baseline", type=Path, metavar="FILE", help="do not show the findings in this file")
    group.add_argument("--write-baseline", action="store_true", help="write all findings to the file of --baseline")
    group.add_argument(
        "--prune-baseline", action="store_true", help="remove entries that are no longer found from the baseline"
    )
    group.add_argument(
        "--add-ignore",
        metavar="REASON",
        help="silence all findings with comments that give this reason",
    )


def file_of(options: argparse.Namespace, config: Config) -> Path | None:
    """The baseline of the run.

    Raises:
        UsageError: a baseline is to be written, but no file was named.

    """
    path: Path | None = options.baseline.absolute() if options.baseline is not None else config.baseline
    if path is None and (options.write_baseline or options.prune_baseline):
        asked = "--write-baseline" if options.write_baseline else "--prune-baseline"
        raise UsageError(
            f"{asked} needs to know the file: add '--baseline {USUAL}', or set 'baseline = \"{USUAL}\"' in the "
            "configuration, where later runs find it too."
        )
    return path


def refuse_with_fixes(options: argparse.Namespace) -> None:
    """Refuse fixes together with comments or baselines for the remaining findings, and a part of what they record.

    Raises:
        UsageError: they are asked for in one run.

    """
    asked = {
        "--add-ignore": options.add_ignore is not None,
        "--write-baseline": options.write_baseline,
        "--prune-baseline": options.prune_baseline,
    }
    fixing = {"--diff": options.diff, "--fix": options.fix, "--fix-only": options.fix_only}
    for adopting in (name for name, given in asked.items() if given):
        if options.near:
            raise UsageError(f"{adopting} records what the whole project has: leave --near out.")
        for other in (name for name, given in fixing.items() if given):
            reason = "changes no file" if other == "--diff" else "leaves fewer findings"
            raise UsageError(f"{other} {reason}, and {adopting} records them: run {other} first, then {adopting}.")


def apply_baseline(path: Path, checked: Checked, config: Config, options: argparse.Namespace) -> tuple[Checked, int]:
    """The run without the findings in the baseline, and their number; writes the baseline if asked to."""
    known = Known(path, checked, config.root, anew=options.write_baseline)
    if options.write_baseline:
        entries = known.all_found()
        write_file(path, baseline.text(entries))
        complain(f"{path} now holds {_count(len(entries), 'finding')}.")
        known = Known(path, checked, config.root)
    elif options.prune_baseline:
        write_file(path, baseline.text(known.found_again()))
        complain(f"{_count(known.gone, 'finding')} removed from {path}.")
    elif known.gone:
        verb = "is" if known.gone == 1 else "are"
        complain(f"{_count(known.gone, 'finding')} in the baseline {verb} gone; --prune-baseline updates the file.")
    return known.remaining(), len(known)


def add_ignores(checked: Checked, reason: str) -> None:
    """Silence the findings by comments in their files, at places where Python allows a comment.

    Raises:
        UsageError: the reason is empty, or a file cannot be written.

    """
    from spmdlint.files.suppressing import suppress  # imports Python's tokenizer, which other runs do not need

    reason = " ".join(reason.split())
    if not reason:
        raise UsageError("--add-ignore needs a reason, for the readers of the comments.")
    by_path: dict[Path, list[Diagnostic]] = defaultdict(list)
    for finding in checked.diagnostics:
        if finding.code not in about_comments():
            by_path[finding.place.path].append(finding)
    count = 0
    for path, findings in by_path.items():
        text = checked.sources[path].text
        suppressed = suppress(text, findings, reason, line_end(text))
        rewrite(path, suppressed.text)
        count += suppressed.count
    complain(f"{_count(count, 'finding')} silenced.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
