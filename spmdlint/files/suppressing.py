"""Adds ``# spmdlint: ignore[...]`` comments to a text, where Python accepts a comment."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Sequence

from msgspec import Struct

from spmdlint.diagnostics import Diagnostic
from spmdlint.files.read import split_rows

# A directive, and its reason: the text up to the next `#`, but `#12` names an issue.
_BRACKETS = re.compile(r"#\s*spmdlint:\s*ignore\s*\[(?P<selectors>[^\]]*)\](?P<reason>(?:[^#]|#(?=\d))*)")
_ENDS = (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER)


class Suppressed(Struct, frozen=True):
    """The new text, and how many findings it silences; the others are where no comment is possible."""

    text: str
    count: int


def suppress(text: str, findings: Iterable[Diagnostic], reason: str, end: str) -> Suppressed:
    """Silence the findings of one file with a reason; ``end`` is the file's line end."""
    rows = split_rows(text)
    open_rows, comments = _layout(text)
    wanted: dict[tuple[int, bool], list[str]] = {}
    count = 0
    for finding in findings:
        spot = _spot(finding, open_rows, len(rows))
        if spot is not None:
            count += 1
            codes = wanted.setdefault(spot, [])
            codes += [] if finding.code in codes else [finding.code]
    # From the last row up: an insertion only moves the rows below it.
    ends = re.findall("\r\n|\r|\n", text)
    for (row, above), codes in sorted(wanted.items(), reverse=True):
        line = rows[row - 1]
        if above:
            indent = line[: len(line) - len(line.lstrip())]
            rows.insert(row - 1, f"{indent}{_comment(codes, reason)}")
            ends.insert(row - 1, end)
        else:
            rows[row - 1] = _with_codes(line, comments.get(row), codes, reason)
    return Suppressed("".join(row + after for row, after in zip(rows, [*ends, ""], strict=True)), count)


def _spot(finding: Diagnostic, open_rows: frozenset[int], rows: int) -> tuple[int, bool] | None:
    """The row for the comment, and whether it goes above that row: the first, else the last, else before the first."""
    first, last = finding.place.start.row, min(finding.place.end.row, rows)
    for row in (first, last):
        if row in open_rows:
            return row, False
    return (first, True) if first == 1 or first - 1 in open_rows else None


def _with_codes(line: str, comment: int | None, codes: Sequence[str], reason: str) -> str:
    """A row that silences these rules, in existing brackets if these give the same reason."""
    found = _BRACKETS.finditer(line, comment) if comment is not None else ()
    known = next((each for each in found if each["reason"].strip() == reason), None)
    if known is None:
        return f"{line.rstrip()}  {_comment(codes, reason)}"
    listed = [word for word in re.split(r"[\s,]+", known["selectors"]) if word]
    added = [*listed, *(code for code in codes if code not in listed)]
    start, end = known.span("selectors")
    return f"{line[:start]}{', '.join(added)}{line[end:]}"


def _comment(codes: Sequence[str], reason: str) -> str:
    return f"# spmdlint: ignore[{', '.join(codes)}] {reason}"


def _layout(text: str) -> tuple[frozenset[int], dict[int, int]]:
    """The rows that may end in a comment (not inside a string or before a backslash), and where comments start.

    The file was parsed before, so the tokenizer reaches its end.
    """
    open_rows: set[int] = set()
    comments: dict[int, int] = {}
    for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
        if token.type in _ENDS:
            open_rows.add(token.start[0])
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.start[1]
    return frozenset(open_rows), comments
