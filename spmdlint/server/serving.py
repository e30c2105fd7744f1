"""The language server: which messages it understands, over standard input and output."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.uris import to_fs_path

from spmdlint.config import OWN_FILE, REQUIREMENTS, SHARED_FILE
from spmdlint.files.root import absolute
from spmdlint.server.actions import FIX_ALL, Actions
from spmdlint.server.editor import Server

WATCHED = ("**/*.py", "**/*.ipynb", f"**/{SHARED_FILE}", f"**/{REQUIREMENTS}", f"**/{OWN_FILE}", "**/.gitignore")


def serve() -> bool:
    """Serve one editor, until it leaves; whether it took its leave as the protocol asks."""
    # Editors send the edits of a cell, whatever a server asks for; pygls would say of each that it is not supported.
    logging.getLogger("pygls.workspace.text_document").setLevel(logging.CRITICAL)
    server = Server()
    _follow(server)
    _answer(server)
    signal.signal(signal.SIGTERM, lambda number, frame: _end(server))
    # What a library prints must not get between the messages.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            server.start_io(stdout=stream)
        finally:
            server.close()
    return server.left


def _end(server: Server) -> NoReturn:
    """End at once, because the system asks for it."""
    server.close()
    os._exit(128 + signal.SIGTERM)


def _follow(server: Server) -> None:
    """Follow what happens to texts and files."""

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        can_watch = "workspace.did_change_watched_files.dynamic_registration"
        if get_capability(server.client_capabilities, can_watch, False):
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            await server.client_register_capability_async(
                types.RegistrationParams(
                    registrations=[types.Registration(id="spmdlint-watched", method=method, register_options=options)]
                )
            )

    @server.feature(types.SHUTDOWN)
    def leaves(_params: None) -> None:
        server.close()
        server.left = True

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.open(params.text_document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.change(params)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.saved(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def notebook_opened(params: types.DidOpenNotebookDocumentParams) -> None:
        server.open_notebook(params.notebook_document, params.cell_text_documents)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def notebook_changed(params: types.DidChangeNotebookDocumentParams) -> None:
        server.change_notebook(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def notebook_saved(params: types.DidSaveNotebookDocumentParams) -> None:
        server.saved(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def notebook_closed(params: types.DidCloseNotebookDocumentParams) -> None:
        server.forget(params.notebook_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        named = [to_fs_path(change.uri) for change in params.changes]
        server.look_again([absolute(name) for name in named if name is not None])

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(_params: types.DidChangeConfigurationParams) -> None:
        server.look_again()


def _answer(server: Server) -> None:
    """Answer the editor's questions."""

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL]),
    )
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        found = server.document(params.text_document.uri)
        if found is None:
            return []
        project, document = found
        versioned = get_capability(server.client_capabilities, "workspace.workspace_edit.document_changes", False)
        here = [finding for finding in project.findings() if finding.place.path == document.path]
        offered = Actions(document, here, server.translator(project), versioned=bool(versioned))
        only = params.context.only
        text = document.text_named(params.text_document.uri)
        answer: list[types.CodeAction] = []
        if only is None or _asks(only, types.CodeActionKind.QuickFix):
            last = min(params.range.end.line, len(text.rows) - 1)
            answer += offered.on_rows(text.first + params.range.start.line, text.first + last)
        if only is not None and _asks(only, FIX_ALL):
            answer += offered.fix_all(text)
        return answer

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        found = server.document(params.text_document.uri)
        if found is None:
            return None
        project, document = found
        first = document.text_named(params.text_document.uri).first
        text = await project.line(document.path, first + params.position.line)
        if not text:
            return None
        formats = get_capability(server.client_capabilities, "text_document.hover.content_format", None) or ()
        if types.MarkupKind.Markdown in formats:
            return types.Hover(types.MarkupContent(kind=types.MarkupKind.Markdown, value=f"```text\n{text}\n```"))
        return types.Hover(types.MarkupContent(kind=types.MarkupKind.PlainText, value=text))


def _asks(kinds: Sequence[types.CodeActionKind | str], kind: str) -> bool:
    """Whether an editor asks for a kind of action, by its name or one above it."""
    names = [each.value if isinstance(each, types.CodeActionKind) else each for each in kinds]
    return any(name in ("", kind) or kind.startswith(f"{name}.") for name in names)
