"""Groups of spellings: one fault, and right programs that look like it, as many programmers would write them.

A group is a file of ``fixtures/spellings``. Each function of it whose name starts with ``bad_`` or ``ok_`` is a
spelling. The helpers above a function, up to the spelling before it, belong to it. What comes before the line
``# --- spellings ---`` and after the line ``# --- the program ---`` belongs to no spelling.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "fixtures" / "spellings"
_BEGIN = "# --- spellings ---"
_PROGRAM = "# --- the program ---"
_NOT_RUN = "# not run:"
_STOPS = "# stops the job"


@dataclass(frozen=True)
class Spelling:
    """One function and its helpers: lines ``first`` to ``last`` of its file, counted from 1.

    ``not_run`` says why running it shows nothing; it is empty where it is run. ``stops`` is set if it is right in that
    an exception ends the job.
    """

    group: str
    name: str
    first: int
    last: int
    not_run: str
    stops: bool

    @property
    def bad(self) -> bool:
        """Whether it shows the fault."""
        return self.name.startswith("bad_")

    @property
    def label(self) -> str:
        """Group and name."""
        return f"{self.group}::{self.name}"


@dataclass(frozen=True)
class Group:
    """A file. ``hundred`` is the family of rules that is due, as "3"; ``verified`` how running it shows the fault.

    ``raises`` is a regular expression for what a bad spelling raises where that is how; otherwise it is empty.
    """

    name: str
    path: Path
    hundred: str
    verified: str
    raises: str
    spellings: tuple[Spelling, ...]

    @property
    def family(self) -> str:
        """The folder it is in."""
        return self.name.partition("/")[0]

    def spelling_at(self, row: int) -> Spelling | None:
        """The spelling that a line belongs to."""
        return next((each for each in self.spellings if each.first <= row <= each.last), None)


def read(path: Path) -> Group:
    """Read one file.

    Raises:
        ValueError: the file does not have the form of a group.

    """
    text = path.read_text()
    lines = text.splitlines()
    name = path.relative_to(FOLDER).with_suffix("").as_posix()
    if lines.count(_BEGIN) != 1 or lines.count(_PROGRAM) > 1:
        raise ValueError(f"{path} must have one line {_BEGIN!r}, and at most one line {_PROGRAM!r}.")
    begin = lines.index(_BEGIN) + 1
    end = lines.index(_PROGRAM) if _PROGRAM in lines else len(lines)
    spellings: list[Spelling] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("bad_", "ok_")):
            first, last = (spellings[-1].last if spellings else begin) + 1, node.end_lineno or node.lineno
            if not begin < first <= last <= end:
                raise ValueError(f"{path} has the spelling {node.name} outside of the part for spellings.")
            reasons = [line.partition(_NOT_RUN)[2].strip() for line in lines[first - 1 : last] if _NOT_RUN in line]
            stops = any(_STOPS in line for line in lines[first - 1 : last])
            spellings.append(Spelling(name, node.name, first, last, " ".join(reasons), stops))
    family, verified, raises = (_heading(key, text) for key in ("family", "verified", "raises"))
    if not family or not verified or (verified in ("raises", "fresh")) != bool(raises):
        raise ValueError(f"{path} lacks one of the lines '# family: ...', '# verified: ...' and '# raises: ...'.")
    return Group(name, path, family, verified, raises, tuple(spellings))


def _heading(key: str, text: str) -> str:
    found = re.search(rf"^# {key}: (.+)$", text, re.MULTILINE)
    return "" if found is None else found[1]


def all_groups() -> list[Group]:
    """All groups, sorted by name."""
    return [read(path) for path in sorted(FOLDER.glob("*/*.py"))]
