"""Applies fixes and lints the project again, until no fixes are left.

A fix can uncover the next one, and of two that overlap only one is applied at a time. The texts are held in memory, so
that a diff shows exactly what would be written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from spmdlint.diagnostics import Fix, fixable
from spmdlint.engine import Checked
from spmdlint.fixes.apply import apply
from spmdlint.fixes.making import EditMaker

MOST_ROUNDS = 20


class Fixed(Struct, frozen=True):
    """The last run, the new texts of the files that changed, and what went wrong, as sentences."""

    checked: Checked
    texts: Mapping[Path, str] = field(default_factory=dict)
    before: Mapping[Path, str] = field(default_factory=dict)
    count: int = 0
    problems: tuple[str, ...] = ()


def fix_all(checked: Checked, again: Callable[[Mapping[Path, str]], Checked], *, unsafe: bool) -> Fixed:
    """Fix what can be fixed; ``again`` lints the project with new texts in place of some files."""
    texts: dict[Path, str] = {}
    before: dict[Path, str] = {}
    spoiled: dict[Path, str] = {}
    seen: dict[Path, set[str]] = defaultdict(set)
    count = 0
    for _ in range(MOST_ROUNDS):
        changed = {}
        for path, fixes in _by_file(checked, unsafe=unsafe).items():
            if path in spoiled:
                continue
            old = checked.sources[path].text
            applied = apply(old, _made(old, fixes))
            if applied.text == old and (not _transforms(fixes) or exact(old)):
                continue
            seen[path].add(old)
            if applied.text in seen[path]:
                continue  # two fixes undo one another: of a name that two maps need in two ways
            if not exact(old):
                spoiled[path] = f"{path} was not changed: its line starts are uncertain (it may contain a form feed)."
            elif not exact(applied.text):
                spoiled[path] = f"{path} was not changed: with its fixes, it would no longer parse."
            else:
                before.setdefault(path, old)
                changed[path] = applied.text
                count += applied.count
        if not changed:
            return Fixed(checked, texts, before, count, tuple(spoiled.values()))
        texts |= changed
        checked = again(texts)
    endless = f"There are still fixes to apply after {MOST_ROUNDS} rounds, which is a bug; the last state is kept."
    return Fixed(checked, texts, before, count, (*spoiled.values(), endless))


def _by_file(checked: Checked, *, unsafe: bool) -> dict[Path, list[Fix]]:
    found: dict[Path, list[Fix]] = defaultdict(list)
    for finding in checked.diagnostics:
        if finding.fix is not None and fixable(finding, unsafe=unsafe):
            found[finding.place.path].append(finding.fix)
    return found


def _transforms(fixes: Sequence[Fix]) -> bool:
    """Whether a fix is a change of the syntax tree."""
    return any(fix.change is not None for fix in fixes)


def _made(text: str, fixes: Sequence[Fix]) -> Iterator[Fix]:
    """The fixes, with their edits."""
    maker = EditMaker(text)
    return (made for fix in fixes if (made := maker.made(fix)) is not None)


def exact(text: str) -> bool:
    """Whether a text parses, and the parser reproduces every character of it: otherwise its spans are unreliable."""
    import libcst  # which a run that fixes nothing does not need

    try:
        return libcst.parse_module(text).code == text
    except libcst.ParserSyntaxError:
        return False
