"""Which values come in an order that nothing guarantees: listings of folders, and results in order of completion."""

from __future__ import annotations

from spmdlint.analysis.evaluation.code import LINKS
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.paths import lists_folder
from spmdlint.analysis.evaluation.transfers import row_of_method, through, through_method
from spmdlint.analysis.evaluation.values import (
    External,
    Frame,
    FunctionValue,
    Site,
)
from spmdlint.analysis.order.filling import order_of_field, order_of_filling, order_of_generator
from spmdlint.analysis.order.sets import sorted_by_length
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.analysis.variance.sources import shuffles
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Knowledge, Known
from spmdlint.program import summary as s

_OF_TENSORFLOW = names("tensorflow_data")
_SEEDS = "tensorflow.random.set_seed"
_SORTED = "builtins.sorted"
SHUFFLED = "shuffled"
"""The kind of a random order."""


class ListingOrder(Property):
    """The value is in the order in which a file system lists a folder, or in which tasks are completed."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Load):
            if operation.name in frame.code.sorted_names:
                return None
            return order_of_filling(origins, frame, number, "{name} is filled in that order") or CONTINUE
        if isinstance(operation, s.Attribute):
            return order_of_field(origins, frame, number, "{name} is filled in that order") or CONTINUE
        if isinstance(operation, s.Collected):
            if operation.kind not in ("list", "generator"):
                return None
            function = origins.ev.function(frame)
            loops = [function.operations[loop] for loop in operation.loops]
            found = origins.any_of(frame, [loop.iterable for loop in loops if isinstance(loop, s.Next)])
            return origins.step(frame, number, "it keeps that order", found)
        if isinstance(operation, s.Binary):
            return origins.any_of(frame, (operation.left, operation.right)) if operation.operator == "+" else None
        if isinstance(operation, s.Subscript):
            index = origins.ev.function(frame).operations[operation.index]
            if isinstance(index, s.Slice):
                return origins.why(frame, operation.base)
            return order_of_field(origins, frame, number, "what is in {name} is put there in that order")
        if isinstance(operation, s.Item):
            return self._listed(origins, frame, operation) or CONTINUE
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        return CONTINUE

    def _listed(self, origins: Origins, frame: Frame, item: s.Item) -> Reason | None:
        """Why a part of an element that a walk through folders gives has no order: it is a listing itself."""
        step = frame.code.operations[item.value]
        made = frame.code.root_of(step.iterable) if isinstance(step, s.Next) else None
        call = frame.code.operations[made] if made is not None else None
        if made is None or not isinstance(call, s.Call):
            return None
        callee = origins.ev.callee(frame, call)
        known = self.knowledge.get(callee.name) if isinstance(callee, External) else None
        if known is None or known.listed_by is None or item.index < known.listed_by:
            return None
        return Reason(Site(frame.ref, made), f"{known.name}() promises no order", "listing")

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        callees = origins.ev.value(frame, operation.function)
        for callee in ordered(callees):
            if isinstance(callee, External):
                known = self.knowledge.get(callee.name)
                if known is not None and known.listing:
                    text = f"{callee.name}() promises no order"
                    mended = _is_sorted_inside(frame, number, known.listed_by)
                    return None if mended else Reason(Site(frame.ref, number), text, "listing")
                if known is not None and known.completion:
                    return Reason(
                        Site(frame.ref, number), f"{callee.name}() returns results in order of completion", "completion"
                    )
                if known is not None and known.shuffles:
                    return self._shuffled(origins, frame, number, operation, known)
                if callee.name == _SORTED:
                    return sorted_by_length(origins, frame, number, operation)
                return origins.any_of(frame, through(self.knowledge, callee.name, operation, "order"))
        method = origins.ev.function(frame).operations[operation.function]
        own = any(isinstance(callee, FunctionValue) for callee in callees)
        if not isinstance(method, s.Attribute) or own:
            return order_of_generator(origins, frame, number, operation) or CONTINUE
        if lists_folder(origins.ev, frame, method):
            return Reason(Site(frame.ref, number), f".{method.name}() promises no order", "listing")
        if method.name == "shuffle" and self._mixes(origins, frame, operation, method):
            return Reason(Site(frame.ref, number), ".shuffle() uses its own random order, as it has no seed", SHUFFLED)
        kept = through_method(origins.ev, frame, operation, "order")
        if kept:
            return origins.any_of(frame, kept)
        known = row_of_method(origins.ev, frame, method.name)
        if known is not None and known.shuffles:
            return self._shuffled(origins, frame, number, operation, known)
        if known is not None and known.completion:
            return Reason(
                Site(frame.ref, number), f".{method.name}() returns results in order of completion", "completion"
            )
        return CONTINUE

    def _mixes(self, origins: Origins, frame: Frame, operation: s.Call, method: s.Attribute) -> bool:
        """Whether a call is TensorFlow's ``shuffle`` with neither its own seed nor one for the whole program."""
        if len(operation.arguments) != 1 or operation.arguments[0].keyword not in (None, "buffer_size"):
            return False
        made: s.Operation = method
        for _ in LINKS:
            if not isinstance(made, (s.Attribute, s.Call)):
                break
            callee = origins.ev.callee(frame, made)
            if isinstance(callee, External) and callee.name.startswith(_OF_TENSORFLOW):
                return not any(use.applied.name == _SEEDS for use in origins.reach.applications)
            before = made.base if isinstance(made, s.Attribute) else made.function
            made = frame.code.operations[frame.code.root_of(before)]
        return False

    @staticmethod
    def _shuffled(origins: Origins, frame: Frame, number: int, operation: s.Call, known: Known) -> Reason | None:
        """Why a call shuffles: it does so by default, or without being told how."""
        component = origins.ev.project.component
        seeding = origins.reach.calling((known.seeded_by,))
        seeded = any(component[ref.path] == component[frame.ref.path] for ref in seeding)
        if seeded or not shuffles(origins.ev, frame, number, operation, known):
            return None
        name = known.name.rpartition(".")[2]
        how = "by default" if known.asked is None else "in its own random order, as it has no seed"
        return Reason(Site(frame.ref, number), f"{name}() shuffles {how}", SHUFFLED)


def _is_sorted_inside(frame: Frame, number: int, part: int | None) -> bool:
    """Whether the loop over a listing sorts the part of each element that decides where it goes on."""
    operations, code = frame.code.operations, frame.code
    rounds = {each for each, step in code.of_kind(s.Next) if code.root_of(step.iterable) == number}
    stores = (store for _, store in code.of_kind(s.Store) if store.name in code.sorted_names)
    taken = (operations[store.value] for store in stores)
    return any(isinstance(item, s.Item) and item.value in rounds and item.index == part for item in taken)
