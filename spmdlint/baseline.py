"""The findings that a project lives with for now, in a file that is checked in.

An entry holds no line number: it is found again by the text of the line, of its function and of the neighbouring lines,
so that it survives lines that move, functions and files that are renamed, and a name that changes on the line. Entries
are matched one to one, the most reliable way first.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from spmdlint.errors import UsageError
from spmdlint.identity import Mark

VERSION = 1
_ANEW = "Delete it and write a new one with --write-baseline."


class Matched(Struct, frozen=True):
    """Which of the findings are known, by their numbers, each with its entry, and the entries without a finding."""

    known: dict[int, Mark]
    gone: tuple[Mark, ...]


def read(path: Path) -> list[Mark]:
    """The entries of a baseline.

    Raises:
        UsageError: the file does not exist, or is not a baseline.

    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no baseline {path}; create it with --write-baseline.") from None
    except OSError as error:
        raise UsageError(f"The baseline {path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise UsageError(f"{path} is not a baseline: it is not JSON. {_ANEW}") from None
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise UsageError(f"{path} is not a baseline of version {VERSION}. {_ANEW}")
    try:
        return [Mark(**{name: str(value) for name, value in entry.items()}) for entry in data["findings"]]
    except (KeyError, TypeError, AttributeError):
        raise UsageError(f"{path} has an entry that is not a finding. {_ANEW}") from None


def text(entries: Iterable[Mark]) -> str:
    """The text of a baseline: one entry per line, sorted, so that version control can merge it."""
    marks = map(asdict, entries)
    written = ({name: value for name, value in each.items() if value or name != "through"} for each in marks)
    lines = sorted(json.dumps(each, ensure_ascii=False) for each in written)
    listed = ",\n    ".join(lines)
    return f'{{\n  "version": {VERSION},\n  "findings": [{f"{chr(10)}    {listed}{chr(10)}  " if lines else ""}]\n}}\n'


def match(
    entries: Sequence[Mark],
    found: Sequence[Mark],
    before: Mapping[str, str],
    exists: Callable[[str], bool],
    *,
    partial: bool = False,
) -> Matched:
    """Find the entries again; ``exists`` returns whether the file of an entry still exists.

    ``partial``: an entry that is not found may still be one, so that it does not stand for another place. ``before``
    has the codes that findings had before their rules were split, by the codes that they have now.
    """
    missing = {entry.path for entry in entries if not exists(entry.path)}
    known: dict[int, Mark] = {}
    left = _found_again(entries, found, missing, known, partial=partial)
    if left and not before.keys().isdisjoint(mark.code for mark in found):
        recoded = [replace(mark, code=before.get(mark.code, mark.code)) for mark in found]
        left = _found_again(left, recoded, missing, known, partial=partial)
    return Matched(known, tuple(sorted(left)))


def _found_again(
    entries: Sequence[Mark], found: Sequence[Mark], missing: Collection[str], known: dict[int, Mark], *, partial: bool
) -> list[Mark]:
    """Add matching entries to ``known``; returns the entries that do not match."""
    ways: list[Callable[[Mark], Hashable]] = [
        lambda m: m,
        lambda m: (m.code, m.path, m.scope, m.text, m.through),
        lambda m: (m.code, m.path, m.scope, m.text),
    ]
    if not partial:
        ways += [
            lambda m: (m.code, m.path, m.text),
            lambda m: (m.code, m.path, m.scope, m.before, m.after) if m.before and m.after else m,
        ]
    left = list(entries)
    for way in ways:
        left = _matched(left, found, way, known)
    if partial:
        return left
    moved = [entry for entry in left if entry.path in missing]
    stayed = [entry for entry in left if entry.path not in missing]
    moved = _matched(moved, found, lambda m: (m.code, m.scope, m.text), known)
    return [*stayed, *_matched_alone(moved, entries, found, known)]


def _matched_alone(
    moved: Sequence[Mark], entries: Sequence[Mark], found: Sequence[Mark], known: dict[int, Mark]
) -> list[Mark]:
    """The same for files that were moved and functions that were renamed, one after the other.

    Little is left to know an entry by: its line must be the only one of its kind in the baseline and in the run, and a
    neighbouring line must be the same.
    """
    before = Counter((each.code, each.text) for each in entries)
    now = {(each.code, each.text): number for number, each in enumerate(found)}
    count = Counter((each.code, each.text) for each in found)
    left = []
    for entry in moved:
        line = (entry.code, entry.text)
        number = now.get(line)
        if number is None or number in known or before[line] != 1 or count[line] != 1:
            left.append(entry)
        elif any(one and one == other for one, other in _neighbours(entry, found[number])):
            known[number] = entry
        else:
            left.append(entry)
    return left


def _neighbours(one: Mark, other: Mark) -> tuple[tuple[str, str], ...]:
    return (one.before, other.before), (one.after, other.after)


def _matched(
    entries: Sequence[Mark], found: Sequence[Mark], way: Callable[[Mark], Hashable], known: dict[int, Mark]
) -> list[Mark]:
    """Add matching entries to ``known``; returns the entries that do not match."""
    waiting: dict[Hashable, list[Mark]] = defaultdict(list)
    for entry in reversed(entries):
        waiting[way(entry)].append(entry)
    for number, each in enumerate(found):
        if number not in known and (same := waiting[way(each)]):
            known[number] = same.pop()
    return [entry for entries_left in waiting.values() for entry in reversed(entries_left)]
