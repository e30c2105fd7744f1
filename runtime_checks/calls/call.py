"""One parallel call, before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spmdlint.runtime_checks.calls.fingerprint import Program, describe_arguments
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.calls.given import Given, Values, told_with
from spmdlint.runtime_checks.calls.provenance import UNKNOWN, WIDTH, Provenance
from spmdlint.runtime_checks.records import Argument, ProgramRecord


@dataclass(slots=True)
class Call:
    """The facts about a call before it is dispatched.

    ``values`` are its flattened arguments, which are only read, and not kept once the call is agreed on. ``texts``
    returns the lowered module, "canonical" and "located", packed, if it is known. ``words`` are the values as text
    where they are compared themselves. ``source`` is whether this process is the source of a broadcast, None if the
    call is not one. ``given`` has the tags of what is meant to be one value.
    """

    program: Program
    site: Site | None
    values: Sequence[Any] = ()
    names: Sequence[str] | None = None
    static: Mapping[str, str] = field(default_factory=dict)
    tags: str = ""
    texts: Callable[[], Mapping[str, str]] = dict
    words: Sequence[str] = ()
    source: bool | None = None
    given: Given = field(default_factory=dict)

    def described(self) -> list[Argument]:
        """The arguments, each with a name for readers."""
        described = describe_arguments(self.values, self.names)
        for argument, words in zip(described, self.words, strict=False):
            argument["value"] = words
        return described

    def record(self) -> ProgramRecord:
        """What is recorded of the program: the decisive fields, and what explains them.

        Not the origin of the arguments: it is another one at each call, and the record stands for all.
        """
        return {**self.program.decisive(), "static": dict(self.static), "arguments": self.described()}

    def explained(self, provenance: Provenance, values: Values | None = None) -> list[Argument]:
        """The arguments as reports show them, with the origin of each if it is known, and what it is given."""
        described = self.described()
        if values is not None:
            described = told_with(described, values.told(self.given))
        for number, argument in enumerate(described):
            tag = self.tags[number * WIDTH : (number + 1) * WIDTH]
            if tag and tag != UNKNOWN:
                argument["origin"] = provenance.describe(tag)
        return described
