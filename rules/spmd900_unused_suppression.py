"""SPMD900: a comment suppresses a rule that reports nothing there."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.diagnostics import Diagnostic, Fix
from spmdlint.rule import Run, RunRule, UnusedSuppression


class UnusedSuppressionRule(RunRule):
    """A comment suppresses a rule that reports nothing there.

    ## What it does

    Reports each code or name in `# spmdlint: ignore[...]`, `# spmdlint: ignore-file[...]` and `# noqa: ...` that
    suppresses nothing although its rule ran, each one that belongs to no installed rule, and each `ignore` or
    `ignore-file` that names no rule at all. Also reports comments that look like a directive but are not one, such as
    `# spmdlint: disable=...`, an `ignore-file` that does not have a line to itself, and each `# spmdlint: uniform` at
    code that stores no value and defines no function.

    ## Why it matters

    A suppression that has outlived its cause hides the next hazard on that line, which nobody has looked at. One with a
    typo in the code never worked, although the reader believes that it does.

    ## Example

    ```python
    total = 1 + 1  # spmdlint: ignore[SPMD301] the sum is known
    ```

    ## Use instead

    ```python
    total = 1 + 1
    ```

    ## Limits

    A bare `# noqa`, `ignore-file[ALL]`, and other tools' codes in a `noqa`, are never reported. Neither are
    suppressions of rules that did not run, those in a file that does not parse, and those of this rule and SPMD901
    themselves.
    """

    code = "SPMD900"
    name = "unused-suppression"
    severity = "warning"

    def check_run(self, run: Run) -> Iterator[Diagnostic]:
        """Yield a finding for each suppression without effect."""
        for unused in run.unused_suppressions:
            message, way_out = _words(unused)
            yield self.finding(message, unused.place, help=way_out, fix=_fix(unused))


def _fix(unused: UnusedSuppression) -> Fix | None:
    """Remove the selector if its rule ran and found nothing. An unknown one may be a typo and is left to the reader."""
    if unused.code is None or unused.removal is None:
        return None
    return Fix("safe", f"Remove {unused.selector} from the comment.", (unused.removal,))


def _words(unused: UnusedSuppression) -> tuple[str, str]:
    where = "in this file" if unused.in_file else "here"
    if not unused.selector:
        form = "ignore-file[CODE] reason; ALL stands for all rules" if unused.in_file else "ignore[CODE] reason"
        return (
            "This comment names no rule, so it suppresses nothing.",
            f"Name the rule in brackets, with a reason after them: spmdlint: {form}.",
        )
    if unused.is_beside:
        return (
            "This comment is about the whole file, but does not have a line to itself, so it suppresses nothing.",
            "Put it on a line of its own at the top of the file, not indented.",
        )
    if unused.is_directive and unused.selector == "uniform":
        return (
            "This comment declares a value uniform, but no value is stored here, so it does nothing.",
            "Put it at the end of an assignment or of the line of a 'def', or alone on the line directly above.",
        )
    if unused.is_directive:
        near = f"Did you mean {unused.nearest!r}? " if unused.nearest else ""
        return (
            f"This comment says {unused.selector!r}, which is not a spmdlint directive, so it does nothing.",
            f"{near}The directives are spmdlint: ignore[CODE] reason, ignore-file[CODE] reason, and uniform.",
        )
    if unused.is_family:
        return (
            f"This comment suppresses {unused.selector}, which stands for several rules; comments take whole codes.",
            f"Name the rules themselves: 'spmdlint rule {unused.selector}' lists them.",
        )
    if unused.code is None:
        near = f"Did you mean {unused.nearest}? " if unused.nearest else ""
        return (
            f"This comment suppresses {unused.selector}, but no installed rule has that code or name.",
            f"{near}'spmdlint rule --all' lists the rules.",
        )
    if unused.meant is not None:
        row, path = unused.meant.start.row, unused.meant.path
        at = f"line {row}" if path == unused.place.path else f"line {row} of {path.name}"
        text = f"This comment suppresses {unused.selector}, which reports nothing here: the finding is at {at}"
        if unused.is_meant_silenced:
            way_out = "Delete this one: the comment there stands for this line as well."
            return f"{text}, and the comment there suppresses it.", way_out
        return f"{text}.", "Move the comment there, if it is about that finding; otherwise delete it."
    return (
        f"This comment suppresses {unused.selector}, which reports nothing {where}.",
        "Delete it, so that it cannot hide a later finding.",
    )
