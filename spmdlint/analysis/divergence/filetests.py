"""Tests of files that processes may well see differently, judged by what the function around the test does about it."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.callgraph.effects import BROADCAST, Effects, ParallelCall
from spmdlint.analysis.divergence.paths import OPENERS, WRITERS, opens_to_write
from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.guarded import tells_who
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.reason import field_stores
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

_LOOKING = frozenset(("exists", "isfile", "is_file", "isdir", "is_dir", "Exists"))
_DEPTH = 8


def looked_for_again(evaluator: Evaluator, effects: Effects, frame: Frame, branch: int, reason: Reason) -> int | None:
    """The call by which a branch in a loop with parallel calls looks for one file, the same in every iteration."""
    # The condition of a loop is evaluated in every iteration, and is no part of the loop's body.
    loops = evaluator.flow(frame.ref).loops
    around = [body | {header} for header, body in loops.items() if branch in body or branch == header]
    if not around or not _looks(evaluator, reason):
        return None
    body, code = min(around, key=len), frame.code
    first = next((step.site.number for step in reason.chain() if step.site.ref == frame.ref), None)
    kept = any(field_stores(evaluator, reason))
    if first is None or kept or code.function.block_of[first] not in body or type(code.operations[first]) is not s.Call:
        return None  # it was tested once, before the loop
    calls = effects.of_blocks(frame, sorted(body & evaluator.live_blocks(frame)))
    lasting = any(call.strength == "strong" or call.carried for call in calls)
    return first if lasting and _is_steady(evaluator, frame, first, body, _DEPTH) else None


def _looks(evaluator: Evaluator, reason: Reason) -> bool:
    """Whether the source tests if a file exists, not what is in a folder or in the file."""
    source = reason.source.site
    where = evaluator.free_frame(source.ref)
    call = where.code.operations[source.number]
    if not isinstance(call, s.Call):
        return False
    method = where.code.operations[call.function]
    callees = evaluator.value(where, call.function)
    names = {callee.name.rpartition(".")[2] for callee in callees if isinstance(callee, External)}
    names |= {method.name} if isinstance(method, s.Attribute) else set()
    return not names.isdisjoint(_LOOKING)


def _is_steady(evaluator: Evaluator, frame: Frame, number: int, body: frozenset[int], depth: int) -> bool:
    """Whether a value is computed from nothing that an iteration of the loop changes."""
    operation = frame.code.operations[number]
    if depth == 0 or isinstance(operation, (s.Next, s.Item)):
        return False
    if isinstance(operation, s.Load):
        if not frame.code.function.binds(operation.name):
            return True
        stores = evaluator.reaching(frame, number, operation.name)
        inside = [store for store in stores if frame.code.function.block_of[store] in body]
        return all(_is_steady(evaluator, frame, store, body, depth - 1) for store in inside)
    parts = operands(operation)
    if isinstance(operation, s.Call):
        parts = (operation.function, *(argument.value for argument in operation.arguments))
    return all(_is_steady(evaluator, frame, part, body, depth - 1) for part in parts)


_WRITERS = WRITERS | set("dump write touch mkdir makedirs copytree snapshot_download extractall open".split())
"""Functions that make a file or a folder, or write to one that is open already."""


class FileTests:
    """Decides whether processes may see different files, where the test alone says little. One per run."""

    def __init__(self, evaluator: Evaluator, effects: Effects, content: Origins) -> None:
        self.ev = evaluator
        self.effects = effects
        self.content = content
        self.control = evaluator.once(Control)

    def differs(self, frame: Frame, branch: int, reason: Reason, *arms: tuple[ParallelCall, ...]) -> bool:
        """Whether the processes may see different files at a branch, judging by the function around it."""
        if reason.kind != "files":
            return False
        looked = looked_for_again(self.ev, self.effects, frame, branch, reason)
        if looked is not None and not any(_writes(frame, number) for number in self._making(frame, looked)):
            return True
        # Where one process broadcasts what it has after each has looked for the file, some may not see it.
        told = any(call.same == BROADCAST and len(call.path) == 1 for calls in arms for call in calls)
        return told or self._made_by_one(frame, reason.source)

    def _made_by_one(self, frame: Frame, looked: Reason) -> bool:
        """Whether the function has one process make the file that all look for: others look before or after that."""
        if looked.site.ref != frame.ref:
            return False
        return any(
            self._by_one(frame, number) and not self._all_meet(frame, looked.site.number, number)
            for number in self._making(frame, looked.site.number)
        )

    def _making(self, frame: Frame, looked: int) -> Iterator[int]:
        """The calls by which the function may itself make the file that a call looks for."""
        wanted = [names for names in _told_by(frame.code, looked) if names]
        for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            if number != looked and _name(frame.code, call) in _WRITERS:
                made = set().union(*_told_by(frame.code, number))
                if any(names <= made for names in wanted):
                    yield number

    def _all_meet(self, frame: Frame, looked: int, made: int) -> bool:
        """Whether all processes meet after the test and before the file is made, so that none looks too late.

        In a loop, they look again for what may have been made in an earlier iteration.
        """
        block = frame.code.function.block_of[looked]
        if any(block in body for body in frame.code.flow.loops.values()):
            return False
        return any(
            looked < number < made and not self._by_one(frame, number)
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame)))
            if any(each.everyone for each in self.effects.of_call(frame, number, call))
        )

    def _by_one(self, frame: Frame, number: int) -> bool:
        for branch in self.control.choosing(frame, (number,), None):
            found = self.content.why(frame, branch.test)
            if found is not None and tells_who(found):
                return True
        return False


def _writes(frame: Frame, number: int) -> bool:
    """Whether a call that may make a file does not only open it to read it."""
    call = frame.code.operations[number]
    return isinstance(call, s.Call) and (_name(frame.code, call) not in OPENERS or opens_to_write(frame, call))


def _name(code: Code, call: s.Call) -> str:
    callee = code.operations[call.function]
    return callee.name if isinstance(callee, (s.Attribute, s.Load)) else ""


def _told_by(code: Code, number: int) -> tuple[set[str], set[str]]:
    """The variables that name the file of a call: as written, and those that they are computed from."""
    written = set(_variables(code, number, _DEPTH, through=False))
    return written, set(_variables(code, number, _DEPTH, through=True))


def _variables(code: Code, number: int, depth: int, *, through: bool) -> Iterator[str]:
    operation = code.operations[number]
    if depth == 0:
        return
    if isinstance(operation, s.Load):
        root = code.root_of(number)
        if through and isinstance(code.operations[root], (s.Call, s.Binary, s.FString)):
            yield from _variables(code, root, depth - 1, through=through)
        elif code.scope_of(operation.name) is not None:
            yield operation.name
    elif isinstance(operation, s.Call):
        callee = code.operations[operation.function]
        if isinstance(callee, s.Attribute):
            yield from _variables(code, callee.base, depth - 1, through=through)
        for argument in operation.arguments:
            yield from _variables(code, argument.value, depth - 1, through=through)
    else:
        for part in operands(operation):
            yield from _variables(code, part, depth - 1, through=through)
