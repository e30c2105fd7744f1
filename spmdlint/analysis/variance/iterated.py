"""How many iterations a loop over the project's own objects makes: generators, and classes with ``__iter__``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import handles
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Instance, Site
from spmdlint.analysis.variance.guarded import tells_when, tells_who
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.rounds import exits
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.variance.length import Length

_NEXT = frozenset(("next",))
_STOP = "builtins.StopIteration"


class Iterated:
    """Counts the elements that generators and iterators give. One per length facet; a module apart for its size."""

    def __init__(self, length: Length) -> None:
        self.length = length

    def why(self, origins: Origins, frame: Frame, iterable: int) -> Reason | None:
        """Why a loop over a value makes a different number of iterations; objects count by their ``__iter__``."""
        found = origins.why(frame, iterable)
        if found is not None:
            return found
        for value in ordered(origins.ev.value(frame, iterable)):
            if isinstance(value, Instance):
                found = self.of_object(origins, value)
                if found is not None:
                    return found
        cls = origins.ev.objects.by_name.only_class_with("__iter__", frame, iterable)
        return self.of_object(origins, Instance(cls)) if cls is not None else None

    def of_object(self, origins: Origins, value: Instance) -> Reason | None:
        """Why a loop over an object makes a different number of iterations, because of its ``__iter__``."""
        for method in origins.ev.objects.attribute(value, "__iter__"):
            if isinstance(method, FunctionValue):
                inside = origins.ev.free_frame(method.ref)
                if origins.ev.project.function(method.ref).generator:
                    return self.of_yields(origins, inside)
                return origins.of_returns(inside) or self._of_steps(origins, value)
        return None

    def _of_steps(self, origins: Origins, iterator: Instance) -> Reason | None:
        """Why an object that is its own iterator ends when it does: its ``__next__`` ends with an inner iterator."""
        for step in origins.ev.objects.attribute(iterator, "__next__"):
            if not isinstance(step, FunctionValue) or origins.ev.project.function(step.ref).generator:
                continue
            inside = origins.ev.free_frame(step.ref)
            found = self._ended(origins, inside)
            if found is not None:
                return found
            for number, call in inside.code.calls_named(_NEXT).items():
                ends = len(call.arguments) == 1 and not handles(origins.ev, inside, number, "StopIteration")
                if ends and origins.ev.may_call(inside, call, reading().next):
                    found = self.why(origins, inside, call.arguments[0].value)
                    if found is not None:
                        return origins.step(inside, number, "it ends where this does", found)
        return None

    def _ended(self, origins: Origins, frame: Frame) -> Reason | None:
        """Why a ``__next__`` raises StopIteration when it does: a branch on this process's own data decides it."""
        for number, raised in frame.code.of_kind(s.Raise):
            kind = frame.code.operations[raised.exception] if raised.exception is not None else None
            made = kind.function if isinstance(kind, s.Call) else raised.exception
            kinds = origins.ev.value(frame, made) if made is not None else ()
            if not any(isinstance(each, External) and each.name == _STOP for each in kinds):
                continue
            for branch in self.length.control.choosing(frame, (number,), None):
                found = _ends(of_truth(self.length.facets.content, frame, branch.test))
                if found is not None:
                    return _at(frame, branch.test, "it ends when this says so", found)
        return None

    def of_property(self, origins: Origins, frame: Frame, field: s.Attribute) -> Reason | None:
        """Why a property that is a generator yields a different number of times."""
        objects = origins.ev.objects
        owners = objects.by_name.owners(frame, field.base, field.name)
        for owner in ordered(owners):
            getter = objects.getter(owner, field.name) if isinstance(owner, Instance) else None
            if getter is not None and origins.ev.project.function(getter.ref).generator:
                return self.of_yields(origins, origins.ev.free_frame(getter.ref))
        return None

    def of_yields(self, origins: Origins, frame: Frame) -> Reason | None:
        """Why a generator yields a different number of times: the loops around its yields decide how often."""
        function = origins.ev.function(frame)
        flow = origins.ev.flow(frame.ref)
        yields = {function.block_of[number]: number for number, _ in frame.code.of_kind(s.Yield)}
        if _never_ends(origins.ev, frame, yields):
            return None
        for number in sorted(origins.ev.live_blocks(frame)):
            test = function.blocks[number].test
            operation = function.operations[test] if test is not None else None
            if test is None or flow.loop_body(number).isdisjoint(yields):
                continue
            name = function.name
            if isinstance(operation, s.Next):
                found = origins.why(frame, operation.iterable)
                if found is not None:
                    return origins.step(frame, operation.iterable, f"{name}() yields once for each of these", found)
            else:
                found = _ends(self.length.facets.content.why(frame, test))
                if found is not None and not tells_who(found):
                    return origins.step(frame, test, f"{name}() yields as long as this holds", found)
        found = self._delegated(origins, frame) or self._until_left(frame, yields)
        found = found or self.length.of_dealt(origins, frame, sorted(yields.values()))
        return found or self.length.grown.of_yields(self.length.facets.content, frame, sorted(yields.values()))

    def _delegated(self, origins: Origins, frame: Frame) -> Reason | None:
        """Why the iterable of a ``yield from`` has a different length."""
        for number, operation in frame.code.of_kind(s.Yield):
            lives = frame.code.function.block_of[number] in origins.ev.live_blocks(frame)
            if lives and operation.delegate and operation.value is not None:
                found = self.why(origins, frame, operation.value)
                if found is not None:
                    text = f"{frame.code.function.name}() yields once for each of these"
                    return origins.step(frame, operation.value, text, found)
        return None

    def _until_left(self, frame: Frame, yields: Mapping[int, int]) -> Reason | None:
        """Why a loop around a yield is left, or returned from, in a different iteration on each process."""
        content, function = self.length.facets.content, frame.code.function
        flow = frame.code.flow
        for header, body in flow.loops.items():
            for _, test in exits(flow, header) if not body.isdisjoint(yields) else ():
                found = _ends(of_truth(content, frame, test))
                if found is not None:
                    return _at(frame, test, f"{function.name}() yields until this ends it", found)
        return None


def _ends(found: Reason | None) -> Reason | None:
    """A reason for a condition, if it surely ends an iteration at another element on some processes."""
    if found is None or not (tells_who(found) or tells_when(found) or found.kind == "data"):
        return None
    return found


def _at(frame: Frame, test: int, text: str, found: Reason) -> Reason:
    """A reason with the end of an iteration in front: how many elements there are is data, or comes at any time."""
    return Reason(Site(frame.ref, test), text, found.kind if tells_when(found) else "data", found)


def _never_ends(ev: Evaluator, frame: Frame, yields: Mapping[int, int]) -> bool:
    """Whether a generator ends in a loop that goes on forever, as for padding: ``while True: yield row``."""
    live, decided = ev.live_blocks(frame), dict(ev.decisions(frame))
    for header, body in frame.code.flow.loops.items():
        loop = body | {header}
        stays = all(_goes_to(frame, block, decided.get(block)) <= loop for block in loop)
        if stays and header in live and not loop.isdisjoint(yields):
            return True
    return False


def _goes_to(frame: Frame, block: int, answer: bool | None) -> set[int]:
    """The blocks that may follow one, given the outcome of its branch, but for handlers."""
    closed = {None: None, True: "false", False: "true"}[answer]
    edges = frame.code.function.blocks[block].edges
    return {edge.target for edge in edges if edge.kind not in ("except", closed)}
