"""What the editor offers to do about findings: fix one, fix all that are safe, or ignore one with a reason."""

from __future__ import annotations

import tokenize
from collections.abc import Iterator, Sequence

from lsprotocol import types

from spmdlint.diagnostics import Diagnostic, fixable
from spmdlint.files.suppressing import suppress
from spmdlint.files.write import line_end
from spmdlint.fixes.apply import apply
from spmdlint.rule import about_comments
from spmdlint.server.documents import OpenDocument, Text
from spmdlint.server.translation import Translator

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.spmdlint"
REASON = "TODO: say why"
"""What stands for the reason in a new comment until the user has written it."""


class Actions:
    """The actions for one open document. ``versioned``: the editor takes edits of a version of a text."""

    def __init__(
        self, document: OpenDocument, findings: Sequence[Diagnostic], translator: Translator, *, versioned: bool
    ) -> None:
        self._document = document
        self._findings = findings
        self._translator = translator
        self._versioned = versioned

    def on_rows(self, first: int, last: int) -> Iterator[types.CodeAction]:
        """The quick fixes for the findings on some rows, counted from 1."""
        for finding in self._findings:
            if finding.place.start.row <= last and first <= finding.place.end.row:
                yield from self._fix(finding)
                yield from self._ignore(finding)

    def fix_all(self, text: Text) -> Iterator[types.CodeAction]:
        """Apply all safe fixes in a text of the editor, as ``check --fix`` does in one round."""
        here = [each for each in self._findings if self._document.text_at(each.place.start.row) == text]
        fixes = [each.fix for each in here if each.fix is not None and fixable(each, unsafe=False)]
        applied = apply(self._document.typed, fixes)
        if applied.count and self._document.parses(applied.text):
            edit = self._edit(applied.text)
            yield types.CodeAction(title="Apply all safe fixes of spmdlint", kind=FIX_ALL, edit=edit)

    def _fix(self, finding: Diagnostic) -> Iterator[types.CodeAction]:
        if finding.fix is not None:
            safe = fixable(finding, unsafe=False)
            review = "" if safe else "; unsafe, needs review"
            yield types.CodeAction(
                title=f"{finding.fix.message.removesuffix('.')} ({finding.code}{review})",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[self._translator.diagnostic(finding)],
                is_preferred=safe,
                edit=self._edit(apply(self._document.typed, [finding.fix]).text),
            )

    def _ignore(self, finding: Diagnostic) -> Iterator[types.CodeAction]:
        if finding.code in about_comments() or not self._document.parses_at(finding.place.start.row):
            return
        text = self._document.text
        try:
            suppressed = suppress(text, [finding], REASON, line_end(text))
        except (tokenize.TokenError, SyntaxError):
            return  # the text does not parse at the moment
        if suppressed.count:
            yield types.CodeAction(
                title=f"Ignore {finding.code} here, and say why in the comment",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[self._translator.diagnostic(finding)],
                edit=self._edit(suppressed.text),
            )

    def _edit(self, typed: str) -> types.WorkspaceEdit:
        """What turns the document into a changed one."""
        changed = self._document.edits(typed)
        edits = [(text, self._translator.edits(text, parts)) for text, parts in changed]
        if not self._versioned:
            return types.WorkspaceEdit(changes={text.uri: parts for text, parts in edits})
        return types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(
                    text_document=types.OptionalVersionedTextDocumentIdentifier(uri=text.uri, version=text.version),
                    edits=[*parts],
                )
                for text, parts in edits
            ]
        )
