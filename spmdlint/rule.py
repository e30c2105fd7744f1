"""The base classes of rules, and how rules are discovered.

A rule is one module with one subclass of :class:`Rule`, of :class:`RunRule` if it checks the run instead of the
program, or of :class:`spmdlint.visitor_rule.VisitorRule` if it looks at one file at a time. A package registers its
rules with an entry point in the group ``spmdlint.rules``, which names a package (every module in it is searched) or a
module. The built-in rules are discovered in the same way as third-party rules. A project names the files of its own
rules in its configuration.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Literal, TypeGuard

from msgspec import Struct

from spmdlint.announced import announced
from spmdlint.diagnostics import Diagnostic, Edit, Fix, Place, Related, Severity
from spmdlint.errors import UsageError

if TYPE_CHECKING:
    from spmdlint.analysis.axes.free import Unbound as Unbound
    from spmdlint.analysis.axes.optional import LeftOut as LeftOut
    from spmdlint.analysis.axes.permutations import BadGroups as BadGroups
    from spmdlint.analysis.axes.permutations import BadPermutation as BadPermutation
    from spmdlint.analysis.axes.specs import AxisNotInMesh as AxisNotInMesh
    from spmdlint.analysis.callgraph.wrapped import Wrapped as Wrapped
    from spmdlint.analysis.divergence.branches import Divergence as Divergence
    from spmdlint.analysis.divergence.exceptions import ExceptionPath as ExceptionPath
    from spmdlint.analysis.divergence.turns import Turn as Turn
    from spmdlint.analysis.evaluation.values import Site as Site
    from spmdlint.analysis.inputs.constants import TracedConstant as TracedConstant
    from spmdlint.analysis.inputs.contracts import Breach as Breach
    from spmdlint.analysis.inputs.given import Given as Given
    from spmdlint.analysis.inputs.mixups import Mixup as Mixup
    from spmdlint.analysis.inputs.placed import Placed as Placed
    from spmdlint.analysis.meshtypes.bodies import Unreduced as Unreduced
    from spmdlint.analysis.order.listed import ListingLoop as ListingLoop
    from spmdlint.analysis.order.listed import ListingNumbers as ListingNumbers
    from spmdlint.analysis.order.listed import ListingShare as ListingShare
    from spmdlint.analysis.order.unordered import SetLoop as SetLoop
    from spmdlint.analysis.program import Program as Program
    from spmdlint.analysis.setup.absent import UseOfAbsent as UseOfAbsent
    from spmdlint.analysis.variance.origins import Reason as Reason

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
    partly_preview: ClassVar[bool] = False
    """Whether a rule that is no preview rule has findings that are shown only with ``--preview``."""
    url: ClassVar[str | None] = None
    """The URL of the rule's documentation, if it has one."""
    always: ClassVar[bool] = False
    """Whether the rule runs even if it is not selected. Ignoring it still switches it off."""
    several: ClassVar[bool] = False
    """Whether the hazard is one of several processes only: ``multi-process = "never"`` switches the rule off."""
    by_file: ClassVar[bool] = False
    """Whether the rule visits the syntax tree of one file at a time, and its :meth:`check` does nothing."""
    of_whole: ClassVar[bool] = False
    """Whether it tells what nothing in the whole project does, so that it cannot run on a part of one."""
    many: ClassVar[str] = ""
    """What to do if a program has many findings of this rule, as a sentence, if there is anything to do."""
    split_from: ClassVar[str | None] = None
    """The code under which the findings were reported before this rule was split from that one.

    Comments and baselines from that time name this code, and still hold.
    """
    merged: ClassVar[tuple[str, ...]] = ()
    """What is part of this rule now: codes and names of earlier rules (``"SPMD302 varying-loop"``), and earlier names.

    They stand for this rule in settings, comments and baselines. Unlike that of ``split_from``, their codes are those
    of no other rule.
    """

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
        cause: tuple[Place, ...] = (),
        through: str = "",
        severity: Severity | None = None,
    ) -> Diagnostic:
        """A finding with the code and name of this rule, and its severity, unless another one is given."""
        given = severity or self.severity
        return Diagnostic(self.code, self.name, given, message, place, help, related, fix, cause, through=through)

    def leading(self, program: Program, sites: Iterable[Site]) -> tuple[Related, ...]:
        """The calls on the way to a finding, from the outermost to the innermost."""
        return tuple(Related(program.place(site), "This call leads to it.") for site in sites)

    def wrapped(
        self, program: Program, found: Wrapped | None, at: Place, used: Site | None = None
    ) -> Iterator[Related]:
        """A function that is handed to the code that maps it, the call that hands it over, and where that uses it."""
        if found is None:
            return
        yield Related(program.place(found.made), "This is the function.")
        call = program.place(found.call)
        if (call.path, call.start.row) != (at.path, at.start.row):
            yield Related(call, f"This hands {found.name} to the code that maps it.")
        if used is not None:
            yield Related(program.place(used), "It is used here.")

    @classmethod
    def former(cls) -> tuple[str, ...]:
        """The codes and names of what is part of the rule now."""
        return tuple(word for each in cls.merged for word in each.split())

    @classmethod
    def selectors(cls) -> tuple[str, ...]:
        """The words that stand for this rule alone: its code, its name, and those of what is part of it now."""
        return (cls.code, cls.name, *cls.former())

    @classmethod
    def page(cls) -> str:
        """The rule's documentation as Markdown, without a title."""
        return _cleaned(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the documentation."""
        return cls.page().split("\n\n", 1)[0].replace("\n", " ")


@lru_cache(maxsize=256)
def _cleaned(text: str) -> str:
    """A docstring without its indentation; every run of a process that stays, such as the server, asks for all."""
    from inspect import cleandoc  # needed only here

    return cleandoc(text)


class Problem(Struct, frozen=True):
    """Why a file could not be linted: the file, or the position in it, and a ``message`` that is a full sentence.

    ``part`` tells whether that is all of the file, or a cell of a notebook.
    """

    place: Place
    message: str
    part: Literal["file", "cell"] = "file"


class UnusedSuppression(Struct, frozen=True):
    """A rule that a comment suppresses without effect; ``selector`` is the rule's name in the comment.

    ``code`` is None if no installed rule has that name, and ``selector`` is empty if the comment names no rule.
    ``removal`` removes the selector from the comment. ``is_directive`` is set if the selector is written in place of
    ``ignore``, and ``is_family`` if it is the beginning of several codes. ``meant`` is where the rule reports something
    that points to the line of the comment, and ``is_meant_silenced`` is set if a comment silences it there. ``in_file``
    is set if the comment is about a whole file, and ``is_beside`` if it is then indented or at the end of a line.
    """

    place: Place
    selector: str
    code: str | None
    nearest: str | None = None
    removal: Edit | None = None
    is_directive: bool = False
    is_family: bool = False
    meant: Place | None = None
    is_meant_silenced: bool = False
    in_file: bool = False
    is_beside: bool = False


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


def load_rules(files: Sequence[Path] = (), *, begun: bool = True) -> tuple[Rule, ...]:
    """All installed rules, and those in ``files``, which may be folders, sorted by code.

    Unless they are ``begun``, there need not be a rule, nor a file, in any of them.

    Raises:
        RuleError: if rules do not load, are not complete, or claim a code or name that is taken.

    """
    installed = _installed()
    if not files:
        return installed
    from spmdlint.rulefiles import load

    known = _Known(installed)
    for path in files:
        if not path.exists():
            if begun:
                raise RuleError(f"There is no {path} in the project, which 'rules' names. {_FIRST_RULE}")
            continue
        try:
            rules = list(_rules_of(load(path)))
        except (Exception, SystemExit) as error:
            raise RuleError(f"The rules in {path} cannot be loaded: {_told(error)}. Fix the file.") from error
        if begun and not rules:
            none = f"There is no rule in {path}: no class there derives from VisitorRule or another rule."
            raise RuleError(f"{none} {_FIRST_RULE}")
        for rule in rules:
            known.add(rule)
    return known.all()


_FIRST_RULE = "'spmdlint rule --new NAME' writes a rule to start from."


@lru_cache(maxsize=1)
def _installed() -> tuple[Rule, ...]:
    known = _Known(())
    for point in announced(GROUP):
        try:
            loaded = point.load()
        except Exception as error:
            raise RuleError(
                f"The rules of the entry point {point.name!r} ({point.value}) cannot be loaded: {error}. "
                "Fix or uninstall the package that provides them."
            ) from error
        for rule in _rules_of(loaded):
            known.add(rule)
    return known.all()


def is_built_in(rule: Rule) -> bool:
    """Whether a rule comes with the linter."""
    return type(rule).__module__.startswith(_BUILT_IN)


_BUILT_IN = "spmdlint.rules."
_RESERVED = "SPMD"
_CODE = re.compile(r"[A-Z]+[0-9]+")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def _origin(rule: Rule) -> str:
    """The class of a rule, and its file."""
    file = getattr(sys.modules.get(type(rule).__module__), "__file__", None)
    return f"{type(rule).__qualname__}{f' in {file}' if file else ''}"


class _Known:
    """The rules that have been found, each code and name once."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._found = {rule.code: rule for rule in rules}
        self._taken = {word: rule for rule in self._found.values() for word in rule.selectors()}

    def add(self, rule: Rule) -> None:
        """Add a rule; one that is found again is the same.

        Raises:
            RuleError: the rule has no valid code or name, or its code or name is taken.

        """
        where = f"{type(rule).__module__}.{type(rule).__qualname__}" if is_built_in(rule) else _origin(rule)
        code, name = getattr(rule, "code", ""), getattr(rule, "name", "")
        if not _CODE.fullmatch(code) or not _NAME.fullmatch(name):
            raise RuleError(
                f"The rule {where} has the code {code!r} and the name {name!r}. It needs a code of capital letters and "
                "a number, such as ACME101, and a name of words with hyphens, such as flush-on-main."
            )
        if code.startswith(_RESERVED) and not is_built_in(rule):
            raise RuleError(
                f"The rule {where} claims {code}, but codes that begin with {_RESERVED} are the linter's: use letters "
                "of your own, such as ACME101."
            )
        if type(self._found.get(code)) is type(rule):
            return
        first = next((self._taken[word] for word in rule.selectors() if word in self._taken), None)
        if first is not None:
            raise RuleError(
                f"Two rules claim {code} {name}: {_origin(first)}, which is {first.code} {first.name}, and "
                f"{_origin(rule)}. Give one of them a code and a name of its own."
            )
        self._found[code] = rule
        self._taken |= dict.fromkeys(rule.selectors(), rule)

    def all(self) -> tuple[Rule, ...]:
        """The rules, sorted by code."""
        return tuple(self._found[code] for code in sorted(self._found))


def _told(error: BaseException) -> str:
    """What went wrong, and where."""
    import traceback  # needed only here

    if isinstance(error, SyntaxError):
        return f"{error.msg} (line {error.lineno} of {error.filename})"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (line {last.lineno} of {last.filename})"


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
    if not isinstance(found, ABCMeta) or not issubclass(found, Rule):
        return False
    return not found.__abstractmethods__ and not found.__name__.startswith("_")  # what other rules derive from
