"""One parallel call, before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spmdlint.runtime_checks.fingerprint import Program, describe_arguments
from spmdlint.runtime_checks.frames import Site
from spmdlint.runtime_checks.provenance import UNKNOWN, WIDTH, Provenance


@dataclass(slots=True)
class Call:
    """The facts about a call before it is dispatched.

    ``values`` are its flattened arguments; they are only read, and not kept once the call is agreed on. ``texts``
    returns the lowered module, "canonical" and "located", if it is known.
    """

    program: Program
    site: Site | None
    values: Sequence[Any] = ()
    names: Sequence[str] | None = None
    static: Mapping[str, str] = field(default_factory=dict)
    tags: str = ""
    texts: Callable[[], dict[str, str]] = dict

    def explained(self, provenance: Provenance) -> list[dict[str, Any]]:
        """The arguments as reports show them, with the origin of each if it is known."""
        described = describe_arguments(self.values, self.names)
        for number, argument in enumerate(described):
            tag = self.tags[number * WIDTH : (number + 1) * WIDTH]
            if tag and tag != UNKNOWN:
                argument["origin"] = provenance.describe(tag)
        return described
