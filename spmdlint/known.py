"""A run compared with a baseline: which of its findings are known."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from spmdlint import baseline
from spmdlint.engine import Checked
from spmdlint.identity import Mark, marks, relative
from spmdlint.rule import load_rules
from spmdlint.selection import codes_by_selector


class Known:
    """A run compared with a baseline. ``anew``: the file need not exist.

    Raises:
        UsageError: the baseline cannot be read.

    """

    def __init__(self, path: Path, checked: Checked, root: Path, *, anew: bool = False) -> None:
        self._checked = checked
        # A file that could not be read is not a finding to live with.
        always = {rule.code for rule in load_rules() if rule.always}
        found = (*checked.diagnostics, *(checked.elsewhere or ()))
        self._findings = [finding for finding in found if finding.code not in always]
        self._marks = marks(self._findings, checked.sources, root)
        entries = [] if anew and not path.exists() else baseline.read(path)
        now = codes_by_selector(load_rules())  # an entry may have the code of a rule that is part of another one now
        entries = [replace(entry, code=now.get(entry.code, entry.code)) for entry in entries]
        sources = {relative(source, root) for source in checked.sources}
        judged = {relative(asked, root) for asked in checked.asked}
        if checked.elsewhere is not None:
            judged |= sources
        if sources <= judged:  # only a run over all files can tell that one no longer has a finding
            judged |= {entry.path for entry in entries if not (root / entry.path).exists()}
        before = {rule.code: rule.split_from for rule in load_rules() if rule.split_from is not None}
        whole = checked.ran - {old for new, old in before.items() if new not in checked.ran}
        partly = {old for new, old in before.items() if new in checked.ran} - whole
        inside = [entry for entry in entries if entry.path in judged and entry.code in whole | partly]
        matched = baseline.match(
            inside, self._marks, before, lambda name: (root / name).exists(), partial=checked.partial
        )
        # An entry may be for a rule that did not run, if another one that has had its code did.
        self._matched = replace(matched, gone=tuple(entry for entry in matched.gone if entry.code in whole))
        undecided = [entry for entry in matched.gone if entry.code in partly]
        self._others = [entry for entry in entries if entry not in inside] + undecided

    @property
    def gone(self) -> int:
        """How many entries were not found again."""
        return 0 if self._checked.partial else len(self._matched.gone)

    def __len__(self) -> int:
        """How many findings are known."""
        return len(self._matched.known)

    def remaining(self) -> Checked:
        """The run without the known findings."""
        known = {self._findings[number] for number in self._matched.known}
        elsewhere = self._checked.elsewhere
        return replace(
            self._checked,
            diagnostics=tuple(each for each in self._checked.diagnostics if each not in known),
            elsewhere=None if elsewhere is None else tuple(each for each in elsewhere if each not in known),
        )

    def all_found(self) -> list[Mark]:
        """The entries of a baseline with all findings; those of files that were not looked at stay."""
        return [*self._others, *self._marks]

    def found_again(self) -> list[Mark]:
        """The entries of a baseline without those that are gone; those that were found again as they are now."""
        return [*self._others, *(self._marks[number] for number in self._matched.known)]


def without_known(path: Path | None, checked: Checked, root: Path) -> Checked:
    """A run without the findings in a baseline, if there is one.

    Raises:
        UsageError: the baseline cannot be read.

    """
    return checked if path is None else Known(path, checked, root).remaining()
