"""From the survey of the files to the program: links the files and makes the program ready for queries."""

from __future__ import annotations

from collections.abc import Collection

from spmdlint.analysis.divergence.branches import HAZARDS, Hazard
from spmdlint.analysis.program import Program
from spmdlint.config import Config
from spmdlint.knowledge.load import built_in, extended, of_releases
from spmdlint.program.link import link
from spmdlint.program.survey import Survey


def load(survey: Survey, config: Config, hazards: Collection[Hazard] = HAZARDS) -> Program:
    """Link the files that can matter; divergent branches are looked for if their hazard is among ``hazards``."""
    knowledge = extended(built_in(), config.knowledge, config.origins.get("knowledge", "The knowledge"))
    knowledge = of_releases(knowledge, config.allowed)
    return Program(
        link(survey.summaries(), (*config.src, config.root), survey.component),
        knowledge,
        preview=config.preview,
        jax=config.jax,
        multi_process=config.multi_process,
        expected_failures=config.expected_failures,
        hazards=hazards,
    )
