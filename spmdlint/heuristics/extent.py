"""Whether calls reach other processes, judging by how the files around them are written.

A bare `jit` spans processes only if its arguments do. Evidence: in programs that map by hand (`pmap`), whose outputs
are on this process's devices, every bare jit under a rank guard that was looked at worked on local rows.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from spmdlint.core.evaluation import Evaluation
from spmdlint.core.values import Result
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.heuristics.spreading import Spreading

_OF_JAX = ("jax.", "orbax.", "flax.")


class Extent:
    """Judges files. One per run."""

    def __init__(self, evaluation: Evaluation, *, always: bool) -> None:
        self.ev = evaluation
        self.several = MultiProcess(evaluation.project, always=always)
        self.spreading = Spreading(evaluation.project)

    def maps_by_hand(self, path: Path) -> bool:
        """Whether a bare `jit` in a file works on what one process holds."""
        return path in self._by_hand or self.spreading.maps_alone(path) or self.spreading.keeps_to_itself(path)

    def written_for(self, path: Path) -> bool:
        """Whether a file names anything that only several processes need."""
        return self.several.written_for(path)

    def around(self, path: Path) -> bool:
        """Whether any file of the same program does."""
        return self.several.around(path)

    def is_told_apart_by_others(self, path: Path, source: str) -> bool:
        """Whether the number of a process comes from another library, where each process has a JAX of its own."""
        return bool(source) and not source.startswith("jax.") and not self.several.surely_around(path)

    @staticmethod
    def waits_for_others(same: object) -> bool:
        """Whether a call waits for such processes: what JAX launches runs on the devices of one of them."""
        return isinstance(same, str) and not same.startswith(_OF_JAX)

    @cached_property
    def _by_hand(self) -> frozenset[Path]:
        """The files that make maps by hand, and those that call them."""
        found: set[Path] = set()
        for ref, evaluated in self.ev.functions.items():
            for call in evaluated.calls.values():
                for a in self.ev.callees(call.callees):
                    known = self.ev.knowledge.get(a.name) if isinstance(a, Result) else None
                    if known is not None and known.by_hand and isinstance(a, Result):
                        found.update((ref.path, a.site.ref.path))
        return frozenset(found)
