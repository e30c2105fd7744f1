"""Which seeds must be the same everywhere: those of keys that all processes use, unless they are made alike later."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from spmdlint.analysis.callgraph.effects import BROADCAST
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Site
from spmdlint.analysis.variance.agreed import parts
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_DEPTH = 8
_NOISE = frozenset(("dropout", "droppath", "noise", "augment", "augmentation", "sample", "sampling"))
_DRAWS = ("jax.random.",)
_FETCHES = names("fetches")
_FOLDS = "jax.random.fold_in"


class Meant:
    """Recognises such keys by what the function that makes a key does with it."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def is_own(self, frame: Frame, key: int, seed: int) -> bool:
        """Whether the process index is in the seed or folded into the key, or one process gives the key to all."""
        if self._names_process(frame, seed) or self._is_noise(frame, key) or self._is_fetched(frame, key):
            return True
        for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            if not any(self._is(frame, argument.value, key) for argument in call.arguments):
                continue
            known = self._known(frame, call)
            if known is not None and known.parallel and known.agreement and number != key:
                return True
            if known is not None and known.name == _FOLDS:
                own = any(self._names_process(frame, argument.value) for argument in call.arguments)
                # Folding in anything else makes a different key, which may become the process's own later.
                return own or (number != key and self.is_own(frame, number, seed))
            if self._folded_in_helper(frame, call, key):
                return True
        return False

    def _is_noise(self, frame: Frame, key: int) -> bool:
        """Whether the key is stored under a name that says noise, in a dictionary of keys by purpose."""
        for _, made in frame.code.of_kind(s.DictDisplay):
            for name, value in zip(made.keys, made.values, strict=True):
                known = frame.code.operations[name] if name is not None else None
                if isinstance(known, s.Const) and known.value in _NOISE and self._is(frame, value, key):
                    return True
        return False

    def _is_fetched(self, frame: Frame, key: int) -> bool:
        """Whether everything drawn with a key goes straight into NumPy arrays, as data of this process's own."""
        code = frame.code
        names = [each.name for _, each in code.of_kind(s.Store) if each.value == key]
        loads = [n for n, load in code.of_kind(s.Load) if names == [load.name] and code.function.binds(load.name)]
        taken = {argument.value: n for n, call in code.of_kind(s.Call) for argument in call.arguments}
        return bool(loads) and all(self._goes_to_numpy(frame, taken, load) for load in loads)

    def _goes_to_numpy(self, frame: Frame, taken: Mapping[int, int], key: int) -> bool:
        """Whether a key is given to a function that draws, and the result of that to one of NumPy's."""
        drawn = taken.get(key)
        return (
            drawn is not None and self._calls(frame, drawn, _DRAWS) and self._calls(frame, taken.get(drawn), _FETCHES)
        )

    def _calls(self, frame: Frame, number: int | None, names: tuple[str, ...]) -> bool:
        call = frame.code.operations[number] if number is not None else None
        callee = self.ev.callee(frame, call)
        return isinstance(callee, External) and callee.name.startswith(names)

    def _folded_in_helper(self, frame: Frame, call: s.Call, key: int) -> bool:
        """Whether a function of the project that gets the key folds the process index into it."""
        helper = self.ev.callee(frame, call)
        if not isinstance(helper, FunctionValue):
            return False
        function, inner = self.ev.project.function(helper.ref), self.ev.free_frame(helper.ref)
        bound = helper.receiver is not None
        passed = {f.name: passed_to(function, call, f.name, bound=bound) for f in function.formals}
        names = {name for name, value in passed.items() if value is not None and self._is(frame, value, key)}
        for _, folding in inner.code.calls_in(sorted(self.ev.live_blocks(inner))):
            known = self._known(inner, folding)
            if known is None or known.name != _FOLDS or not folding.arguments:
                continue
            folded = inner.code.operations[inner.code.root_of(folding.arguments[0].value)]
            if isinstance(folded, s.Parameter) and folded.name in names:
                return any(self._names_process(inner, argument.value) for argument in folding.arguments)
        return False

    def _known(self, frame: Frame, call: s.Call) -> Known | None:
        for callee in ordered(self.ev.value(frame, call.function)):
            if isinstance(callee, External):
                return self.ev.knowledge.get(callee.name)
        return None

    def _is(self, frame: Frame, number: int, key: int) -> bool:
        """Whether a value is the key, or a name that it is stored to."""
        operation = frame.code.operations[number]
        if not isinstance(operation, s.Load) or number == key:
            return number == key
        stores = (frame.code.operations[n] for n in self.ev.reaching(frame, number, operation.name))
        return any(isinstance(store, s.Store) and store.value == key for store in stores)

    def _names_process(self, frame: Frame, number: int) -> bool:
        """Whether a value is computed from, among others, the process index that a library gives."""
        operations = (frame.code.operations[part] for part in parts(self.ev, frame, number, _DEPTH))
        known = (self._known(frame, operation) for operation in operations if isinstance(operation, s.Call))
        return any(each is not None and each.source == "identity" for each in known)


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
        if not (self.preview or reason.kind == "hash" or self.serves_several(frame.ref)):
            return False
        if self._is_left(frame, number) or self.meant.is_own(frame, number, seed):
            return False
        return not self._is_agreed_on(frame, reason)

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
        importing = self.multi.importers[frame.ref.path] if scope is None else ()
        return not any(name in self.ev.project.modules[path].words for path in importing)

    def _is_agreed_on(self, frame: Frame, reason: Reason) -> bool:
        """Whether the program broadcasts what it makes with the key that this function returns, instead of its seed."""
        calls = {edge.site for edge in self.reach.callers.get(frame.ref, ())}
        return any(
            made.source.site == reason.source.site and not calls.isdisjoint(step.site for step in made.chain())
            for made in self._broadcast
        )

    @cached_property
    def _broadcast(self) -> tuple[Reason, ...]:
        """The reasons why what the program broadcasts differs between processes before."""
        found: list[Reason] = []
        for ref in self.reach.calling((BROADCAST,)):
            frame = self.ev.free_frame(ref)
            for _, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                if self.ev.may_call(frame, call, BROADCAST):
                    reason = self.facets.content.any_of(frame, [argument.value for argument in call.arguments])
                    found += [reason] if reason is not None else []
        return tuple(found)

    def serves_several(self, ref: FunctionRef) -> bool:
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
                new |= {FunctionRef(path, last.index) for path in self.multi.importers[last.path]}
            pending += new - found
            found |= new
        return found
