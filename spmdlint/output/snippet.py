"""A few rows of source with a span underlined.

Rows are shown as on a terminal: tabs become spaces, control characters become visible symbols, and a wide character
takes two cells, so that the underline is below the right characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from spmdlint.diagnostics import Place

TAB = 4
LONGEST_SPAN = 7
WIDEST_ROW = 160

Line = tuple[str, str, bool]
"""The gutter, the text after it, and whether the text is the underline."""


def snippet(rows: Sequence[str], place: Place, context: int, title: str) -> Iterator[Line]:
    """The lines that show ``place``, with ``context`` rows on either side, below a ``title``.

    A place outside the rows (the file changed during the run, or a rule has a bug) is clipped to the rows.
    """
    if len(rows) > 1 and not rows[-1] and place.start.row < len(rows):
        rows = rows[:-1]  # there is no row after the last line end
    first = min(max(place.start.row, 1), len(rows))
    last = min(max(first, place.end.row), len(rows))
    if last > first and place.end.column <= 1:
        last -= 1
    top, bottom = max(1, first - context), min(len(rows), last + context)
    width = len(str(bottom))
    empty = f"{'':>{width}} |"
    yield f"{'':>{width}}-->", title, False
    yield empty, "", False
    for number in range(top, bottom + 1):
        inside = first <= number <= last
        if inside and last - first >= LONGEST_SPAN and first + 3 <= number < last - 1:
            if number == first + 3:
                yield f"{'':>{width}} :", "", False
            continue
        shown = Row(rows[number - 1])
        yield f"{number:>{width}} |", shown.text, False
        if inside:
            start = place.start.column if number == place.start.row else shown.first_column
            end = place.end.column if number == place.end.row else shown.end_column
            yield empty, shown.underline(start, end), True
    yield empty, "", False


class Row:
    """One row of source, as it is shown."""

    def __init__(self, raw: str) -> None:
        self.first_column = len(raw) - len(raw.lstrip()) + 1
        self.end_column = len(raw.rstrip()) + 1
        cells: list[str] = []
        # The cell at which each character starts, and where the row ends.
        self._starts = [0]
        for character in raw:
            picture = _picture(character, self._starts[-1])
            cells.append(picture)
            self._starts.append(self._starts[-1] + _width(picture))
        text = "".join(cells).rstrip()
        self.text = text if len(text) <= WIDEST_ROW else f"{text[: WIDEST_ROW - 3]}..."

    def underline(self, start: int, end: int) -> str:
        """Marks below the columns from ``start`` up to and without ``end``, at least one; empty for an empty row."""
        if not self.text and end <= start:
            return ""
        left, right = self._cell(start), self._cell(end)
        left = min(left, WIDEST_ROW)
        return " " * left + "^" * max(1, min(right, WIDEST_ROW) - left)

    def _cell(self, column: int) -> int:
        return self._starts[min(max(column, 1), len(self._starts)) - 1]


def _picture(character: str, cell: int) -> str:
    if character == "\t":
        return " " * (TAB - cell % TAB)
    if character < " ":
        return chr(0x2400 + ord(character))
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        # Includes characters that change the writing direction, so that the source is shown as it runs.
        return f"<{ord(character):x}>"
    return character


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )
