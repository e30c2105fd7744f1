"""What a rule of one's own may ask about a node of the syntax tree. These names are stable.

A fact has three answers. *yes* and *no* are proven, as far as the files of the project show; everything else is
*unknown*, and unknown is not a reason to report. Nothing here names a part of the linter: rules that use this module
alone go on working when the analyses change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NoReturn, Protocol, TypeAlias, cast, get_args

from msgspec import Struct

from spmdlint.diagnostics import Location as Location
from spmdlint.diagnostics import Place as Place

Answer: TypeAlias = Literal["yes", "no", "unknown"]
AspectName: TypeAlias = Literal["content", "presence", "length", "shape", "order"]


def any_of(answers: Iterable[Answer]) -> Answer:
    """*yes* if one answer is, *no* if all are."""
    found = set(answers)
    return "yes" if "yes" in found else "unknown" if "unknown" in found else "no"


def all_of(answers: Iterable[Answer]) -> Answer:
    """*yes* if all answers are, *no* if one is."""
    found = set(answers)
    return "no" if "no" in found else "unknown" if "unknown" in found else "yes"


class _Fact(Struct, frozen=True):
    """A fact is not true or false: code that asks for its truth would take *no* and *unknown* for *yes*."""

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} has three answers, so it is neither true nor false: "
            "compare an answer with 'yes', 'no' or 'unknown'."
        )


class Answered(Protocol):
    """A fact that has one answer, such as :class:`Difference`."""

    @property
    def answer(self) -> Answer:
        """*yes*, *no* or *unknown*."""


class Step(Struct, frozen=True):
    """One step on the way from the source of a difference to the value: where it is, and a sentence."""

    place: Place
    text: str


class Aspect(Struct, frozen=True):
    """What of a value differs: its content, whether there is a value, its length, its shape, or its order.

    ``source`` is the kind of source, such as "identity" (the number of the process), "files" or "clock"; for each kind
    there is an aspect of its own. ``steps`` lead from the source to the value.
    """

    name: AspectName
    source: str
    steps: tuple[Step, ...]


class Difference(_Fact, frozen=True):
    """Whether a value differs between processes, and why.

    *no*: everything that the value is made of is known, and the same everywhere.
    """

    answer: Answer = "unknown"
    aspects: tuple[Aspect, ...] = ()


class Axes(_Fact, frozen=True):
    """The axes that may be bound where the node is evaluated; ``complete``: there are no others."""

    names: frozenset[str] = frozenset()
    complete: bool = False

    def bound(self, name: str) -> Answer:
        """Whether some call on the way to the node binds the axis."""
        return "yes" if name in self.names else "no" if self.complete else "unknown"


class Parallel(_Fact, frozen=True):
    """Whether the node makes parallel calls, directly or through functions of the project, and which.

    For a node that is not a call itself: whether the code inside it does, without nested functions. *unknown*: a callee
    is not known, or it is a jitted function, which runs on all processes only if its arguments do.
    """

    answer: Answer = "unknown"
    calls: tuple[str, ...] = ()


class Callees(_Fact, frozen=True):
    """What a call calls, or a name means: dotted names such as ``jax.lax.psum`` or ``train.loop.Trainer.save``.

    A name is canonical: it does not depend on how it was imported. ``complete``: there are no others.
    """

    names: frozenset[str] = frozenset()
    complete: bool = False

    def includes(self, name: str) -> Answer:
        """Whether it is this name: *unknown* if it is one of several."""
        if name in self.names:
            return "yes" if self.complete and len(self.names) == 1 else "unknown"
        return "no" if self.complete else "unknown"


class Guard(Struct, frozen=True):
    """A condition, a loop or a handler that decides whether code runs.

    ``holds`` is its outcome where the code runs; None for a loop. ``difference`` is that of the condition; of a loop,
    that of the number of its iterations. ``first_process``: whether the code runs on process 0 only, because of it.
    """

    place: Place
    code: str
    holds: bool | None
    difference: Difference
    first_process: Answer


class Way(Struct, frozen=True):
    """One way to a node: what guards it, the innermost first, and the calls that lead to it, the outermost first.

    ``begins`` says where it begins: at the top level of a *module*, or in a *function* that nothing in the project is
    known to call, so that its callers may guard it.
    """

    guards: tuple[Guard, ...]
    calls: tuple[Place, ...]
    begins: Literal["module", "function"]


class Guards(_Fact, frozen=True):
    """The known ways to a node, through its function and that function's callers; ``complete``: none was left out."""

    ways: tuple[Way, ...] = ()
    complete: bool = False

    def always(self, condition: Callable[[Guard], Answer | bool | Answered]) -> Answer:
        """Whether a guard that meets a condition is on every way.

        *no*: a way from the top level of a module has none. *yes*: every known way has one. The condition returns an
        answer, a bool (True is *yes*, False is *no*), or a fact that has an answer, such as ``guard.difference``.

        Raises:
            TypeError: the condition returned something else.

        """
        found = [self._on(way, condition) for way in self.ways]
        if "no" in found:
            return "no"
        return "yes" if found and self.complete and set(found) == {"yes"} else "unknown"

    @staticmethod
    def _on(way: Way, condition: Callable[[Guard], Answer | bool | Answered]) -> Answer:
        found = any_of([_meets(guard, condition(guard)) for guard in way.guards])
        return "unknown" if found == "no" and way.begins == "function" else found


def _meets(guard: Guard, found: object) -> Answer:
    """Whether a guard meets a condition, which has returned ``found``."""
    if isinstance(found, bool):
        return "yes" if found else "no"
    answer = found if isinstance(found, str) else getattr(found, "answer", None)
    for each in get_args(Answer):
        if answer == each:
            return cast("Answer", each)
    raise TypeError(
        f"The condition of guards.always returned {found!r} for the guard {guard.code!r}. "
        "It must return 'yes', 'no' or 'unknown', True or False, or a fact with an answer."
    )


class Facts(Protocol):
    """What is known about one node. Each fact is found out when it is first asked for."""

    @property
    def path(self) -> Path:
        """The file of the node."""

    @property
    def place(self) -> Place:
        """The place of the node, without parentheses around it."""

    @property
    def difference(self) -> Difference:
        """Whether its value differs between processes, and why."""

    @property
    def axes(self) -> Axes:
        """Which axes are bound here."""

    @property
    def parallel(self) -> Parallel:
        """Whether it makes parallel calls."""

    @property
    def callees(self) -> Callees:
        """What a call calls, or what a name or an attribute stands for."""

    @property
    def guards(self) -> Guards:
        """What decides whether it runs, in callers too."""
