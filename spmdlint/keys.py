"""The keys of the configuration file: what each accepts and means. docs/configuration.md is made from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

from spmdlint.diagnostics import Severity

VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")

MultiProcess = Literal["auto", "always", "never"]


class Key(Struct, frozen=True):
    """One key of the configuration file; ``read`` raises :class:`ValueError` for a value that it does not accept."""

    name: str
    expects: str
    default: str
    meaning: str
    read: Callable[[object, Path], object]

    @property
    def attribute(self) -> str:
        """The field of :class:`Config` that this key sets."""
        return self.name.replace("-", "_")


def _strings(value: object, _root: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError
    return tuple(value)


def _boolean(value: object, _root: Path) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _folders(value: object, root: Path) -> tuple[Path, ...]:
    folders = tuple((root / name).resolve() for name in _strings(value, root))
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise ValueError(f"there is no folder {missing[0]}")
    return folders


def _inside(value: object, root: Path) -> tuple[Path, ...]:
    """Files and folders of the project: code from elsewhere must not run because a configuration says so.

    Whether they exist counts when they are loaded: the first rule is written into a folder that may not be there yet.
    """
    top = root.resolve()
    found = tuple((root / name).resolve() for name in _strings(value, root))
    outside = [str(path) for path in found if top not in path.parents]
    if outside:
        raise ValueError(f"there is no {outside[0]} in the project {root}")
    return found


def _version(value: object, _root: Path) -> tuple[int, ...] | None:
    if value == "newest":
        return None
    if not isinstance(value, str) or not VERSION.fullmatch(value):
        raise ValueError
    return tuple(int(part) for part in value.split("."))


def _multi_process(value: object, _root: Path) -> MultiProcess:
    for choice in ("auto", "always", "never"):
        if value == choice:
            return choice
    raise ValueError


def _severity(value: object, _root: Path) -> Severity:
    for choice in get_args(Severity):
        if value == choice:
            found: Severity = choice
            return found
    raise ValueError


def _severities(value: object, root: Path) -> dict[str, Severity]:
    return {name: _severity(each, root) for name, each in _tables(value, root).items()}


def _selectors_of_patterns(value: object, root: Path) -> dict[str, tuple[str, ...]]:
    return {pattern: _strings(each, root) for pattern, each in _tables(value, root).items()}


def _beside(value: object, _root: Path) -> Path:
    if not isinstance(value, str):
        raise ValueError
    return Path(value)


def _file(value: object, root: Path) -> Path:
    return root / _beside(value, root)


def _tables(value: object, _root: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    return value


Form = Mapping[str, Any]
"""What a value looks like, as a JSON schema."""

STRING: Form = {"type": "string"}
STRINGS: Form = {"type": "array", "items": STRING}
BOOLEAN: Form = {"type": "boolean"}


def each(form: Form) -> Form:
    """A table whose values have a form."""
    return {"type": "object", "additionalProperties": form}


_SEVERITIES: Form = {"enum": list(get_args(Severity))}

FORMS: Mapping[Callable[[object, Path], object], Form] = {
    _strings: STRINGS,
    _folders: STRINGS,
    _inside: STRINGS,
    _boolean: BOOLEAN,
    _beside: STRING,
    _file: STRING,
    _severity: _SEVERITIES,
    _severities: each(_SEVERITIES),
    _selectors_of_patterns: each(STRINGS),
    _version: {**STRING, "pattern": f"^(newest|{VERSION.pattern})$"},
    _multi_process: {"enum": list(get_args(MultiProcess))},
}
"""What each reader accepts; that files and rules exist is known only when a configuration is read."""

_SELECTORS = "a list of strings: codes, prefixes of codes or names of rules"

_SEVERITY = 'one of "error", "warning" and "info"'

KEYS = (
    Key(
        "extend",
        "a string: another configuration file, relative to the folder of this one",
        "none",
        "The settings that this file inherits. `ignore`, `extend-select` and `exclude` add to the inherited lists, "
        "tables are merged, and other keys replace the inherited values; `select` also discards the inherited "
        "`ignore` and `extend-select`, as it does on the command line.",
        _beside,
    ),
    Key("select", _SELECTORS, '["ALL"]', "The rules that run. Preview rules also need `preview`.", _strings),
    Key("ignore", _SELECTORS, "[]", "Rules that do not run. The more specific selector wins.", _strings),
    Key("extend-select", _SELECTORS, "[]", "Rules that run in addition to those of `select`.", _strings),
    Key(
        "rules",
        "a list of strings: Python files, or folders of them, that exist in the project, relative to its root",
        "[]",
        "Rules of your own, which the linter runs; see [rules of your own](own-rules.md). Rules from elsewhere are "
        "installed as a package.",
        _inside,
    ),
    Key(
        "per-file-ignores",
        "a table of lists: patterns as in a .gitignore, relative to the project's root, each with rules",
        "{}",
        "Rules whose findings are not shown in the files that match a pattern.",
        _selectors_of_patterns,
    ),
    Key(
        "severity",
        'a table: rules, each with "error", "warning" or "info"',
        "{}",
        "Overrides the severity of a rule's findings. The more specific selector wins.",
        _severities,
    ),
    Key(
        "fail-on",
        _SEVERITY,
        '"info"',
        "The lowest severity of a finding for which the exit status is 1.",
        _severity,
    ),
    Key(
        "baseline",
        "a string: a file, relative to the project's root",
        "none",
        "Known findings, which are not shown; see [adoption](adoption.md).",
        _file,
    ),
    Key(
        "preview",
        "true or false",
        "false",
        "Whether preview rules run. They find more, and are wrong more often.",
        _boolean,
    ),
    Key(
        "exclude",
        "a list of strings: patterns as in a .gitignore, relative to the project's root",
        "[]",
        "Files that are left out, in addition to those in .gitignore and the default list below; `!name` removes a "
        "default.",
        _strings,
    ),
    Key(
        "force-exclude",
        "true or false",
        "false",
        "Whether `exclude` and .gitignore apply even to files named on the command line.",
        _boolean,
    ),
    Key(
        "src",
        "a list of strings: folders that exist, relative to the project's root",
        "[]",
        "The folders that imports start from. If none is given, they are detected.",
        _folders,
    ),
    Key(
        "jax-version",
        'a string: "newest", or a version such as "0.6.2"',
        '"newest"',
        "The version of JAX that the program is written for, or the oldest of several: names that it does not have are "
        '[SPMD602](rules/SPMD602.md), be they gone by then or not there yet. "0.6" is any release of 0.6. '
        "If it is not set, the bounds of jax in the dependencies, also Poetry's, of the project's `pyproject.toml`, "
        "or else those in its `setup.py` or `requirements.txt`, count: `jax==0.4.20` is that version; with "
        "`jax>=0.4.20`, names that are gone in the newest are reported, and with `--preview` those that 0.4.20 does "
        "not have yet; `jax~=0.4.20` and `jax<0.6` say which is the newest, and then both count.",
        _version,
    ),
    Key(
        "multi-process",
        'one of "auto", "always" and "never"',
        '"auto"',
        "Whether the program runs as several processes; `auto` looks for signs of it. With `never`, the rules about "
        "what differs between processes do not run.",
        _multi_process,
    ),
    Key(
        "expected-failures",
        "true or false",
        "false",
        "Whether to report code that is expected to fail, under `pytest.raises` or `assertRaises`. Only useful for "
        "evaluating the linter on a library's own tests of errors.",
        _boolean,
    ),
    Key(
        "knowledge",
        "a table that holds the tables `functions`, `methods` and `aliases`",
        "{}",
        "The meaning of your own functions, or of other libraries; see "
        "[Knowledge about your own code](#knowledge-about-your-own-code).",
        _tables,
    ),
)
