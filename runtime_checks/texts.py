"""The lowered modules that processes exchange after a difference between them is proven."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

from spmdlint.runtime_checks.locations import source_of
from spmdlint.runtime_checks.modules import first_difference

MAX_MODULE = 4 << 20


def pack_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts of a module by name, short enough for the store; longer ones are left out."""
    packed = {name: base64.b64encode(zlib.compress(text.encode(), 1)).decode() for name, text in texts.items()}
    return {name: text for name, text in packed.items() if len(text) < MAX_MODULE}


def module_difference(packed: Mapping[int, Mapping[str, Any]]) -> dict[str, Any] | None:
    """The first line at which the lowered modules of two processes differ, and its source line."""
    texts = {number: _unpacked(side.get("canonical")) for number, side in sorted(packed.items())}
    numbers = [number for number, text in texts.items() if text]
    for other in numbers[1:]:
        found = first_difference(texts[numbers[0]], texts[other])
        if found is not None:
            sides = [
                {
                    "processes": [number for number in numbers if texts[number] == texts[one]],
                    "text": words,
                    "source": source_of(_unpacked(packed[one].get("located")), found.number),
                }
                for one, words in ((numbers[0], found.first), (other, found.second))
            ]
            return {"line": found.number, "sides": sides}
    return None


def _unpacked(packed: Any) -> str:
    try:
        inflate = zlib.decompressobj()
        return inflate.decompress(base64.b64decode(str(packed or "")), MAX_MODULE * 8).decode(errors="replace")
    except (ValueError, zlib.error):
        return ""
