"""One project in the editor: its open documents, its last findings, and the worker that is asked for new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from spmdlint.diagnostics import Diagnostic, Edit, Fix, Place, Related
from spmdlint.plain import diagnostic
from spmdlint.server.documents import OpenDocument
from spmdlint.server.moves import Span
from spmdlint.server.query import (
    AskFindings,
    AskLine,
    CellRow,
    Document,
    Early,
    Findings,
    Line,
    Refused,
    Said,
    decode,
    encode,
)
from spmdlint.worker import Worker, WorkerDiedError

PAUSE = 0.4
"""Seconds without a keystroke after which the typed text is examined."""


class Listener(Protocol):
    """Who is told what happens in a project."""

    def found(self, project: Project) -> None:
        """There are new findings."""

    def failed(self, project: Project, sentence: str) -> None:
        """There are none, and why."""

    def begun(self, project: Project, what: str) -> Callable[[int, int], None]:
        """A long run of ``what`` begins; the answer is called with the number of files that were read, and of all."""

    def ended(self, project: Project) -> None:
        """It has ended, with or without findings."""


class Project:
    """A project; at least one of its files is open.

    A change of any text makes the run obsolete that examines the texts from before: it is killed, and the next begins
    after a pause. Until it ends, the last findings stay.
    """

    def __init__(self, root: Path, listener: Listener) -> None:
        self.root = root
        self.documents: dict[Path, OpenDocument] = {}
        self.wide: dict[tuple[Path, int], str] = {}
        """The rows of files on disk in which editors count columns in their own way, by file and number."""
        self.cells: dict[tuple[Path, int], CellRow] = {}
        """Where the rows of notebooks are, by file and number."""
        self.notes: tuple[str, ...] = ()
        self._listener = listener
        self._last: list[Diagnostic] | None = None
        self._unparsed: list[Diagnostic] = []
        self._worker = Worker("spmdlint.server.query")
        self._turn = asyncio.Lock()  # the worker takes one question at a time
        self._looking: asyncio.Task[None] | None = None
        self._explaining: asyncio.Task[str] | None = None
        self._version = 0
        self._lines_asked = 0

    @property
    def examined(self) -> bool:
        """Whether the findings are known, or being looked for."""
        return self._last is not None or self._looking is not None

    def changed(self, pause: float = 0.0) -> None:
        """Give up the present run, and begin another after a pause."""
        self._version += 1
        self._give_up()
        self._looking = asyncio.get_running_loop().create_task(self._look(pause))

    def close(self) -> None:
        """End the worker."""
        self._give_up()
        self._worker.kill()

    def _give_up(self) -> None:
        for task in (self._looking, self._explaining):
            if task is not None:
                task.cancel()

    async def _look(self, pause: float) -> None:
        documents: list[Document] = []
        try:
            async with self._turn:
                await self._worker.start()
            await asyncio.sleep(pause)
            async with self._turn:
                documents = self._snapshots()
                answer = await self._findings(documents)
        except WorkerDiedError:
            answer = Refused(
                f"The analysis of {self.root} ended unexpectedly, perhaps because memory ran out. It will be tried "
                "again after the next change."
            )
        if isinstance(answer, Refused):
            self._listener.failed(self, answer.sentence)
            return
        self._take(answer, documents, list(map(diagnostic, answer.found)))
        self.notes = tuple(answer.notes)
        self._listener.found(self)

    def _snapshots(self) -> list[Document]:
        """The documents, each with the files that the findings on display in it lead through."""
        taken = [each.snapshot() for each in self.documents.values()]
        if self._last is None:
            return [replace(each, examined=None) for each in taken]
        shown = [{place.path for place in (each.place, *(near.place for near in each.related))} for each in self._last]
        return [replace(doc, told=sorted(set().union(*(s for s in shown if doc.path in s)))) for doc in taken]

    def _take(self, answer: Findings, documents: Iterable[Document], found: list[Diagnostic]) -> None:
        """Take findings in these documents."""
        for document in documents:
            if document.path in self.documents:
                self.documents[document.path].examined(document, broken=document.path in answer.broken)
        self._last = found
        self._unparsed = list(map(diagnostic, answer.unparsed))
        self.wide = {(path, row): text for path, row, text in answer.wide}
        self.cells = {(each.path, each.row): each for each in answer.cells}

    async def _findings(self, documents: list[Document]) -> Findings | Refused:
        first = self._last is None
        heard = self._listener.begun(self, self.root.name) if first else None

        def hear(body: bytes) -> None:
            nonlocal heard
            said: Said = decode(body, Said)
            if isinstance(said, Early):
                self._take_early(said, documents)
                heard = self._listener.begun(self, f"the rest of {self.root.name}")
            elif heard is not None:
                heard(said.done, said.total)

        try:
            body = await self._worker.ask(encode(AskFindings(documents[0].path, documents)), hear)
            answer: Findings | Refused = decode(body, Findings | Refused)
            return answer
        finally:
            if heard is not None:
                self._listener.ended(self)

    def _take_early(self, early: Early, documents: list[Document]) -> None:
        """Show what an edit changes near it, until the findings of the whole project are known."""
        gone = {(each.code, each.place) for each in map(diagnostic, early.gone)}
        left = [finding for finding in self._last or () if (finding.code, finding.place) not in gone]
        found = [moved for finding in left for moved in self._moved(finding, unparsed=False)]
        wide, cells = self.wide, self.cells
        self._take(early.added, documents, [*found, *map(diagnostic, early.added.found)])
        self.wide, self.cells = wide | self.wide, cells | self.cells
        self._listener.found(self)

    # -- findings in the texts as they are now

    def findings(self) -> Iterator[Diagnostic]:
        """The last findings, each moved along with its code, in all files of the project."""
        for finding in self._last or ():
            yield from self._moved(finding, unparsed=False)
        for finding in self._unparsed:
            yield from self._moved(finding, unparsed=True)

    def _moved(self, finding: Diagnostic, *, unparsed: bool) -> Iterator[Diagnostic]:
        place = self._place(finding.place, unparsed=unparsed)
        if place is not None:
            related = [(each, self._place(each.place)) for each in finding.related]
            yield replace(
                finding,
                place=place,
                related=tuple(Related(there, each.message) for each, there in related if there is not None),
                fix=None if finding.fix is None else self._fix(finding.fix, finding.place.path),
            )

    def _place(self, place: Place, *, unparsed: bool = False) -> Place | None:
        document = self.documents.get(place.path)
        return place if document is None else document.moves(unparsed=unparsed).place(place)

    def _fix(self, fix: Fix, path: Path) -> Fix | None:
        """The fix, if none of the texts that it replaces has changed."""
        document = self.documents.get(path)
        if document is None:
            return fix
        edits = []
        for edit in fix.edits:
            span = document.moves().unchanged(Span(edit.start, edit.end))
            if span is None:
                return None
            edits.append(Edit(span.start, span.end, edit.content))
        return replace(fix, edits=tuple(edits))

    # -- lines

    async def line(self, path: Path, row: int) -> str:
        """What is known about a line of an open document, counted from 1; empty if nothing is, or if it changes."""
        self._lines_asked += 1
        asked = self._lines_asked
        while self._looking is not None and not self._looking.done():
            await asyncio.wait([self._looking])
        if self._explaining is not None and not self._explaining.done():
            await asyncio.wait([self._explaining])
        if asked != self._lines_asked or path not in self.documents:
            return ""  # the pointer is elsewhere by now
        task = self._explaining = asyncio.get_running_loop().create_task(self._explain(path, row))
        try:
            # Who asked may lose interest; what the worker learns for the answer is good for the next one.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                return ""
            raise

    async def _explain(self, path: Path, row: int) -> str:
        async with self._turn:
            documents = [document.snapshot() for document in self.documents.values()]
            try:
                body = await self._worker.ask(encode(AskLine(path, documents, self._version, row)), lambda _: None)
            except WorkerDiedError:
                return ""
            answer: Line | Refused = decode(body, Line | Refused)
            return answer.text if isinstance(answer, Line) else ""
