"""What a run found, kept for the next run: it finds the same if all that it depends on is the same.

That is the linter itself with the rules that are installed, the Python that runs it, the configuration, the set of
the project's files, and the text of each. Runs that met a bug are not kept.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmdlint._version import __version__
from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic, Edit, Fix, Location, Place, Related
from spmdlint.files.find import Found
from spmdlint.files.read import Source, read
from spmdlint.files.signature import Signature, Status, digest, settled, status, unchanged
from spmdlint.files.store import Store

FORMAT = 1
_OWN = Path(__file__).parent


@dataclass(frozen=True)
class Findings:
    """What is kept of a run, beside what it depended on."""

    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[str, ...]
    sources: Mapping[Path, Source]


class Results:
    """The results of runs over one set of files with one configuration, in a folder."""

    def __init__(self, folder: Path, config: Config, found: Found) -> None:
        self.found = found
        self._store = Store(folder)
        asked = "\n".join(map(str, sorted(found.asked)))
        what = f"{FORMAT}\n{__version__}\n{sys.version}\n{sys.platform}\n{sys.path[1:]}\n{config!r}\n{asked}"
        self._name = hashlib.sha256(what.encode("utf-8", "surrogatepass")).hexdigest()
        self._before: Mapping[Path, Status | None] = {}

    def look_up(self) -> Findings | None:
        """What a run found that depended on nothing else; None where there was none."""
        self._before = settled(self.found.project)
        document = self._store.read(self._name)
        try:
            if document is None or document["tool"] != _tool():
                return None
            if document["packages"] != [[name, status(name)] for name, _ in document["packages"]]:
                return None
            signatures: dict[Path, Signature] = {Path(p): (before, text) for p, before, text in document["files"]}
            if signatures.keys() != set(self.found.project) or not unchanged(signatures):
                return None
            findings = tuple(map(_diagnostic, document["findings"]))
            return Findings(findings, tuple(document["notes"]), _Sources(map(Path, document["readable"])))
        except (KeyError, TypeError, ValueError):
            return None  # written by a version that kept something else under the same name

    def keep(self, findings: Findings, rules: Sequence[object]) -> None:
        """Keep what a run found that began with :meth:`look_up` and read these sources."""
        texts = findings.sources
        files = [
            [str(path), self._before.get(path), digest(texts[path] if path in texts else read(path))]
            for path in self.found.project
        ]
        document = {
            "tool": _tool(),
            "packages": [[name, status(name)] for name in _packages(rules)],
            "files": files,
            "readable": [str(path) for path in texts],
            "notes": findings.notes,
            "findings": [_written(each) for each in findings.diagnostics],
        }
        self._store.write(self._name, document)


class _Sources(Mapping[Path, Source]):
    """The texts of files, each read when it is asked for."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._texts: dict[Path, Source | None] = dict.fromkeys(paths)

    def __getitem__(self, path: Path) -> Source:
        known = self._texts[path]
        if known is None:
            outcome = read(path)
            known = self._texts[path] = outcome if isinstance(outcome, Source) else Source(path, "")
        return known

    def __iter__(self) -> Iterator[Path]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _tool() -> str:
    """A digest of the linter's own files, as their status tells them apart: they change while it is developed."""
    parts = [f"{path}{status(path)}" for path in _own_files(str(_OWN))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _own_files(folder: str) -> Iterator[str]:
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.is_dir():
            if entry.name not in ("__pycache__", "runtime_checks"):
                yield from _own_files(entry.path)
        elif entry.name.endswith((".py", ".toml")):
            yield entry.path


def _packages(rules: Sequence[object]) -> list[str]:
    """The folders that packages are installed in, and the files of rules from elsewhere."""
    folders = {path for path in sys.path[1:] if os.path.isdir(path)}  # noqa: PTH112
    others = {type(rule).__module__.partition(".")[0] for rule in rules} - {__package__}
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in others]
    files = {getattr(module, "__file__", None) for module in modules} - {None}
    return sorted(folders | {str(file) for file in files})


def _written(finding: Diagnostic) -> list[object]:
    fix = finding.fix
    return [
        [finding.code, finding.name, finding.severity, finding.message, finding.help],
        _span(finding.place),
        [[_span(related.place), related.message] for related in finding.related],
        None if fix is None else [fix.applicability, fix.message, [[*_ends(e), e.content] for e in fix.edits]],
    ]


def _ends(span: Place | Edit) -> list[int]:
    return [span.start.row, span.start.column, span.end.row, span.end.column]


def _span(place: Place) -> list[object]:
    return [str(place.path), *_ends(place)]


def _diagnostic(document: Any) -> Diagnostic:
    (code, name, severity, message, help_), span, related, fix = document
    return Diagnostic(
        code,
        name,
        severity,
        message,
        _place(span),
        help_,
        tuple(Related(_place(each), text) for each, text in related),
        None if fix is None else Fix(fix[0], fix[1], tuple(_edit(edit) for edit in fix[2])),
    )


def _place(span: Any) -> Place:
    path, row, column, end_row, end_column = span
    return Place(Path(path), Location(row, column), Location(end_row, end_column))


def _edit(span: Any) -> Edit:
    row, column, end_row, end_column, content = span
    return Edit(Location(row, column), Location(end_row, end_column), content)
