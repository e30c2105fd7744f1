"""Processes that another library, such as MPI, tells apart, where JAX knows of only one."""

from __future__ import annotations

from pathlib import Path

from spmdlint.analysis.callgraph.effects import ParallelCall
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.variance.reason import Reason
from spmdlint.analysis.variance.sourcecall import source_function
from spmdlint.heuristics.multiprocess import MultiProcess

_OF_JAX = ("jax.", "orbax.", "flax.")


def told_by_others(evaluator: Evaluator, multi: MultiProcess, path: Path, reason: Reason) -> bool:
    """Whether variance comes from the rank of such a process, in a program where each process has its own JAX."""
    name = source_function(evaluator, reason)
    if not name or multi.surely_runs_several(path):
        return False
    known = evaluator.knowledge.get(name)
    return known is not None and known.source == "identity" and not known.name.startswith("jax.")


def waits_for_others(call: ParallelCall) -> bool:
    """Whether a call waits for such processes: what JAX launches runs on the devices of one of them."""
    return call.strength == "strong" and not str(call.same).startswith(_OF_JAX)


def is_of_others(call: ParallelCall) -> bool:
    """Whether a call is such a library's own: what JAX compiles around it may differ between processes."""
    return isinstance(call.same, str) and waits_for_others(call)
