"""Processes that another library tells apart, as MPI does, where JAX knows of one only."""

from __future__ import annotations

from pathlib import Path

from spmdlint.analysis.callgraph.effects import ParallelCall
from spmdlint.analysis.callgraph.multiprocess import MultiProcess
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.variance.reason import Reason
from spmdlint.analysis.variance.sourcecall import source_function

_OF_JAX = ("jax.", "orbax.", "flax.")


def told_by_others(evaluator: Evaluator, multi: MultiProcess, path: Path, reason: Reason) -> bool:
    """Does what differs come from the number of such a process, in a file of a program with one JAX for each."""
    name = source_function(evaluator, reason)
    if not name or multi.surely_around(path):
        return False
    known = evaluator.knowledge.get(name)
    return known is not None and known.source == "identity" and not known.name.startswith("jax.")


def waits_for_others(call: ParallelCall) -> bool:
    """Does a call meet those of such processes: what JAX launches runs on the devices of one."""
    return call.strength == "strong" and not str(call.same).startswith(_OF_JAX)


def is_of_others(call: ParallelCall) -> bool:
    """Is it a call of such a library itself: what JAX compiles around one may be another program on every process."""
    return isinstance(call.same, str) and waits_for_others(call)
