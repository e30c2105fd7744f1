"""Which rule tells of an argument that differs between processes: one table, by facet and kind of cause."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from spmdlint.knowledge.files import read_file

_UNSURE = "preview"
_ANY = "*"


class Told(Struct, frozen=True):
    """The rule that tells of a broken contract, and whether its cause is a sure one."""

    code: str
    sure: bool


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, Told]]:
    table: Mapping[str, Mapping[str, list[str]]] = read_file("contracts.toml")["contracts"]
    return {
        facet: {
            kind: Told(code, kind not in codes.get(_UNSURE, ()))
            for code, kinds in codes.items()
            for kind in kinds
            if code != _UNSURE
        }
        for facet, codes in table.items()
    }


def told_by(facet: str, cause: str) -> Told | None:
    """Which rule tells of an argument that differs in a facet for a kind of cause; None if it need not be wrong."""
    codes = _table()[facet]
    return codes.get(cause) or codes.get(_ANY)
