"""The configuration: ``[tool.spmdlint]`` of a pyproject.toml, or a spmdlint.toml.

A run uses one configuration. The keys are in one table, in ``keys.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from spmdlint import selection
from spmdlint.diagnostics import Severity
from spmdlint.errors import UsageError
from spmdlint.keys import KEYS, MultiProcess
from spmdlint.releases import Releases, allowed, configured, required_by
from spmdlint.rule import Rule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OWN_FILE = "spmdlint.toml"
SHARED_FILE = "pyproject.toml"
SETUP, REQUIREMENTS = "setup.py", "requirements.txt"
BOUND = ("jax", "flax")  # libraries of which it matters which releases a program is for

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


class Config(Struct, frozen=True):
    """The settings of one run; ``root`` is the folder of the project, absolute."""

    root: Path
    file: Path | None = None
    flat: bool = False
    """Whether the project is the modules and packages in ``root``, and not everything below it."""
    marked: bool = True
    """Whether a configuration, a pyproject.toml or a git work tree says that ``root`` is a project."""
    select: tuple[str, ...] = (selection.ALL,)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    rules: tuple[Path, ...] = ()
    """Files and folders with rules of the project's own."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    severity: Mapping[str, Severity] = field(default_factory=dict)
    fail_on: Severity = "info"
    baseline: Path | None = None
    preview: bool = False
    exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    src: tuple[Path, ...] = ()
    jax_version: tuple[int, ...] | None = None
    allowed: Mapping[str, Releases] = field(default_factory=dict)
    """What the dependencies of the project allow, of each of ``BOUND``; of JAX, where ``jax_version`` is not set."""
    multi_process: MultiProcess = "auto"
    expected_failures: bool = False
    """Whether to report code that is expected to fail."""
    knowledge: Mapping[str, Any] = field(default_factory=dict)
    """The meaning of the project's own libraries, in tables like those in spmdlint/knowledge; read where it is used."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each field that is not at its default was set, in words for a message."""

    def enabled(self, rules: Sequence[Rule]) -> frozenset[str]:
        """The codes of the rules that run.

        Raises:
            UsageError: a selector does not name a rule.

        """
        for name in ("select", "ignore", "extend_select"):
            selection.refuse_unknown(getattr(self, name), rules, self.origins.get(name, f"The option {name}"))
        codes = selection.chosen((*self.select, *self.extend_select), self.ignore, rules)
        alone = self.multi_process == "never"
        return frozenset(
            rule.code
            for rule in rules
            if rule.code in codes and (self.preview or not rule.preview) and not (alone and rule.several)
        )

    def without_effect(self, rules: Sequence[Rule]) -> tuple[str, ...]:
        """The selectors that select only preview rules, while those do not run."""
        trial = {rule.code for rule in rules if rule.preview}
        selectors = (*self.select, *self.extend_select)
        return () if self.preview else tuple(s for s in selectors if selection.matches(s, rules) <= trial)

    def outdated(self, rules: Sequence[Rule]) -> Iterator[str]:
        """A sentence for each selector that names what is part of a rule now: it stands for all of that rule."""
        now = {word: rule for rule in rules for word in rule.former()}
        in_files = chain.from_iterable(self.per_file_ignores.values())
        for name, selectors in (
            ("select", self.select),
            ("extend_select", self.extend_select),
            ("ignore", self.ignore),
            ("per_file_ignores", in_files),
            ("severity", self.severity),
        ):
            where = self.origins.get(name, f"The option {name}")
            for selector in sorted(now.keys() & set(selectors)):
                rule = now[selector]
                yield (
                    f"{where} names {selector}, which is a part of {rule.code} {rule.name} now, and stands for all of "
                    f"it: write {rule.code} there."
                )

    @property
    def jax(self) -> Releases:
        """The releases of JAX that the program is for."""
        return configured(self.jax_version) if "jax_version" in self.origins else self.allowed.get("jax", Releases())

    def exclusions(self) -> tuple[str, ...]:
        """The patterns of excluded files: the default ones, then the user's, which can remove one by ``!``."""
        return (*DEFAULT_EXCLUDE, *self.exclude)


def read_config(root: Path, file: Path | None) -> Config:
    """The settings of ``file`` for the project at ``root``; the default settings if there is no file.

    Raises:
        UsageError: the file, or one that it extends, cannot be read, or holds something that is not a setting.

    """
    config = Config(root=root, allowed=_allowed(root))
    return config if file is None else _extended(config, file, ())


def _allowed(root: Path) -> Mapping[str, Releases]:
    """The releases that a project's files allow; a file that cannot be read says nothing."""
    try:
        pyproject = tomllib.loads(_text(root / SHARED_FILE))
    except ValueError:
        pyproject = {}
    setup, requirements = required_by(_text(root / SETUP)), _text(root / REQUIREMENTS)
    return {library: allowed(pyproject, setup, requirements, library) for library in BOUND}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _extended(config: Config, file: Path, above: tuple[Path, ...]) -> Config:
    """``config`` with the settings of ``file``, on top of those of the file that it extends."""
    values = _values(file, config.root)
    base = values.pop("extend", None)
    if base is not None:
        base = (file.parent / base).resolve()
        if base == file.resolve():
            raise UsageError(f"{file} extends itself; remove 'extend', or name the other file.")
        if base in above:
            raise UsageError(f"{file} extends {base}, which extends it in turn; remove one of the two.")
        config = _extended(config, base, (*above, file.resolve()))
    return replace(_laid_over(config, values, lambda name: f"{name!r} in {file}"), file=file)


def _values(file: Path, root: Path) -> dict[str, Any]:
    """The settings of a file, by field."""
    values: dict[str, Any] = {}
    keys = {key.name: key for key in KEYS}
    for name, value in (settings(file) or {}).items():
        key = keys.get(name)
        if key is None and name == "tool" and file.name != SHARED_FILE:
            raise UsageError(f"{file} has its settings at the top level: remove the header [tool.spmdlint].")
        if key is None:
            near = selection.nearest(name, keys)
            hint = f" Did you mean {near!r}?" if near else f" The keys are: {', '.join(keys)}."
            raise UsageError(f"{file} sets {name!r}, which is not a setting of spmdlint.{hint}")
        try:
            values[key.attribute] = key.read(value, root)
        except ValueError as error:
            # Only the error of the folder reader is useful; that of int() is not.
            detail = f" ({error})" if str(error).startswith("there is") else ""
            raise UsageError(f"{file} sets {name!r} to {value!r}; it must be {key.expects}{detail}.") from None
    return values


def settings(file: Path) -> dict[str, Any] | None:
    """The table of settings in ``file``; None for a pyproject.toml without ``[tool.spmdlint]``.

    Raises:
        UsageError: the file cannot be read, or is not TOML.

    """
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The configuration {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not encoded in UTF-8, as TOML must be: byte {error.start} is invalid.") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: {error}. Fix it and run again.") from None
    if file.name != SHARED_FILE:
        return table
    tools = table.get("tool")
    own = tools.get("spmdlint") if isinstance(tools, dict) else None
    if own is not None and not isinstance(own, dict):
        raise UsageError(f"{file} sets 'tool.spmdlint' to {own!r}; it must be a table: [tool.spmdlint].")
    return own


def override(config: Config, options: Mapping[str, Any]) -> Config:
    """``config`` with the options of the command line; an option that was not given is None.

    As in ruff, ``--select`` discards the rules that the file selects and ignores, while ``--ignore``,
    ``--extend-select`` and ``--exclude`` add to the lists in the file.
    """
    given = {name: value for name, value in options.items() if value is not None}
    return _laid_over(config, given, lambda name: f"--{name.replace('_', '-')}")


def _laid_over(config: Config, given: dict[str, Any], origin: Callable[[str], str]) -> Config:
    """``config`` with new values by field; ``origin`` says where a field was set, given its name as users write it."""
    origins = dict(config.origins)
    if "select" in given:
        config = replace(config, ignore=(), extend_select=())
        origins = {name: where for name, where in origins.items() if name not in ("ignore", "extend_select")}
    for name, value in given.items():
        where = origin(name.replace("_", "-"))
        if name in ("ignore", "extend_select", "exclude"):
            given[name] = (*getattr(config, name), *value)
            where = f"{origins[name]} or {where}" if name in origins else where
        elif isinstance(value, dict):
            given[name] = _joined(getattr(config, name), value)
        origins[name] = where
    return replace(config, origins=origins, **given)


def _joined(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables merged, including nested tables; ``above`` wins."""
    joined = dict(below)
    for name, value in above.items():
        known = joined.get(name)
        both = isinstance(known, dict) and isinstance(value, dict)
        joined[name] = _joined(known, value) if both else value  # type: ignore[arg-type]  # both are tables
    return joined
