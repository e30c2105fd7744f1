"""What a rule is, and how rules are found.

A rule is one module that holds one subclass of :class:`Rule`, or of :class:`RunRule` where it looks at the run and not
at the program. Packages announce their rules by an entry point in the group ``spmdlint.rules`` that names a package
(every module in it is searched) or a module; the built-in rules are found in the same way as a third party's.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterator
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

    The docstring starts with one sentence, the summary, and goes on with the sections of :data:`SECTIONS`, each
    under a Markdown heading of the second level. The code block under "Example" must give a finding of this rule and
    the one under "Use instead" must not: both are tests.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = "error"
    preview: ClassVar[bool] = False
    url: ClassVar[str | None] = None
    """The address of the rule's page on the web, where it has one."""
    always: ClassVar[bool] = False
    """Whether the rule runs although others were selected; ignoring it switches it off all the same."""

    @abstractmethod
    def check(self, program: Program) -> Iterator[Diagnostic]:
        """Yield the findings of this rule over the whole program."""

    def finding(
        self,
        message: str,
        place: Place,
        help: str = "",  # noqa: A002  (as the field of a diagnostic is called)
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
    ) -> Diagnostic:
        """A finding of this rule, by its code and name and of its severity."""
        return Diagnostic(self.code, self.name, self.severity, message, place, help, related, fix)

    @classmethod
    def page(cls) -> str:
        """The rule's documentation as Markdown, without a title."""
        from inspect import cleandoc  # which only this needs

        return cleandoc(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the documentation."""
        return cls.page().split("\n\n", 1)[0].replace("\n", " ")


class Problem(Struct, frozen=True):
    """A file, or the place in it, that keeps the file from being linted; ``message`` is a sentence."""

    place: Place
    message: str


class UnusedSuppression(Struct, frozen=True):
    """One rule that a comment suppresses without effect; ``selector`` is what the comment calls it.

    ``code`` is None where no installed rule has that name, and ``selector`` is empty where the comment names none.
    ``removal`` takes it out of the text. ``is_directive``: the selector stands in the place of ``ignore``;
    ``is_family``: it is the beginning of several codes.
    """

    place: Place
    selector: str
    code: str | None
    nearest: str | None = None
    removal: Edit | None = None
    is_directive: bool = False
    is_family: bool = False


class Run(Struct, frozen=True):
    """What happened while the rules over the program ran."""

    problems: tuple[Problem, ...]
    unused_suppressions: tuple[UnusedSuppression, ...]


class RunRule(Rule):
    """A rule about the run itself, asked when all rules over the program have been."""

    def check(self, program: Program) -> Iterator[Diagnostic]:
        """Nothing: a rule of this kind does not look at the program."""
        return iter(())

    @abstractmethod
    def check_run(self, run: Run) -> Iterator[Diagnostic]:
        """Yield the findings of this rule over the run."""


class RuleError(UsageError):
    """A package of rules cannot be loaded, or two rules claim one code."""


@lru_cache(maxsize=1)
def load_rules() -> tuple[Rule, ...]:
    """Every installed rule, by code.

    Raises:
        RuleError: an entry point does not load, or a code or a name is claimed twice.

    """
    found: dict[str, Rule] = {}
    names: dict[str, str] = {}
    for point in announced(GROUP):
        try:
            loaded = point.load()
        except Exception as error:
            raise RuleError(
                f"The rules of the entry point {point.name!r} ({point.value}) cannot be loaded: {error}. "
                "Mend or uninstall the package that announces them."
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


def _rules_of(place: ModuleType) -> Iterator[Rule]:
    inside = pkgutil.iter_modules(getattr(place, "__path__", ()))
    for module in (place, *(importlib.import_module(f"{place.__name__}.{info.name}") for info in inside)):
        for _, kind in sorted(vars(module).items()):
            if _is_rule(kind) and kind.__module__ == module.__name__:
                yield kind()


def _is_rule(found: object) -> TypeGuard[type[Rule]]:
    return isinstance(found, ABCMeta) and issubclass(found, Rule) and not found.__abstractmethods__
