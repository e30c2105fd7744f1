"""Which releases of a library a project is for: by its configuration, or else by the dependencies that it states."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

Version = tuple[int, ...]

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]*\w)\s*(?:\[[^\]]*\])?\s*\(?(?P<bounds>[^;)#]*)")
_BOUND = re.compile(r"(?P<sign>===?|~=|>=?|<=?)\s*v?(?P<version>\d+(?:\.\d+)*)(?P<more>\.\*)?")
_POETRY = re.compile(r"(?P<sign>[\^~]?)(?P<version>\d+(?:\.\d+)*)$")
_ANY = 1 << 30
"""In place of the parts of a version that may be any number."""


class Releases(Struct, frozen=True):
    """The oldest and the newest release that counts, None if that is the newest of all; "0.6" is any release of 0.6.

    ``told`` says in words where the oldest comes from, or the newest if there is no oldest.
    """

    oldest: Version | None = None
    newest: Version | None = None
    told: str = ""

    def ends_before(self, version: Version) -> bool:
        """Whether the newest is older than a version."""
        return self.newest is not None and self.newest < version


def version(text: str) -> Version:
    """A version that is written with dots."""
    return tuple(int(part) for part in text.split("."))


def dotted(version: Version) -> str:
    """A version as it is written."""
    return ".".join(map(str, version))


def configured(version: Version | None) -> Releases:
    """The releases of the setting ``jax-version``."""
    return Releases(version, version, "" if version is None else f"jax-version is {dotted(version)}")


def allowed(pyproject: Mapping[str, Any], setup: Sequence[Any], requirements: str, library: str) -> Releases:
    """The releases that a pyproject.toml allows of a library, also Poetry's entries, or setup.py, or requirements.txt.

    ``setup`` are the entries of :func:`required_by`. The first file that names the library says it; of several entries
    there, the widest bounds count.
    """
    own = [*_listed(pyproject), *_of_poetry(pyproject, library)]
    texts = (own, "pyproject.toml"), (setup, "setup.py"), (requirements.splitlines(), "requirements.txt")
    for entries, file in texts:
        found = [each for entry in entries for each in _bounds(entry, library)]
        if found:
            lowest = [low for low, _ in found if low is not None]
            highest = [high for _, high in found if high is not None]
            oldest = min(lowest) if len(lowest) == len(found) else None
            newest = max(highest) if len(highest) == len(found) else None
            return Releases(oldest, newest, _told(oldest, newest, file))
    return Releases()


def _listed(pyproject: Mapping[str, Any]) -> list[Any]:
    project = pyproject.get("project")
    entries = project.get("dependencies") if isinstance(project, dict) else None
    return entries if isinstance(entries, list) else []


def required_by(text: str) -> list[Any]:
    """The ``install_requires`` of a setup.py that are written out in it, also under a name."""
    if "install_requires" not in text:
        return []
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    called = [each for node in nodes if isinstance(node, ast.Call) for each in node.keywords]
    listed = [each.value for each in called if each.arg == "install_requires"]
    names = {each.id for each in listed if isinstance(each, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            listed.append(node.value)
    lists = [each.elts for each in listed if isinstance(each, (ast.List, ast.Tuple))]
    return [each.value for elements in lists for each in elements if isinstance(each, ast.Constant)]


def _of_poetry(pyproject: Mapping[str, Any], library: str) -> Iterator[str]:
    """Poetry's dependencies on a library, in the words of packaging."""
    tool = pyproject.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    groups = poetry.get("group") if isinstance(poetry, dict) else None
    tables = [poetry, *(groups.values() if isinstance(groups, dict) else ())]
    for table in tables:
        entries = table.get("dependencies") if isinstance(table, dict) else None
        given = entries.get(library) if isinstance(entries, dict) else None
        version = given.get("version") if isinstance(given, dict) else given
        written = _POETRY.match(version.strip()) if isinstance(version, str) else None
        if written is not None:
            parts = list(map(int, written["version"].split(".")))
            fixed = next((n for n, part in enumerate(parts) if part), 0) if written["sign"] == "^" else 1
            kept = min(fixed, len(parts) - 1)
            below = ".".join(map(str, [*parts[:kept], parts[kept] + 1]))
            exact = not written["sign"]
            yield f"{library}=={written['version']}" if exact else f"{library}>={written['version']},<{below}"
        elif isinstance(version, str):
            yield f"{library}{version}"


def _told(oldest: Version | None, newest: Version | None, file: str) -> str:
    if oldest is not None:
        return f"the dependencies in {file} allow {dotted(oldest)}"
    if newest is None:
        return ""
    return f"the dependencies in {file} allow none after {dotted(tuple(part for part in newest if part != _ANY))}"


def _bounds(entry: Any, library: str) -> Iterator[tuple[Version | None, Version | None]]:
    """The bounds of a dependency, if it is one on a library."""
    required = _REQUIREMENT.match(entry.strip()) if isinstance(entry, str) else None
    if (
        required is None
        or required["name"].lower() != library
        or not re.match(r"[<>=~!]|$", required["bounds"].strip())
    ):
        return  # another name that begins so, or an address
    lowest: list[Version] = []
    highest: list[Version] = []
    for bound in _BOUND.finditer(required["bounds"]):
        sign, version = bound["sign"], tuple(map(int, bound["version"].split(".")))
        if sign in ("==", "===", ">=", ">", "~="):
            lowest.append(version)
        if sign in ("==", "===", "<="):
            highest.append(version)
        elif sign == "<":
            highest.append(_below(version))
        elif sign == "~=":
            highest.append((*version[:-1], _ANY))
    yield max(lowest, default=None), min(highest, default=None)


def _below(version: Version) -> Version:
    """The last version before one."""
    while version and version[-1] == 0:
        version = version[:-1]
    return (*version[:-1], version[-1] - 1, _ANY) if version else (0,)
