"""Which seeds must be the same everywhere: those of keys that all processes use, unless they are made alike later."""

from __future__ import annotations

from functools import cached_property

from spmdlint.analysis.callgraph.effects import BROADCAST
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.inputs.ownkeys import Meant
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_USERS = 3


class SharedSeeds:
    """Tells such seeds by what becomes of the key. One per run."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        facets: Facets,
        multi: MultiProcess,
        *,
        preview: bool,
    ) -> None:
        self.ev = evaluator
        self.reach = reach
        self.facets = facets
        self.multi = multi
        self.preview = preview
        self.meant = Meant(evaluator)

    def are_shared(self, frame: Frame, number: int, seed: int, reason: Reason) -> bool:
        """Whether the key that a call makes of a seed is for all processes: used, and neither own nor agreed on later.

        A single-process program may take its seeds from anywhere, but a hash helps nobody.
        """
        if not (self.preview or reason.kind == "hash" or self._serves_several(frame.ref)):
            return False
        if self._is_left(frame, number) or self.meant.is_own(frame, number, seed):
            return False
        return not self._is_agreed_on(frame, reason) and not self._is_kept_for_all(frame, number)

    def users(self, made: Site) -> tuple[Site, ...]:
        """The calls that get a key, if the function that makes it returns it."""
        returned = {each.value for _, each in self.ev.code(made.ref).returns}
        if made.number not in returned:
            return ()
        sites = {edge.site for edge in self.reach.callers.get(made.ref, ())}
        return tuple(sorted(sites, key=lambda site: (site.ref.path, site.number)))[:_USERS]

    def _is_left(self, frame: Frame, number: int) -> bool:
        """Whether the name that a key is stored to is never read."""
        stores = [o for _, o in frame.code.of_kind(s.Store) if o.value == number]
        if len(stores) != 1 or frame.code.function.kind == "class":
            return False
        name, here = stores[0].name, frame.code.function
        scope = None if here.kind == "module" else here
        codes = (
            self.ev.code(FunctionRef(frame.ref.path, function.index))
            for function in self.ev.project.modules[frame.ref.path].summary.functions
        )
        if any(
            load.name == name and (code.function is here or code.scope_of(name) is scope)
            for code in codes
            for _, load in code.of_kind(s.Load)
        ):
            return False
        importing = self.multi.importers(frame.ref.path) if scope is None else ()
        return not any(name in self.ev.project.modules[path].words for path in importing)

    def _is_agreed_on(self, frame: Frame, reason: Reason) -> bool:
        """Whether the program broadcasts what it makes with the key that this function returns, instead of its seed."""
        calls = {edge.site for edge in self.reach.callers.get(frame.ref, ())}
        return any(
            made.source.site == reason.source.site and not calls.isdisjoint(step.site for step in made.chain())
            for made in self._broadcast
        )

    def _is_kept_for_all(self, frame: Frame, key: int) -> bool:
        """Whether a key is stored in a field, where it cannot be followed, by a program that broadcasts something."""
        kept = any(frame.code.root_of(o.value) == key for _, o in frame.code.of_kind(s.StoreAttribute))
        component = self.ev.project.component
        return kept and any(
            component[ref.path] == component[frame.ref.path] and not self._is_forgotten(ref)
            for ref in self.reach.calling((BROADCAST,))
        )

    @cached_property
    def _broadcast(self) -> tuple[Reason, ...]:
        """The reasons why what the program broadcasts differs between processes before."""
        found: list[Reason] = []
        for ref in self.reach.calling((BROADCAST,)):
            if self._is_forgotten(ref):
                continue
            frame = self.ev.free_frame(ref)
            for _, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                if any(isinstance(c, External) and c.name == BROADCAST for c in self.ev.value(frame, call.function)):
                    reason = self.facets.content.any_of(frame, [argument.value for argument in call.arguments])
                    found += [reason] if reason is not None else []
        return tuple(found)

    def _is_forgotten(self, ref: FunctionRef) -> bool:
        """Whether it is a method that nothing names, of a class that the program itself makes objects of."""
        project = self.ev.project
        cls, name = project.enclosing_class(ref), project.function(ref).name
        makes = project.methods(cls).get("__init__") if cls is not None else None
        if makes is None or not self.reach.callers.get(makes) or self.reach.callers.get(ref):
            return False
        near = (each for each in project.functions() if project.component[each.path] == project.component[ref.path])
        return not any(self.ev.code(each).mentions(frozenset((name,))) for each in near)

    def _serves_several(self, ref: FunctionRef) -> bool:
        """Whether a function stands in a file that is written for several processes, or is called from one."""
        return any(
            self.multi.needs(path) and not self.multi.tests_one_process(path)
            for path in {each.path for each in self._callers(ref)}
        )

    def _callers(self, ref: FunctionRef) -> set[FunctionRef]:
        """A function and all that call it, directly or through others; a module is "called" by those that import it."""
        found, pending = {ref}, [ref]
        while pending:
            last = pending.pop()
            new = {edge.caller.ref for edge in self.reach.callers.get(last, ())}
            if self.ev.project.function(last).kind == "module":
                new |= {FunctionRef(path, last.index) for path in self.multi.importers(last.path)}
            pending += new - found
            found |= new
        return found
