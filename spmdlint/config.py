"""What a user can set, and where it is set: ``[tool.spmdlint]`` of a pyproject.toml, or a spmdlint.toml.

One configuration holds for one run. The keys stand in one table, :data:`KEYS`; the page docs/configuration.md is made
from it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from spmdlint import selection
from spmdlint.errors import UsageError
from spmdlint.rule import Rule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OWN_FILE = "spmdlint.toml"
SHARED_FILE = "pyproject.toml"

MultiProcess = Literal["auto", "always", "never"]

DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".spmdlint_cache",
    ".svn",
    ".tox",
    ".venv",
    "__pycache__",
    "__pypackages__",
    "_build",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)


@dataclass(frozen=True)
class Config:
    """The settings of one run; ``root`` is the folder of the project, absolute."""

    root: Path
    file: Path | None = None
    flat: bool = False
    """Whether the project is the modules and packages of ``root``, and not all that lies below it."""
    select: tuple[str, ...] = (selection.ALL,)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    preview: bool = False
    exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    src: tuple[Path, ...] = ()
    jax_version: tuple[int, ...] | None = None
    multi_process: MultiProcess = "auto"
    expected_failures: bool = False
    """Whether code is looked at that its author expects to fail."""
    knowledge: Mapping[str, Any] = field(default_factory=dict)
    """What the project's own libraries mean, in tables as those in spmdlint/knowledge; read where it is used."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each field that is not at its default was set, in words that a message can use."""

    def enabled(self, rules: Sequence[Rule]) -> frozenset[str]:
        """The codes of the rules that run.

        Raises:
            UsageError: a selector names no rule.

        """
        for name in ("select", "ignore", "extend_select"):
            selection.refuse_unknown(getattr(self, name), rules, self.origins.get(name, f"The option {name}"))
        codes = selection.chosen((*self.select, *self.extend_select), self.ignore, rules)
        return frozenset(rule.code for rule in rules if rule.code in codes and (self.preview or not rule.preview))

    def without_effect(self, rules: Sequence[Rule]) -> tuple[str, ...]:
        """The selectors that mean nothing but rules on trial, while those do not run."""
        trial = {rule.code for rule in rules if rule.preview}
        selectors = (*self.select, *self.extend_select)
        return () if self.preview else tuple(s for s in selectors if selection.matches(s, rules) <= trial)

    def exclusions(self) -> tuple[str, ...]:
        """The patterns of what is left out: the default ones, then the user's, which can take one back by ``!``."""
        return (*DEFAULT_EXCLUDE, *self.exclude)


@dataclass(frozen=True)
class Key:
    """One key of the configuration file; ``read`` raises :class:`ValueError` for what it does not accept."""

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


def _version(value: object, _root: Path) -> tuple[int, ...] | None:
    if value == "newest":
        return None
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]+(\.[0-9]+)*", value):
        raise ValueError
    return tuple(int(part) for part in value.split("."))


def _multi_process(value: object, _root: Path) -> MultiProcess:
    for choice in ("auto", "always", "never"):
        if value == choice:
            return choice
    raise ValueError


def _tables(value: object, _root: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    return value


_SELECTORS = "a list of strings: codes, prefixes of codes or names of rules"

KEYS = (
    Key("select", _SELECTORS, '["ALL"]', "The rules that run. Preview rules need `preview` besides.", _strings),
    Key("ignore", _SELECTORS, "[]", "Rules that do not run. The more specific selector wins.", _strings),
    Key("extend-select", _SELECTORS, "[]", "Rules that run besides those of `select`.", _strings),
    Key(
        "preview",
        "true or false",
        "false",
        "Whether rules run that are still on trial: they find more, and are wrong more often.",
        _boolean,
    ),
    Key(
        "exclude",
        "a list of strings: patterns as in a .gitignore, relative to the project's root",
        "[]",
        "What is left out, besides what .gitignore names and the default list below; `!name` takes a default back.",
        _strings,
    ),
    Key(
        "force-exclude",
        "true or false",
        "false",
        "Whether `exclude` and .gitignore hold for files that are named on the command line, too.",
        _boolean,
    ),
    Key(
        "src",
        "a list of strings: folders that exist, relative to the project's root",
        "[]",
        "The folders that imports start from. Where none is given they are found.",
        _folders,
    ),
    Key(
        "jax-version",
        'a string: "newest", or a version such as "0.6.2"',
        '"newest"',
        "The version of JAX that the program is written for.",
        _version,
    ),
    Key(
        "multi-process",
        'one of "auto", "always" and "never"',
        '"auto"',
        "Whether the program runs as several processes; `auto` looks for signs of it.",
        _multi_process,
    ),
    Key(
        "expected-failures",
        "true or false",
        "false",
        "Whether code is reported that its author expects to fail, under `pytest.raises` or `assertRaises`. Good only "
        "for judging the linter by a library's own tests of errors.",
        _boolean,
    ),
    Key(
        "knowledge",
        "a table that holds the tables `functions`, `methods` and `aliases`",
        "{}",
        "What functions of your own or of other libraries mean; see [Knowledge of your own](#knowledge-of-your-own).",
        _tables,
    ),
)


def read_config(root: Path, file: Path | None) -> Config:
    """The settings of ``file`` for the project at ``root``; the default ones where there is no file.

    Raises:
        UsageError: the file cannot be read, or holds something that is no setting.

    """
    config = Config(root=root)
    if file is None:
        return config
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    table = settings(file)
    keys = {key.name: key for key in KEYS}
    for name, value in (table or {}).items():
        key = keys.get(name)
        if key is None:
            near = selection.nearest(name, keys)
            hint = f" Did you mean {near!r}?" if near else f" The keys are: {', '.join(keys)}."
            raise UsageError(f"{file} sets {name!r}, which is no setting of spmdlint.{hint}")
        try:
            values[key.attribute] = key.read(value, root)
        except ValueError as error:
            # Only the folder reader says more than int() does, and what int() says helps nobody.
            detail = f" ({error})" if str(error).startswith("there is") else ""
            raise UsageError(f"{file} sets {name!r} to {value!r}; it must be {key.expects}{detail}.") from None
        origins[key.attribute] = f"{name!r} in {file}"
    return replace(config, file=file, origins=origins, **values)


def settings(file: Path) -> dict[str, Any] | None:
    """The table of settings in ``file``; None for a pyproject.toml that has none for us.

    Raises:
        UsageError: the file cannot be read, or is no TOML.

    """
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The configuration {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not encoded in UTF-8, as TOML must be: byte {error.start} is wrong.") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: {error}. Mend it and run again.") from None
    if file.name != SHARED_FILE:
        return table
    tools = table.get("tool")
    own = tools.get("spmdlint") if isinstance(tools, dict) else None
    if own is not None and not isinstance(own, dict):
        raise UsageError(f"{file} sets 'tool.spmdlint' to {own!r}; it must be a table: [tool.spmdlint].")
    return own


def override(config: Config, options: Mapping[str, Any]) -> Config:
    """``config`` with what the command line sets; an option that was not given is None.

    As in ruff, ``--select`` starts anew and drops the rules that the file selects and ignores, while ``--ignore``,
    ``--extend-select`` and ``--exclude`` add to what the file says.
    """
    given = {name: value for name, value in options.items() if value is not None}
    origins = dict(config.origins)
    if "select" in given:
        config = replace(config, ignore=(), extend_select=())
        origins = {name: where for name, where in origins.items() if name not in ("ignore", "extend_select")}
    for name in given:
        option = f"--{name.replace('_', '-')}"
        if name in ("ignore", "extend_select", "exclude"):
            given[name] = (*getattr(config, name), *given[name])
            option = f"{origins[name]} or {option}" if name in origins else option
        origins[name] = option
    return replace(config, origins=origins, **given)
