"""The explanation of a line, as text for a person or as JSON for a tool."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from spmdlint.analysis.divergence.terms import NOT_KNOWN
from spmdlint.analysis.evaluation.values import Site
from spmdlint.analysis.explanation import Callee, CallNote, Explanation, Guard, Part, Variation
from spmdlint.analysis.program import Program
from spmdlint.analysis.variance.origins import Reason
from spmdlint.diagnostics import Diagnostic
from spmdlint.files.read import Source, is_notebook
from spmdlint.identity import relative
from spmdlint.output.report import parted
from spmdlint.program import summary as s

MAX_SHOWN = 8
"""How many parallel calls of a call the text shows; JSON has all that are known."""


MAX_BRIEF = 16
"""How many lines a brief explanation takes."""


class Writer:
    """Turns an explanation into words.

    ``texts`` holds the source of each file; paths are shown relative to ``root``, so that they are unique in the
    project; ``on_trial`` are findings that only ``--preview`` shows, each with the reason, and ``suppressed`` those
    that a comment silences.
    """

    def __init__(
        self,
        program: Program,
        texts: Mapping[Path, str],
        root: Path,
        on_trial: Mapping[Diagnostic, str] | None = None,
        suppressed: Collection[Diagnostic] = (),
    ) -> None:
        self.program = program
        self.root = root
        self.on_trial = on_trial or {}
        self.suppressed = suppressed
        self.texts = texts

    def text(self, explained: Explanation, findings: Sequence[Diagnostic]) -> str:
        """The page for a terminal."""
        lines = list(self._lines(explained, findings))
        return "\n".join(lines) + "\n"

    def _lines(self, explained: Explanation, findings: Sequence[Diagnostic]) -> Iterator[str]:
        source = self._source_line(explained.path, explained.row)
        yield f"{self._spot(explained.path, explained.row)}: {source}"
        if not explained.read:
            yield ""
            yield "The file was not analysed: nothing in it leads to code that the linter knows about."
        elif not explained.parts:
            yield ""
            yield "No statement with a name, a call or a condition begins on this line."
        for part in explained.parts:
            yield ""
            yield from self._part(part)
        yield ""
        yield "findings"
        for finding in findings:
            trial = " (with --preview only)" if finding in self.on_trial else ""
            trial += " (suppressed by a comment)" if finding in self.suppressed else ""
            at = self._spot(finding.place.path, finding.place.start.row)
            yield f"  {finding.code} {finding.name}{trial} ({at}): {self._words(finding.message, finding.place.path)}"
            if finding in self.on_trial:
                yield f"    {self.on_trial[finding]}"
            if finding.place.start.row == explained.row and parted(finding.related)[1]:  # check has left some out
                for step in finding.related:
                    at = self._spot(step.place.path, step.place.start.row)
                    yield f"    ({at}) {self._words(step.message, finding.place.path)}"
        if not findings:
            yield f"  none on this line: {self._why_none(explained)}"

    def brief(self, explained: Explanation) -> str:
        """What is worth a glance in an editor: without what is uniform or does nothing; empty if nothing is left."""
        lines: list[str] = []
        for part in explained.parts:
            found = [line for line in self._part(_notable(part)) if not line.startswith("  axes bound around it: none")]
            lines += found if len(found) > 1 else []
        if len(lines) > MAX_BRIEF:
            rest = f"... 'spmdlint explain {self._spot(explained.path, explained.row)}' shows all"
            lines = [*lines[: MAX_BRIEF - 1], rest]
        return "\n".join(lines)

    def _part(self, part: Part) -> Iterator[str]:
        name = self.program.project.function(part.ref).qualname
        yield f"in {name}: {part.runs}" if name != "<module>" else f"at the top level: {part.runs}"
        yield f"  axes bound around it: {self._axes(part)}"
        if part.guards:
            yield "guards"
            for guard in part.guards:
                yield from self._guard(guard)
        if part.conditions:
            yield "decides whether other lines run"
            for condition in part.conditions:
                yield from self._guard(condition)
        if part.values:
            yield "values"
            for value in part.values:
                yield from self._variation(self._code(value.site), value)
        if part.calls:
            yield "calls"
            for call in part.calls:
                yield from self._call(call)

    def _why_none(self, explained: Explanation) -> str:
        """Where the analysis of the line ends without a finding."""
        if not explained.read:
            return "the file was not analysed."
        if not explained.parts:
            return "there is no code on it that a rule looks at."
        guards = [guard for part in explained.parts for guard in part.guards]
        conditions = [condition for part in explained.parts for condition in part.conditions]
        if any(guard.silence is not None for guard in (*guards, *conditions)):
            return "above is why nothing is reported at the conditions."
        calls = [call for part in explained.parts for call in part.calls]
        parallel = _listed([self._code(call.site) for call in calls if call.effect])
        varied = {facet for guard in guards for facet, _ in guard.variation.facets}
        if varied:
            decided = "what decides whether or how often it runs differs between processes"
            if varied == {"order"}:
                decided = "the order of the loop around it differs between processes"
            if parallel:
                what = "in which order" if varied == {"order"} else "how often"
                return f"{decided}, but it is not proven that this changes {what} {parallel} is called."
            return f"{decided}, but no call on it is known to be parallel."
        told = {facet for condition in conditions for facet, _ in condition.variation.facets}
        if told == {"order"}:
            return (
                "the order in which it runs other lines differs between processes, and no parallel call is known to "
                "depend on that; explain these lines."
            )
        if told:
            return "it decides about other lines, and differs between processes; explain those that it decides about."
        return self._why_unvaried(explained, calls, parallel)

    def _why_unvaried(self, explained: Explanation, calls: Sequence[CallNote], parallel: str) -> str:
        """The same for a line that every process reaches."""
        values = [value for part in explained.parts for value in part.values]
        sites = [value.site for value in values if value.facets and not value.declared]
        sites += [site for call in calls for site in call.stopped]
        declared = any(value.declared for value in values)
        if not declared:
            sites = sites or [call.site for call in calls if call.result.facets]
        if not sites:
            cut = " The search was cut short for some of it." if any(value.cut for value in values) else ""
            known = "what differs on it is declared to be uniform" if declared else "nothing on it is known to differ"
            return f"{known}{'' if declared else ' between processes'}, and no other rule applies.{cut}"
        named = list(dict.fromkeys(self._code(site) for site in sites))
        differs = f"{_listed(named)} {'differs' if len(named) == 1 else 'differ'} between processes"
        if parallel:
            return (
                f"{differs}, and {parallel} may be given values that do, such as the rows of each process. Rules "
                "report what must not differ: shapes, static arguments, names, and the order and number of calls."
            )
        stores = any(isinstance(self._operation(value.site), s.Store) for value in values)
        onward = " Explain the lines that use it." if stores else ""
        return f"{differs}, but no call on it is known to be parallel.{onward}"

    @staticmethod
    def _axes(part: Part) -> str:
        names = ", ".join(repr(name) for name in part.axes)
        if part.axes_open:
            return f"{names}, and perhaps others" if names else "not known: some of them are not constants"
        return names or "none"

    def _guard(self, guard: Guard) -> Iterator[str]:
        way = "for each of" if guard.answer is None else "if" if guard.answer else "unless"
        code = self._code(guard.site)
        if code.startswith("except"):
            way = "in" if guard.answer else "without"
        yield from self._variation(f"{way} {code}", guard.variation, self._at(guard.site))
        if guard.silence is not None:
            yield f"    no finding, because {guard.silence}"

    def _variation(self, name: str, value: Variation, where: str = "") -> Iterator[str]:
        if value.declared:
            yield f"  {name}{where}: uniform, as '# spmdlint: uniform' says"
        elif value.facets:
            for facet, reason in value.facets:
                yield f"  {name}{where}: its {facet} varies ({reason.kind})"
                for step in reason.chain():
                    yield f"    {self._at(step.site).strip()} {step.text}"
        elif value.cut:
            yield f"  {name}{where}: not known; the search for its sources was cut short"
        else:
            yield f"  {name}{where}: no source of variance is known; it counts as uniform"
        if value.lives is not None:
            place, sure, reason = value.lives
            yield f"    it lives {'' if sure else 'probably '}{place}"
            yield from (f"      {self._at(step.site).strip()} {step.text}" for step in reason.chain())

    def _call(self, call: CallNote) -> Iterator[str]:
        what = ", ".join(self._callee(callee) for callee in call.callees)
        if call.unknown and not call.effect:
            makes = "no parallel call is known of it" if what else "its effect is not known"
            what = f"{what or 'unknown'}; {makes}, so it counts as making none"
        yield f"  {self._code(call.site)}: {what}"
        if call.passed:
            more = f" and {len(call.passed) - MAX_SHOWN} more" if len(call.passed) > MAX_SHOWN else ""
            passed = ", ".join(self._callee(callee) for callee in call.passed[:MAX_SHOWN])
            yield f"    known callers pass {passed}{more}"
        for facet, reason in call.result.facets:
            yield f"    what it returns: its {facet} varies ({reason.kind})"
        yield f"    extent: {call.extent}"
        if call.term not in ("-", NOT_KNOWN):
            yield f"    does: {call.term}"
        for parallel in call.effect[:MAX_SHOWN]:
            way = " through ".join(self._at(site).strip() for site in reversed(parallel.path))
            yield f"    makes {self.program.call_name(parallel)} ({parallel.strength}), {way}"
        if call.stopped:
            names = _listed([self._code(site) for site in call.stopped])
            yield f"    takes {names}, different between processes; what it returns counts as uniform all the same"
        if len(call.effect) > MAX_SHOWN:
            more = f"    and {len(call.effect) - MAX_SHOWN} more"
            yield f"{more} at least: the list was cut short" if call.cut else more

    def _callee(self, callee: Callee) -> str:
        return callee.name if callee.path is None else f"{callee.name} ({self._spot(callee.path, callee.row)})"

    # -- JSON

    def as_object(self, explained: Explanation, findings: Sequence[Diagnostic]) -> dict[str, object]:
        """The same as data."""
        return {
            "filename": str(explained.path),
            "row": explained.row,
            "parts": [self._part_object(part) for part in explained.parts],
            "findings": [
                {
                    "code": f.code,
                    "name": f.name,
                    "message": f.message,
                    "preview": f in self.on_trial,
                    "preview_because": self.on_trial.get(f),
                    "suppressed": f in self.suppressed,
                    "filename": str(f.place.path),
                    "row": f.place.start.row,
                    "column": f.place.start.column,
                }
                for f in findings
            ],
        }

    def _part_object(self, part: Part) -> dict[str, object]:
        return {
            "function": self.program.project.function(part.ref).qualname,
            "runs": part.runs,
            "axes": list(part.axes),
            "axes_open": part.axes_open,
            "guards": [
                {"answer": guard.answer, "silence": guard.silence, **self._variation_object(guard.variation)}
                for guard in part.guards
            ],
            "conditions": [
                {"silence": condition.silence, **self._variation_object(condition.variation)}
                for condition in part.conditions
            ],
            "values": [self._variation_object(value) for value in part.values],
            "calls": [self._call_object(call) for call in part.calls],
        }

    def _variation_object(self, value: Variation) -> dict[str, object]:
        return {
            "code": self._code(value.site),
            "declared_uniform": value.declared,
            "cut_short": value.cut,
            "varies": [{"facet": facet, "kind": r.kind, "reasons": self._chain(r)} for facet, r in value.facets],
            "lives": value.lives
            and {"where": value.lives[0], "surely": value.lives[1], "reasons": self._chain(value.lives[2])},
        }

    def _call_object(self, call: CallNote) -> dict[str, object]:
        return {
            "code": self._code(call.site),
            "callees": [self._callee(callee) for callee in call.callees],
            "passed": [self._callee(callee) for callee in call.passed],
            "stopped": [self._code(site) for site in call.stopped],
            "unknown": call.unknown,
            "result": self._variation_object(call.result),
            "extent": call.extent,
            "term": call.term,
            "cut_short": call.cut,
            "makes": [
                {"name": made.name, "strength": made.strength, "path": [self._place(site) for site in made.path]}
                for made in call.effect
            ],
        }

    def _chain(self, reason: Reason) -> list[dict[str, object]]:
        return [{**self._place(step.site), "text": step.text} for step in reason.chain()]

    # -- places

    def _place(self, site: Site) -> dict[str, object]:
        place = self.program.place(site)
        return {"filename": str(place.path), "row": place.start.row, "column": place.start.column}

    def _at(self, site: Site) -> str:
        place = self.program.place(site)
        return f" ({self._spot(place.path, place.start.row)})"

    def _words(self, text: str, home: Path) -> str:
        """A text with its lines of notebooks as lines of cells."""
        notebooks = {path: Source(path, text) for path, text in self.texts.items() if is_notebook(path)}
        if not notebooks:
            return text
        from spmdlint.output.cells import Notebooks

        return Notebooks(notebooks).words(text, home)

    def _spot(self, path: Path, row: int) -> str:
        """A line as `explain` takes it: the file relative to the root, the cell of a notebook, and the row."""
        name = relative(path, self.root)
        if not is_notebook(path):
            return f"{name}:{row}"
        from spmdlint.files.notebooks import Cells

        cell = Cells(self.texts.get(path, "")).at(row)
        return f"{name}:cell {cell.number}:{cell.row}"

    def _operation(self, site: Site) -> s.Operation:
        return self.program.project.function(site.ref).operations[site.number]

    def _code(self, site: Site) -> str:
        """The source of an operation, on one line."""
        text = self.texts.get(site.ref.path, "")
        start, end = self.program.project.function(site.ref).spans[site.number]
        code = " ".join(text[start:end].split())
        return code if len(code) <= 60 else code[:57] + "..."

    def _source_line(self, path: Path, row: int) -> str:
        lines = self.texts.get(path, "").splitlines()
        line = lines[row - 1] if 0 < row <= len(lines) else ""
        if is_notebook(path):
            from spmdlint.files.notebooks import original

            line = original(line)
        return line.strip()


def _notable(part: Part) -> Part:
    """The guards and values that vary, are declared or not known, and the calls that lead to parallel calls."""

    def varies(value: Variation) -> bool:
        return bool(value.facets) or value.cut or value.declared

    return replace(
        part,
        guards=tuple(guard for guard in part.guards if varies(guard.variation)),
        values=tuple(value for value in part.values if varies(value)),
        calls=tuple(call for call in part.calls if call.effect or call.unknown),
    )


def _listed(words: Sequence[str]) -> str:
    """Returns "a", "a and b" or "a, b and c"."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
