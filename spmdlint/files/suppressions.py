"""Comments that silence findings: ``# spmdlint: ignore[SPMD301] reason`` and ``# noqa: SPMD301``.

The first is at the end of a line, or alone on the line above; the second only at the end of a line, as in flake8 and
ruff. A comment silences a finding if it applies to the finding's first or last line. ``# spmdlint: ignore-file[...]``
silences the findings of these rules in the whole file, or all with ``ignore-file[ALL]``. It is not indented, and stands
on a line of its own, so that nobody takes it for a comment on one line.

Where one finding stands for others, as the innermost condition of a call does for those around it, a comment for any of
them at its place silences it, and one for any of them has an effect: which of them is shown may depend on the options.

A comment may name the code that a finding had before its rule was split from another one. It silences the finding if
it silences none of the rule that has kept the code: what is written today about that one hides nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from spmdlint.diagnostics import Diagnostic, Edit, Location, Place
from spmdlint.files.declaring import DECLARES, storing_rows
from spmdlint.files.read import Source
from spmdlint.files.unsuppressing import removal
from spmdlint.rule import Rule, UnusedSuppression
from spmdlint.selection import ALL, codes_by_selector, matches, nearest

if TYPE_CHECKING:
    from spmdlint.program.summary import Comment

_IGNORE = re.compile(r"#\s*spmdlint:\s*ignore(?P<file>-file)?(?![\w-])(?:\s*\[(?P<selectors>[^\]]*)\])?")
_DIRECTIVE = re.compile(r"#\s*spmdlint:\s*(?P<word>[\w-]+)(?P<more>\s*(?:$|[\[=:(]))?")
_DIRECTIVES = ("ignore", "ignore-file", "uniform")
_NOQA = re.compile(r"#\s*noqa\b(?P<colon>\s*:)?", re.IGNORECASE)
_CODE = re.compile(r"[A-Z]+[0-9]+", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_SEPARATOR = re.compile(r"[\s,]*")


class Suppression(Struct, frozen=True):
    """One rule that a comment silences on the lines that it applies to; without ``selector``, all rules."""

    place: Place
    line: int
    first_line_only: bool
    selector: str
    code: str | None
    silences_all: bool = False
    in_file: bool = False
    """It applies to all lines."""
    is_beside: bool = False
    """It is about the whole file and has no effect, because it stands beside code or is indented."""
    removal: Edit | None = None
    """The edit that removes it from the text."""
    is_directive: bool = False
    """The selector is an unknown word in place of ``ignore``."""

    def silences(self, place: Place, code: str) -> bool:
        """Whether this comment silences a finding with this code at a place."""
        if self.is_beside or (not self.silences_all and code != self.code):
            return False
        if self.in_file:
            return True
        start, end = place.start, place.end
        last = end.row - 1 if end.column == 1 and end.row > start.row else end.row
        return self.line == start.row or (self.line == last and not self.first_line_only)


class Suppressions:
    """The suppressions of a run; it records which of them had an effect."""

    def __init__(self, suppressions: Iterable[Suppression], rules: Sequence[Rule]) -> None:
        self._by_path: dict[Path, list[Suppression]] = {}
        self._used: set[Suppression] = set()
        self._split_from = {rule.code: rule.split_from for rule in rules if rule.split_from is not None}
        self._outdated: dict[Suppression, set[str]] = {}
        """The comments that name the code which a finding had before, with the codes that it has now."""
        self._about: dict[tuple[Path, int, str], Place] = {}
        """Where the findings are that point to a line, by that line and their code; those not silenced come first."""
        self._silenced: set[Place] = set()
        for suppression in suppressions:
            self._by_path.setdefault(suppression.place.path, []).append(suppression)

    def remaining(self, findings: Collection[Diagnostic]) -> list[Diagnostic]:
        """The findings that no comment silences."""
        kept: list[Diagnostic] = []
        for finding in findings:
            meant = self._silencing(finding.place, finding.code)
            for code, place in finding.also:
                covering = self._silencing(place, code)
                self._used.update(covering)
                meant += covering if place == finding.place else []
            self._used.update(meant)
            if not meant:
                kept.append(finding)
        used = frozenset(self._used)
        kept = [finding for finding in kept if not self._silenced_as_before(finding, used)]
        shown = frozenset(kept)
        silenced = [finding for finding in findings if finding not in shown]
        self._silenced.update(finding.place for finding in silenced)
        for finding in (*kept, *silenced):
            for each in finding.related:
                at = (each.place.path, each.place.start.row, finding.code)
                self._about.setdefault(at, finding.place)
        return kept

    def _silencing(self, place: Place, code: str) -> list[Suppression]:
        return [each for each in self._by_path.get(place.path, ()) if each.silences(place, code)]

    def _silenced_as_before(self, finding: Diagnostic, used: Collection[Suppression]) -> bool:
        """Whether a comment silences a finding under the code that it had before, and none under that code today."""
        before = self._split_from.get(finding.code)
        meant = [] if before is None else [each for each in self._silencing(finding.place, before) if each not in used]
        self._used.update(meant)
        for each in meant:
            self._outdated.setdefault(each, set()).add(finding.code)
        return bool(meant)

    def notes(self) -> Iterator[str]:
        """A sentence for each code in comments that silence findings which have another code by now."""
        for code in sorted({each.selector for each in self._outdated}):
            meant = {each: now for each, now in self._outdated.items() if each.selector == code}
            names = sorted({each.place.path.name for each in meant})
            comments = "1 comment" if len(meant) == 1 else f"{len(meant)} comments"
            verb = "names" if len(meant) == 1 else "name"
            more = f" and {len(names) - 1} more files" if len(names) > 2 else f" and {names[-1]}" * (len(names) - 1)
            yield (
                f"{comments} in {names[0]}{more} {verb} {code} for what has a code of its own now, and still silences "
                f"it: write {' or '.join(sorted(set().union(*meant.values())))} there."
            )

    def unused(
        self, ran: Collection[str], rules: Sequence[Rule], besides: Collection[Path]
    ) -> Iterator[UnusedSuppression]:
        """The suppressions without effect, for the rules that ran, outside the files ``besides``."""
        words = [word for rule in rules for word in (rule.code, rule.name)]
        for path, suppressions in self._by_path.items():
            for item in suppressions:
                if path in besides or item in self._used or (item.silences_all and not item.is_beside):
                    continue
                if item.code is None or item.code in ran or item.is_beside:
                    known = _DIRECTIVES if item.is_directive else words
                    family = item.code is None and bool(item.selector) and bool(matches(item.selector, rules))
                    unknown = item.code is None and item.selector and not family
                    near = nearest(item.selector, known) if unknown else None
                    pointing = None if item.code is None or item.in_file else (path, item.line, item.code)
                    meant = None if pointing is None else self._about.get(pointing)
                    yield UnusedSuppression(
                        item.place,
                        item.selector,
                        item.code,
                        near,
                        item.removal,
                        item.is_directive,
                        family,
                        meant,
                        meant in self._silenced,
                        item.in_file,
                        item.is_beside,
                    )


def collect(
    comments: Mapping[Path, Sequence[Comment]], sources: Mapping[Path, Source], rules: Sequence[Rule]
) -> Suppressions:
    """The suppressions in the comments."""
    codes = codes_by_selector(rules)
    return Suppressions(
        (
            suppression
            for path, found in comments.items()
            for rows in (_Rows(path, sources),)
            for comment in found
            for suppression in (
                *_ignores(path, comment, rows, codes),
                *_noqas(path, comment, rows, codes),
                *_unknown(path, comment),
                *_misplaced(path, comment, rows),
            )
        ),
        rules,
    )


class _Rows:
    """The rows of a file, read on demand: most comments do not need them, because they are for other tools."""

    def __init__(self, path: Path, sources: Mapping[Path, Source]) -> None:
        self._path = path
        self._sources = sources

    @cached_property
    def all(self) -> Sequence[str]:
        """The rows; none if the file has no text."""
        return self._sources[self._path].lines() if self._path in self._sources else []

    @cached_property
    def storing(self) -> frozenset[int] | None:
        """The rows of what may store a value; None if that is not known."""
        return storing_rows("\n".join(self.all)) if self._path in self._sources else None


def _ignores(path: Path, comment: Comment, rows: _Rows, codes: Mapping[str, str]) -> Iterator[Suppression]:
    for found in _IGNORE.finditer(comment.text):
        line = _line_below(comment, rows.all) if comment.own_line else comment.row
        in_file = found["file"] is not None
        is_beside = in_file and not (comment.own_line and comment.column == 1)
        listed = found["selectors"] or ""
        words = list(re.finditer(r"[^\s,]+", listed))
        for word in words:
            at = found.start("selectors")
            start, end = at + word.start(), at + word.end()
            place = _place(path, comment, start, end)
            whole = (at + words[0].start(), at + words[-1].end())
            cut = removal(comment, rows.all, (start, end), whole, found.span())
            yield Suppression(
                place,
                line,
                comment.own_line,
                word.group(),
                codes.get(word.group()),
                silences_all=in_file and word.group() == ALL,
                in_file=in_file,
                is_beside=is_beside,
                removal=cut,
            )
        if not words:
            yield Suppression(_place(path, comment, *found.span()), line, comment.own_line, "", None, in_file=in_file)


def _unknown(path: Path, comment: Comment) -> Iterator[Suppression]:
    """Words that look like a directive and are not one: ``spmdlint: disable=SPMD301``, ``spmdlint: unifrom``."""
    for found in _DIRECTIVE.finditer(comment.text):
        word = found["word"]
        if word not in _DIRECTIVES and (found["more"] is not None or nearest(word, _DIRECTIVES) is not None):
            place = _place(path, comment, found.start(), found.end("word"))
            yield Suppression(place, comment.row, comment.own_line, word, None, is_directive=True)


def _misplaced(path: Path, comment: Comment, rows: _Rows) -> Iterator[Suppression]:
    """Declarations at what stores nothing, so that there is nothing to declare."""
    found = DECLARES.search(comment.text)
    row = comment.row + 1 if comment.own_line else comment.row
    if found is not None and rows.storing is not None and row not in rows.storing:
        place = _place(path, comment, *found.span())
        yield Suppression(place, comment.row, comment.own_line, "uniform", None, is_directive=True)


def _noqas(path: Path, comment: Comment, rows: _Rows, codes: Mapping[str, str]) -> Iterator[Suppression]:
    """Our codes in a ``noqa``; other tools' codes, and the text after the codes, are ignored."""
    letters = {code.rstrip("0123456789") for code in codes.values()}
    for found in _NOQA.finditer(comment.text):
        if comment.own_line:
            continue
        if not found["colon"]:
            place = _place(path, comment, *found.span())
            yield Suppression(place, comment.row, False, "", None, silences_all=True)
            continue
        words = list(_words(comment.text, found.end()))
        for word in words:
            text = word.group()
            code = codes.get(text) or codes.get(text.upper())
            if code is not None or text.rstrip("0123456789").upper() in letters:
                place = _place(path, comment, *word.span())
                whole = (words[0].start(), words[-1].end())
                part = (found.start(), whole[1])
                cut = removal(comment, rows.all, word.span(), whole, part)
                yield Suppression(place, comment.row, False, text, code, removal=cut)


def _words(text: str, at: int) -> Iterator[re.Match[str]]:
    """The codes and names from a position on, up to the first other text."""
    at = _skip(text, at)
    while word := (_CODE.match(text, at) or _NAME.match(text, at)):
        yield word
        at = _skip(text, word.end())


def _skip(text: str, at: int) -> int:
    found = _SEPARATOR.match(text, at)
    return found.end() if found else at


def _line_below(comment: Comment, rows: Sequence[str]) -> int:
    """The line that a comment on its own line applies to: the next one that is not also a comment."""
    line = comment.row + 1
    while line <= len(rows) and rows[line - 1].lstrip().startswith("#"):
        line += 1
    return line


def _place(path: Path, comment: Comment, start: int, end: int) -> Place:
    return Place(path, Location(comment.row, comment.column + start), Location(comment.row, comment.column + end))
