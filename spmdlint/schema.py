"""A JSON schema of the configuration, for editors that complete and check TOML; made from the keys themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spmdlint.keys import BOOLEAN, FORMS, KEYS, STRING, STRINGS, Form, each
from spmdlint.knowledge.described import KEYS as FUNCTION_KEYS
from spmdlint.knowledge.described import KINDS, SOURCES
from spmdlint.knowledge.load import expected

DIALECT = "http://json-schema.org/draft-07/schema#"
"""Which the language servers for TOML know."""

_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def schema() -> dict[str, Any]:
    """The schema of a ``spmdlint.toml``, and of the table ``tool.spmdlint`` of a ``pyproject.toml``."""
    forms = {key.name: FORMS.get(key.read) or _knowledge() for key in KEYS}
    told = {key.name: {"description": _plain(key.meaning), **_default(key.default)} for key in KEYS}
    table = _table({name: {**form, **told[name]} for name, form in forms.items()})
    return {"$schema": DIALECT, "title": "The configuration of spmdlint", **table}


def _default(written: str) -> Form:
    """A default as it is told in the documentation; without one there is none to tell."""
    values: Mapping[str, object] = {"true": True, "false": False, "[]": [], "{}": {}, '["ALL"]': ["ALL"]}
    if written == "none":
        return {}
    return {"default": values.get(written, written.strip('"'))}


def _knowledge() -> Form:
    functions = each(_table({name: _of_function(name) for name in FUNCTION_KEYS}))
    return _table({"functions": functions, "methods": functions, "aliases": each(STRING)})


def _of_function(name: str) -> Form:
    forms: Mapping[str, Form] = {
        "a string": STRING,
        "a number": {"type": "integer"},
        "a list of strings": STRINGS,
        "a string, or a list of strings": {"anyOf": [STRING, STRINGS]},
        "a table of strings": each(STRING),
        "true or false": BOOLEAN,
    }
    chosen = {"kind": KINDS, "source": SOURCES, "raised": SOURCES}.get(name)
    form = forms[expected(name)] if chosen is None else {"enum": list(chosen)}
    return {**form, "description": _plain(FUNCTION_KEYS[name])}


def _table(properties: Mapping[str, Form]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _plain(text: str) -> str:
    """Without links, which lead from our pages only."""
    return _LINK.sub(r"\1", text)
