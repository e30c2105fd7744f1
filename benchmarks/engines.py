"""Compare the second engine with the first one on a project: callees, findings, time.

    python benchmarks/engines.py callees FOLDER     where the first engine is certain of one callee: is it the same one?
    python benchmarks/engines.py findings FOLDER    the findings of the family in shadow, by both
    python benchmarks/engines.py time FOLDER        processor seconds of each stratum of the second
    python benchmarks/engines.py json FOLDER        the findings of the second, as `spmdlint check` prints them
    python benchmarks/engines.py orders FOLDER      the same facts and findings with shuffled orders of visits?

The folder is linted as `spmdlint check` does. This goes when the first engine does.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from spmdlint.analysis.evaluation import values as old
from spmdlint.analysis.load import load
from spmdlint.analysis.program import Program
from spmdlint.config import read_config
from spmdlint.core import values as new
from spmdlint.files.find import find
from spmdlint.hazards.strata import Strata
from spmdlint.interpreter import deep
from spmdlint.program import summary as s
from spmdlint.program.survey import Surveyor
from spmdlint.rule import load_rules

_SEEN_THROUGH = (
    "contextlib.contextmanager",
    "contextlib.asynccontextmanager",
    "builtins.type",
    "builtins.getattr",  # with a name that neither knows
)
IN_SHADOW = {"condition": "SPMD301", "unsteady": "SPMD306", "checkpoint": "SPMD309"}


def program_of(folder: Path) -> Program:
    """The linked program of a folder, as the linter sees it."""
    config = read_config(folder, None)
    return load(Surveyor(config, None).look(find(config, [folder]).project, {}), config)


def strata_of(program: Program, shuffled: int | None = None) -> Strata:
    """The second engine on the same program."""
    always = program.multi_process == "always"
    return Strata(program.project, program.knowledge, always=always, shuffled=shuffled)


# -- callees


def _named(value: object) -> tuple[object, ...] | None:
    """A callee of either engine, in a form that can be compared."""
    if isinstance(value, (old.External, new.External)):
        return ("library", value.name)
    if isinstance(value, (old.FunctionValue, new.Function)):
        return ("function", value.ref)
    if isinstance(value, (old.ClassValue, new.Class)):
        return ("class", value.ref)
    if isinstance(value, old.Applied):
        # The second engine sees through these: a context manager is its generator, a type is the class.
        return None if value.name in _SEEN_THROUGH else ("made by", value.name)
    return ("made by", value.name) if isinstance(value, new.Result) else None


def _passed_on(value: object) -> set[object]:
    """What a library's decorator was given, in which the second engine sees what it gives: the class itself."""
    if not isinstance(value, old.Applied) or not value.arguments.positional:
        return set()
    return {_named(each) for each in value.arguments.positional[0]} - {None}


def callees(program: Program) -> Iterator[str]:
    """How often the second engine gives the same callee where the first is certain of one."""
    strata = strata_of(program)
    evaluation, evaluator = strata.evaluation, program.evaluator
    counts: Counter[tuple[str, str]] = Counter()
    missed: Counter[str] = Counter()
    for ref in program.project.functions():
        frame = evaluator.free_frame(ref)
        live = evaluator.live_blocks(frame)
        function = program.project.function(ref)
        for number, operation in enumerate(function.operations):
            if not isinstance(operation, s.Call) or function.block_of[number] not in live:
                continue
            certain = old.certain(evaluator.value(frame, operation.function))
            theirs = _named(certain) if certain is not None else None
            if theirs is None:
                continue
            call = evaluation.functions[ref].calls.get(number)
            ours = {_named(a) for a in evaluation.resolved(call.callees)} if call is not None else set()
            group = "library" if theirs[0] == "library" else "project"
            same = ours == {theirs} or (len(ours) == 1 and ours <= _passed_on(certain))
            verdict = "same" if same else "among others" if theirs in ours else "missed"
            counts[group, verdict] += 1
            if verdict != "same" and group == "project":
                row = program.project.modules[ref.path].summary.position(function.spans[number][0])[0]
                more = sorted(repr(each) for each in ours - {theirs})
                missed[f"{verdict} {ref.path.name}:{row} {theirs} {more}"] += 1
    for group in ("project", "library"):
        total = sum(count for (each, _), count in counts.items() if each == group)
        same, among = counts[group, "same"], counts[group, "among others"]
        if total:
            yield f"{group}: {total} certain callees, {same / total:.1%} the same, {among / total:.1%} among others"
    yield from (line for line, _ in missed.most_common(400))


# -- findings


def findings(program: Program) -> Iterator[str]:
    """The findings of both engines for the rules in shadow, those of one alone marked."""
    strata = strata_of(program)
    told: dict[tuple[str, int, str], str] = {}
    for found in strata.divergences():
        place = program.place(found.call.site)
        if found.hazard in IN_SHADOW:
            key = (str(place.path), place.start.row, IN_SHADOW[found.hazard])
            told[key] = f"{found.call.name}: {strata.reason(found).source.text}"
    rules = [rule for rule in load_rules() if rule.code in IN_SHADOW.values()]
    known = {
        (str(each.place.path), each.place.start.row, each.code): each.message
        for rule in rules
        for each in rule.check(program)
    }
    for key in sorted(told.keys() | known.keys()):
        mark = "=" if key in told and key in known else "+" if key in told else "-"
        yield f"{mark} {key[0]}:{key[1]} {key[2]} {told.get(key) or known[key]}"


def as_json(program: Program) -> Iterator[str]:
    """The findings of the second engine with the steps of their reasons, in the form of `--output-format json`."""
    strata = strata_of(program)
    codes = {**IN_SHADOW, "loop": "SPMD302", "data": "SPMD303", "exception": "SPMD304"}
    told = []
    for found in strata.divergences():
        place = program.place(found.call.site)
        steps = [program.place(found.branch), *(program.place(step.site) for step in strata.reason(found).chain())]
        steps += [program.place(site) for site in found.call.path[1:]]
        told.append(
            {
                "filename": str(place.path),
                "location": {"row": place.start.row, "column": place.start.column},
                "code": codes[found.hazard],
                "message": found.call.name,
                "related": [
                    {"filename": str(step.path), "location": {"row": step.start.row, "column": step.start.column}}
                    for step in steps
                ],
            }
        )
    yield json.dumps(told, indent=1)


# -- time and order


def seconds(program: Program) -> Iterator[str]:
    """Processor seconds of each stratum."""
    strata = strata_of(program)
    steps = (
        ("values", lambda: strata.evaluation),
        ("effects", lambda: strata._effects),
        ("facts", lambda: strata.content),
        ("hazards", strata.divergences),
    )
    total = 0.0
    for name, step in steps:
        began = time.process_time()
        step()
        took = time.process_time() - began
        total += took
        yield f"{name:8s} {took:6.2f}"
    functions = len(program.project.functions())
    yield f"{'all':8s} {total:6.2f}  for {functions} functions, {1000 * total / functions:.2f} ms each"


def orders(program: Program) -> Iterator[str]:
    """Whether the order of visits matters: cells and findings of three shuffled orders against the usual one."""
    usual = strata_of(program)
    contents, hazards = dict(usual.evaluation.cells.contents()), set(usual.divergences())
    for seed in range(3):
        other = strata_of(program, shuffled=seed)
        cells = dict(other.evaluation.cells.contents())
        differing = [key for key in contents.keys() | cells.keys() if contents.get(key) != cells.get(key)]
        changed = hazards ^ set(other.divergences())
        yield f"order {seed}: {len(differing)} of {len(contents)} cells differ, {len(changed)} findings"
        yield from (f"  {key}" for key in differing[:20])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("callees", "findings", "json", "time", "orders"))
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    program = program_of(given.folder.resolve())
    gc.disable()
    with deep():
        answers = {"callees": callees, "findings": findings, "json": as_json, "time": seconds, "orders": orders}
        for line in answers[given.what](program):
            print(line)


if __name__ == "__main__":
    main()
