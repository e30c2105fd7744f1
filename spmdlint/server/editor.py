"""The language server's side of the editor: the open documents, in their projects, and what the editor is shown.

Nothing here analyses. The event loop reads the configuration files to tell which project a file belongs to, and asks
the worker of that project for everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from spmdlint._version import __version__
from spmdlint.config import OWN_FILE, SHARED_FILE
from spmdlint.diagnostics import Diagnostic, in_order
from spmdlint.errors import UsageError
from spmdlint.files.read import NOTEBOOK, Source, is_notebook, read
from spmdlint.files.root import absolute, configure
from spmdlint.server.documents import OpenDocument, sound
from spmdlint.server.notebooks import SELECTED, OpenNotebook, open_cell
from spmdlint.server.projects import PAUSE, Project
from spmdlint.server.translation import Translator

SUFFIX = ".py"


class Server(LanguageServer):
    """The language server: the projects of the files that are open."""

    def __init__(self) -> None:
        # A whole text at each change is what no disagreement about the ends of lines can spoil.
        super().__init__(
            "spmdlint",
            __version__,
            types.TextDocumentSyncKind.Full,
            types.NotebookDocumentSyncOptions([SELECTED], save=True),
        )
        self.projects: dict[Path, Project] = {}
        self.left = False
        """Whether the editor has said that it leaves."""
        self._shown: dict[Project, dict[Path, set[str]]] = {}
        """The texts in which findings are shown, by file."""
        self._said: dict[Project, str] = {}
        self._noted: set[str] = set()
        self._progress: dict[Project, _Progress] = {}

    def close(self) -> None:
        """End all workers."""
        for project in self.projects.values():
            project.close()
        self.projects.clear()

    # -- documents

    def document(self, uri: str) -> tuple[Project, OpenDocument] | None:
        """An open Python file or notebook, by its name or that of a cell, and its project."""
        path = _path(uri)
        for project in self.projects.values():
            if path in project.documents:
                return project, project.documents[path]
            for document in project.documents.values():
                if any(text.uri == uri for text in document.texts):
                    return project, document
        return None

    def open(self, item: types.TextDocumentItem) -> None:
        """Take a document."""
        path = _path(item.uri)
        if path is not None and not is_notebook(path):
            self._put(OpenDocument(path, item.uri, sound(item.text), item.version))

    def open_notebook(self, notebook: types.NotebookDocument, texts: Sequence[types.TextDocumentItem]) -> None:
        """Take a notebook."""
        path = _path(notebook.uri)
        if path is not None:
            by_uri = {text.uri: text for text in texts}
            cells = [open_cell(cell, by_uri.get(cell.document)) for cell in notebook.cells]
            self._put(OpenNotebook(path, notebook.uri, cells, notebook.version))

    def _put(self, document: OpenDocument) -> None:
        root, is_project = _root(document.path)
        project = self.projects.get(root) or self._begin(root)
        project.documents[document.path] = document
        # In a folder that is no project, findings are asked for in the open files only.
        if is_project and project.examined and read(document.path) == Source(document.path, document.text):
            self.show(project)
        else:
            project.changed()

    def _begin(self, root: Path) -> Project:
        project = self.projects[root] = Project(root, self)
        mine = self._shown[project] = {}
        for other, shown in self._shown.items():
            if other is not project:
                # Of a project inside of another, the files are its own from now on.
                mine |= {path: shown.pop(path) for path in list(shown) if self._shows(project, path)}
        return project

    def _shows(self, project: Project, path: Path) -> bool:
        """Whether it is this project that shows the findings in a file: the innermost of those that are open."""
        around = [root for root in self.projects if root in path.parents]
        return not around or max(around, key=lambda root: len(root.parts)) == project.root

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Take the new text of a document, and show the findings where their code is now."""
        found = self.document(params.text_document.uri)
        if found is not None and not isinstance(found[1], OpenNotebook):
            project, document = found
            text = self.workspace.get_text_document(params.text_document.uri).source
            document.change(sound(text), params.text_document.version)
            self.show(project, only=document.path)
            project.changed(PAUSE)

    def change_notebook(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Take new cells of a notebook and new texts of its cells; outputs and metadata change nothing."""
        found = self.document(params.notebook_document.uri)
        cells = params.change.cells
        if found is None or cells is None or (cells.structure is None and not cells.text_content):
            return
        project, notebook = found
        if isinstance(notebook, OpenNotebook):
            notebook.take(cells, params.notebook_document.version, self.workspace.position_codec)
            self.show(project, only=notebook.path)
            project.changed(PAUSE)

    def saved(self, uri: str) -> None:
        """Look at the project of a file that was written."""
        found = self.document(uri)
        if found is not None:
            found[1].saved = True
            self.arrange()
            found = self.document(uri)
            if found is not None:
                found[0].changed()

    def forget(self, uri: str) -> None:
        """Drop a document: what is on disk counts again. Without open documents, a project is dropped too."""
        found = self.document(uri)
        if found is not None and not (isinstance(found[1], OpenNotebook) and found[1].uri != uri):
            project, document = found
            del project.documents[document.path]
            self._drop_or_look(project)

    def _drop_or_look(self, project: Project) -> None:
        if project.documents:
            project.changed()
            return
        project.close()
        del self.projects[project.root]
        self._said.pop(project, None)
        for uris in self._shown.pop(project).values():
            self._clear(uris)
        for other in self.projects.values():
            if other.root in project.root.parents:
                self.show(other)

    def arrange(self) -> None:
        """Move the documents whose project is a different one by now: a configuration came, or went."""
        for project in list(self.projects.values()):
            moving = [each for each in project.documents.values() if _root(each.path)[0] != project.root]
            for document in moving:
                del project.documents[document.path]
            if moving:
                self._drop_or_look(project)
            for document in moving:
                self._put(document)

    def look_again(self, paths: list[Path] | None = None) -> None:
        """Look at the projects that these files are in; at all, if none are named or one is a configuration."""
        if paths is None or any(path.suffix not in (SUFFIX, NOTEBOOK) for path in paths):
            self.arrange()
            paths = None
        for project in self.projects.values():
            if paths is None or any(project.root in path.parents and path not in project.documents for path in paths):
                project.changed(PAUSE)  # such changes often come in great numbers

    # -- what a project tells

    def found(self, project: Project) -> None:
        """Show new findings."""
        self._said.pop(project, None)
        for note in project.notes:
            if note not in self._noted:
                self._noted.add(note)
                self.window_log_message(types.LogMessageParams(type=types.MessageType.Warning, message=note))
        self.show(project)

    def failed(self, project: Project, sentence: str) -> None:
        """Say why there are no new findings, once."""
        if self._said.get(project) != sentence:
            self._said[project] = sentence
            self.window_show_message(
                types.ShowMessageParams(type=types.MessageType.Error, message=f"spmdlint: {sentence}")
            )

    def begun(self, project: Project, what: str) -> Callable[[int, int], None]:
        """Show that a run takes its time."""
        if not get_capability(self.client_capabilities, "window.work_done_progress", False):
            return lambda done, total: None
        progress = self._progress[project] = _Progress(self, what)
        return progress.heard

    def ended(self, project: Project) -> None:
        """Show no longer that it does."""
        if project in self._progress:
            self._progress.pop(project).end()

    def show(self, project: Project, only: Path | None = None) -> None:
        """Show the findings of a project, or those in one of its files."""
        translator = self.translator(project)
        by_path: dict[Path, list[Diagnostic]] = {}
        for finding in in_order(tuple(project.findings())):
            if self._shows(project, finding.place.path):
                by_path.setdefault(finding.place.path, []).append(finding)
        shown = self._shown[project]
        for path in sorted({*by_path, *shown, *project.documents} if only is None else {only}):
            document = project.documents.get(path)
            versions = {} if document is None else {text.uri: text.version for text in document.texts}
            by_uri: dict[str, list[types.Diagnostic]] = {uri: [] for uri in versions}
            for finding in by_path.get(path, ()):
                by_uri.setdefault(translator.location(finding.place).uri, []).append(translator.diagnostic(finding))
            # A notebook that was opened or closed is shown by other texts than before; so is one that lost a cell.
            self._clear(shown.pop(path, set()) - by_uri.keys())
            for uri, diagnostics in by_uri.items():
                self.text_document_publish_diagnostics(
                    types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=versions.get(uri))
                )
            if path in by_path:
                shown[path] = {uri for uri, diagnostics in by_uri.items() if diagnostics}

    def _clear(self, uris: Iterable[str]) -> None:
        """Show no findings in these texts."""
        for uri in sorted(uris):
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    def translator(self, project: Project) -> Translator:
        """What translates the places of a project for this editor."""
        shows = get_capability(self.client_capabilities, "text_document.publish_diagnostics.related_information", False)
        return Translator(project, self.workspace.position_codec, shows_related=bool(shows))


class _Progress:
    """The editor's display of a run that takes long. It begins when the editor has agreed to it."""

    def __init__(self, server: Server, what: str) -> None:
        self._server = server
        self._token = f"spmdlint-{id(self)}"
        self._what = what
        self._begun = self._ended = False
        self._beginning = asyncio.get_running_loop().create_task(self._begin())

    async def _begin(self) -> None:
        await self._server.work_done_progress.create_async(self._token)
        if self._ended:
            return
        self._begun = True
        begin = types.WorkDoneProgressBegin(title=f"spmdlint: analysing {self._what}")
        self._server.work_done_progress.begin(self._token, begin)

    def heard(self, done: int, total: int) -> None:
        """Show how many files were read."""
        if self._begun:
            message = f"{done} of {total} files"
            self._server.work_done_progress.report(self._token, types.WorkDoneProgressReport(message=message))

    def end(self) -> None:
        """Remove the display."""
        self._ended = True
        if self._begun:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())


def _path(uri: str) -> Path | None:
    """The Python file or notebook that a document is, or is in; None for anything else."""
    name = to_fs_path(uri)
    return None if name is None or not name.endswith((SUFFIX, NOTEBOOK)) else absolute(name)


def _root(path: Path) -> tuple[Path, bool]:
    """The root of a file's project, and whether anything says that it is one.

    For a file whose configuration is wrong, the folder of the nearest configuration.
    """
    try:
        config = configure([path], force_exclude=True)
        return config.root, config.marked
    except UsageError:
        near = (each for each in path.parents if (each / OWN_FILE).exists() or (each / SHARED_FILE).exists())
        return next(near, path.parent), True
