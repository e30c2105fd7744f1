"""An editor for the tests: pygls' own client, with the server as a process of its own, over its pipes.

The cells of a notebook are documents too: ``train.ipynb#c`` is the cell of ``train.ipynb`` with the identity ``c``.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from spmdlint.diagnostics import Edit, Fix, Location
from spmdlint.fixes.apply import apply
from tests.runtime.forked import can_fork, stand_in

OURS = (sys.executable, "-m", "spmdlint")
"""A new Python; by default, the server is forked from one that has imported it (:mod:`tests.runtime.forked`)."""
PATIENCE = 120
"""Seconds after which a test fails that waits for something."""
USUAL = types.ClientCapabilities(
    notebook_document=types.NotebookDocumentClientCapabilities(types.NotebookDocumentSyncClientCapabilities()),
    text_document=types.TextDocumentClientCapabilities(
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(related_information=True),
        hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
    ),
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
    ),
    window=types.WindowClientCapabilities(work_done_progress=True),
)


class Editor:
    """Files of a folder, open in an editor."""

    def __init__(
        self,
        root: Path,
        capabilities: types.ClientCapabilities = USUAL,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] | None = None,
    ) -> None:
        self.root = root
        self.client = LanguageClient("editor", "1")
        self.shown: dict[str, types.PublishDiagnosticsParams] = {}
        """What was published last, by URI."""
        self.published: list[types.PublishDiagnosticsParams] = []
        self.messages: list[str] = []
        self.progress: list[Any] = []
        self.registered: list[types.Registration] = []
        self._capabilities = capabilities
        self._environment = {**os.environ, **(environment or {})}
        warm = environment is None and can_fork(self._environment)
        self._program = program or ((*stand_in(), "-m", "spmdlint") if warm else OURS)
        self._texts: dict[str, tuple[int, str]] = {}
        self._notebooks: dict[str, tuple[int, list[str]]] = {}
        """The version of each open notebook, and the identities of its cells in their order."""
        self._news = asyncio.Condition()
        self._listen()

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def published(params: types.PublishDiagnosticsParams) -> None:
            self.shown[params.uri] = params
            self.published.append(params)
            await self._tell()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        async def said(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            await self._tell()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        async def logged(params: types.LogMessageParams) -> None:
            self.messages.append(params.message)
            await self._tell()

        @self.client.feature(types.PROGRESS)
        async def progressed(params: types.ProgressParams) -> None:
            self.progress.append(params.value)
            await self._tell()

        @self.client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def create(params: types.WorkDoneProgressCreateParams) -> None:
            return None

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        async def register(params: types.RegistrationParams) -> None:
            self.registered += params.registrations
            await self._tell()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def start(self) -> None:
        """Start the server, and introduce the editor."""
        await self.client.start_io(*self._program, "server", cwd=self.root, env=self._environment)
        folder = types.WorkspaceFolder(uri=self.root.as_uri(), name=self.root.name)
        self.told = await self.client.initialize_async(
            types.InitializeParams(self._capabilities, root_uri=self.root.as_uri(), workspace_folders=[folder])
        )
        self.client.initialized(types.InitializedParams())

    async def stop(self) -> int | None:
        """Leave; the exit status of the server."""
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await asyncio.wait_for(self.client.stop(), PATIENCE)
        return self.process.returncode

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The server."""
        assert self.client._server is not None
        return self.client._server

    async def until(self, right: Callable[[], bool]) -> None:
        """Wait for what the server says."""
        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(right), PATIENCE)
            except asyncio.TimeoutError:
                raise AssertionError(f"The server said {self.messages}, and showed {self.shown}.") from None

    # -- documents

    def uri(self, name: str) -> str:
        file, _, cell = name.partition("#")
        uri = (self.root / file).as_uri()
        return f"{uri.replace('file://', 'vscode-notebook-cell:')}#{cell}" if cell else uri

    def text(self, name: str) -> str:
        """The text of an open document."""
        return self._texts[name][1]

    def open(self, name: str, text: str | None = None) -> None:
        """Open a file; with a text, if the editor has another one than the disk."""
        text = (self.root / name).read_bytes().decode(errors="replace") if text is None else text
        self._texts[name] = (1, text)
        item = types.TextDocumentItem(uri=self.uri(name), language_id="python", version=1, text=text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, name: str, old: str, new: str) -> None:
        """Replace some text; the file on disk stays."""
        version, text = self._texts[name]
        assert old in text
        self._texts[name] = (version + 1, text.replace(old, new, 1))
        if "#" in name:
            self._change_cell(name, text[: text.index(old)], old, new)
            return
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(uri=self.uri(name), version=version + 1),
                [types.TextDocumentContentChangeWholeDocument(self.text(name))],
            )
        )

    def save(self, name: str) -> None:
        """Write the text of a document to its file."""
        (self.root / name).write_bytes(self.text(name).encode())
        identifier = types.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(identifier))

    def close(self, name: str) -> None:
        """Close a document, and forget what was typed since it was saved."""
        del self._texts[name]
        identifier = types.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))

    def write(self, name: str, text: str) -> None:
        """Write a file past the editor, which notices."""
        new = not (self.root / name).exists()
        (self.root / name).write_text(text)
        self.notice(name, types.FileChangeType.Created if new else types.FileChangeType.Changed)

    def notice(self, name: str, kind: types.FileChangeType) -> None:
        """Tell the server that a file on disk is not what it was."""
        event = types.FileEvent(uri=self.uri(name), type=kind)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    # -- notebooks

    def open_notebook(self, name: str) -> None:
        """Open a notebook from the disk."""
        cells = json.loads((self.root / name).read_text())["cells"]
        self._notebooks[name] = (1, [each["id"] for each in cells])
        self.client.notebook_document_did_open(
            types.DidOpenNotebookDocumentParams(
                types.NotebookDocument(
                    self.uri(name),
                    "jupyter-notebook",
                    1,
                    [self._cell(name, each["id"], each["cell_type"]) for each in cells],
                ),
                [self._opened(f"{name}#{each['id']}", "".join(each["source"]), each["cell_type"]) for each in cells],
            )
        )

    def _cell(self, name: str, cell: str, kind: str) -> types.NotebookCell:
        kinds = types.NotebookCellKind
        return types.NotebookCell(kinds.Code if kind == "code" else kinds.Markup, self.uri(f"{name}#{cell}"))

    def _opened(self, name: str, text: str, kind: str, language: str = "python") -> types.TextDocumentItem:
        self._texts[name] = (1, text)
        return types.TextDocumentItem(self.uri(name), language if kind == "code" else "markdown", 1, text)

    def _change_cell(self, name: str, before: str, old: str, new: str) -> None:
        """Send an edit of a cell, as VS Code does whatever the server asks for."""
        file = name.partition("#")[0]
        start = _position(before)
        change = types.TextDocumentContentChangePartial(types.Range(start, _position(before + old)), new)
        document = types.VersionedTextDocumentIdentifier(uri=self.uri(name), version=self._texts[name][0])
        content = types.NotebookDocumentCellContentChanges(document, [change])
        self._change_notebook(file, types.NotebookDocumentCellChanges(text_content=[content]))

    def insert_cell(self, name: str, at: int, cell: str, text: str, language: str = "python") -> None:
        """Insert a code cell, before which there are ``at`` cells."""
        self._notebooks[name][1].insert(at, cell)
        array = types.NotebookCellArrayChange(at, 0, [self._cell(name, cell, "code")])
        opened = [self._opened(f"{name}#{cell}", text, "code", language)]
        structure = types.NotebookDocumentCellChangeStructure(array, did_open=opened)
        self._change_notebook(name, types.NotebookDocumentCellChanges(structure=structure))

    def remove_cell(self, name: str, cell: str) -> None:
        """Delete a cell."""
        at = self._notebooks[name][1].index(cell)
        del self._notebooks[name][1][at], self._texts[f"{name}#{cell}"]
        closed = [types.TextDocumentIdentifier(self.uri(f"{name}#{cell}"))]
        structure = types.NotebookDocumentCellChangeStructure(types.NotebookCellArrayChange(at, 1), did_close=closed)
        self._change_notebook(name, types.NotebookDocumentCellChanges(structure=structure))

    def move_cell(self, name: str, cell: str, to: int) -> None:
        """Move a cell; all cells from the first that moves to the last are sent again, as VS Code does."""
        order = self._notebooks[name][1]
        order.remove(cell)
        order.insert(to, cell)
        cells = [self._cell(name, each, "code") for each in order]
        structure = types.NotebookDocumentCellChangeStructure(types.NotebookCellArrayChange(0, len(order), cells))
        self._change_notebook(name, types.NotebookDocumentCellChanges(structure=structure))

    def _change_notebook(self, name: str, cells: types.NotebookDocumentCellChanges | None) -> None:
        version, order = self._notebooks[name]
        self._notebooks[name] = (version + 1, order)
        self.client.notebook_document_did_change(
            types.DidChangeNotebookDocumentParams(
                types.VersionedNotebookDocumentIdentifier(version + 1, self.uri(name)),
                types.NotebookDocumentChangeEvent(cells=cells),
            )
        )

    def run_cell(self, name: str, cell: str) -> None:
        """Tell what an editor tells after a cell has run: nothing that matters to a linter."""
        ran = self._cell(name, cell, "code")
        ran.execution_summary = types.ExecutionSummary(1, success=True)
        self._change_notebook(name, types.NotebookDocumentCellChanges(data=[ran]))

    def save_notebook(self, name: str) -> None:
        """Write the cells to the file."""
        notebook = json.loads((self.root / name).read_text())
        old = {each["id"]: each for each in notebook["cells"]}
        blank = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
        order = self._notebooks[name][1]
        sources = {each: self.text(f"{name}#{each}").splitlines(keepends=True) for each in order}
        notebook["cells"] = [{**blank, **old.get(each, {}), "id": each, "source": sources[each]} for each in order]
        (self.root / name).write_text(json.dumps(notebook, indent=1))
        identifier = types.NotebookDocumentIdentifier(self.uri(name))
        self.client.notebook_document_did_save(types.DidSaveNotebookDocumentParams(identifier))

    def close_notebook(self, name: str) -> None:
        """Close a notebook, and forget what was typed since it was saved."""
        names = [f"{name}#{cell}" for cell in self._notebooks.pop(name)[1]]
        for each in names:
            del self._texts[each]
        closed = [types.TextDocumentIdentifier(self.uri(each)) for each in names]
        identifier = types.NotebookDocumentIdentifier(self.uri(name))
        self.client.notebook_document_did_close(types.DidCloseNotebookDocumentParams(identifier, closed))

    # -- findings

    def found(self, name: str) -> list[tuple[int, str]]:
        """The findings that are shown in a file: lines from 1, and codes."""
        shown = self.shown.get(self.uri(name))
        return [] if shown is None else [(each.range.start.line + 1, str(each.code)) for each in shown.diagnostics]

    async def finds(self, name: str, *expected: tuple[int, str]) -> None:
        """Wait until these findings are shown in a file, and no others."""
        await self.until(lambda: self.uri(name) in self.shown and self.found(name) == list(expected))

    async def looked(self, act: Callable[[], None]) -> None:
        """Do something, and wait until the server shows findings again."""
        before = len(self.published)
        act()
        await self.until(lambda: len(self.published) > before)

    def diagnostic(self, name: str, code: str) -> types.Diagnostic:
        """The one finding of a rule in a file."""
        (found,) = [each for each in self.shown[self.uri(name)].diagnostics if each.code == code]
        return found

    async def actions(
        self, name: str, where: types.Range, only: list[types.CodeActionKind | str] | None = None
    ) -> dict[str, types.CodeAction]:
        """What the server offers to do at a place, by title."""
        context = types.CodeActionContext(diagnostics=[], only=only)
        identifier = types.TextDocumentIdentifier(self.uri(name))
        offered = await self.client.text_document_code_action_async(
            types.CodeActionParams(text_document=identifier, range=where, context=context)
        )
        return {each.title: each for each in offered or () if isinstance(each, types.CodeAction)}

    def apply(self, name: str, action: types.CodeAction) -> None:
        """Do what an action says, as editors do, in a text whose characters are all of one UTF-16 unit."""
        assert action.edit is not None
        (edits,) = action.edit.document_changes or ()
        assert isinstance(edits, types.TextDocumentEdit)
        assert edits.text_document == types.OptionalVersionedTextDocumentIdentifier(
            uri=self.uri(name), version=self._texts[name][0]
        )
        fix = Fix("safe", "", tuple(_edit(each) for each in edits.edits if isinstance(each, types.TextEdit)))
        self.change(name, self.text(name), apply(self.text(name), [fix]).text)

    async def hover(self, name: str, line: int) -> str:
        """What is shown about a line, counted from 1."""
        identifier = types.TextDocumentIdentifier(self.uri(name))
        asked = types.HoverParams(text_document=identifier, position=types.Position(line=line - 1, character=4))
        answer = await self.client.text_document_hover_async(asked)
        if answer is None:
            return ""
        assert isinstance(answer.contents, types.MarkupContent)
        return answer.contents.value


def _position(before: str) -> types.Position:
    """Where a text ends, in lines and UTF-16 units."""
    rows = re.split("\r\n|\r|\n", before)
    return types.Position(len(rows) - 1, len(rows[-1].encode("utf-16-le")) // 2)


def _edit(edit: types.TextEdit) -> Edit:
    start, end = (Location(each.line + 1, each.character + 1) for each in (edit.range.start, edit.range.end))
    return Edit(start, end, edit.new_text)


def edit(
    root: Path,
    work: Callable[[Editor], Awaitable[None]],
    capabilities: types.ClientCapabilities = USUAL,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] | None = None,
) -> None:
    """Run some work in an editor, which then leaves as editors do. ``program`` is the spmdlint that it starts."""

    async def run() -> None:
        editor = Editor(root, capabilities, environment, program)
        await editor.start()
        try:
            await work(editor)
            assert await editor.stop() == 0
            assert not [message for message in editor.messages if "Error in server" in message]
        finally:
            if editor.process.returncode is None:
                editor.process.terminate()  # a stand-in hands it on; after SIGKILL what stands behind it would go on
                await asyncio.wait_for(editor.client.stop(), PATIENCE)

    asyncio.run(run())
