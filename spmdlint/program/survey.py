"""What is known about each file on its own: the names in it, whether it parses, and its meaning.

It is taken from earlier runs if they read the same text, so that a run after an edit lowers only the edited files, and
one that has nothing new to examine reads no file at all.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from spmdlint.config import Config
from spmdlint.errors import UsageError
from spmdlint.files.read import Source, Unreadable, is_notebook
from spmdlint.files.screen import (
    builds,
    components,
    holds,
    imports_all,
    module_name,
    modules_of,
    named,
    relevant,
    renames,
    triggers,
)
from spmdlint.files.signature import Status, digest, settled
from spmdlint.files.store import Store
from spmdlint.files.texts import Texts
from spmdlint.installed import LOWERING, digest_of, tool
from spmdlint.program.summary import Comment, Idle, Summary
from spmdlint.program.trouble import Trouble
from spmdlint.program.written import Summaries, Written, read
from spmdlint.timings import Timings

Progress = Callable[[int, int], None]


class Lowered(Struct, array_like=True):
    """What must be known of a summary without decoding it: digests, the comments, and the idle code."""

    meaning: bytes
    layout: bytes
    comments: tuple[Comment, ...] = ()
    essential: bytes = b""
    idle: tuple[Idle, ...] = ()


class Facts(Struct, array_like=True):
    """What is known about one file.

    ``status`` is None if it proves nothing, ``parses`` if Python has not been asked, and ``lowered`` if it was not
    needed. ``cells`` are the cells of a notebook that do not parse, and None for other files.
    """

    digest: bytes
    status: Status | None = None
    unreadable: Trouble | None = None
    names: list[str] | None = None
    speaks: bool | None = None
    parses: bool | None = None
    wrong: Trouble | None = None
    lowered: Lowered | None = None
    cells: list[Trouble] | None = None


class Index(Struct, array_like=True):
    """The facts about a project's files. ``modules`` and ``knowledge`` are those of `names` and `speaks`."""

    modules: str
    knowledge: str
    files: list[tuple[bytes, Facts]]


class Survey(Struct):
    """The files of a project. ``wanted`` are those that can matter, and those that do not parse."""

    facts: Mapping[Path, Facts]
    texts: Texts
    component: Mapping[Path, int]
    wanted: Sequence[Path]
    _kept: Summaries
    _new: dict[Path, Summary | Written]

    def troubles(self) -> Iterator[tuple[Path, Trouble]]:
        """The files that cannot be linted."""
        for path, facts in self.facts.items():
            if facts.unreadable is not None:
                yield path, facts.unreadable
            for trouble in facts.cells or ():
                yield path, trouble
        for path in self.wanted:
            if (wrong := self.facts[path].wrong) is not None:
                yield path, wrong

    def lowered(self) -> dict[Path, Lowered]:
        """The files of the program."""
        return {path: lowered for path in self.wanted if (lowered := self.facts[path].lowered) is not None}

    def idle(self) -> Iterator[tuple[Path, tuple[Idle, ...]]]:
        """The idle code of the program, by its file."""
        return ((path, lowered.idle) for path, lowered in self.lowered().items() if lowered.idle)

    def names_any(self, idle: Collection[tuple[Path, Idle]]) -> bool:
        """Whether a file may name idle code of a different file, or removed code: any matching word counts."""
        files = self.lowered()
        own = (
            {part for path in self.facts for part in (path.stem, *path.parts)} if any(i.module for _, i in idle) else ()
        )
        for home, each in idle:
            if each.module in own:
                return True  # importing it runs code of the project
            # In its own file, nothing else names it by a word.
            stands = home in files and any(each.name == other.name for other in files[home].idle)
            if stands and builds(self.texts[home].text, each.name):
                return True
            if any(self._names(path, home, each) for path in files if path != home or not stands):
                return True
        return False

    def _names(self, path: Path, home: Path, idle: Idle) -> bool:
        text = self.texts[path].text
        if not idle.module or path == home or home.stem == "__init__":
            return holds(text, idle.name) or builds(text, idle.name)
        # Many files contain the word for an imported name; one that means this file's also names the file.
        module = module_name(home)
        if module not in (self.facts[path].names or ()):
            return False
        return holds(text, idle.name) or imports_all(text) or path.stem == "__init__" or renames(text, module)

    def summaries(self) -> dict[Path, Summary]:
        """The summaries of the program's files; to be called once."""
        return {path: self._summary(path) for path in self.lowered()}

    def _summary(self, path: Path) -> Summary:
        summary = self._new.pop(path, None) or self._kept.read(self.facts[path].digest)
        try:
            if summary is not None:
                return read(summary) if isinstance(summary, Written) else summary
        except msgspec.MsgspecError:
            pass
        # It was lowered before and is not kept any more: the folder was emptied in the meantime.
        from spmdlint.program.lower import lower

        if digest(self.texts.outcome(path)) != self.facts[path].digest:
            raise UsageError(f"{path} changed while the linter ran; run it again.")
        return lower(self.texts[path].text)


class Surveyor:
    """Surveys files, and keeps the results."""

    def __init__(self, config: Config, store: Store | None, timings: Timings | None = None) -> None:
        self._config = config
        self._timings = timings or Timings()
        self._store = store
        made_by = tool(LOWERING) if store is not None else ""
        self._name = "files-" + digest_of((made_by, config.root))
        self._knowledge = digest_of((tool(("knowledge",)), sorted(config.knowledge.items(), key=str)))
        self._summaries = Summaries(store, made_by)
        self._changed = False

    def look(
        self,
        paths: Sequence[Path],
        given: Mapping[Path, Source | Unreadable],
        progress: Progress | None = None,
        *,
        screen: bool = True,
        jobs: int | None = None,
    ) -> Survey:
        """Survey files, some of which have a different content than on disk."""
        texts = Texts(given)
        modules = modules_of(paths)
        asked_with = digest_of(sorted(modules))
        with self._timings.phase("read"):
            index = self._index()
            known = {} if index is None else {Path(os.fsdecode(path)): facts for path, facts in index.files}
            facts = self._facts(paths, texts, given, known)
        readable = [path for path in paths if facts[path].unreadable is None]
        with self._timings.phase("screen"):
            self._name_modules(readable, facts, texts, modules, new=index is None or index.modules != asked_with)
            component = components({path: facts[path].names or () for path in readable})
            possible = set(readable)
            if screen:
                self._listen(readable, facts, texts, new=index is None or index.knowledge != self._knowledge)
                possible = relevant(component, [path for path in readable if facts[path].speaks])
            wanted = [path for path in readable if path in possible or not self._parses(facts[path], texts, path)]
        with self._timings.phase("lower"):
            unknown = [path for path in wanted if facts[path].lowered is None]
            summaries = self._lower(unknown, facts, texts, progress, jobs)
        if self._store is not None and (self._changed or len(known) != len(paths)):
            files = [(os.fsencode(path), facts[path]) for path in paths]
            self._store.write(self._name, msgspec.msgpack.encode(Index(asked_with, self._knowledge, files)))
        return Survey(facts, texts, component, wanted, self._summaries, summaries)

    def _index(self) -> Index | None:
        document = None if self._store is None else self._store.read(self._name)
        try:
            return None if document is None else _index_decoder.decode(document)
        except msgspec.MsgspecError:
            return None

    def _facts(
        self,
        paths: Sequence[Path],
        texts: Texts,
        given: Mapping[Path, Source | Unreadable],
        known: Mapping[Path, Facts],
    ) -> dict[Path, Facts]:
        found: dict[Path, Facts] = {}
        before = settled(path for path in paths if path not in given) if self._store is not None else {}
        for path in paths:
            facts, now = known.get(path), before.get(path)
            if facts is None or now is None or facts.status != now:
                outcome = texts.outcome(path)
                mark = digest(outcome)
                if facts is None or facts.digest != mark:
                    self._changed = True
                    facts = Facts(mark)
                    if isinstance(outcome, Unreadable):
                        facts.unreadable = Trouble(outcome.row, outcome.column, outcome.message)
                    elif is_notebook(path):
                        facts.cells = list(broken_cells(outcome.text))
                self._changed |= facts.status != now
                facts.status = now
            texts.add(path, readable=facts.unreadable is None)
            found[path] = facts
        return found

    def _name_modules(
        self,
        paths: Sequence[Path],
        facts: Mapping[Path, Facts],
        texts: Texts,
        modules: Collection[str],
        *,
        new: bool,
    ) -> None:
        for path in paths:
            if new or facts[path].names is None:
                self._changed = True
                facts[path].names = named(texts[path].text, modules)

    def _listen(self, paths: Sequence[Path], facts: Mapping[Path, Facts], texts: Texts, *, new: bool) -> None:
        unheard = [path for path in paths if new or facts[path].speaks is None]
        if not unheard:
            return
        from spmdlint.knowledge.load import built_in, extended

        where = self._config.origins.get("knowledge", "The knowledge")
        pattern = re.compile(triggers(extended(built_in(), self._config.knowledge, where)))
        self._changed = True
        for path in unheard:
            facts[path].speaks = pattern.search(texts[path].text) is not None

    def _parses(self, facts: Facts, texts: Texts, path: Path) -> bool:
        if facts.parses is None:
            from spmdlint.program.syntax import python_tree

            self._changed = True
            # Much faster than LibCST, which is left for newer syntax.
            facts.parses = python_tree(texts[path].text) is not None
        return facts.parses

    def _lower(
        self,
        paths: Sequence[Path],
        facts: Mapping[Path, Facts],
        texts: Texts,
        progress: Progress | None,
        jobs: int | None,
    ) -> dict[Path, Summary | Written]:
        """Lower the files that no run has lowered, and return the results."""
        found: dict[Path, Summary | Written] = {}
        unknown = []
        for path in (path for path in paths if facts[path].wrong is None):
            kept = self._summaries.read(facts[path].digest)
            if kept is None:
                unknown.append(path)
            else:
                found[path] = kept
                facts[path].lowered = _learned(kept)
        if not unknown:
            return found
        from spmdlint.program.workers import lower_all

        self._changed = True
        unread = {path: texts[path].text for path in unknown}
        for path, outcome in lower_all(unread, jobs, progress, self._timings, essence=self._store is not None).items():
            if isinstance(outcome, Trouble):
                facts[path].wrong = outcome
            else:
                kept = self._summaries.keep(facts[path].digest, outcome)
                found[path] = outcome
                facts[path].lowered = Lowered(b"", b"", outcome.comments) if kept is None else _learned(kept)
        return found


def broken_cells(text: str) -> Iterator[Trouble]:
    """Why cells of a notebook do not parse, told by rows of its module."""
    from spmdlint.files.notebooks import Cells
    from spmdlint.program.workers import outcome_of

    for above, code in Cells(text).unparsed():
        outcome = outcome_of(code)
        if isinstance(outcome, Trouble):
            yield Trouble(above + outcome.row, outcome.column, _moved_down(outcome.message, above), part="cell")


def _moved_down(message: str, rows: int) -> str:
    """A message of Python's parser about a text that has rows above it; of some brackets it says on which line."""
    return re.sub(r"\bon line (\d+)", lambda found: f"on line {rows + int(found[1])}", message)


def _learned(written: Written) -> Lowered:
    layout = hashlib.sha256(written.layout).digest()
    return Lowered(written.meaning(), layout, written.comments, written.essential(), written.idle)


_index_decoder = msgspec.msgpack.Decoder(Index)
