"""The base class of rules of one's own: a LibCST visitor that may ask what the linter knows about a node.

These names are stable: :class:`VisitorRule`, :class:`Valid` and :class:`Invalid`. A rule overrides ``visit_Call`` and
the like, as any LibCST visitor does, and calls :meth:`VisitorRule.report`. Each file is visited by a new object, which
may keep what it has seen in its attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import libcst as cst
from msgspec import Struct, field

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.facts import Facts
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.analysis.program import Program
    from spmdlint.visiting import Visit

EXAMPLE = "example.py"
"""The name of the file that holds the code of an example."""


class Valid(Struct, frozen=True):
    """Code in which the rule must find nothing; ``files`` are other modules of the project, by their paths."""

    code: str
    files: Mapping[str, str] = field(default_factory=dict)


class Invalid(Struct, frozen=True):
    """Code in which the rule must find something, in every one of the given respects.

    ``row`` is the row of the first finding, ``message`` a part of what it says. ``replacement`` is the code after all
    replacements, those that need review too.
    """

    code: str
    row: int | None = None
    message: str | None = None
    replacement: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)


class VisitorRule(Rule, cst.CSTVisitor):
    """A rule that visits the syntax tree of one file at a time.

    Its docstring is its page, and starts with one sentence that says what is wrong. ``VALID`` and ``INVALID`` are its
    examples, which ``spmdlint rule --test`` checks.
    """

    by_file = True
    VALID: ClassVar[Sequence[str | Valid]] = ()
    INVALID: ClassVar[Sequence[str | Invalid]] = ()

    _visit: Visit
    """The visit of a file that this object was made for."""

    def facts(self, node: cst.CSTNode) -> Facts:
        """What is known about a node of the file."""
        return self._visit.facts(node)

    def report(
        self,
        node: cst.CSTNode,
        message: str,
        *,
        help: str = "",  # noqa: A002  (named like the field of a finding)
        related: Sequence[Related] = (),
        replacement: cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode] | None = None,
        safe: bool = False,
    ) -> None:
        """Report a finding at a node of the file.

        ``replacement`` takes the node's place if the finding is fixed: by ``--fix`` if it is ``safe``, because it keeps
        the meaning of the program; with ``--unsafe-fixes`` otherwise.
        """
        self._visit.report(self, node, message, help, tuple(related), replacement, safe=safe)

    def check(self, program: Program) -> Iterator[Diagnostic]:
        """Yield nothing: `visiting.py` runs rules of this kind, file by file."""
        return iter(())
