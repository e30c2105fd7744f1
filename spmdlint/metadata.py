"""The facts of `facts.py` as LibCST metadata, for codemods and for the rules of other linters.

The provider needs the whole project, so LibCST makes it through a ``FullRepoManager``, as codemods and Fixit do by
themselves. The manager's cache holds the names of the files only: what is known about them is found out once in each
process, and the cache can be sent to another one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import libcst as cst
from libcst.metadata import BaseMetadataProvider
from msgspec import Struct

from spmdlint.analysis.answers import Answers
from spmdlint.analysis.load import load
from spmdlint.analysis.nodefacts import FileFacts
from spmdlint.facts import Facts
from spmdlint.files.find import find
from spmdlint.files.root import configure
from spmdlint.files.signature import status
from spmdlint.files.store import FOLDER, Store
from spmdlint.installed import digest_of
from spmdlint.interpreter import deep, uncollected
from spmdlint.nodes import facts_of
from spmdlint.program.layout import Span
from spmdlint.program.positions import line_starts
from spmdlint.program.spans import record_spans
from spmdlint.program.survey import Surveyor


class ChangedFileError(ValueError):
    """The tree of a file is not that of the text for which the facts were found."""


class SpmdFactsProvider(BaseMetadataProvider[Facts]):
    """What spmdlint knows about a node, as `spmdlint.facts.Facts`; each fact is found out when it is asked for."""

    @classmethod
    def gen_cache(
        cls,
        root_path: Path,
        paths: Sequence[str],
        *,
        timeout: int | None = None,  # noqa: ARG003  (LibCST passes it)
        use_pyproject_toml: bool = False,  # noqa: ARG003  (LibCST passes it)
    ) -> Mapping[str, object]:
        """The cache for some files of the project that ``root_path`` belongs to.

        Raises:
            UsageError: the configuration of the project is invalid.

        """
        root = Path(root_path).resolve()
        stamp = _stamp(root)
        _project(root, stamp)  # now, before a codemod changes files
        return {path: _File(root, stamp, root / path) for path in paths}

    def _gen_impl(self, module: cst.Module) -> None:
        file = self.cache
        assert isinstance(file, _File)  # what gen_cache made
        code = module.code
        known = _project(file.root, file.stamp)
        text = known.text(file.path, code)
        facts = FileFacts(file.path, text, lambda: known.answers)
        spans = dict(_moved(record_spans(module).spans, code, text))
        for node in _nodes(module):
            if id(node) in spans:
                self.set_metadata(node, facts_of(node, spans, facts))


class _File(Struct, frozen=True):
    """A file of a project, and what says whether the project has changed."""

    root: Path
    stamp: str
    path: Path


class _Project(Struct):
    """What is known about a project; ``texts`` are those of its files that could be read."""

    answers: Answers
    texts: Mapping[Path, str]

    def text(self, path: Path, code: str) -> str:
        """The text of a file, for a tree with this code; the code itself if the file is not in the project.

        Raises:
            ChangedFileError: the tree is not that of the file.

        """
        text = self.texts.get(path, code)
        if text != code and text.replace("\r\n", "\n") != code:
            raise ChangedFileError(
                f"The tree of {path} is not that of the file, so nothing is known about its nodes: "
                "ask for facts before the tree is changed, or in another run."
            )
        return text


@lru_cache(maxsize=1)
def _project(root: Path, stamp: str) -> _Project:  # noqa: ARG001  (it is a part of the key)
    """What is known about the project at a folder; with another stamp, it is found out again."""
    config = configure([root])
    folder = config.root / FOLDER
    with uncollected(), deep():
        paths = find(config, [root]).project
        survey = Surveyor(config, Store(folder) if folder.is_dir() else None).look(paths, {}, screen=False, jobs=1)
        texts = {path: survey.texts[path].text for path in survey.lowered()}
        program = load(survey, config)
        return _Project(Answers(program.explainer(), program.calls, survey.texts), texts)


def _stamp(root: Path) -> str:
    """What changes with every file of the project."""
    return digest_of((path, status(path)) for path in find(configure([root]), [root]).project)


def _nodes(module: cst.Module) -> Iterator[cst.CSTNode]:
    pending: list[cst.CSTNode] = [module]
    while pending:
        node = pending.pop()
        yield node
        pending += node.children


def _moved(spans: Mapping[int, Span], code: str, text: str) -> Iterator[tuple[int, Span]]:
    """The spans of nodes in a text whose line ends may be longer than those of the tree's code."""
    if code == text:
        yield from spans.items()
        return
    here, there = line_starts(code), line_starts(text)

    def moved(offset: int) -> int:
        row = bisect_right(here, offset) - 1
        return there[row] + offset - here[row]

    for node, (start, end) in spans.items():
        yield node, (moved(start), moved(end))
