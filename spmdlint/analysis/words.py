"""What the analyses know about a value, in the stable words of `facts.py`, for rules of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    Site,
    Value,
)
from spmdlint.analysis.explanation import Explainer, Variation
from spmdlint.analysis.uniformity import Uniformity
from spmdlint.diagnostics import Location, Place, sentence
from spmdlint.facts import Aspect, AspectName, Callees, Difference, Step

_ASPECTS: Mapping[str, AspectName] = {
    "content": "content",
    "presence": "presence",
    "length": "length",
    "number of iterations": "length",
    "shape": "shape",
    "order": "order",
}


class Words:
    """Puts values and places into words. One per run."""

    def __init__(self, explainer: Explainer, calls: Calls) -> None:
        self.ev = explainer.ev
        self.calls = calls
        self.uniformity = Uniformity(self.ev, explainer.control)

    def difference(self, frame: Frame, varies: Variation) -> Difference:
        """Whether a value differs, in stable words."""
        if varies.facets:
            return Difference("yes", tuple(self._aspects(varies)))
        if varies.declared:
            return Difference("no")
        proven = not varies.cut and self.uniformity.proven(frame, varies.site.number)
        return Difference("no" if proven else "unknown")

    def _aspects(self, varies: Variation) -> Iterator[Aspect]:
        for name, reason in varies.facets:
            steps = tuple(Step(self.place(step.site), sentence(step.text)) for step in reason.chain())
            yield Aspect(_ASPECTS[name], reason.kind, steps)

    def names(self, values: frozenset[Value]) -> Callees:
        """The dotted names of values."""
        names = [self._name(value) for value in values]
        return Callees(frozenset(name for name in names if name is not None), bool(names) and None not in names)

    def _name(self, value: Value) -> str | None:
        if isinstance(value, External):
            return value.name
        if isinstance(value, (FunctionValue, ClassValue)):
            return f"{self._module_name(value.ref.path)}.{self.ev.project.function(value.ref).qualname}"
        if isinstance(value, Instance):
            return f"{self._name(value.cls)}.__call__"
        if isinstance(value, Member):
            base = value.base.name if isinstance(value.base, Applied) else self._name(value.base)
            return None if base is None else f"{base}.{value.name}"
        known = self.ev.knowledge.get(value.name) if isinstance(value, Applied) else None
        if known is None or not isinstance(value, Applied) or known.kind not in ("map", "jit", "transform", "identity"):
            return None
        inside = list(self.calls.functions_in(known, value.arguments))
        return self._name(inside[0]) if len(inside) == 1 and inside[0] != value else None

    def _module_name(self, path: Path) -> str:
        """The dotted name of a module: a module that is in no package is named from the project's root."""
        module = self.ev.project.modules[path]
        if module.name.count(".") or module.is_package:
            return module.name
        roots = [root for root in self.ev.project.roots if root in path.parents]
        parts = path.relative_to(roots[0]).with_suffix("").parts if roots else (module.name,)
        return ".".join(parts[1:] if parts[0] == "src" and len(parts) > 1 else parts)

    def place(self, site: Site) -> Place:
        """The file and the span of an operation."""
        summary = self.ev.project.modules[site.ref.path].summary
        start, end = self.ev.project.function(site.ref).spans[site.number]
        return Place(site.ref.path, Location(*summary.position(start)), Location(*summary.position(end)))
