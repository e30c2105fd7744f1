"""Programs that ask which process they are, while nothing in them connects the processes of a job."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.callgraph.upstream import upstream
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Site
from spmdlint.analysis.setup.starting import as_script
from spmdlint.knowledge.startup import Startup
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Module
from spmdlint.program.testfiles import is_test


class Unconnected(Struct, frozen=True):
    """Where a program first asks, and the name of what it asks; the other programs of the project that ask as well."""

    asked: Site
    name: str
    program: Path
    others: tuple[Path, ...] = ()


def unconnected(evaluator: Evaluator, reach: Reach, known: Startup) -> Iterator[Unconnected]:
    """One finding for the files that name one another, at the question that their first program leads to."""
    project = evaluator.project
    asking = upstream(project, reach, known.asks)
    components: dict[int, list[Module]] = {}
    for path in sorted(project.modules):
        components.setdefault(project.component[path], []).append(project.modules[path])
    for modules in components.values():
        if any(_connects(module, known) for module in modules):
            continue
        found: list[tuple[Path, Site, str]] = []
        for module in modules:
            top = evaluator.free_frame(FunctionRef(module.path, 0))
            starts = as_script(top) and not is_test(module.path, project.roots[-1])
            asked = _asked(module, evaluator, reach, asking, known) if starts else None
            found += [(module.path, *asked)] if asked is not None else []
        if found:
            # A program that asks itself tells more than one that only uses a library which does.
            (path, site, name), *others = sorted(found, key=lambda each: each[0] != each[1].ref.path)
            yield Unconnected(site, name, path, tuple(other for other, _, _ in others))


def _connects(module: Module, known: Startup) -> bool:
    """Whether a file names anything that may connect processes, of whatever library: `distributed.initialize`."""
    for function in module.summary.functions:
        for operation in function.operations:
            if isinstance(operation, s.Attribute):
                base = function.operations[operation.base]
                around = base.name if isinstance(base, (s.Attribute, s.Load)) else ""
                name = f"{around}.{operation.name}"
            elif isinstance(operation, s.Import):
                name = f"{operation.module}.{operation.name}"
            else:
                name = function.name
            if any(all(part in name.lower() for part in parts) for parts in known.connecting):
                return True
    return False


def _asked(
    module: Module, evaluator: Evaluator, reach: Reach, asking: Collection[FunctionRef], known: Startup
) -> tuple[Site, str] | None:
    """Where a program asks, itself or in what it calls, and what; None if it does not."""
    seen: set[FunctionRef] = set()
    pending = [FunctionRef(module.path, function.index) for function in module.summary.functions]
    while pending:
        ref = pending.pop(0)
        if ref in seen or ref not in asking:
            continue
        seen.add(ref)
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            for value in evaluator.value(frame, call.function):
                if isinstance(value, External) and value.name in known.asks:
                    return Site(ref, number), value.name
        pending += [edge.target.frame.ref for edge in reach.edges.get(frame, ())]
    return None
