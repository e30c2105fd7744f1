"""The divergence check: a branch on a varying value whose arms make different parallel calls.

As PARCOACH does for MPI: for each branch, compare the ordered calls on both arms up to where they meet (the immediate
post-dominator). Equal calls in both arms are not a divergence. An arm that always raises ends the job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall, same_calls
from spmdlint.analysis.callgraph.entries import Entries
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.divergence.filetests import FileTests
from spmdlint.analysis.divergence.harmless import Balanced, always_true, are_silent, not_made_before, one_follows
from spmdlint.analysis.divergence.receivers import ChosenCall, ChosenCalls, chosen_by
from spmdlint.analysis.divergence.terms import Term, Terms, calls_in, equal, only, surely_first
from spmdlint.analysis.evaluation.certainty import fails, leaves_quietly
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.inputs.localrows import RowConditions
from spmdlint.analysis.variance.caught import catches_end
from spmdlint.analysis.variance.conditions import Assumptions, Closed, Conditions
from spmdlint.analysis.variance.content import STAMP
from spmdlint.analysis.variance.emptiness import of_question
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Reason
from spmdlint.analysis.variance.raised import ways
from spmdlint.analysis.variance.reason import field_stores, first, of_kind
from spmdlint.analysis.variance.sources import told_by_others, waits_for_others
from spmdlint.analysis.variance.strides import stride_of
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.analysis.worlds.search import Worlds
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Project
from spmdlint.program.summary import ENTRY, EXIT

Calls = tuple[ParallelCall, ...]

_OF_DATA = ("data", "ragged", "named")
# Sources that differ by chance, if at all: only --preview reports them.
_UNSURE = ("files", "thread", "callback")
_FAILS = "one branch ends in an exception, which stops the job"
_SAME = "both branches make the same parallel calls (their arguments are not compared)"
MAX_ENTERED = 32
"""The most ways of entering one function, with different functions to call, that are checked."""
Hazard = Literal["condition", "loop", "data", "unsteady", "checkpoint"]
HAZARDS: tuple[Hazard, ...] = get_args(Hazard)


class Divergence(Struct, frozen=True):
    """A branch, why its condition varies, and the first parallel call that only one arm makes."""

    branch: Site
    reason: Reason
    call: ParallelCall
    others: Calls
    early_exit: bool
    loop: bool
    handler: bool = False
    """The branch is a clause of a `try`, reached by an exception on one process."""
    also: tuple[tuple[Hazard, Site], ...] = ()
    """The hazards of other branches that this one stands for, and the calls that they are about."""

    @property
    def by_rank(self) -> bool:
        """Whether the condition asks which process this is."""
        return self.reason.kind in ("identity", "group")

    @property
    def hazard(self) -> Hazard:
        """The hazard, so that one fault has one code: what the call does takes precedence over the source."""
        if self.call.checkpoint:
            return "checkpoint"
        if self.by_rank:
            return "loop" if self.loop else "condition"
        return "data" if self.reason.kind in _OF_DATA else "unsteady"


class _Told:
    """The divergences of one function that are told, each call once; only those of the hazards that are asked for."""

    def __init__(self, project: Project, hazards: Collection[Hazard]) -> None:
        self._project = project
        self._hazards = hazards
        self.any = False
        """Whether there is one, of whichever hazard."""
        self.found: list[Divergence] = []
        self._by_call: dict[tuple[Site, ...], int] = {}
        self._places: set[tuple[Site, Site, Hazard, str]] = set()

    def add(self, other: Divergence, *, with_calls: bool = True) -> None:
        """Tell a divergence, or note it with the one that tells of its call; ``with_calls``: it tells of its calls."""
        self.any = True
        for each in _apart(other):
            self._add(each, with_calls)

    def _add(self, other: Divergence, with_calls: bool) -> None:
        if other.hazard not in self._hazards:
            return
        through = self._project.function(other.call.path[1].ref).name if len(other.call.path) > 1 else ""
        place = (other.branch, other.call.site, other.hazard, through)
        if place in self._places:
            return  # the same call in the text, of another of the functions of this name that are passed
        self._places.add(place)
        number = self._telling_of(other.call, other)
        if number is not None:
            told = self.found[number]
            covered = (other.hazard, other.call.site)
            if covered not in (*told.also, (told.hazard, told.call.site)):
                self.found[number] = replace(told, also=(*told.also, covered))
            return
        if with_calls:
            for call in (other.call, *other.others):
                if self._telling_of(call, other) is None:
                    self._by_call[call.path] = len(self.found)
        self.found.append(other)

    def _telling_of(self, call: ParallelCall, other: Divergence) -> int | None:
        """The divergence that tells of a call, unless it is by data or chance, and another one is by rank."""
        number = self._by_call.get(call.path)
        return None if number is None or (other.by_rank and not self.found[number].by_rank) else number


def _apart(found: Divergence) -> Iterator[Divergence]:
    """A save and the first program over the devices of all after it: the save may be one for a single process."""
    first = next((n for n, call in enumerate(found.others) if not call.checkpoint and not call.everyone), None)
    if first is None or not found.call.checkpoint or found.others[first].strength != "strong":
        yield found
        return
    yield replace(found, others=found.others[:first])
    yield replace(found, call=found.others[first], others=found.others[first + 1 :])


class Divergences:
    """Runs the check over all functions outside traced code."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        effects: Effects,
        facets: Facets,
        multi: MultiProcess,
        entries: Entries,
        rows: RowConditions,
        worlds: Worlds,
        *,
        preview: bool,
        hazards: Collection[Hazard],
    ) -> None:
        self.preview = preview
        self.hazards = hazards
        self._found: dict[FunctionRef, Sequence[Divergence]] = {}
        self.rows = rows
        self.entries = entries
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.facets = facets
        self.multi = multi
        self.conditions = evaluator.once(Conditions)
        self.terms = Terms(effects, self.conditions)
        self.chosen = ChosenCalls(evaluator, effects, facets)
        self.files = FileTests(evaluator, effects, facets.content)
        self.worlds = worlds
        self.balanced = Balanced(evaluator, reach, effects, self.conditions)

    def branches(self) -> Iterator[Divergence]:
        """Every divergence at a condition, innermost branches first; one per branch."""
        for ref in self.ev.project.functions():
            yield from self.in_function(ref)

    def in_function(self, ref: FunctionRef) -> Sequence[Divergence]:
        """The divergences at the conditions of one function."""
        if ref not in self._found:
            self._found[ref] = self._looked_for(ref) if ref in self.reach.host else ()
        return self._found[ref]

    def _looked_for(self, ref: FunctionRef) -> Sequence[Divergence]:
        several = self.preview or self.multi.surely_runs_several(ref.path)
        told = _Told(self.ev.project, [each for each in self.hazards if several or each != "unsteady"])
        frame = self.ev.free_frame(ref)
        if self._makes_calls(frame):
            self._in_frame(frame, told)
        for other in self._entered(frame):
            self._in_frame(other, told)
        for chosen in self.chosen.in_function(frame):
            divergence = self._at_choice(frame, chosen)
            if divergence is not None:
                told.add(divergence, with_calls=False)
        return told.found

    def _makes_calls(self, frame: Frame) -> bool:
        """Whether there are any parallel calls that may differ: far cheaper to find out than what varies."""
        return self.effects.reads_properties(frame) or any(
            next(self.effects.of_call(frame, number, call), None) is not None
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame)))
        )

    def _entered(self, frame: Frame) -> list[Frame]:
        """The frames in which a function is passed functions to call, and one of its branches varies."""
        makes_calls = (entered for entered in self.entries.frames(frame.ref) if self._makes_calls(entered))
        frames = list(islice(makes_calls, MAX_ENTERED))
        if not frames:
            return []
        blocks = self.ev.function(frame).blocks
        tests = [blocks[b].test for b in sorted(self.ev.live_blocks(frame)) if len(blocks[b].edges) > 1]
        operations = self.ev.function(frame).operations
        asked = [t for t in tests if t is not None and not isinstance(operations[t], (s.Next, s.Caught, s.Matches))]
        loops = [o.iterable for t in tests if t is not None and isinstance(o := operations[t], s.Next)]
        return [
            entered
            for entered in frames
            if self.facets.content.any_of(entered, asked) is not None
            or any(self.facets.of_loop(entered, iterable) is not None for iterable in loops)
        ]

    def why_none(self, frame: Frame, number: int) -> str | None:
        """Why the branch at the end of a block is not reported; None if it is, or if there is no such branch."""
        block = self.ev.function(frame).blocks[number]
        arms = _arms(block)
        if arms is None or not self.ev.live_blocks(frame).issuperset(arms):
            return None
        if block.test is not None and expects_failure(self.ev, frame, block.test):
            return "the code around it expects a failure"
        found = self._at_branch(frame, number, *arms)
        if isinstance(found, Divergence) and self._is_even(frame, found):
            return "all processes make the call equally often, in every small job in which the function was run"
        return found if isinstance(found, str) else None

    def _in_frame(self, frame: Frame, told: _Told) -> None:
        ref = frame.ref
        function = self.ev.function(frame)
        live = self.ev.live_blocks(frame)
        found: list[tuple[int, Divergence]] = []
        for number in sorted(live):
            block = function.blocks[number]
            if block.test is not None and expects_failure(self.ev, frame, block.test):
                continue
            arms = _arms(block)
            test = function.operations[block.test] if block.test is not None else None
            divergence: Divergence | str | None
            if isinstance(test, s.Next):
                divergence = self._at_loop(frame, number, test)
            elif isinstance(test, s.Caught):
                divergence = self._at_end(frame, number, test) or self._at_handler(frame, number)
            elif arms is not None and live.issuperset(arms):
                divergence = self._at_branch(frame, number, *arms)
            else:
                continue
            if isinstance(divergence, Divergence) and not self._is_even(frame, divergence):
                size = len(self.ev.flow(ref).reachable(number, without=self.ev.flow(ref).joins_at(number)))
                found.append((size, divergence))
        # The innermost guard of a call is the one to fix; the outer ones add nothing new.
        for _, divergence in sorted(found, key=lambda pair: pair[0]):
            told.add(divergence)
        if not told.any:
            missed = self._in_worlds(frame)
            if missed is not None:
                told.add(missed)

    def _is_even(self, frame: Frame, found: Divergence) -> bool:
        """Whether all processes make a call equally often after all: what is shared out divides, or is made to.

        That is asked if the function itself asks which process it is, or one that it calls.
        """
        if found.handler or found.reason.chain()[0].kind not in ("identity", "group"):
            return False
        if self._is_evened_elsewhere(frame, found.reason):
            return True
        if self.worlds.asked_within(frame) is None:
            return False
        call, test = found.call.site.number, found.branch.number
        # A loop over a share is judged by jobs with an element for each process, a condition by smaller ones as well.
        if self.worlds.alike(frame, call, test, likely=found.loop):
            return True
        counted = self._counted(frame, found.reason)
        same = {n: tuple((each.same, each.label) for each in calls) for n, calls in counted.items()}
        return call in counted and self.worlds.in_step(frame, same, test)

    def _is_evened_elsewhere(self, frame: Frame, reason: Reason) -> bool:
        """Whether the method that keeps a share in a field makes it equally long everywhere, or raises."""
        kept = next(((site, store) for site, store in field_stores(self.ev, reason) if site.ref != frame.ref), None)
        return kept is not None and self.worlds.rows_alike(self.ev.free_frame(kept[0].ref), kept[1].value)

    def _in_worlds(self, frame: Frame) -> Divergence | None:
        """The first call that the processes of a small job do not make equally often."""
        asked = self.worlds.process_index(frame)
        reason = self.facets.content.why(frame, asked) if asked is not None else None
        if reason is None:
            return None
        counted = self._counted(frame, replace(reason, kind="data"))  # a number of elements of its own
        same = {n: tuple(each.same for each in calls) for n, calls in counted.items()}
        world = self.worlds.different(frame, same) if counted else None
        branch = self._decides(frame, world.call) if world is not None else None
        if world is None or branch is None:
            return None
        test, loop = branch
        if not loop and not world.lengths:
            return None  # a plain question for the process, which is answered above
        why = Reason(Site(frame.ref, test), world.told(), "data", reason)
        return Divergence(Site(frame.ref, test), why, counted[world.call][0], (), early_exit=False, loop=loop)

    def _counted(self, frame: Frame, reason: Reason) -> dict[int, list[ParallelCall]]:
        """The parallel calls of a function, by the operation that makes them; none if one cannot be counted."""
        calls = self._surely_parallel(frame, self._global(frame, self.effects.of_function(frame)), reason)
        found: dict[int, list[ParallelCall]] = {}
        for call in calls:
            found.setdefault(call.site.number, []).append(call)
        return found if all(self._is_counted(frame, call) for call in calls) else {}

    def _is_counted(self, frame: Frame, call: ParallelCall) -> bool:
        """Whether a call is made once whenever its line runs: it is not one of several, and not in a loop elsewhere."""
        operation = frame.code.operations[call.site.number]
        called = isinstance(operation, s.Call) and self.ev.callee(frame, operation) is not None
        return called and not any(
            self.ev.function(self.ev.free_frame(site.ref)).block_of[site.number] in body
            for site in call.path[1:]
            for body in self.ev.flow(site.ref).loops.values()
        )

    def _decides(self, frame: Frame, call: int) -> tuple[int, bool] | None:
        """The innermost loop or branch that decides how often a call is made, and whether it is a loop."""
        function, flow = self.ev.function(frame), self.ev.flow(frame.ref)
        place = function.block_of[call]
        for header in flow.loops_around(place):
            test = function.blocks[header].test
            if test is not None:
                asked = function.operations[test]
                return (asked.iterable if isinstance(asked, s.Next) else test), True
        return None

    def _at_branch(self, frame: Frame, number: int, yes: int, no: int) -> Divergence | str:
        """The divergence at a branch, or why there is none."""
        function = self.ev.function(frame)
        test = function.blocks[number].test
        assert test is not None
        join = self.ev.flow(frame.ref).joins_at(number)
        failed = [fails(self.ev, frame, arm, number) for arm in (yes, no)]
        failing = failed.index(True) if any(failed) else None  # calls in that arm are in `finally`
        settled = self._is_settled(frame, number, test)
        # Where every way out of a loop leads through an arm, the processes that stay in the loop do not meet there.
        until = None if failing is not None or (settled and join in (yes, no)) else join
        again = None if self._leaves_a_loop(frame, number) else number
        first, second, given = self._sides(frame, number, (yes, no), until, again, parts=not any(failed))
        if all(failed) or (same_calls(first, second) and not settled):
            same = _SAME if first else "neither branch makes a parallel call"
            return same if not all(failed) else "both branches end in an exception"
        quiet = failing is not None and leaves_quietly(self.ev, frame, (yes, no)[failing])
        if failing is not None and not quiet and not (first, second)[failing]:
            return _FAILS
        reason = self._why(frame, number, test, (first, second))
        if isinstance(reason, str) or (quiet and reason.kind in _UNSURE):
            return reason if isinstance(reason, str) else _FAILS
        if quiet:  # as after a return, the job goes on without this process
            failing = None
        loop = any(edge.kind in ("back", "continue") for edge in self._edges_to(function, number))
        ways = self._ways(frame, number, test, given)
        if ways is None:
            return "no two processes take different branches here: another condition decides it, or compensates for it"
        if any(ways):
            first, second = (
                self._calls(frame, arm, until, again, way) for arm, way in zip((yes, no), ways, strict=True)
            )
        if settled and same_calls(first, second):
            return _SAME
        sides: list[tuple[Calls, Calls]] = [(first, second)]
        if again is not None and not any(failed):
            terms = self._terms(frame, (yes, no), join, again, ways)
            if equal(*terms) or one_follows(self.ev, self.effects, frame, first, second):
                return "both branches make the same calls in the end, or one serves the other"
            sides.insert(0, (calls_in(terms[0]), calls_in(terms[1])))
        for pair in sides:
            one, other = self._that_count(frame, number, test, pair, reason, loop=loop)
            if failing is not None:  # after the last call of the failing arm, the job stops
                made, missed = (one, other) if failing == 0 else (other, one)
                surely = self._made_at_once(frame, (no, yes)[failing], ways[1 - failing], missed[: len(made)], made)
                one, other = self._counting(frame, surely, reason, loop)[: len(made)], made
            different = _first_difference(one, other)
            if different is not None and not chosen_by(self.ev, frame, test, different[0]):
                call, more = different
                early = join == EXIT or quiet
                return Divergence(Site(frame.ref, test), reason, call, more, early_exit=early, loop=loop)
        return "the calls after it span processes only if their arguments do, which is not known"

    def _that_count(
        self,
        frame: Frame,
        number: int,
        test: int,
        arms: tuple[Calls, Calls],
        reason: Reason,
        *,
        loop: bool,
    ) -> list[Calls]:
        """The calls of both arms that count behind the condition, without those that all processes made before."""
        left = (not_made_before(self.ev, self.effects, frame, number, calls) for calls in arms)
        counting = [self._counting(frame, calls, reason, loop) for calls in left]
        if stride_of(self.facets.content, frame, test) is not None:
            return [tuple(c for c in calls if c.strength == "strong") for calls in counting]
        return counting

    def _sides(
        self,
        frame: Frame,
        branch: int,
        arms: tuple[int, int],
        until: int | None,
        again: int | None,
        *,
        parts: bool,
    ) -> tuple[Calls, Calls, Closed]:
        """The calls of both arms, and what is closed for that: an answer inside one arm, if it ``parts`` equal arms."""
        first, second = (self._calls(frame, arm, until, again) for arm in arms)
        asked = self.ev.function(frame).blocks[branch].test
        if not parts or asked is None or not same_calls(first, second) or self.facets.content.why(frame, asked) is None:
            return first, second, frozenset()
        given = self._parting(frame, arms, until, again)
        if given:
            first, second = (self._calls(frame, arm, until, again, given) for arm in arms)
        return first, second, given

    def _parting(self, frame: Frame, arms: tuple[int, int], until: int | None, again: int | None) -> Closed:
        """What a uniform condition inside one arm closes, if only then the arms make different calls; else nothing.

        So it is for the process that returns early only ``if debug``: the others do not ask.
        """
        flow, function, live = self.ev.flow(frame.ref), self.ev.function(frame), self.ev.live_blocks(frame)
        one, other = (set(flow.order(arm, until, caught=True)) for arm in arms)
        for block in sorted((one ^ other) & live):
            test, ways = function.blocks[block].test, _arms(function.blocks[block])
            if test is None or ways is None or self._leaves_a_loop(frame, block):
                continue
            if self.facets.content.why(frame, test) is not None:
                continue
            for answer, way in zip((True, False), ways, strict=True):
                if not fails(self.ev, frame, way, block):
                    closed = self.conditions.closed(frame, self.conditions.facts(frame, test, answer))
                    if closed and not same_calls(*(self._calls(frame, arm, until, again, closed) for arm in arms)):
                        return closed
        return frozenset()

    def _why(self, frame: Frame, number: int, test: int, arms: tuple[Calls, Calls]) -> Reason | str:
        """Why a condition differs between processes, or why that is not reported."""
        reason = of_truth(self.facets.content, frame, test) or self.rows.why(frame, test)
        reason = reason or of_question(self.facets.emptiness, frame, test)
        if reason is None and self._leaves_a_loop(frame, number):
            # What the loop takes in pieces ends in another iteration where there is less of it.
            reason = of_question(self.facets.length, frame, test)
        if reason is None:
            return "no source of variance is known for it"
        for each in reason.each():
            if self._is_unsure(frame, each) and not self.files.differs(frame, number, each, *arms):
                continue
            if each.kind in ("clock", "host") and always_true(self.ev, frame, test):
                return "the value that it tests is never zero or empty, so it holds on every process"
            return each
        return "it is not certain enough that it varies" + ("" if self.preview else "; --preview may report it")

    def _made_at_once(self, frame: Frame, arm: int, way: Closed, found: Calls, made: Calls) -> Calls:
        """The calls of an arm; if they equal those of the other arm, only the ones that it makes in any case."""
        if _first_difference(found, made) is not None:
            return found
        return surely_first(self.terms.between(frame, arm, EXIT, way), made)

    def _ways(self, frame: Frame, number: int, test: int, given: Closed) -> list[Closed] | None:
        """The edges closed if a condition holds, and if not; None if no two processes take different arms.

        ``given`` are edges that are closed anyway.
        """
        known = self.conditions.assumed(frame, number)
        if known is None or self.conditions.holds(frame, test, known, first=True) is not None:
            return None  # no process gets here, or all that do take the same arm
        content = self.facets.content
        heart, others = self.conditions.heart(frame, test, lambda n: content.why(frame, n) is not None)
        known.update(others)
        if self.conditions.one_process(known) or self._complementary(frame, number, heart, known, given):
            return None
        if self.balanced.by_callers(frame, heart):
            return None
        facts = (self.conditions.facts(frame, test, answer) for answer in (True, False))
        return [self.conditions.closed(frame, {**known, **fact}, first=True) | given for fact in facts]

    def _at_choice(self, frame: Frame, chosen: ChosenCall) -> Divergence | None:
        """A call of a function that a varying condition chose."""
        if self._is_unsure(frame, chosen.reason):
            return None
        ways = (self._global(frame, way) for way in chosen.ways)
        one, other = (self._counting(frame, way, chosen.reason, loop=False) for way in ways)
        different = _first_difference(one, other)
        if different is None:
            return None
        return Divergence(chosen.branch, chosen.reason, different[0], different[1], early_exit=False, loop=False)

    def _counting(self, frame: Frame, calls: Calls, reason: Reason, loop: bool) -> Calls:
        """The calls that count behind a condition which varies for this reason."""
        if reason.kind not in ("identity", "group"):
            # A clock or a file differs by chance. A bare jit behind it is local as often as not.
            return self._surely_parallel(frame, calls, reason)
        if reason.kind == "group" and not loop:
            # Processes without devices in a group skip the group's calls, and may do so.
            return tuple(c for c in calls if c.everyone and not c.of_devices)
        if told_by_others(self.ev, self.multi, frame.ref.path, reason):
            return tuple(filter(waits_for_others, calls))
        return calls

    def _terms(self, frame: Frame, arms: tuple[int, int], join: int, branch: int, ways: list[Closed]) -> list[Term]:
        """The effect terms of two arms: equal for arms that differ only in writing, as in `if x: f() else: f()`."""
        by_hand = self._maps_by_hand(frame.ref)
        return [
            only(
                self.terms.between(frame, arm, join, way, branch),
                lambda call: call.strength == "strong" or not by_hand,
            )
            for arm, way in zip(arms, ways, strict=True)
        ]

    def _leaves_a_loop(self, frame: Frame, branch: int) -> bool:
        """Whether one arm of a branch leaves a loop that the other stays in: it decides the number of iterations."""
        flow = self.ev.flow(frame.ref)
        return any(flow.leaves(branch, header) for header in flow.loops)

    def _is_settled(self, frame: Frame, branch: int, test: int) -> bool:
        """Whether a condition that leaves a loop on some processes has the same answer in every iteration.

        Otherwise a process that stays may make the calls of the other arm in a later iteration.
        """
        content, flow = self.facets.content, self.ev.flow(frame.ref)
        bodies = [body for header, body in flow.loops.items() if flow.leaves(branch, header)]
        if not bodies:
            return False
        heart, _ = self.conditions.heart(frame, test, lambda n: content.why(frame, n) is not None)
        return self.conditions.is_steady(frame, heart, frozenset().union(*bodies))

    def _complementary(self, frame: Frame, branch: int, test: int, known: Assumptions, given: Closed) -> bool:
        """Whether the processes that come to a condition make the same calls in the whole function, either way.

        In a loop, that is in one iteration. What happens where the condition is not asked is another matter.
        """
        key = self.conditions.key(frame, test)
        flow = self.ev.flow(frame.ref)
        if key is None or self._leaves_a_loop(frame, branch) or flow.loops.get(branch):
            return False
        if branch not in flow.order(ENTRY, caught=True):
            return False  # in a handler, which only exceptions reach
        arms = _arms(self.ev.function(frame).blocks[branch])
        if arms is None:
            return False
        header = next(iter(flow.loops_around(branch)), None)
        sides: list[Calls] = []
        for answer in (True, False):
            closed = self.conditions.closed(frame, {**known, key[0]: answer}) | given
            before = self._before(frame, branch, header, closed)
            taken = [arm for arm in arms if (branch, arm) not in closed]
            sides.append((*before, *(c for arm in taken for c in self._calls(frame, arm, header, None, closed))))
        return same_calls(*sides)

    def _before(self, frame: Frame, branch: int, header: int | None, closed: Closed) -> Calls:
        """The calls on the ways to a branch, from the start of the function or of the iteration."""
        flow, live = self.ev.flow(frame.ref), self.ev.live_blocks(frame)
        order = flow.order(ENTRY, branch, closed, caught=True)
        inside = flow.loops.get(header, frozenset()) if header is not None else frozenset()
        on_the_way = [
            b for b in order if b in live and branch in flow.reachable(b, without=header if b in inside else None)
        ]
        return self._global(frame, self.effects.of_blocks(frame, on_the_way))

    def _surely_parallel(self, frame: Frame, calls: Calls, reason: Reason) -> Calls:
        """The calls that span processes whatever their arguments, and training steps in a multi-process program.

        A bare jit over a process's own data belongs there; behind a clock or a file it may well be local.
        """
        several = self.multi.runs_several(frame.ref.path)
        if several and self.preview and reason.kind not in _OF_DATA:
            return calls
        told = several or self.preview  # single-process programs save as well
        return tuple(
            c for c in calls if (c.carried and told) or (c.strength == "strong" and (told or not c.checkpoint))
        )

    def _is_unsure(self, frame: Frame, reason: Reason) -> bool:
        """Whether it is likely that nothing varies after all, so that only --preview reports it."""
        if reason.kind == "ragged":
            paths = (frame.ref.path, reason.source.site.ref.path)
            own = self.preview or self.facets.sharing.has_own(frame.ref.path)
            return not own or not self.multi.counts_lengths(*paths, preview=self.preview)
        read_at = reason.source.site.ref
        if reason.kind == "files" and read_at.index == 0 and (frame.ref != read_at or not self.preview):
            return True  # a configuration that is read once, at import
        kept_by = {self.ev.project.enclosing_class(site.ref) for site, _ in field_stores(self.ev, reason)}
        if not self.preview and reason.kind not in _OF_DATA and len(kept_by) > 1:
            return True  # values that go through the fields of several classes: six of six were wrong in real code
        if reason.kind in ("named", "host"):  # a single-process program counts its processors
            return not self.preview and not self.multi.runs_several(frame.ref.path)
        return reason.kind == STAMP or (reason.kind in _UNSURE and not self.preview)

    def _at_loop(self, frame: Frame, number: int, test: s.Next) -> Divergence | None:
        """A `for` loop with parallel calls whose number of iterations differs between processes."""
        flow = self.ev.flow(frame.ref)
        body = flow.loop_body(number) & self.ev.live_blocks(frame)
        if not self.effects.of_blocks(frame, [block for block in flow.order(number) if block in body]):
            return None
        for over, given in self._over(frame, test.iterable):
            closed = self.conditions.closed(frame, given) if given else frozenset()
            order = [block for block in flow.order(number, closed=closed) if block in body]
            found = self._in_loop(frame, number, test.iterable, order, self.facets.of_loop(frame, over))
            if found is not None:
                return found
        return None

    def _over(self, frame: Frame, iterable: int) -> list[tuple[int, Assumptions]]:
        """What a loop goes over, and what holds whenever it does: if one of several was chosen, those that vary."""
        load, function = frame.code.operations[iterable], frame.code.function
        named = isinstance(load, s.Load) and function.binds(load.name)
        stores = sorted(self.ev.reaching(frame, iterable, load.name)) if isinstance(load, s.Load) and named else []
        chosen = [(o.value, function.block_of[n]) for n in stores if isinstance(o := function.operations[n], s.Store)]
        varying = [(value, block) for value, block in chosen if self.facets.of_loop(frame, value) is not None]
        if len(stores) < 2 or not varying:
            return [(iterable, {})]
        assumed = [(value, self.conditions.assumed(frame, block)) for value, block in varying]
        return [(value, given) for value, given in assumed if given is not None]

    def _in_loop(
        self, frame: Frame, number: int, iterable: int, order: list[int], reason: Reason | None
    ) -> Divergence | None:
        """A loop that runs as long as an iterator gives elements, how many for a ``reason`` that varies."""
        calls = self.effects.of_blocks(frame, order)
        if not calls or (calls[0].strength == "weak" and self._maps_by_hand(frame.ref)):
            return None
        reason = first(reason, lambda each: each.kind != "files" and not self._is_unsure(frame, each))
        if reason is None:
            return None  # for a listing, the finding about its order is more certain
        element = self.ev.function(frame).blocks[number].test
        if self.conditions.alone(frame, number) or (
            element is not None and are_silent(self.effects, frame, element, reason, calls)
        ):
            return None
        if reason.kind not in ("identity", "group"):
            calls = self._surely_parallel(frame, calls, reason)
        if not calls:
            return None
        return Divergence(Site(frame.ref, iterable), reason, calls[0], calls[1:], early_exit=False, loop=True)

    def _at_end(self, frame: Frame, number: int, test: s.Caught) -> Divergence | None:
        """``except StopIteration`` that leaves a loop: the iterator's number of elements differs between processes."""
        if not catches_end(self.ev, frame, test):
            return None
        function, flow = self.ev.function(frame), self.ev.flow(frame.ref)
        tried = {
            b for b, o in enumerate(function.blocks) if any(e.kind == "except" and e.target == number for e in o.edges)
        }
        loops = [body for body in flow.loops.values() if tried & body]
        body = min(loops, key=len, default=frozenset())
        if any(edge.kind == "except" and edge.target in body for edge in function.blocks[number].edges):
            return None  # it goes on with something else
        caught = function.blocks[number].test
        reason = of_kind(self.facets.content.why(frame, caught), "data") if body and caught is not None else None
        if caught is None or reason is None or self._is_unsure(frame, reason):
            return None
        calls = self._surely_parallel(frame, self.effects.of_blocks(frame, sorted(body)), reason)
        if not calls or self.conditions.alone(frame, number):
            return None
        return Divergence(Site(frame.ref, caught), reason, calls[0], calls[1:], early_exit=False, loop=True)

    def _at_handler(self, frame: Frame, number: int) -> Divergence | None:
        """A handler that skips calls after its `try`. Calls in the `try`, or in the handler, are another hazard."""
        function, flow = self.ev.function(frame), self.ev.flow(frame.ref)
        found, test = ways(function, flow, number), function.blocks[number].test
        if found is None or test is None or fails(self.ev, frame, found[0], number):
            return None
        handler, join, tried = found
        if self.effects.of_blocks(frame, tried) or self._calls(frame, handler, join, None):
            return None
        missed = self._calls(frame, tried[0], join, None)
        why = self.facets.content.why(frame, test) if missed else None
        reason = first(why, lambda each: not self._is_unsure(frame, each))
        if reason is None or self.conditions.alone(frame, number):
            return None
        missed = self._surely_parallel(frame, missed, reason)
        if not missed:
            return None
        return Divergence(Site(frame.ref, test), reason, missed[0], missed[1:], False, loop=False, handler=True)

    @staticmethod
    def _edges_to(function: s.Function, target: int) -> Iterator[s.Edge]:
        return (edge for block in function.blocks for edge in block.edges if edge.target == target)

    def _calls(
        self, frame: Frame, arm: int, join: int | None, branch: int | None, closed: Closed = frozenset()
    ) -> Calls:
        """The calls from an arm up to ``join``; those in the block of the branch itself were made before it."""
        order = self.ev.flow(frame.ref).order(arm, join, closed, caught=True)
        live = self.ev.live_blocks(frame)
        calls = self.effects.of_blocks(frame, [block for block in order if block in live and block != branch])
        return self._global(frame, calls)

    def _global(self, frame: Frame, calls: Calls) -> Calls:
        """The given calls, without bare `jit` calls in a module that maps by hand."""
        by_hand = self._maps_by_hand(frame.ref)
        return tuple(call for call in calls if call.strength == "strong" or not by_hand)

    def _maps_by_hand(self, ref: FunctionRef) -> bool:
        """Whether the module maps by hand, as with `pmap`: a bare `jit` beside it works on what one process holds.

        The same holds for every module of a program that uses several devices in no other way.
        """
        return ref.path in self._by_hand or self.effects.spreading.maps_alone(ref.path)

    @cached_property
    def _by_hand(self) -> frozenset[Path]:
        """The files that make such maps, and those that call them."""
        known = self.ev.knowledge
        uses = {
            use.site for use in self.reach.uses if (entry := known.get(use.applied.name)) is not None and entry.by_hand
        }
        called = (call for use in uses for call in self.reach.use_calls.get(use, ()))
        return frozenset(site.ref.path for site in (*uses, *called))


def _arms(block: s.Block) -> tuple[int, int] | None:
    """The targets of a branch for true and for false."""
    arms = {edge.kind: edge.target for edge in block.edges if edge.kind in ("true", "false")}
    return (arms["true"], arms["false"]) if block.test is not None and len(arms) == 2 else None


def _first_difference(first: Calls, second: Calls) -> tuple[ParallelCall, Calls] | None:
    """The first call at which two sequences differ, and the later calls that only its sequence has."""
    length = max(len(first), len(second))
    for position in range(length):
        a = first[position] if position < len(first) else None
        b = second[position] if position < len(second) else None
        if a is not None and b is not None and a.matches(b):
            continue
        call, *rest = (first if a is not None else second)[position:]
        return call, tuple(dict.fromkeys(other for other in rest if other.path != call.path))
    return None
