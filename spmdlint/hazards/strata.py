"""All strata of the second engine, each solved when it is first needed, in their order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property

from spmdlint.core.conditions import Conditions
from spmdlint.core.evaluation import Evaluation
from spmdlint.domains.content import Content
from spmdlint.domains.effects import Effects
from spmdlint.hazards.divergence import Divergence, Divergences
from spmdlint.hazards.why import Reason, Why
from spmdlint.heuristics.extent import Extent
from spmdlint.knowledge.load import Knowledge
from spmdlint.knowledge.rows import rows
from spmdlint.program.link import FunctionRef, Project


class Strata:
    """The facts of one project. ``shuffled``: a seed for the order of visits, which must not matter.

    ``always``: the user says that the program runs as several processes.
    """

    def __init__(
        self, project: Project, knowledge: Knowledge, *, always: bool = False, shuffled: int | None = None
    ) -> None:
        self.project = project
        self.knowledge = knowledge
        self._always = always
        self._random = random.Random(shuffled) if shuffled is not None else None  # noqa: S311  (no secret)

    def _order(self, functions: Sequence[FunctionRef]) -> list[FunctionRef] | None:
        if self._random is None:
            return None
        mixed = list(functions)
        self._random.shuffle(mixed)
        return mixed

    @cached_property
    def evaluation(self) -> Evaluation:
        """What each operation gives, and whom each call runs."""
        return Evaluation(self.project, self.knowledge, rows(), self._order(self.project.functions()))

    @cached_property
    def conditions(self) -> Conditions:
        """Conditions in normal form."""
        return Conditions(self.evaluation)

    @cached_property
    def content(self) -> Content:
        """What decides each value, for the functions in which processes may diverge and all they depend on."""
        asked = self._effects.asked_about()
        return Content(self.evaluation, self._order(asked) or asked)

    @cached_property
    def _effects(self) -> Effects:
        return Effects(self.evaluation, self.conditions)

    @cached_property
    def effects(self) -> Effects:
        """Which parallel calls code makes."""
        self._effects.is_local_call = self.content.is_local_call
        self._effects.is_global_call = self.content.is_global_call
        self._effects.raised = self.content.raised
        self._effects.catching = self.content.exceptions.caught
        self._effects.is_entered = lambda ref, n: bool(self.content.of(ref, n))
        return self._effects

    @cached_property
    def why(self) -> Why:
        """Reasons."""
        return Why(self.evaluation, self.content)

    def divergences(self) -> tuple[Divergence, ...]:
        """Parallel calls that only some processes make."""
        extent = Extent(self.evaluation, always=self._always)
        given = (self.evaluation, self.content, self.effects, self.conditions, extent, self.why)
        return tuple(Divergences(*given).found())

    def reason(self, found: Divergence) -> Reason:
        """Why the condition of a divergence varies."""
        kind = "identity" if found.kind == "group" else found.kind
        return self.why.of(found.branch.ref, found.branch.number, kind)
