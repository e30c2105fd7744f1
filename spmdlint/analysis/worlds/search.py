"""How often each process makes a call, and with how many rows, found by running a function in small worlds.

A world is a number of processes with a value for each unknown: the length of a list that the function is given, a
number, a truth. The function is run once for each process (:mod:`process`), and the calls are compared, so that it
makes no difference in which way a share is written: as a slice, a stride, a condition in a loop, by ``divmod`` or
``filter``, cut or padded or asserted to divide. A process that raises leaves the comparison.

What is unknown is the same on every process, or nothing is decided: a value that differs for a reason of its own, an
element of a list, and a result of a call that was given different arguments on each process decide nothing here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeVar

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Constant, Frame, FunctionValue, Site, certain
from spmdlint.analysis.worlds.process import MAX_DEPTH, Given, Job, Made, Process
from spmdlint.analysis.worlds.values import Key, Together, TogetherError, UndecidedError, VoidError
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s
from spmdlint.program.uniform import Uniform

COUNTS = (2, 3)
"""The numbers of processes that are tried."""
LENGTHS = (5, 1, 2, 3, 7, 0, 60)
NUMBERS = (2, 1, 3, 0, 12)
"""No number is so large that each process's part of the longest list is cut by its end."""
MAX_UNKNOWN = 3
"""The most unknowns that may decide something; their values are tried in all combinations."""
MAX_CONSTANT = 2_000
MAX_MORE = 10
"""The most lengths that are tried because of the constants of a function."""
MAX_RUNS = 600
MAX_MET = 4
"""How often processes may wait for each other before what they give each other decides nothing."""

Varies = Callable[[Frame, int], bool]
Found = TypeVar("Found")
Outcome = tuple[tuple[Made, ...] | None, ...]
"""The calls of each process, in order; None for one that ends in an exception before the end."""


class World(Struct, frozen=True):
    """A small job in which the processes do not make the same calls, or do not give a call as many rows: which call."""

    call: int
    processes: int
    lengths: tuple[int, ...]
    counts: tuple[int | None, ...]
    """How often each process makes the call, or the rows that it gives it; None if it ends in an exception."""
    argument: int | None = None
    """The number of the argument that has so many rows; None if it is the calls that are counted."""

    def told(self) -> str:
        """The world as an example, in words."""
        rows = f"with {' and '.join(map(str, self.lengths))} elements on" if self.lengths else "on"
        known = [count for count in self.counts if count is not None]
        most, least = max(known), min(known)
        one, other = self.counts.index(most), self.counts.index(least)
        does = "makes" if self.argument is None else "passes"
        what = "call" if self.argument is None else "row"
        times = f"process {one} {does} {_counted(most, what)} and process {other} {_counted(least, what)}"
        return f"{rows} {self.processes} processes, {times}"


def _counted(number: int, what: str) -> str:
    return "none" if not number else f"one {what}" if number == 1 else f"{number} {what}s"


class Worlds:
    """Runs functions in small worlds. One per run; ``varies`` says whether an unknown differs for a known reason."""

    def __init__(self, evaluator: Evaluator, varies: Varies) -> None:
        self.ev = evaluator
        self.varies = varies
        self.uniform = Uniform(evaluator.project)
        self._known: dict[tuple[Frame, frozenset[int]], _Search] = {}

    def process_index(self, frame: Frame) -> int | None:
        """Where a function asks which process it is; None if it does not."""
        asked = (number for number, _ in frame.code.of_kind(s.Call) if self._is_rank(frame, number))
        loads = ((number, load.name) for number, load in frame.code.of_kind(s.Load))
        kept = (n for n, name in loads if not frame.code.function.binds(name) and self._is_rank(frame, n))
        return next(itertools.chain(asked, kept), None)

    def asked_within(self, frame: Frame, depth: int = MAX_DEPTH) -> Site | None:
        """Where a function asks which process it is, or one that it calls; None if none does."""
        own = self.process_index(frame)
        if own is not None:
            return Site(frame.ref, own)
        for _, call in frame.code.of_kind(s.Call) if depth else ():
            callee = self.ev.callee(frame, call)
            if isinstance(callee, FunctionValue) and callee.ref != frame.ref:
                found = self.asked_within(self.ev.free_frame(callee.ref), depth - 1)
                if found is not None:
                    return found
        return None

    def _is_rank(self, frame: Frame, number: int) -> bool:
        known = certain(self.ev.value(frame, number))
        return isinstance(known, Applied) and units().places.get(known.name) == "process"

    def alike(self, frame: Frame, call: int, test: int, *, likely: bool = False) -> bool:
        """Whether all processes make a call equally often, and some do, in every world that is tried.

        If ``likely``, only worlds count in which there is an element for each process.

        They must have seen both answers of the condition that is in question: ``rank >= 8`` has one in small jobs. One
        that only a job sees which the program has ended counts: its author has excluded it.
        """
        calls = frozenset((call,))
        if self._refuted(frame, calls, lambda made: _even(_counts(made, call)), likely=likely):
            return False
        if self._seen(frame, calls, test) is None:
            return False
        return any(any(_counts(made, call)) for made in self._outcomes(frame, call, likely=likely))

    def in_step(self, frame: Frame, same: Mapping[int, Hashable], test: int) -> bool:
        """Whether all processes make the same calls in the same order, and some do, in every world that is tried.

        ``same`` is as in :meth:`different`, and ``test`` as in :meth:`alike`.
        """
        calls = frozenset(same)
        if self._refuted(frame, calls, lambda made: len(set(_sequences(made, same))) == 1):
            return False
        tried = self._seen(frame, calls, test)
        return tried is not None and any(any(made) for made in tried.outcomes.values() if made is not None)

    def different(self, frame: Frame, same: Mapping[int, Hashable]) -> World | None:
        """A world in which the processes do not make the same calls, whatever else is unknown in it.

        ``same`` has the calls, each with what is equal for calls that are one to the other processes.
        """
        found = self._proven(frame, frozenset(same), lambda outcome: _first_uneven(outcome, same))
        if found is None:
            return None
        count, lengths, call, outcome = found
        return World(call, count, lengths, tuple(_counts(outcome, call)))

    def rows_alike(self, frame: Frame, call: int, argument: int = 0) -> bool:
        """Whether an argument of a call, or a value, has as many rows on all processes, in every likely world."""

        def as_many(made: Outcome) -> bool:
            return all(None not in given and _even(given) for given in _rows_given(made, call, argument))

        if self._refuted(frame, frozenset((call,)), as_many, likely=True):
            return False
        return any(any(_rows_given(made, call, argument)) for made in self._outcomes(frame, call, likely=True))

    def rows_differ(self, frame: Frame, call: int) -> World | None:
        """A world in which some argument of a call does not have as many rows on all processes, as in `different`."""
        found = self._proven(frame, frozenset((call,)), lambda outcome: _first_ragged(outcome, call))
        if found is None:
            return None
        count, lengths, (argument, rows), _ = found
        return World(call, count, lengths, rows, argument)

    def _outcomes(self, frame: Frame, call: int, *, likely: bool) -> list[Outcome]:
        tried = self._tried(frame, frozenset((call,)))
        if tried is None:
            return []
        made = tried.outcomes.items()
        return [each for world, each in made if each is not None and (not likely or tried.is_likely(*world))]

    def _seen(self, frame: Frame, calls: frozenset[int], test: int) -> _Search | None:
        """All worlds for some calls, if they are large enough to have seen both answers of a condition."""
        tried = self._tried(frame, calls)
        return None if tried is None or tried.omits or not tried.has_both_answers(test) else tried

    def _refuted(
        self, frame: Frame, calls: frozenset[int], holds: Callable[[Outcome], bool], *, likely: bool = False
    ) -> bool:
        """Whether something does not hold in one of the worlds for some calls: no further world is tried then."""
        search = self._search(frame, calls)
        return search is not None and any(
            made is not None and (not likely or search.is_likely(*world)) and not holds(made)
            for world, made in search.tried()
        )

    def _proven(
        self, frame: Frame, calls: frozenset[int], differs: Callable[[Outcome], Found | None]
    ) -> tuple[int, tuple[int, ...], Found, Outcome] | None:
        search = self._search(frame, calls)
        if search is None or search.is_ruled_out(differs) or not search.is_complete():
            return None
        return search.proven(differs)

    def _tried(self, frame: Frame, calls: frozenset[int]) -> _Search | None:
        """All worlds for some calls of a function; None if something in them is not decided."""
        search = self._search(frame, calls)
        return search if search is not None and search.is_complete() else None

    def _search(self, frame: Frame, calls: frozenset[int]) -> _Search | None:
        function = frame.code.function
        if function.kind != "function" or function.generator or function.asynchronous:
            return None
        key = (frame, calls)
        if key not in self._known:
            self._known[key] = _Search(self, frame, calls)
        return self._known[key]


def _counts(outcome: Outcome, call: int) -> list[int | None]:
    return [None if made is None else sum(each.call == call for each in made) for made in outcome]


def _even(values: Iterable[object]) -> bool:
    return len({each for each in values if each is not None}) == 1


def _rows_given(outcome: Outcome, call: int, argument: int) -> Iterator[tuple[int | None, ...]]:
    """The rows that an argument of a call has on each process that gets there, each time that all make it."""
    times = [[each for each in made if each.call == call] for made in outcome if made is not None]
    for together in zip(*times, strict=False):
        yield tuple(each.rows[argument] if argument < len(each.rows) else None for each in together)


class _Search:
    """Tries the worlds for some calls; ``outcomes`` by the number of processes and the values of the unknowns."""

    def __init__(self, worlds: Worlds, frame: Frame, calls: frozenset[int]) -> None:
        functions = worlds.ev.project.modules[frame.ref.path].summary.functions
        rebound = frozenset(name for function in functions for name in function.nonlocals)
        self.job = Job(worlds.ev, worlds.varies, frame, calls, rebound, self._value_of, {}, worlds.uniform)
        self.keys: list[Key] = []
        self.outcomes: dict[tuple[int, tuple[int, ...]], Outcome | None] = {}
        self._runs = 0
        self._is_trying = False
        self._is_decided = True
        constants = sorted(n for n in self._constants(frame) if n > max(NUMBERS[:4]))
        self.omits = any(n > MAX_CONSTANT for n in constants)
        """Whether the function names a number that no world is large enough for."""
        # Where something ends or begins at a constant: for all, and for the parts of two or three processes.
        small = [n for n in constants if n <= MAX_CONSTANT]
        near: list[Callable[[int], int]] = [lambda c: c, lambda c: c + 1, lambda c: 2 * c - 1]
        near += [lambda c: 3 * c - 1, lambda c: 2 * c + 1]
        self._more = tuple(dict.fromkeys(around(c) for around in near for c in small))[:MAX_MORE]

    def _constants(self, frame: Frame) -> set[int]:
        """The numbers that a function names."""
        named = (n for kind in (s.Const, s.Load, s.Attribute) for n, _ in frame.code.of_kind(kind))
        known = (certain(self.job.ev.value(frame, number)) for number in named)
        return {each.value for each in known if isinstance(each, Constant) and type(each.value) is int}

    def is_complete(self) -> bool:
        """Try all worlds; whether nothing in them was undecided."""
        if self._is_trying:
            return False
        for _ in self._further():
            pass
        if self._is_decided:
            made = self.outcomes
            self.outcomes = {world: made[world] for count in COUNTS for world in self._worlds(count)}
        return self._is_decided

    def is_ruled_out(self, differs: Callable[[Outcome], object]) -> bool:
        """Whether nothing can be :meth:`proven`, found with as few worlds as that takes."""
        if self._is_trying or not self._is_decided:
            return True
        known, found = -1, False
        with self._trying():
            while known != len(self.keys):  # another unknown came up: it is asked again
                known = len(self.keys)
                found = any(self._always(differs, count, *fixed) for count in COUNTS for fixed in list(self._fixed()))
        return not (found and self._is_decided)

    @contextmanager
    def _trying(self) -> Iterator[None]:
        self._is_trying = True
        try:
            yield
        except (UndecidedError, RecursionError):
            self._is_decided = False
        finally:
            self._is_trying = False

    def _always(self, differs: Callable[[Outcome], object], count: int, place: int, value: int) -> bool:
        """Whether there is a difference in each likely world with a value of an unknown that says anything."""
        found = False
        for world in self._worlds(count):
            if (world[1] and world[1][place] != value) or not self.is_likely(*world):
                continue
            if world not in self.outcomes:
                self.outcomes[world] = self._outcome(*world)
            made = self.outcomes[world]
            if len(world[1]) != len(self.keys) or (made is not None and differs(made) is None):
                return False
            found = found or made is not None
        return found

    def tried(self) -> Iterator[tuple[tuple[int, tuple[int, ...]], Outcome | None]]:
        """The worlds so far, and then the others, each when it is asked for."""
        yield from list(self.outcomes.items())
        yield from self._further()

    def _further(self) -> Iterator[tuple[tuple[int, tuple[int, ...]], Outcome | None]]:
        """The worlds that have not been tried yet; none while one is being tried, or after one was undecided."""
        if self._is_trying or not self._is_decided:
            return
        with self._trying():
            for count in COUNTS:
                known = -1
                while known != len(self.keys):  # another unknown came up: the worlds are tried again
                    known = len(self.keys)
                    for world in self._worlds(count):
                        if world not in self.outcomes:
                            self.outcomes[world] = self._outcome(*world)
                            yield world, self.outcomes[world]
                        if len(self.keys) != known:
                            break

    def _worlds(self, count: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        values = [self._values(key) for key in self.keys]
        if len(COUNTS) * math.prod(map(len, values)) > MAX_RUNS:  # not one is tried in vain
            raise UndecidedError
        return ((count, chosen) for chosen in itertools.product(*values))

    def _values(self, key: Key) -> tuple[int, ...]:
        if key[0] == "truth":
            return (1, 0)
        if key[0] == "length":
            return (*LENGTHS, *self._more)
        return (*NUMBERS, *(number for number in self._more if number <= max(NUMBERS)))

    def _outcome(self, count: int, chosen: tuple[int, ...]) -> Outcome | None:
        """The calls of each process; None if the world says nothing."""
        self._runs += 1
        if self._runs > MAX_RUNS:
            raise UndecidedError
        given = dict(zip(self.keys, chosen, strict=True))
        try:
            made = self._run_together(count, given)
        except VoidError:
            return None
        return made if sum(each is not None for each in made) > 1 else None

    def _run_together(self, count: int, given: Given) -> Outcome:
        """The calls of each process; where they wait for each other, they are run again with what each one gave."""
        met: list[Together] = []
        alone = False
        while True:
            made: list[tuple[Made, ...] | None] = []
            waiting: list[TogetherError] = []
            for rank in range(count):
                try:
                    made.append(Process(self.job, count, rank, given, met, alone=alone).calls())
                except TogetherError as waits:
                    waiting.append(waits)
            if not waiting:
                return tuple(made)
            alone = len(waiting) < count or len({each.place for each in waiting}) > 1 or len(met) == MAX_MET
            if not alone:
                met.append(Together(waiting[0].place, tuple(each.number for each in waiting)))

    def has_both_answers(self, test: int) -> bool:
        """Whether a condition, if it was asked, had both answers, exceptions that end the job aside."""
        seen = self.job.answers
        if len(seen.get(test, (True, False))) == 2:
            return True
        with suppress(UndecidedError, RecursionError):
            for (count, chosen), made in self.outcomes.items():
                given = dict(zip(self.keys, chosen, strict=True))
                ended = [rank for rank in range(count) if made is None or made[rank] is None]
                for rank in ended:
                    with suppress(VoidError):
                        Process(self.job, count, rank, given, alone=True, unguarded=True).calls()
                    if len(seen[test]) == 2:
                        return True
        return False

    def _value_of(self, key: Key, given: Given) -> int:
        """The value of an unknown in this world; the first of its values if it is new."""
        known = given.get(key)
        if known is not None:
            return known
        if key not in self.keys:
            if len(self.keys) >= MAX_UNKNOWN:
                raise UndecidedError
            self.keys.append(key)
        return self._values(key)[0]

    def proven(self, differs: Callable[[Outcome], Found | None]) -> tuple[int, tuple[int, ...], Found, Outcome] | None:
        """A number of processes and a value of one unknown with which they differ, whatever the others are.

        With it come the lengths, how they differ, and the outcome in one such world.
        """
        for count in COUNTS:
            for place, value in self._fixed():
                here = [
                    (chosen, made)
                    for (number, chosen), made in self.outcomes.items()
                    if number == count and made is not None and self.is_likely(count, chosen)
                    if not chosen or chosen[place] == value
                ]
                found = [differs(made) for _, made in here]
                if here and None not in found and found[0] is not None:
                    chosen, made = here[0]
                    lengths = [n for key, n in zip(self.keys, chosen, strict=True) if key[0] == "length"]
                    return count, tuple(lengths), found[0], made
        return None

    def is_likely(self, count: int, chosen: tuple[int, ...]) -> bool:
        """Whether there is at least one element for each process, wherever there are elements."""
        # Unknowns that came up later had the first of their values, which is large enough.
        lengths = (value for key, value in zip(self.keys, chosen, strict=False) if key[0] == "length")
        return all(length >= count for length in lengths)

    def _fixed(self) -> Iterator[tuple[int, int]]:
        """Each value of each unknown, by the unknown's place; one pair if there is no unknown."""
        if not self.keys:
            yield 0, 0
        for place, key in enumerate(self.keys):
            for value in self._values(key):
                yield place, value


def _sequences(outcome: Outcome, same: Mapping[int, Hashable]) -> list[tuple[Hashable, ...]]:
    """What each process that gets to the end calls, one after the other."""
    return [tuple(same[each.call] for each in calls) for calls in outcome if calls is not None]


def _first_uneven(outcome: Outcome, same: Mapping[int, Hashable]) -> int | None:
    """The first call that is made more often by one process than by another, under whatever number; None if none is."""
    made = _sequences(outcome, same)
    if len(set(made)) < 2:
        return None
    for call in dict.fromkeys(each.call for calls in outcome if calls is not None for each in calls):
        if not _even([each.count(same[call]) for each in made]) and not _even(_counts(outcome, call)):
            return call
    return None


def _first_ragged(outcome: Outcome, call: int) -> tuple[int, tuple[int | None, ...]] | None:
    """The first argument of a call that has more rows on one process than on another, and the rows; None if none has.

    The processes must make the call equally often, or it is that which differs; and the first time counts, as later
    ones may differ only because the rows come to an end.
    """
    if not _even(_counts(outcome, call)):
        return None
    made = [each for calls in outcome if calls is not None for each in calls if each.call == call]
    for argument in range(max((len(each.rows) for each in made), default=0)):
        rows = next(_rows_given(outcome, call, argument))
        if None not in rows and not _even(rows):
            return argument, rows
    return None
