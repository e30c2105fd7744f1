"""The language server's side of the editor: the open documents, in their projects, and what the editor is shown.

Nothing here analyses. The event loop reads the configuration files to tell which project a file belongs to, and asks
the worker of that project for everything else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from spmdlint._version import __version__
from spmdlint.config import OWN_FILE, SHARED_FILE
from spmdlint.diagnostics import Diagnostic, in_order
from spmdlint.errors import UsageError
from spmdlint.files.root import absolute, configure
from spmdlint.server.documents import OpenDocument
from spmdlint.server.projects import PAUSE, Project
from spmdlint.server.translation import Translator

SUFFIX = ".py"


class Server(LanguageServer):
    """The language server: the projects of the files that are open."""

    def __init__(self) -> None:
        # A whole text at each change is what no disagreement about the ends of lines can spoil.
        super().__init__("spmdlint", __version__, types.TextDocumentSyncKind.Full)
        self.projects: dict[Path, Project] = {}
        self.left = False
        """Whether the editor has said that it leaves."""
        self._shown: dict[Project, set[Path]] = {}
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
        """An open Python file, and its project."""
        path = _path(uri)
        for project in self.projects.values():
            if path in project.documents:
                return project, project.documents[path]
        return None

    def open(self, item: types.TextDocumentItem) -> None:
        """Take a document."""
        path = _path(item.uri)
        if path is None:
            return
        document = OpenDocument(path, item.uri, _sound(item.text), item.version)
        self._put(document)

    def _put(self, document: OpenDocument) -> None:
        root, is_project = _root(document.path)
        project = self.projects.get(root) or self._begin(root)
        project.documents[document.path] = document
        # In a folder that is no project, findings are asked for in the open files only.
        if is_project and project.examined and _on_disk(document.path) == document.text:
            self.show(project)
        else:
            project.changed()

    def _begin(self, root: Path) -> Project:
        project = self.projects[root] = Project(root, self)
        mine = self._shown[project] = set()
        for other, shown in self._shown.items():
            if other is not project:
                # Of a project inside of another, the files are its own from now on.
                taken = {path for path in shown if self._shows(project, path)}
                shown -= taken
                mine |= taken
        return project

    def _shows(self, project: Project, path: Path) -> bool:
        """Whether it is this project that shows the findings in a file: the innermost of those that are open."""
        around = [root for root in self.projects if root in path.parents]
        return not around or max(around, key=lambda root: len(root.parts)) == project.root

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Take the new text of a document, and show the findings where their code is now."""
        found = self.document(params.text_document.uri)
        if found is not None:
            project, document = found
            text = self.workspace.get_text_document(params.text_document.uri).source
            document.change(_sound(text), params.text_document.version)
            self.show(project, only=document.path)
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
        if found is not None:
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
        for path in self._shown.pop(project):
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=path.as_uri(), diagnostics=[]))
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
        if paths is None or any(path.suffix not in (SUFFIX, ".ipynb") for path in paths):
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

    def begun(self, project: Project) -> Callable[[int, int], None]:
        """Show that the first run takes its time."""
        if not get_capability(self.client_capabilities, "window.work_done_progress", False):
            return lambda done, total: None
        progress = self._progress[project] = _Progress(self, project.root)
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
            found = by_path.get(path, [])
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(
                    uri=translator.uri(path),
                    diagnostics=[translator.diagnostic(finding) for finding in found],
                    version=None if document is None else document.version,
                )
            )
        self._shown[project] = set(by_path) if only is None else shown | set(by_path)

    def translator(self, project: Project) -> Translator:
        """What translates the places of a project for this editor."""
        shows = get_capability(self.client_capabilities, "text_document.publish_diagnostics.related_information", False)
        return Translator(project, self.workspace.position_codec, shows_related=bool(shows))


class _Progress:
    """The editor's display of a run that takes long. It begins when the editor has agreed to it."""

    def __init__(self, server: Server, root: Path) -> None:
        self._server = server
        self._token = f"spmdlint-{id(self)}"
        self._root = root
        self._begun = self._ended = False
        self._beginning = asyncio.get_running_loop().create_task(self._begin())

    async def _begin(self) -> None:
        await self._server.work_done_progress.create_async(self._token)
        if self._ended:
            return
        self._begun = True
        begin = types.WorkDoneProgressBegin(title=f"spmdlint: analysing {self._root.name}")
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
    """The Python file that a document is; None for anything else, such as a cell of a notebook."""
    name = to_fs_path(uri)
    return None if name is None or not name.endswith(SUFFIX) else absolute(name)


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


def _on_disk(path: Path) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_bytes().decode("utf-8")
    return None


def _sound(text: str) -> str:
    """A text without halves of surrogate pairs, which no encoding has."""
    return text.encode("utf-8", "replace").decode("utf-8")
