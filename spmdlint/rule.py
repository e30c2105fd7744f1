"""The base classes of rules, and how rules are discovered.

A rule is one module with one subclass of :class:`Rule`, or of :class:`RunRule` if it checks the run instead of the
program. A package registers its rules with an entry point in the group ``spmdlint.rules``, which names a package (every
module in it is searched) or a module. The built-in rules are discovered in the same way as third-party rules.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, TypeGuard

from msgspec import Struct

from spmdlint.announced import announced
from spmdlint.diagnostics import Diagnostic, Edit, Fix, Place, Related, Severity
from spmdlint.errors import UsageError

if TYPE_CHECKING:
    from spmdlint.analysis.axes.free import Unbound as Unbound
    from spmdlint.analysis.axes.missing import MissingAxis as MissingAxis
    from spmdlint.analysis.axes.optional import LeftOut as LeftOut
    from spmdlint.analysis.axes.specs import AxisNotInMesh as AxisNotInMesh
    from spmdlint.analysis.axes.specs import MissingFunction as MissingFunction
    from spmdlint.analysis.divergence.branches import Divergence as Divergence
    from spmdlint.analysis.divergence.exceptions import ExceptionPath as ExceptionPath
    from spmdlint.analysis.divergence.turns import Turn as Turn
    from spmdlint.analysis.evaluation.values import Site as Site
    from spmdlint.analysis.inputs.constants import TracedConstant as TracedConstant
    from spmdlint.analysis.inputs.given import Given as Given
    from spmdlint.analysis.inputs.mixups import Mixup as Mixup
    from spmdlint.analysis.inputs.placed import Placed as Placed
    from spmdlint.analysis.inputs.seeds import VaryingSeed as VaryingSeed
    from spmdlint.analysis.inputs.shares import ShuffledShare as ShuffledShare
    from spmdlint.analysis.inputs.wholebatch import WholeBatch as WholeBatch
    from spmdlint.analysis.meshtypes.bodies import Unreduced as Unreduced
    from spmdlint.analysis.order.listed import ListingLoop as ListingLoop
    from spmdlint.analysis.order.listed import ListingNumbers as ListingNumbers
    from spmdlint.analysis.order.listed import ListingShare as ListingShare
    from spmdlint.analysis.order.unordered import SetLoop as SetLoop
    from spmdlint.analysis.program import Program as Program
    from spmdlint.analysis.setup.removed import UseOfRemoved as UseOfRemoved
    from spmdlint.analysis.variance.origins import Reason as Reason
    from spmdlint.analysis.variance.ownpart import OwnPart as OwnPart

GROUP = "spmdlint.rules"
SECTIONS = ("What it does", "Why it matters", "Example", "Use instead", "Limits")


class Rule(ABC):
    """One hazard: its identity, its page (the docstring of the subclass) and its check.

    The docstring starts with a one-sentence summary, followed by the sections of :data:`SECTIONS`, each under a
    second-level Markdown heading. The code block under "Example" must give a finding of this rule, and the one under
    "Use instead" must not; tests check both.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = "error"
    preview: ClassVar[bool] = False
    url: ClassVar[str | None] = None
    """The URL of the rule's documentation, if it has one."""
    always: ClassVar[bool] = False
    """Whether the rule runs even if it is not selected. Ignoring it still switches it off."""

    @abstractmethod
    def check(self, program: Program) -> Iterator[Diagnostic]:
        """Yield the findings of this rule in the whole program."""

    def finding(
        self,
        message: str,
        place: Place,
        help: str = "",  # noqa: A002  (named like the field of a diagnostic)
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
    ) -> Diagnostic:
        """A finding with the code, name and severity of this rule."""
        return Diagnostic(self.code, self.name, self.severity, message, place, help, related, fix)

    def leading(self, program: Program, sites: Iterable[Site]) -> tuple[Related, ...]:
        """The calls on the way to a finding, from the outermost to the innermost."""
        return tuple(Related(program.place(site), "This call leads to it.") for site in sites)

    @classmethod
    def page(cls) -> str:
        """The rule's documentation as Markdown, without a title."""
        from inspect import cleandoc  # needed only here

        return cleandoc(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the documentation."""
        return cls.page().split("\n\n", 1)[0].replace("\n", " ")


class Problem(Struct, frozen=True):
    """Why a file could not be linted: the file, or the position in it, and a ``message`` that is a full sentence."""

    place: Place
    message: str


class UnusedSuppression(Struct, frozen=True):
    """A rule that a comment suppresses without effect; ``selector`` is the rule's name in the comment.

    ``code`` is None if no installed rule has that name, and ``selector`` is empty if the comment names no rule.
    ``removal`` removes the selector from the comment. ``is_directive`` is set if the selector is written in place of
    ``ignore``, and ``is_family`` if it is the beginning of several codes.
    """

    place: Place
    selector: str
    code: str | None
    nearest: str | None = None
    removal: Edit | None = None
    is_directive: bool = False
    is_family: bool = False


class Run(Struct, frozen=True):
    """What happened while the rules checked the program."""

    problems: tuple[Problem, ...]
    unused_suppressions: tuple[UnusedSuppression, ...]


class RunRule(Rule):
    """A rule about the run itself, which runs after all rules that check the program."""

    def check(self, program: Program) -> Iterator[Diagnostic]:
        """Yield nothing: a rule of this kind does not check the program."""
        return iter(())

    @abstractmethod
    def check_run(self, run: Run) -> Iterator[Diagnostic]:
        """Yield the findings of this rule about the run."""


class RuleError(UsageError):
    """A package of rules cannot be loaded, or two rules claim the same code or name."""


@lru_cache(maxsize=1)
def load_rules() -> tuple[Rule, ...]:
    """All installed rules, sorted by code.

    Raises:
        RuleError: if an entry point does not load, or if a code or name is claimed twice.

    """
    found: dict[str, Rule] = {}
    names: dict[str, str] = {}
    for point in announced(GROUP):
        try:
            loaded = point.load()
        except Exception as error:
            raise RuleError(
                f"The rules of the entry point {point.name!r} ({point.value}) cannot be loaded: {error}. "
                "Fix or uninstall the package that provides them."
            ) from error
        for rule in _rules_of(loaded):
            if type(found.get(rule.code)) is type(rule):
                continue
            if rule.code in found or rule.name in names:
                raise RuleError(
                    f"Two rules claim {rule.code} {rule.name}; "
                    f"the second is {type(rule).__module__}.{type(rule).__qualname__}."
                )
            found[rule.code] = rule
            names[rule.name] = rule.code
    return tuple(found[code] for code in sorted(found))


def about_comments() -> frozenset[str]:
    """The codes of the rules whose findings no comment silences: a comment cannot help, or is what they are about."""
    return frozenset(rule.code for rule in load_rules() if rule.always or rule.name == "unused-suppression")


def _rules_of(place: ModuleType) -> Iterator[Rule]:
    inside = pkgutil.iter_modules(getattr(place, "__path__", ()))
    for module in (place, *(importlib.import_module(f"{place.__name__}.{info.name}") for info in inside)):
        for _, kind in sorted(vars(module).items()):
            if _is_rule(kind) and kind.__module__ == module.__name__:
                yield kind()


def _is_rule(found: object) -> TypeGuard[type[Rule]]:
    return isinstance(found, ABCMeta) and issubclass(found, Rule) and not found.__abstractmethods__
