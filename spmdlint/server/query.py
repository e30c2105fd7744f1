"""What the language server asks about a project, and how it is answered today: by a run of the linter each time.

This module runs in a worker process, which is killed when the texts change while it answers. :class:`Query` is all that
the server knows of the engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from spmdlint.config import Config, override
from spmdlint.diagnostics import Diagnostic, Place
from spmdlint.edited import changed_nearby
from spmdlint.engine import Checked, Linked, about_files, check, link
from spmdlint.errors import UsageError
from spmdlint.files.notebooks import Cell, Cells
from spmdlint.files.read import Source, Unreadable, is_notebook, read
from spmdlint.files.root import configure
from spmdlint.files.store import usual_folder
from spmdlint.fixes.making import with_edits
from spmdlint.fixes.rounds import exact
from spmdlint.known import without_known
from spmdlint.output.cells import Notebooks
from spmdlint.plain import PlainFinding, plain
from spmdlint.program.survey import broken_cells
from spmdlint.program.syntax import python_tree
from spmdlint.program.trouble import Trouble
from spmdlint.program.workers import outcome_of
from spmdlint.rule import load_rules
from spmdlint.server.moves import Moves
from spmdlint.worker import Say, answer_all

STOOD_IN = "The other findings in this file are those of the last text that did parse."


class Document(Struct, frozen=True, array_like=True):
    """The text of a file that is open in the editor.

    ``parsed`` is the last text of it that could be read as Python, for the time in which a line is half typed.
    ``saved``: the editor has not changed it since it read or wrote the file. ``examined`` is the text that the findings
    on display are about, if there are any, and ``told`` are the files that they lead through.
    """

    path: Path
    text: str
    parsed: str | None = None
    saved: bool = False
    examined: str | None = None
    told: list[Path] = []


class CellRow(Struct, frozen=True, array_like=True):
    """A row of a notebook's module: the line of the file that it is on, and where it is in its cell."""

    path: Path
    row: int
    line: int
    cell: Cell


class Findings(Struct, array_like=True, tag=True):
    """The findings in a project.

    ``broken`` are the documents whose text does not parse. Where there is a last text that did, it was examined in
    place of it, and ``unparsed`` says what is wrong, at places of the text that does not parse. ``wide`` are the rows
    that findings and their explanations point to and that are not plain ASCII, each with its file and number: there,
    editors count columns in their own way. ``cells`` are the rows of notebooks that they point to, for notebooks that
    are not open. ``notes`` are sentences for the user's log.
    """

    found: list[PlainFinding]
    broken: list[Path]
    unparsed: list[PlainFinding]
    wide: list[tuple[Path, int, str]]
    cells: list[CellRow]
    notes: list[str]


class Early(Struct, array_like=True, tag=True):
    """What the last edit changes, by the files near it: findings that are gone, and those that it adds."""

    gone: list[PlainFinding]
    added: Findings


class Progress(Struct, array_like=True, tag=True):
    """How many files were read, and of how many."""

    done: int
    total: int


Said: TypeAlias = Early | Progress
"""What is said before the answer."""


class Query(Protocol):
    """Everything that the server asks about a project, which is that of the file ``about``."""

    def findings(self, about: Path, documents: Sequence[Document], say: Callable[[Said], None]) -> Findings:
        """The findings in all files of the project, with the texts of the open documents in place of those on disk.

        What takes longer for a large project says before what the edit of one document changes near it.

        Raises:
            UsageError: the configuration is wrong.

        """

    def line(self, about: Path, documents: Sequence[Document], version: int, row: int) -> str:
        """What is known about a line of the file ``about``, counted from 1, in a few lines; empty if nothing is.

        The texts are the same as in the last question with this ``version``.

        Raises:
            UsageError: the configuration is wrong, or the file does not parse.

        """


class FreshRuns:
    """Answers by a run of the linter for each question. The linked program is kept for the next line that is asked."""

    def __init__(self) -> None:
        self._linked: tuple[int, Linked] | None = None

    def findings(self, about: Path, documents: Sequence[Document], say: Callable[[Said], None]) -> Findings:
        """The findings, as :class:`Query` says."""
        self._linked = None  # it may be about other texts, and takes room
        config = _config(about)
        typed = _Typed(documents)
        # In a folder that nothing marks as a project, the other files may have nothing to do with the open ones.
        asked = [config.root] if config.marked else [each.path for each in documents if each.path.exists()]
        cache = usual_folder(config)
        edits = [each for each in documents if each.examined not in (None, each.text)]
        if config.marked and len(edits) == 1 and not typed.broken and not is_notebook(edits[0].path):
            path, before = edits[0].path, edits[0].examined or ""
            edited = {path: edits[0].text, **typed.texts}
            kept = Moves(before, edits[0].text).place
            changed = changed_nearby(config, path, before, edits[0].told, edited, cache, kept)
            if changed is not None:
                say(Early([plain(each) for each in changed.gone], self._told(changed.added, typed, config)))
        checked = check(
            config, asked, edited=typed.texts, cache=cache, progress=lambda done, total: say(Progress(done, total))
        )
        return self._told(without_known(config.baseline, checked, config.root), typed, config)

    @staticmethod
    def _told(checked: Checked, typed: _Typed, config: Config) -> Findings:
        notebooks = Notebooks(checked.sources)
        # Places in notebooks and fixes of them stay those of the module, until it is known how the editor shows them.
        told = [
            replace(notebooks.told(finding, lambda place: place, named=False), fix=finding.fix)
            for finding in checked.diagnostics
        ]
        shown = {place.path for place in _places(told)}
        sources = {path: checked.sources[path] for path in shown if path in checked.sources}  # others have no text
        return Findings(
            [plain(finding) for finding in with_edits(_without_doubtful_fixes(told, sources), sources)],
            typed.broken,
            [plain(finding) for finding in typed.findings(config)],
            list(_wide(told, sources)),
            list(_cells(told, notebooks, sources)),
            [*checked.notes, *(crash.sentence() for crash in checked.crashes)],
        )

    def line(self, about: Path, documents: Sequence[Document], version: int, row: int) -> str:
        """What is known about a line, as :class:`Query` says."""
        from spmdlint.output.explanation import Writer

        config = _config(about)
        typed = _Typed(documents)
        if about in typed.broken:
            return ""
        if self._linked is None or self._linked[0] != version:
            linked = link(config, [config.root], edited=typed.texts, cache=usual_folder(config))
            self._linked = (version, linked)
        linked = self._linked[1]
        return Writer(linked.program, linked.texts, config.root).brief(linked.explain(about, row))


class _Typed:
    """The texts of the open documents that are not those on disk.

    ``broken`` are those that do not parse; ``troubles`` says why, where another text stands in. A notebook parses
    whatever is in its cells; it counts as broken while for some of them another text stands in.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self.texts: dict[Path, str] = {}
        self.broken: list[Path] = []
        self.troubles: list[tuple[Path, Trouble]] = []
        for document in documents:
            text = document.text
            if is_notebook(document.path):
                troubles = list(_stood_in(document))
            else:
                # The second way also knows newer syntax, and what is wrong.
                outcome = None if python_tree(text) is not None else outcome_of(text)
                troubles = [outcome] if isinstance(outcome, Trouble) else []
            if troubles:
                self.broken.append(document.path)
                if document.parsed is not None:
                    self.troubles += [(document.path, trouble) for trouble in troubles]
                    text = document.parsed
            on_disk = read(document.path)
            # The editor shows something even for a file that cannot be decoded.
            unreadable = isinstance(on_disk, Unreadable) and document.saved and document.path.exists()
            if not unreadable and on_disk != Source(document.path, text):
                self.texts[document.path] = text

    def findings(self, config: Config) -> Iterator[Diagnostic]:
        """What does not parse."""
        for path, trouble in self.troubles:
            for finding in about_files(config, [(path, trouble)]):
                yield replace(finding, message=trouble.message, help=STOOD_IN)


def _stood_in(document: Document) -> Iterator[Trouble]:
    """What is wrong with the cells of a notebook for which another text stands in."""
    cells, parsed = Cells(document.text), Cells(document.parsed or document.text)
    never_parsed = {parsed.at(above).number for above, _ in parsed.unparsed()}
    notebooks = Notebooks({document.path: Source(document.path, document.text)})
    for trouble in broken_cells(document.text):
        if cells.at(trouble.row).number not in never_parsed:
            yield replace(trouble, message=notebooks.words(trouble.message, document.path))


def _config(about: Path) -> Config:
    """The configuration for a file. The files that it excludes are not linted, although they are open."""
    return override(configure([about], force_exclude=True), {"force_exclude": True})


def _places(findings: Iterable[Diagnostic]) -> Iterator[Place]:
    for finding in findings:
        yield finding.place
        yield from (related.place for related in finding.related)


def _wide(findings: Iterable[Diagnostic], sources: dict[Path, Source]) -> Iterator[tuple[Path, int, str]]:
    """The rows with places that are not plain ASCII."""
    asked: dict[Path, set[int]] = {}
    for place in _places(findings):
        asked.setdefault(place.path, set()).update((place.start.row, place.end.row))
    for path, numbers in asked.items():
        if path in sources and not sources[path].text.isascii():
            rows = dict(enumerate(sources[path].lines(), 1))
            yield from ((path, n, rows[n]) for n in sorted(numbers) if n in rows and not rows[n].isascii())


def _cells(findings: Iterable[Diagnostic], notebooks: Notebooks, sources: dict[Path, Source]) -> Iterator[CellRow]:
    """Where the rows of notebooks are in their files."""
    places = {(place.path, place.start.row): place for place in _places(findings)}
    for (path, row), place in places.items():
        if is_notebook(path) and path in sources:
            yield CellRow(path, row, notebooks.in_file(place).start.row, notebooks.at(path, row))


def _without_doubtful_fixes(findings: Iterable[Diagnostic], sources: dict[Path, Source]) -> Iterator[Diagnostic]:
    """The findings; without their fixes in files in which ``check --fix`` would change nothing either."""
    certain: dict[Path, bool] = {}
    for finding in findings:
        path = finding.place.path
        if finding.fix is not None and path not in certain:
            certain[path] = path in sources and exact(sources[path].text)
        yield finding if finding.fix is None or certain[path] else replace(finding, fix=None)


# -- the worker's side of the pipe


class AskFindings(Struct, array_like=True, tag=True):
    """A question for :meth:`Query.findings`."""

    about: Path
    documents: list[Document]


class AskLine(Struct, array_like=True, tag=True):
    """A question for :meth:`Query.line`."""

    about: Path
    documents: list[Document]
    version: int
    row: int


class Line(Struct, array_like=True, tag=True):
    """What is known about a line."""

    text: str


class Refused(Struct, array_like=True, tag=True):
    """There is no answer, and why: a sentence for the user. ``bug``: it is not the user's doing."""

    sentence: str
    bug: bool = False


def serve() -> None:
    """The worker's main loop."""
    query: Query = FreshRuns()

    load_rules()

    def answer(question: bytes, say: Say) -> bytes:
        asked: AskFindings | AskLine = decode(question, AskFindings | AskLine)
        return encode(_answer(query, asked, say))

    answer_all(answer)


def _answer(query: Query, asked: AskFindings | AskLine, say: Say) -> Findings | Line | Refused:
    try:
        if isinstance(asked, AskLine):
            return Line(query.line(asked.about, asked.documents, asked.version, asked.row))
        return query.findings(asked.about, asked.documents, lambda said: say(encode(said)))
    except UsageError as error:
        return Refused(str(error))
    except Exception as error:
        return Refused(
            f"Internal error: {type(error).__name__}: {error}. This is a bug in spmdlint; please report it.", bug=True
        )


def encode(message: object) -> bytes:
    """A message between the server and its worker; paths are bytes, because not every path is valid text."""
    return msgspec.msgpack.encode(message, enc_hook=os.fsencode)


def decode(message: bytes, kind: Any) -> Any:
    """The message in some bytes; ``kind`` is its type, or a union of types."""
    return msgspec.msgpack.decode(message, type=kind, dec_hook=lambda _, value: Path(os.fsdecode(value)))
