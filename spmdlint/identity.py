"""What identifies a finding in the next run, even if lines were inserted above it.

It does not include the row number, but the rule, the file, the code on the line without its layout, the function around
it and the lines next to it; and the function that is called there, where that tells findings on one line apart. Formats
make fingerprints of it, and baselines are matched by it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from spmdlint.diagnostics import Diagnostic
from spmdlint.files.read import Source

_DEFINITION = re.compile(r"\s*(?:async\s+def|def|class)\s+(\w+)")
_COMMENT = re.compile(r"\s+#[^'\"]*$")
_SPACE = re.compile(r"\s+")


class Mark(Struct, frozen=True, order=True):
    """The identity of a finding; ``path`` is relative to the project, with slashes."""

    path: str
    code: str
    scope: str
    text: str
    before: str
    after: str
    through: str = ""


def mark(finding: Diagnostic, rows: Sequence[str], base: Path) -> Mark:
    """The mark of a finding in a file with these rows."""
    row = finding.place.start.row
    return Mark(
        path=relative(finding.place.path, base),
        code=finding.code,
        scope=_scope(rows, row),
        text=_normal(rows[row - 1]) if 0 < row <= len(rows) else "",
        before=_neighbour(rows, range(row - 2, -1, -1)),
        after=_neighbour(rows, range(row, len(rows))),
        through=finding.through,
    )


def marks(findings: Iterable[Diagnostic], sources: Mapping[Path, Source], base: Path) -> list[Mark]:
    """The marks of findings, in their order."""
    rows: dict[Path, Sequence[str]] = {}
    found = []
    for finding in findings:
        path = finding.place.path
        if path not in rows:
            source = sources.get(path)
            rows[path] = source.lines() if source is not None else []
        found.append(mark(finding, rows[path], base))
    return found


def fingerprints(findings: Iterable[Diagnostic], sources: Mapping[Path, Source], base: Path) -> list[str]:
    """A short text for each finding, the same in the next run wherever the line moves; all of them differ."""
    seen: Counter[str] = Counter()
    found = []
    for each in marks(findings, sources, base):
        what = (each.code, each.path, each.text, *filter(None, (each.through,)))
        key = hashlib.blake2b("\0".join(what).encode(), digest_size=8).hexdigest()
        seen[key] += 1
        found.append(f"{key}:{seen[key]}")
    return found


def relative(path: Path, base: Path) -> str:
    """A path relative to ``base``, with slashes; unchanged if it is elsewhere."""
    return path.relative_to(base).as_posix() if base in path.parents else path.as_posix()


def _normal(row: str) -> str:
    return _SPACE.sub(" ", _COMMENT.sub("", row)).strip()


def _neighbour(rows: Sequence[str], numbers: Iterable[int]) -> str:
    """The first row, in this order, that is more than a comment."""
    for number in numbers:
        text = _normal(rows[number])
        if text and not text.startswith("#"):
            return text
    return ""


def _scope(rows: Sequence[str], row: int) -> str:
    """The classes and functions around a row, judging by indentation."""
    if not 0 < row <= len(rows):
        return ""
    names: list[str] = []
    indent = len(rows[row - 1]) - len(rows[row - 1].lstrip())
    for number in range(row - 2, -1, -1):
        line = rows[number]
        width = len(line) - len(line.lstrip())
        if line.strip() and width < indent:
            found = _DEFINITION.match(line)
            if found is not None:
                names.append(found[1])
                indent = width
            if width == 0:
                break
    return ".".join(reversed(names))
