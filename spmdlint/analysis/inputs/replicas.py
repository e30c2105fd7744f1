"""State that each process makes for itself but treats as one: it is replicated, but comes from chance or an own key."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.elements import tree
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import NOTHING, External, Frame, Instance, Site, certain
from spmdlint.analysis.inputs.demands import random_by
from spmdlint.analysis.inputs.sharedkeys import INITIALIZERS, PUT, UsesOfKeys
from spmdlint.analysis.placement.kinds import copied
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.typing import Typing, typing_table
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Project
from spmdlint.program.operands import inputs

_INDEX = "jax.lax.axis_index"
_BY_CHANCE = ("clock", "entropy", "host")


def own_replicas(
    evaluator: Evaluator,
    table: Typing,
    content: Origins,
    multi: MultiProcess,
    reach: Reach,
    placement: Placement,
    *,
    preview: bool,
) -> Iterator[tuple[Site, Reason]]:
    """The calls that give each device a copy of something random, with the reason of the first such array in it.

    `jax.device_put` with a spec that names no axis, or over the devices of all processes, counts in programs whose
    processes know one another, as JAX takes its argument for the whole array; copying to the
    devices of one process counts in programs for several processes that reduce over a mapped axis, as training does,
    and with ``preview`` in all.
    """
    for ref in evaluator.project.functions():
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            callee = evaluator.callee(frame, call)
            if not isinstance(callee, External) or not call.arguments:
                continue
            copies = callee.name in table.rows.replicate and (
                preview or (multi.runs_several(ref.path) and trains_together(evaluator, reach, ref))
            )
            if not copies and not (callee.name == PUT and _is_whole(evaluator, placement, multi, frame, call)):
                continue
            for inside, leaf in (place for place, ends in tree(evaluator, frame, call.arguments[0].value) if ends):
                reason = content.why(inside, leaf)
                by = random_by(evaluator, inside, leaf) if reason is not None and reason.kind == "identity" else None
                known = evaluator.knowledge.get(by) if by is not None else None
                # A key of its own, copied to the devices of its process, is meant to be that.
                key = by in table.rows.split or (known is not None and known.seed is not None)
                own = by is not None and not (copies and key)
                if reason is not None and (own or reason.kind in _BY_CHANCE):
                    yield Site(ref, number), reason
                    break


def trains_together(evaluator: Evaluator, reach: Reach, ref: FunctionRef) -> bool:
    """Whether the program of a function reduces over a mapped axis, as training on all devices does.

    A program that sends the state of one device to all others makes it the same again: it sums over the devices what
    only one of them, by its index, puts in.
    """
    component, project = evaluator.project.component, evaluator.project
    here = [
        other for other in reach.calling(typing_table().rows.reductions) if component[other.path] == component[ref.path]
    ]
    asking = {_outermost(project, other) for other in reach.calling((_INDEX,))}
    return bool(here) and not any(
        _outermost(project, other) in asking and not _derives(evaluator, other) for other in here
    )


def _outermost(project: Project, ref: FunctionRef) -> FunctionRef:
    """The function of a module or class that a nested function is in, or the function itself."""
    parent = project.function(ref).parent
    while parent is not None and project.function(project.ref(ref.path, parent)).kind not in ("module", "class"):
        ref = project.ref(ref.path, parent)
        parent = project.function(ref).parent
    return ref


def _derives(evaluator: Evaluator, ref: FunctionRef) -> bool:
    """Whether a function takes derivatives: a step of training, and not a broadcast."""
    around = (ref, _outermost(evaluator.project, ref))
    return any(evaluator.code(each).mentions(typing_table().rows.derivatives) for each in around)


def _is_whole(evaluator: Evaluator, placement: Placement, multi: MultiProcess, frame: Frame, call: s.Call) -> bool:
    """Whether one of several processes puts a whole array on a sharding: its copies, or parts for all devices."""
    place = passed(call, "device", ("x", "device"))
    given = evaluator.value(frame, place) if place is not None else NOTHING
    sharding, path = certain(given), frame.ref.path
    copies = sharding is not None and copied(evaluator, sharding)
    if not multi.joins(path) or multi.tests_one_process(path):
        return False
    return copies or (place is not None and placement.spans(frame, place))


# How words in the names of keys end.
_KEYS = ("key", "keys", "rng", "rngs", "seed")


class StateKeys:
    """Finds such keys. One per run."""

    def __init__(
        self,
        evaluator: Evaluator,
        table: Typing,
        reach: Reach,
        content: Origins,
        multi: MultiProcess,
        *,
        preview: bool,
    ) -> None:
        self.ev = evaluator
        self.table = table
        self.reach = reach
        self.content = content
        self.multi = multi
        self.preview = preview
        self._uses = UsesOfKeys(content)

    def found(self) -> Iterator[tuple[Site, Reason]]:
        """Calls that make state with such a key, where all processes train on it together.

        They do if the state is replicated to the devices, in a program that reduces over a mapped axis. With
        ``preview``, every ``model.init`` with such a key counts.
        """
        for ref in self.ev.project.functions():
            if not self.multi.runs_several(ref.path):
                continue
            frame = self.ev.free_frame(ref)
            together = self._replicated(frame)
            if together and not trains_together(self.ev, self.reach, ref):
                together = frozenset()
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                key = self._initial_key(frame, call) if self.preview or number in together else None
                if key is None and number in together:
                    key = self._own_key(frame, call)
                reason = self.content.why(frame, key) if key is not None else None
                if reason is not None and reason.source.kind == "identity":
                    yield Site(ref, number), reason

    def _replicated(self, frame: Frame) -> frozenset[int]:
        """The operations that make what this function replicates, without the keys before one that makes a model."""
        calls = dict(frame.code.calls_in(sorted(self.ev.live_blocks(frame))))
        copied = (call for call in calls.values() if self.ev.may_call(frame, call, *self.table.rows.replicate))
        pending = [each.value for call in copied for each in call.arguments[:1]]
        found: set[int] = set()
        while pending:
            number = pending.pop()
            if number in found:
                continue
            found.add(number)
            operation, call = frame.code.operations[number], calls.get(number)
            if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
                pending += self.ev.reaching(frame, number, operation.name)
            elif call is None or self._own_key(frame, call) is None:
                pending += inputs(operation)
        return frozenset(found)

    def _own_key(self, frame: Frame, call: s.Call) -> int | None:
        """The key that a function of the project is given, which initializes a model or an optimizer with it."""
        key = next((a.value for a in call.arguments if self._is_key(frame, a.value)), None)
        return key if key is not None and self._uses.initializes(self.ev.callee(frame, call)) else None

    def _initial_key(self, frame: Frame, call: s.Call) -> int | None:
        """The key that ``model.init(key, ...)`` is given."""
        method = frame.code.operations[call.function]
        if not call.arguments or not isinstance(method, s.Attribute) or method.name not in INITIALIZERS:
            return None
        first = call.arguments[0]
        if isinstance(frame.code.operations[first.value], s.Call) and self._is_layer(frame, method.base):
            return first.value
        return first.value if not first.star and self._is_key(frame, first.value) else None

    @staticmethod
    def _is_key(frame: Frame, number: int) -> bool:
        """Whether the name of a value says that it is a key."""
        given = frame.code.operations[number]
        name = given.name if isinstance(given, (s.Load, s.Attribute)) else ""
        return any(word.endswith(_KEYS) for word in name.partition("#")[0].lower().split("_"))

    def _is_layer(self, frame: Frame, number: int) -> bool:
        """Whether a value is an object of a class that derives from a library's."""
        values = self.ev.value(frame, number)
        return any(isinstance(v, Instance) and self.ev.objects.library_bases(v.cls) for v in values)
