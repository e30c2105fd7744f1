"""Collections that some processes put more into than others, and collections that a branch chose between.

``if leads: handlers.append(writer)``, ``loggers = [log] if leads else []``: a loop over them makes a different number
of iterations on each process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import filling_of, methods_of
from spmdlint.analysis.evaluation.receivers import is_own_field
from spmdlint.analysis.evaluation.values import (
    Collection,
    DictionaryValue,
    Frame,
    Site,
    Values,
    certain,
    constant,
    text,
)
from spmdlint.analysis.variance.control import Branch, Control
from spmdlint.analysis.variance.emptiness import of_question
from spmdlint.analysis.variance.guarded import tells_when, tells_who
from spmdlint.analysis.variance.origins import Origins, OtherFacets, Reason
from spmdlint.analysis.variance.sifted import of_tests
from spmdlint.program import summary as s


class Grown:
    """Finds what decides whether something is put into a collection. One per run."""

    def __init__(self, facets: OtherFacets, control: Control) -> None:
        self.facets = facets
        self.control = control

    def of_name(self, content: Origins, frame: Frame, number: int, load: s.Load) -> Reason | None:
        """Why the value of a name has more elements on some processes."""
        filling = filling_of(content.ev, frame, number)
        return self._filled(content, frame, filling, number, repr(load.name)) if filling else None

    def of_field(self, content: Origins, frame: Frame, field: s.Attribute) -> Reason | None:
        """Why a field of an object has more elements on some processes, because of the methods of its class."""
        for method in methods_of(content.ev, frame, field.base):
            inside = content.frame_of(method)
            fillings = inside.code.fillings
            function = inside.code.function
            filling = [number for number, base in fillings if is_own_field(function, base, field.name)]
            found = self._filled(content, inside, filling, None, repr(field.name)) if filling else None
            if found is not None:
                return found
        return None

    def of_yields(self, content: Origins, frame: Frame, yields: Iterable[int]) -> Reason | None:
        """Why a generator yields more elements on some processes."""
        return self._filled(content, frame, yields, None, f"what {frame.code.function.name}() yields")

    def _filled(
        self, content: Origins, frame: Frame, filling: Iterable[int], use: int | None, name: str
    ) -> Reason | None:
        function = frame.code.function
        where = function.block_of[use] if use is not None else None
        loops = content.ev.flow(frame.ref).loops
        filling = [number for number in filling if not _changes(frame, number)]
        for number in filling:
            if not _adds(content.ev, frame, number, filling):
                continue
            for branch in self.control.choosing(frame, (number,), where):
                # In a loop, each process takes some of the elements, and most likely as many as the others.
                in_loop = any(branch.block in body for body in loops.values())
                arms = [[n for n in filling if function.block_of[n] in arm] for arm in (branch.yes, branch.no)]
                if len(arms[0]) == len(arms[1]):
                    continue  # the other arm puts something else into it
                for deciding in (branch, *self._behind_flag(content.ev, frame, branch)) if in_loop else ():
                    sifted = of_tests(content, frame, number, (deciding.test,), _rounds(frame, deciding.block))
                    if sifted is not None:
                        return sifted
                found = content.why(frame, branch.test) or of_question(self.facets.emptiness, frame, branch.test)
                if found is None or (in_loop and found.source is not found):
                    continue
                if tells_when(found) or (tells_who(found) and not in_loop):
                    text = f"only some processes put something into {name} here"
                    return found.then(Site(frame.ref, number), text)
        return None

    def _behind_flag(self, ev: Evaluator, frame: Frame, branch: Branch) -> Iterator[Branch]:
        """The branches that set the flag which a branch tests: ``done = True`` where something holds."""
        operations = frame.code.operations
        test = frame.code.root_of(branch.test)
        while isinstance(negated := operations[test], s.Unary) and negated.operator == "not":
            test = frame.code.root_of(negated.operand)
        flag = operations[test]
        if not isinstance(flag, s.Load) or not frame.code.function.binds(flag.name):
            return
        stores = sorted(ev.reaching(frame, test, flag.name))
        values = [constant(ev.value(frame, store)) for store in stores]
        if all(value is not None and isinstance(value.value, bool) for value in values):
            yield from self.control.choosing(frame, stores, branch.block)


def _rounds(frame: Frame, block: int) -> list[int]:
    """The elements of the loops around a block, that of the innermost first."""
    tests = (frame.code.function.blocks[header].test for header in frame.code.flow.loops_around(block))
    return [test for test in tests if test is not None]


def _changes(frame: Frame, number: int) -> bool:
    """Whether an operation changes an element that is there: ``sizes[at] += 1``."""
    operations = frame.code.operations
    put = operations[number]
    made = operations[put.value] if isinstance(put, s.StoreSubscript) else None
    before = operations[made.left] if isinstance(made, s.Binary) else None
    if not isinstance(put, s.StoreSubscript) or not isinstance(before, s.Subscript):
        return False
    return operations[before.index] == operations[put.index]  # the same name or constant, in one statement


def _adds(ev: Evaluator, frame: Frame, number: int, filling: Iterable[int]) -> bool:
    """Whether an operation certainly makes a collection longer: nothing else may be put under the same key."""
    operations = frame.code.operations
    put = operations[number]
    if not isinstance(put, s.StoreSubscript):
        return True
    key = text(ev.value(frame, put.index))
    if key is None:
        return False
    others = [operations[other] for other in filling if other != number]
    keys = [other.index for other in others if isinstance(other, s.StoreSubscript)]
    keys += [k for _, made in frame.code.of_kind(s.DictDisplay) for k in made.keys if k is not None]
    return all(text(ev.value(frame, other)) != key for other in keys)


def of_other_lengths(one: Values, other: Values) -> bool:
    """Whether these collections differ in length, or one is empty and the length of the other unknown."""
    first, second = _length(one), _length(other)
    if first is None or second is None:
        return first == 0 or second == 0
    return first != second


def _length(values: Values) -> int | None:
    value = certain(values)
    if isinstance(value, Collection):
        return None if value.open else len(value.elements)
    if isinstance(value, DictionaryValue):
        return None if value.open else len(value.items)
    return None
