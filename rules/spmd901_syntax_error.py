"""SPMD901: a file that cannot be linted."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.diagnostics import Diagnostic
from spmdlint.rule import Run, RunRule


class SyntaxErrorRule(RunRule):
    """A file cannot be read or does not parse, so nothing in it was linted.

    ## What it does

    Reports each file that cannot be opened or decoded, or that is not valid Python. The rest of the project is linted.
    In a notebook, only the cells that are not valid Python are left out.

    ## Why it matters

    A file that is left out looks like a file without hazards. Its definitions are also unknown in the other files, so
    findings may be missing there.

    ## Example

    ```python
    def step(state:
        return state
    ```

    ## Use instead

    ```python
    def step(state):
        return state
    ```

    ## Limits

    The grammar is that of the newest Python. Only the first error in a file, or in a cell, is reported. The rule runs
    regardless of what is selected; `ignore` switches it off.
    """

    code = "SPMD901"
    name = "syntax-error"
    always = True

    def check_run(self, run: Run) -> Iterator[Diagnostic]:
        """Yield a finding for each file, or cell of a notebook, that was not linted."""
        for problem in run.problems:
            message = f"This {problem.part} was not linted. {problem.message}"
            whole = "it" if problem.part == "file" else "the notebook"
            yield self.finding(
                message,
                problem.place,
                help=f"Fix the {problem.part}, or exclude {whole} if it is not meant to be Python.",
            )
