"""Findings in notebooks, told by cell and line: as people count, or at the line of the file for servers that read it.

For people a cell becomes a file of its own, ``train.ipynb:cell 3``, with the rows of that cell as they are in the
notebook, magics included; so every format shows it as it shows a file. A server shows a finding at a line of a file
that it has: there the place is the line on which the notebook's JSON has the row, and the message begins with the cell.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from spmdlint.diagnostics import Diagnostic, Edit, Location, Place
from spmdlint.files.notebooks import Cell, Cells, file_row, module_of
from spmdlint.files.read import Source, is_notebook
from spmdlint.output.report import Report

# The formats that servers read.
_SERVERS = frozenset(("github", "gitlab", "junit", "sarif"))
_LINE = re.compile(r"\bline (?P<row>\d+)(?! of \S+\.py\b)(?: of (?P<name>\S+\.ipynb)\b)?")


def by_cell(report: Report, form: str) -> Report:
    """The report with its places in notebooks as the format needs them."""
    notebooks = Notebooks(report.sources)
    move = notebooks.in_file if form in _SERVERS else notebooks.in_cell
    found = tuple(notebooks.told(finding, move, named=form in _SERVERS) for finding in report.diagnostics)
    return replace(report, diagnostics=found, sources=ChainMap(notebooks.added, dict_view(report.sources)))


def dict_view(sources: Mapping[Path, Source]) -> dict[Path, Source]:
    """The sources as ChainMap's type asks for them; they are still read on demand."""
    return sources  # type: ignore[return-value]  # it only reads


class Notebooks:
    """The notebooks of a run; ``added`` are the texts that the moved places need."""

    def __init__(self, sources: Mapping[Path, Source]) -> None:
        self._sources = sources
        self._cells: dict[Path, Cells] = {}
        self._files: dict[Path, bytes | None] = {}
        self.added: dict[Path, Source] = {}

    def told(self, finding: Diagnostic, move: Callable[[Place], Place], *, named: bool) -> Diagnostic:
        """A finding with all its places moved, and with lines in its sentences as lines of cells."""
        home = finding.place.path
        message = self.words(finding.message, home)
        if named and is_notebook(home) and home in self._sources:
            at = self.at(finding.place.path, finding.place.start.row)
            message = f"Cell {at.number}, line {at.row}: {message}"
        return replace(
            finding,
            message=message,
            help=self.words(finding.help, home),
            place=self._moved(finding.place, move),
            related=tuple(
                replace(each, place=self._moved(each.place, move), message=self.words(each.message, home))
                for each in finding.related
            ),
            fix=self._fix(finding, named=named),
        )

    def words(self, text: str, home: Path) -> str:
        """A sentence about a file, with its lines of notebooks as lines of cells."""
        return _LINE.sub(lambda found: self._line(found, home), text)

    def in_cell(self, place: Place) -> Place:
        """The place in the rows of its cell."""
        if place.path not in self._sources:
            return place  # it could not be read, and has no cells
        start = self.at(place.path, place.start.row)
        end = max(self.at(place.path, place.end.row).row, start.row)
        path = place.path.with_name(f"{place.path.name}:cell {start.number}")
        if path not in self.added:
            cells = dict(self._cells_of(place.path).sources())
            self.added[path] = Source(path, cells.get(start.number, ""))
        return Place(path, Location(start.row, place.start.column), Location(end, place.end.column))

    def in_file(self, place: Place) -> Place:
        """The lines of the file on which the rows are; its first, if it changed or has no such text."""
        data = self._data(place.path)
        if data is None:
            return Place(place.path, Location(1, 1), Location(1, 2))
        start = file_row(data, self.at(place.path, place.start.row))
        end = file_row(data, self.at(place.path, place.end.row))
        rows = self.added[place.path].lines()
        return Place(place.path, Location(start, 1), Location(end, len(rows[end - 1]) + 1))

    def _fix(self, finding: Diagnostic, *, named: bool) -> object:
        fix, path = finding.fix, finding.place.path
        if fix is None or not is_notebook(path):
            return fix
        if named:
            return None  # its edits are to the code, and not to the JSON around it
        return replace(fix, edits=tuple(self._edit(edit, path) for edit in fix.edits))

    def _edit(self, edit: Edit, path: Path) -> Edit:
        start, end = (Location(self.at(path, each.row).row, each.column) for each in (edit.start, edit.end))
        return Edit(start, end, edit.content)

    def _moved(self, place: Place, move: Callable[[Place], Place]) -> Place:
        return move(place) if is_notebook(place.path) else place

    def _line(self, found: re.Match[str], home: Path) -> str:
        named = [path for path in self._sources if is_notebook(path) and _ends_in(path, found["name"])]
        path = home if found["name"] is None else named[0] if len(named) == 1 else None
        if path is None or not is_notebook(path):
            return found[0]
        at = self.at(path, int(found["row"]))
        return f"line {at.row} of cell {at.number}" + (f" of {found['name']}" if found["name"] else "")

    def at(self, path: Path, row: int) -> Cell:
        """The cell that a row of a notebook's module belongs to."""
        return self._cells_of(path).at(row)

    def _cells_of(self, path: Path) -> Cells:
        if path not in self._cells:
            source = self._sources.get(path)
            self._cells[path] = Cells("" if source is None else source.text)
        return self._cells[path]

    def _data(self, path: Path) -> bytes | None:
        """The bytes of the file, if they are what was linted."""
        if path not in self._files:
            try:
                data = path.read_bytes()
                source = self._sources.get(path)
                same = source is not None and module_of(data) == source.text
            except (OSError, ValueError):
                same = False
            self._files[path] = data if same else None
            if same:
                self.added[path] = Source(path, data.decode("utf-8"))
        return self._files[path]


def _ends_in(path: Path, end: str | None) -> bool:
    return end is not None and f"/{path.as_posix()}".endswith(f"/{end}")
