"""What JAX says about a program, what the linter says, and whether they agree."""

from __future__ import annotations

import re
import sys
import tempfile
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jax
import numpy as np
from programs import GROUP_FAULTS, NAME_FAULTS, PERMUTATION_FAULTS, Program
from writing import MAIN, MODULES

from spmdlint.config import Config
from spmdlint.engine import check

Verdict = Literal["right", "faulty", "other"]

# How JAX words an error about an axis name, a spec, a permutation, groups, or a map without its function.
_ERRORS = re.compile(
    r"unbound axis name|is not found in mesh|must refer to an axis marked as manual|to be a subset of mesh.axis_names"
    r"|has duplicate entries|DuplicateSpec|multiple times|can only refer to Auto axes|contains a manual axes"
    r"|shard_map (in|out)_specs|in_specs|out_specs|must be unique|does not represent a permutation|axis_index_groups"
    r"|can only accept axis_name|missing 1 required positional argument: 'fun'|replica group|replica_groups"
)


@dataclass(frozen=True)
class Judged:
    """Both verdicts on one program. ``findings`` are (module, row, code)."""

    program: Program
    verdict: Verdict
    error: str
    findings: tuple[tuple[str, int, str], ...]

    @property
    def outcome(self) -> str:
        """agreed, missed, misplaced, false alarm or abstained."""
        if self.verdict == "other":
            return "abstained"
        if self.verdict == "right":
            return "false alarm" if self.findings else "agreed"
        if not self.findings:
            return "missed"
        due = self.program.due()
        return "agreed" if all((module, row) in due for module, row, _ in self.findings) else "misplaced"


def judge(program: Program) -> Judged:
    """Ask both."""
    verdict, error = trace(program)
    return Judged(program, verdict, error, lint(program))


def trace(program: Program) -> tuple[Verdict, str]:
    """Run the program as far as JAX can tell without devices that compute."""
    texts = dict(program.texts)
    try:
        for name in MODULES:
            if name in texts:
                module = types.ModuleType(name)
                sys.modules[name] = module
                exec(compile(texts[name], f"{name}.py", "exec"), module.__dict__)  # the generator's own text
        if program.shape is not None:
            _trace(sys.modules[MAIN].run, program)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return ("faulty" if _ERRORS.search(text) or _without_words(program, error) else "other"), text
    finally:
        for name in MODULES:
            sys.modules.pop(name, None)
    return "right", ""


def _trace(run, program: Program) -> None:
    argument = np.zeros(program.shape, np.float32)
    abstract = any("AbstractMesh" in text for _, text in program.texts)
    # Nothing can be lowered over an abstract mesh, nor pbroadcast on CPU devices.
    if (abstract or program.case.collective == "pbroadcast") and program.case.fault not in PERMUTATION_FAULTS:
        jax.eval_shape(run, argument)
        return
    lowered = jax.jit(run).lower(argument)
    if program.case.fault.startswith("groups"):
        lowered.compile()


def _without_words(program: Program, error: Exception) -> bool:
    """Some faults JAX meets with an error that names nothing: an index out of range, or a bare assertion."""
    fault = program.case.fault
    if fault in NAME_FAULTS:
        return isinstance(error, AssertionError) and not str(error)
    return fault in (*GROUP_FAULTS, "perm-range") and isinstance(error, IndexError)


def lint(program: Program) -> tuple[tuple[str, int, str], ...]:
    """The findings about names, through the engine."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in program.texts:
            (root / f"{name}.py").write_text(text, encoding="utf-8")
        checked = check(Config(root=root), [root])
    if checked.crashes:
        raise AssertionError(checked.crashes[0].trace())
    found = {
        (each.place.path.stem, each.place.start.row, each.code)
        for each in checked.diagnostics
        # JAX never raises over the order of axes, which SPMD114 warns of: it shuffles the rows.
        if each.code.startswith(("SPMD1", "SPMD9")) and (each.code, each.severity) != ("SPMD114", "warning")
    }
    return tuple(sorted(found))
