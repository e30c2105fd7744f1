"""Transfer rows: what functions and methods do to the values that pass through them. The core looks nothing else up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct

from spmdlint.knowledge.files import read_file

Role = Literal[
    "property", "static", "class", "super", "getattr", "setattr", "hasattr", "isinstance", "type", "bool", "number",
    "hash", "object", "enumerate", "zip", "map", "wraps", "manager", "namespace", "field", "update", "get", "items",
    "values", "keys", "copy", "environment", "count", "optional", "asserts", "text", "participants", "options", "local",
    "own devices", "quits", "any exception", "mistake", "replace", "raises",
]  # fmt: skip


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """What one function or method does; the keys are those that rows.toml explains."""

    role: Role | None = None
    same: int | None = None
    elements: tuple[int, ...] | Literal["all"] = ()
    element: int | None = None
    default: int | None = None
    makes: Literal["list", "set", "dict"] | None = None
    stores: int | None = None
    stores_all: int | None = None
    turns: tuple[tuple[str, str], ...] = ()
    content: bool = True
    size: Literal["content", "size"] | None = None


class Rows(Struct, frozen=True):
    """All rows: functions by canonical name, methods of containers by bare name."""

    functions: Mapping[str, Row]
    methods: Mapping[str, Row]
    pure: frozenset[str]
    """Modules whose functions compute from their arguments alone."""

    host: frozenset[str]
    """Modules whose functions give values of this process."""
    failing: frozenset[str]
    """Names of context managers in whose block the author expects a failure."""

    host_variables: frozenset[str]
    """Variables of the environment that name the host."""

    host_paths: tuple[str, ...]
    """What the names of files begin with that tell about the host."""

    calm: tuple[str, ...]
    """What the names of functions begin with that do not fail on one process alone."""

    common: frozenset[str]
    """Names of methods that objects of libraries have as well."""

    def never_fails(self, name: str) -> bool:
        """Whether a function computes, so that it fails on all processes alike if its arguments are alike."""
        return self.is_pure(name) or name.startswith(self.calm) or name.endswith(("Error", "Exception"))

    def is_host(self, name: str) -> bool:
        """Whether a function's result is in this process's memory."""
        return name.partition(".")[0] in self.host

    def is_pure(self, name: str) -> bool:
        """Whether a function's result is decided by its arguments alone, in the same facet."""
        return name.rpartition(".")[0] in self.pure


@lru_cache(maxsize=1)
def rows() -> Rows:
    """The rows that come with the linter.

    Raises:
        msgspec.ValidationError: a row has an unknown key, or a value of the wrong type.

    """
    tables: Mapping[str, Any] = read_file("rows.toml")
    return Rows(
        msgspec.convert(tables["rows"], dict[str, Row]),
        msgspec.convert(tables["containers"], dict[str, Row]),
        frozenset(tables["pure"]["modules"]),
        frozenset(tables["host"]["modules"]),
        frozenset(tables["failing"]["managers"]),
        frozenset(tables["host"]["variables"]),
        tuple(tables["host"]["paths"]),
        tuple(f"{module}." for module in tables["calm"]["modules"]),
        frozenset(name for kind in (list, dict, set, str, bytes, tuple, int, float) for name in dir(kind))
        | frozenset(tables["common"]["methods"]),
    )
