"""How often a function makes a call on each process, found by running it in small worlds.

A world is a number of processes with a value for each unknown: the length of a list that the function is given, a
number, a truth. The function is run once for each process, loops as loops, and the calls are counted, so that it makes
no difference in which way a share is written: as a slice, a stride, a condition in a loop, by ``divmod`` or ``filter``,
cut or padded or asserted to divide. A process that raises leaves the comparison.

What is unknown is the same on every process, or nothing is decided: a value that differs for a reason of its own, an
element of a list, and a result of a call that was given different arguments on each process decide nothing here.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.folding import ARITHMETIC, COMPARISONS
from spmdlint.analysis.evaluation.values import Applied, Constant, External, Frame, FunctionValue, certain
from spmdlint.knowledge.elements import Deed, elements
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

COUNTS = (2, 3)
"""The numbers of processes that are tried."""
LENGTHS = (5, 1, 2, 3, 7, 0, 60)
NUMBERS = (2, 1, 3, 0, 12)
"""No number is so large that each process's part of the longest list is cut by its end."""
MAX_UNKNOWN = 3
"""The most unknowns that may decide something; their values are tried in all combinations."""
MAX_CONSTANT = 2_000
MAX_STEPS = 4_000
"""The most operations that a process runs before its world says nothing."""
MAX_RUNS = 600
MAX_DEPTH = 3

Varies = Callable[[Frame, int], bool]
_Key = tuple[Hashable, ...]
_Given = Mapping[_Key, int]


_Made = tuple[int, ...]
"""The calls that a process makes, by their numbers, in order."""
_Outcome = tuple[_Made | None, ...]
"""The calls of each process; None for one that ends in an exception before the end."""


class World(Struct, frozen=True):
    """A small job in which the processes do not make the same calls: the first call of which that is so."""

    call: int
    processes: int
    lengths: tuple[int, ...]
    counts: tuple[int | None, ...]
    """How often each process makes the call; None for one that ends in an exception."""

    def told(self) -> str:
        """The world as an example, in words."""
        rows = f"with {' and '.join(map(str, self.lengths))} elements on" if self.lengths else "on"
        known = [count for count in self.counts if count is not None]
        most, least = max(known), min(known)
        one, other = self.counts.index(most), self.counts.index(least)
        times = f"process {one} makes {_calls(most)} and process {other} {_calls(least)}"
        return f"{rows} {self.processes} processes, {times}"


def _calls(number: int) -> str:
    return "none" if not number else "one call" if number == 1 else f"{number} calls"


class Worlds:
    """Runs functions in small worlds. One per run; ``varies`` says whether an unknown differs for a known reason."""

    def __init__(self, evaluator: Evaluator, varies: Varies) -> None:
        self.ev = evaluator
        self.varies = varies
        self._known: dict[tuple[Frame, frozenset[int]], _Search | None] = {}

    def process_index(self, frame: Frame) -> int | None:
        """Where a function asks which process it is; None if it does not."""
        asked = (number for number, _ in frame.code.of_kind(s.Call) if self._is_rank(frame, number))
        return next(asked, None)

    def _is_rank(self, frame: Frame, number: int) -> bool:
        known = certain(self.ev.value(frame, number))
        return isinstance(known, Applied) and units().places.get(known.name) == "process"

    def alike(self, frame: Frame, call: int) -> bool:
        """Whether all processes make a call equally often, and some do, in every world that is tried."""
        tried = self._tried(frame, frozenset((call,)))
        counts = [_counts(made, call) for made in tried.outcomes.values() if made is not None] if tried else []
        return any(map(any, counts)) and all(map(_even, counts))

    def different(self, frame: Frame, same: Mapping[int, Hashable]) -> World | None:
        """A world in which the processes do not make the same calls, whatever else is unknown in it.

        ``same`` has the calls, each with what is equal for calls that are one to the other processes.
        """
        tried = self._tried(frame, frozenset(same))
        return tried.proven(same) if tried is not None else None

    def _tried(self, frame: Frame, calls: frozenset[int]) -> _Search | None:
        """All worlds for some calls of a function; None if something in them is not decided."""
        key = (frame, calls)
        if key not in self._known:
            self._known[key] = None
            function = frame.code.function
            if function.kind == "function" and not function.generator and not function.asynchronous:
                search = _Search(self, frame, calls)
                self._known[key] = search if search.is_complete() else None
        return self._known[key]


def _counts(outcome: _Outcome, call: int) -> list[int | None]:
    return [None if made is None else made.count(call) for made in outcome]


def _even(values: Iterable[object]) -> bool:
    return len({each for each in values if each is not None}) == 1


class _UndecidedError(Exception):
    """Something decides that may differ between processes, or that cannot be run."""


class _VoidError(Exception):
    """The world says nothing: the program fails in it, or does not end."""


class _LeftError(Exception):
    """The process ends in an exception of its own."""


class _Search:
    """Tries the worlds for some calls; ``outcomes`` by the number of processes and the values of the unknowns."""

    def __init__(self, worlds: Worlds, frame: Frame, calls: frozenset[int]) -> None:
        self.worlds = worlds
        self.frame = frame
        self.calls = calls
        self.keys: list[_Key] = []
        self.outcomes: dict[tuple[int, tuple[int, ...]], _Outcome | None] = {}
        self._runs = 0
        constants = {
            o.value for _, o in frame.code.of_kind(s.Const) if type(o.value) is int and 3 < o.value <= MAX_CONSTANT
        }
        functions = worlds.ev.project.modules[frame.ref.path].summary.functions
        self.rebound = frozenset(name for function in functions for name in function.nonlocals)
        """Names that functions inside others may change at any time."""
        self._more = tuple(sorted({n for c in constants for n in (c, c + 1, 2 * c + 1)}))[:6]

    def is_complete(self) -> bool:
        """Try all worlds; whether nothing in them was undecided."""
        try:
            for count in COUNTS:
                while self._tries(count):
                    pass
        except (_UndecidedError, RecursionError):
            return False
        width = len(self.keys)
        self.outcomes = {key: made for key, made in self.outcomes.items() if len(key[1]) == width}
        return True

    def _tries(self, count: int) -> bool:
        """Try the worlds of some processes; whether another unknown came up, and the worlds are to be tried again."""
        known = len(self.keys)
        for chosen in itertools.product(*(self._values(key) for key in self.keys)):
            if (count, chosen) not in self.outcomes:
                self.outcomes[count, chosen] = self._outcome(count, chosen)
                if len(self.keys) != known:
                    return True
        return False

    def _values(self, key: _Key) -> tuple[int, ...]:
        if key[0] == "truth":
            return (1, 0)
        if key[0] == "length":
            return (*LENGTHS, *self._more)
        return (*NUMBERS, *(number for number in self._more if number <= max(NUMBERS)))

    def _outcome(self, count: int, chosen: tuple[int, ...]) -> _Outcome | None:
        """The calls of each process; None if the world says nothing."""
        self._runs += 1
        if self._runs > MAX_RUNS:
            raise _UndecidedError
        given = dict(zip(self.keys, chosen, strict=True))
        try:
            made = tuple(_Process(self, count, rank, given).calls() for rank in range(count))
        except _VoidError:
            return None
        return made if sum(each is not None for each in made) > 1 else None

    def value_of(self, key: _Key, given: _Given) -> int:
        """The value of an unknown in this world; the first of its values if it is new."""
        known = given.get(key)
        if known is not None:
            return known
        if key not in self.keys:
            if len(self.keys) >= MAX_UNKNOWN:
                raise _UndecidedError
            self.keys.append(key)
        return self._values(key)[0]

    def proven(self, same: Mapping[int, Hashable]) -> World | None:
        """A value of one unknown with which the processes differ, whatever the others are."""
        for count in COUNTS:
            for place, value in self._fixed():
                here = [
                    (chosen, made)
                    for (number, chosen), made in self.outcomes.items()
                    if number == count and made is not None and self._is_likely(count, chosen)
                    if not chosen or chosen[place] == value
                ]
                calls = [_first_uneven(made, same) for _, made in here]
                if here and None not in calls and calls[0] is not None:
                    chosen, made = here[0]
                    lengths = [n for key, n in zip(self.keys, chosen, strict=True) if key[0] == "length"]
                    return World(calls[0], count, tuple(lengths), tuple(_counts(made, calls[0])))
        return None

    def _is_likely(self, count: int, chosen: tuple[int, ...]) -> bool:
        """Whether there is at least one element for each process, wherever there are elements."""
        lengths = (value for key, value in zip(self.keys, chosen, strict=True) if key[0] == "length")
        return all(length >= count for length in lengths)

    def _fixed(self) -> Iterator[tuple[int, int]]:
        """Each value of each unknown, by the unknown's place; one pair if there is no unknown."""
        if not self.keys:
            yield 0, 0
        for place, key in enumerate(self.keys):
            for value in self._values(key):
                yield place, value


def _first_uneven(outcome: _Outcome, same: Mapping[int, Hashable]) -> int | None:
    """The first call that is made more often by one process than by another, under whatever number; None if none is."""
    made = [[same[call] for call in each] for each in outcome if each is not None]
    if not made or all(each == made[0] for each in made):
        return None
    for call in dict.fromkeys(call for each in outcome if each is not None for call in each):
        if not _even([each.count(same[call]) for each in made]) and not _even(_counts(outcome, call)):
            return call
    return None


class _Unknown:
    """A value of which only the name is known: the same on every process, or ``loose``, which decides nothing."""

    __slots__ = ("key", "loose")

    def __init__(self, key: _Key, *, loose: bool) -> None:
        self.key = key
        self.loose = loose


class _Closure:
    """A function that is made in one that runs."""

    __slots__ = ("outer", "ref")

    def __init__(self, ref: FunctionRef, outer: _Activation) -> None:
        self.ref = ref
        self.outer = outer


class _Method:
    """An attribute of a value, to be called."""

    __slots__ = ("base", "name")

    def __init__(self, base: Any, name: str) -> None:
        self.base = base
        self.name = name


class _Activation:
    """A function that runs: its names and the values of its operations."""

    def __init__(self, frame: Frame, outer: _Activation | None, depth: int) -> None:
        self.frame = frame
        self.function = frame.code.function
        self.outer = outer
        self.depth = depth
        self.names: dict[str, Any] = {}
        self.values: dict[int, Any] = {}
        self.loops: dict[int, Iterator[Any]] = {}
        self.collected: dict[int, list[Any]] = {}
        self.elements: dict[int, list[int]] = {}
        for number, operation in frame.code.of_kind(s.Collected):
            self.elements.setdefault(operation.element, []).append(number)


class _Process:
    """One process of a world."""

    def __init__(self, search: _Search, count: int, rank: int, given: _Given) -> None:
        self.search = search
        self.ev = search.worlds.ev
        self.count = count
        self.rank = rank
        self.given = given
        self._made: list[int] = []
        self._steps = 0
        self._lists: dict[_Key, list[Any]] = {}

    def calls(self) -> _Made | None:
        """The calls that it makes; None if it ends in an exception."""
        root = _Activation(self.search.frame, None, 0)
        try:
            self._run(root, {})
        except _LeftError:
            return None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, StopIteration) as error:
            raise _VoidError from error
        return tuple(self._made)

    # -- control flow

    def _run(self, active: _Activation, arguments: Mapping[str, Any]) -> Any:
        function, block, entered = active.function, s.ENTRY, "next"
        for place, parameter in active.frame.code.of_kind(s.Parameter):
            if parameter.name in arguments:
                active.values[place] = arguments[parameter.name]
        while block != s.EXIT:
            if block == s.FAILURE:
                raise _LeftError
            here = function.blocks[block]
            for number in here.operations:
                operation = function.operations[number]
                if isinstance(operation, s.Return):
                    return None if operation.value is None else active.values[operation.value]
                if isinstance(operation, s.Next):
                    self._enter(active, number, operation, entered)
                    continue
                self._do(active, number, operation)
            block, entered = self._next(active, here)
        return None

    def _enter(self, active: _Activation, number: int, operation: s.Next, entered: str) -> None:
        if operation.asynchronous:
            raise _UndecidedError
        if number not in active.loops or entered not in ("back", "continue"):
            active.loops[number] = self._iterator(active.values[operation.iterable])
            for other, collected in active.frame.code.of_kind(s.Collected):
                if collected.loops and collected.loops[0] == number:
                    active.collected[other] = []

    def _next(self, active: _Activation, block: s.Block) -> tuple[int, str]:
        edges = {edge.kind: edge.target for edge in block.edges if edge.kind != "except"}
        if block.test is None:
            if len(edges) != 1:
                raise _UndecidedError
            ((kind, target),) = edges.items()
            return target, kind
        test = active.function.operations[block.test]
        if isinstance(test, s.Next):
            try:
                active.values[block.test] = next(active.loops[block.test])
            except StopIteration:
                return edges["exhausted"], "exhausted"
            return edges["iterate"], "iterate"
        if isinstance(test, (s.Caught, s.Matches)):
            raise _UndecidedError
        kind = "true" if self._truth(active.values[block.test]) else "false"
        return edges[kind], kind

    # -- operations

    def _do(self, active: _Activation, number: int, operation: s.Operation) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _VoidError
        if active.depth == 0 and number in self.search.calls:
            self._made.append(number)
        value = self._value(active, number, operation)
        active.values[number] = value
        for collected in active.elements.get(number, ()):
            active.collected.setdefault(collected, []).append(value)

    def _value(self, active: _Activation, number: int, operation: s.Operation) -> Any:
        does = _DOES.get(type(operation))
        return _refuse() if does is None else does(self, active, number, operation)

    def _const(self, _active: _Activation, _number: int, operation: s.Const) -> Any:
        return operation.value

    def _parameter(self, active: _Activation, number: int, _operation: s.Parameter) -> Any:
        return active.values[number] if number in active.values else self._unknown(active, number)

    def _store(self, active: _Activation, _number: int, operation: s.Store) -> Any:
        if operation.name in active.function.nonlocals or operation.name in active.function.globals:
            return _refuse()
        value = active.names[operation.name] = active.values[operation.value]
        return value

    def _load(self, active: _Activation, number: int, operation: s.Load) -> Any:
        name, outer = operation.name, active
        if name in self.search.rebound:
            return _Unknown((active.frame.ref, number), loose=True)
        if active.function.binds(name):
            return active.names[name] if name in active.names else _void()
        while outer.outer is not None:
            outer = outer.outer
            if outer.function.binds(name):
                return outer.names[name] if name in outer.names else self._unknown(active, number, loose=True)
        return self._unknown(active, number)

    def _boolop(self, active: _Activation, _number: int, operation: s.BoolOp) -> Any:
        left, right = operation.operands
        first = active.values[left]
        return active.values[right] if self._truth(first) == (operation.operator == "and") else first

    def _ifexp(self, active: _Activation, _number: int, operation: s.IfExp) -> Any:
        return active.values[operation.body if self._truth(active.values[operation.test]) else operation.orelse]

    def _display(self, active: _Activation, _number: int, operation: s.Display) -> Any:
        if operation.starred or operation.kind == "set":
            return _refuse()
        made = [active.values[each] for each in operation.elements]
        return tuple(made) if operation.kind == "tuple" else made

    def _cut(self, active: _Activation, _number: int, operation: s.Slice) -> slice:
        ends = (operation.lower, operation.upper, operation.step)
        return slice(*(None if end is None else self._end(active.values[end]) for end in ends))

    def _collect(self, active: _Activation, number: int, operation: s.Collected) -> Any:
        return active.collected.get(number, []) if operation.kind in ("list", "generator") else _refuse()

    def _closure(self, active: _Activation, _number: int, operation: s.MakeFunction) -> _Closure:
        return _Closure(self.ev.project.ref(active.frame.ref.path, operation.function), active)

    def _beside(self, active: _Activation, number: int, _operation: s.Operation) -> Any:
        """What happens beside the counts, and what is not followed."""
        return _Unknown((active.frame.ref, number), loose=True)

    def _unknown(self, active: _Activation, number: int, *parts: Hashable, loose: bool = False) -> Any:
        """What an operation gives, if it is known apart from this process; else an unknown."""
        frame = active.frame
        known = certain(self.ev.value(frame, number))
        if isinstance(known, Constant) and isinstance(known.value, (int, str, float, type(None))):
            return known.value
        asked = self._of_process(known.name) if isinstance(known, Applied) else None
        if asked is not None:
            return asked
        if isinstance(known, (External, FunctionValue)):
            return known
        loose = loose or self.search.worlds.varies(frame, number)
        return _Unknown((frame.ref, number, *parts), loose=loose)

    def _of_process(self, name: str) -> int | None:
        """What a function says of the processes: which one this is, or how many there are."""
        if units().places.get(name) == "process":
            return self.rank
        return self.count if units().counts.get(name) == "process" else None

    # -- unknown values

    def _asked(self, kind: str, unknown: _Unknown) -> int:
        if unknown.loose:
            raise _UndecidedError
        return self.search.value_of((kind, *unknown.key), self.given)

    def _number(self, value: Any) -> Any:
        return self._asked("number", value) if isinstance(value, _Unknown) else value

    def _end(self, value: Any) -> Any:
        value = self._number(value)
        return value if value is None or isinstance(value, int) else _refuse()

    def _truth(self, value: Any) -> bool:
        if isinstance(value, _Unknown):
            if value.key in self._lists:
                return bool(self._lists[value.key])
            return bool(self._asked("truth", value))
        if isinstance(value, (_Closure, _Method, External, FunctionValue)):
            return True
        return bool(value)

    def _sequence(self, value: Any) -> Any:
        """A value as a sequence: an unknown one has as many elements as this world says."""
        if isinstance(value, _Unknown):
            if value.key not in self._lists:
                length = self._asked("length", value)
                self._lists[value.key] = [_Unknown((value.key, place), loose=True) for place in range(length)]
            return self._lists[value.key]
        if isinstance(value, (list, tuple, range, str)):
            return value
        return _refuse()

    def _is_listed(self, value: Any) -> bool:
        return isinstance(value, list) or (isinstance(value, _Unknown) and value.key in self._lists)

    def _iterator(self, value: Any) -> Iterator[Any]:
        return value if isinstance(value, Iterator) else iter(self._sequence(value))

    # -- operators

    def _binary(self, active: _Activation, _number: int, operation: s.Binary) -> Any:
        left, sign, right = active.values[operation.left], operation.operator, active.values[operation.right]
        if isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)):
            return self._joined(left, sign, right, operation)
        known = _BINARY.get(sign)
        if known is None:
            return _refuse()
        if (isinstance(left, _Unknown) and left.loose) or (isinstance(right, _Unknown) and right.loose):
            return _Unknown((operation.left, sign, operation.right), loose=True)
        one, other = self._number(left), self._number(right)
        if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
            return _Unknown((operation.left, sign, operation.right), loose=True)
        return known(one, other)

    def _joined(self, left: Any, sign: str, right: Any, operation: s.Binary) -> Any:
        if sign == "+":
            one, other = self._sequence(left), self._sequence(right)
            if operation.inplace and isinstance(one, list):
                one.extend(other)
                return one
            return [*one, *other]
        if sign == "*":
            rows, times = (left, right) if isinstance(left, (list, tuple)) else (right, left)
            return list(rows) * self._end(times)
        return _refuse()

    def _unary(self, active: _Activation, _number: int, operation: s.Unary) -> Any:
        sign, value = operation.operator, active.values[operation.operand]
        if sign == "not":
            return not self._truth(value)
        number = self._number(value)
        if sign == "-" and isinstance(number, (int, float)):
            return -number
        return number if sign == "+" else _refuse()

    def _compare(self, active: _Activation, _number: int, operation: s.Compare) -> bool:
        values = [active.values[each] for each in operation.operands]
        pairs = zip(values, operation.operators, values[1:], strict=False)
        return all(self._compared(left, sign, right) for left, sign, right in pairs)

    def _compared(self, left: Any, sign: str, right: Any) -> bool:
        if left is None or right is None or isinstance(left, str) or isinstance(right, str):
            if not isinstance(left, _Unknown) and not isinstance(right, _Unknown):
                return bool(COMPARISONS[sign](left, right)) if sign in COMPARISONS else bool(_refuse())
            unknown = left if isinstance(left, _Unknown) else right
            other = right if isinstance(left, _Unknown) else left
            answer = bool(self._asked("truth", _Unknown((*unknown.key, other), loose=unknown.loose)))
            return answer != (sign in ("is not", "!=")) if sign in _EQUAL else bool(_refuse())
        if sign not in COMPARISONS:
            return bool(_refuse())
        return bool(COMPARISONS[sign](self._number(left), self._number(right)))

    # -- parts and attributes

    def _subscript(self, active: _Activation, number: int, operation: s.Subscript) -> Any:
        base, index = active.values[operation.base], active.values[operation.index]
        if isinstance(index, slice):
            return self._sequence(base)[index]
        if isinstance(base, (list, tuple, range)):
            place = self._number(index)
            return base[place] if isinstance(place, int) else _refuse()
        if isinstance(base, _Method) and base.name == "shape" and index == 0:
            return len(self._sequence(base.base))
        return _Unknown((active.frame.ref, number), loose=True)

    def _item(self, active: _Activation, number: int, operation: s.Item) -> Any:
        value = active.values[operation.value]
        if operation.star:
            return _refuse()
        if isinstance(value, (list, tuple)):
            return value[operation.index] if len(value) == operation.total else _void()
        return self._unknown(active, number, loose=isinstance(value, _Unknown) and value.loose)

    def _attribute(self, active: _Activation, number: int, operation: s.Attribute) -> Any:
        base, name = active.values[operation.base], operation.name
        if isinstance(base, (External, FunctionValue)):
            return self._unknown(active, number)
        if isinstance(base, (list, tuple, range, str)) or (isinstance(base, _Unknown) and name in _OF_LISTS):
            return _Method(base, name)
        return self._unknown(active, number, loose=isinstance(base, _Unknown) and base.loose)

    # -- calls

    def _call(self, active: _Activation, number: int, operation: s.Call) -> Any:
        if operation.decorator:
            return _refuse()
        callee = active.values[operation.function]
        plain = all(not argument.star for argument in operation.arguments)
        positional = [active.values[a.value] for a in operation.arguments if a.keyword is None and not a.star]
        keywords = {a.keyword: active.values[a.value] for a in operation.arguments if a.keyword is not None}
        if active.depth == 0 and number in self.search.calls:
            return _Unknown((active.frame.ref, number), loose=True)
        if plain:
            if isinstance(callee, External):
                asked = self._of_process(callee.name)
                deed = elements().get(callee.name) if not keywords else None
                if asked is not None or deed is not None:
                    return asked if deed is None else _ELEMENTS[deed](self, *positional)
            if isinstance(callee, _Method) and not keywords:
                return self._method(callee, positional)
            if isinstance(callee, (_Closure, FunctionValue)):
                return self._inside(active, number, callee, positional, keywords)
        given = [*positional, *keywords.values()]
        if isinstance(callee, External):
            return self._unknown(active, number, loose=not _are_alike(given))
        return self._not_followed(active, number, given)

    def _inside(
        self, active: _Activation, number: int, callee: Any, positional: list[Any], keywords: dict[str, Any]
    ) -> Any:
        """The result of a function of the program, which is run if it is small enough to be followed."""
        given = [*positional, *keywords.values()]
        inner = self._entered(callee, active.depth + 1) if active.depth < MAX_DEPTH else None
        formals = inner.function.formals if inner is not None else ()
        named = {**{formal.name: value for formal, value in zip(formals, positional, strict=False)}, **keywords}
        if inner is not None and len(named) == len(given) and all(f.default or f.name in named for f in formals):
            with suppress(_UndecidedError):
                return self._run(inner, named)
        return self._not_followed(active, number, given)

    def _not_followed(self, active: _Activation, number: int, given: Sequence[Any]) -> Any:
        """What a call gives that is not run; it may make a list longer."""
        if any(self._is_listed(value) for value in given):
            return _refuse()
        return self._unknown(active, number, loose=not _are_alike(given))

    def _entered(self, callee: Any, depth: int) -> _Activation | None:
        """A function of the program, ready to run; None if it cannot be."""
        if not isinstance(callee, (_Closure, FunctionValue)) or getattr(callee, "receiver", None) is not None:
            return None
        function = self.ev.project.function(callee.ref)
        simple = all(formal.kind in ("positional-only", "standard") for formal in function.formals)
        if not simple or function.generator or function.asynchronous:
            return None
        outer = callee.outer if isinstance(callee, _Closure) else None
        return _Activation(self.ev.free_frame(callee.ref), outer, depth)

    def _method(self, method: _Method, arguments: list[Any]) -> Any:
        rows = self._sequence(method.base)
        match method.name, arguments:
            case "append", [value] if isinstance(rows, list):
                return rows.append(value)
            case "extend", [more] if isinstance(rows, list):
                return rows.extend(self._listed(more))
            case "copy", []:
                return list(rows)
            case "pop", [] if isinstance(rows, list):
                return rows.pop()
            case "popleft", [] if isinstance(rows, list):
                return rows.pop(0)
            case "tolist", []:
                return rows
        return _refuse()

    # -- library functions

    def _len(self, rows: Any) -> int:
        return len(self._sequence(rows))

    def _range(self, *ends: Any) -> range:
        return range(*(self._end(end) for end in ends))

    def _listed(self, rows: Any = ()) -> list[Any]:
        return list(self._iterator(rows))

    def _enumerate(self, rows: Any, start: Any = 0) -> Iterator[Any]:
        return iter([(place, row) for place, row in enumerate(self._iterator(rows), self._end(start))])

    def _zip(self, *rows: Any) -> Iterator[Any]:
        return iter(list(zip(*(self._iterator(each) for each in rows), strict=False)))

    def _filter(self, keeps: Any, rows: Any) -> Iterator[Any]:
        return iter([row for row in self._iterator(rows) if self._truth(self._applied(keeps, row))])

    def _map(self, function: Any, rows: Any) -> Iterator[Any]:
        return iter([self._applied(function, row) for row in self._iterator(rows)])

    def _applied(self, function: Any, row: Any) -> Any:
        if function is None:
            return row
        if not isinstance(function, (_Closure, FunctionValue)):
            return _Unknown(("applied",), loose=True)
        return self._called(function, [row])

    def _called(self, function: Any, given: list[Any]) -> Any:
        """The result of a function that a library's function calls."""
        inner = self._entered(function, MAX_DEPTH)
        if inner is None or len(inner.function.formals) != len(given):
            return _refuse()
        return self._run(inner, dict(zip([formal.name for formal in inner.function.formals], given, strict=True)))

    def _numbers(self, arguments: Sequence[Any]) -> list[Any]:
        if len(arguments) == 1:
            return [self._number(value) for value in self._iterator(arguments[0])]
        return [self._number(value) for value in arguments]

    def _min(self, *arguments: Any) -> Any:
        return min(self._numbers(arguments))

    def _max(self, *arguments: Any) -> Any:
        return max(self._numbers(arguments))

    def _divmod(self, one: Any, other: Any) -> tuple[int, int]:
        whole, rest = divmod(self._end(one), self._end(other))
        return int(whole), int(rest)

    def _int(self, value: Any) -> int:
        number = self._number(value)
        return int(number) if isinstance(number, (int, float)) else int(_refuse())

    def _ceil(self, value: Any) -> int:
        whole: int = math.ceil(self._number(value))
        return whole

    def _floor(self, value: Any) -> int:
        whole: int = math.floor(self._number(value))
        return whole

    def _iter(self, rows: Any, *end: Any) -> Iterator[Any]:
        if not end:
            return self._iterator(rows)
        return iter(lambda: self._called(rows, []), self._end(end[0]))

    def _next_of(self, rows: Any) -> Any:
        return next(rows) if isinstance(rows, Iterator) else _refuse()

    def _reversed(self, rows: Any) -> list[Any]:
        return list(self._sequence(rows))[::-1]

    def _repeat(self, value: Any, *times: Any) -> Iterator[Any]:
        return itertools.repeat(value, *(self._end(number) for number in times))

    def _chain(self, *rows: Any) -> Iterator[Any]:
        return itertools.chain(*[self._iterator(each) for each in rows])

    def _takewhile(self, keeps: Any, rows: Any) -> Iterator[Any]:
        return itertools.takewhile(lambda row: self._truth(self._applied(keeps, row)), self._iterator(rows))

    def _islice(self, rows: Any, *ends: Any) -> Iterator[Any]:
        return itertools.islice(self._iterator(rows), *(self._end(end) for end in ends))

    def _slice(self, *ends: Any) -> slice:
        return slice(*(self._end(end) for end in ends))

    def _split(self, rows: Any, parts: Any) -> list[list[Any]]:
        """As ``numpy.array_split`` does: the first parts get one more."""
        whole, number = list(self._sequence(rows)), self._end(parts)
        size, rest = divmod(len(whole), number)
        sizes = [size + (place < rest) for place in range(number)]
        ends = list(itertools.accumulate(sizes, initial=0))
        return [whole[start:end] for start, end in itertools.pairwise(ends)]

    def _none(self, *_: Any) -> None:
        return None


def _are_alike(values: Iterable[Any]) -> bool:
    """Whether what a call is given is the same on every process, so that its result is: a number may be its own."""
    return all(isinstance(value, _ALIKE) for value in values)


def _refuse() -> Any:
    raise _UndecidedError


def _void() -> Any:
    raise _VoidError


_ALIKE = (_Unknown, str, type(None), External, FunctionValue)
_OF_LISTS = frozenset("append extend copy pop popleft tolist shape".split())
_EQUAL = frozenset(("is", "is not", "==", "!="))
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {**ARITHMETIC, "/": operator.truediv}
_ELEMENTS: Mapping[Deed, Callable[..., Any]] = {
    "length": _Process._len,
    "range": _Process._range,
    "list": _Process._listed,
    "enumerate": _Process._enumerate,
    "zip": _Process._zip,
    "filter": _Process._filter,
    "map": _Process._map,
    "minimum": _Process._min,
    "maximum": _Process._max,
    "divide": _Process._divmod,
    "integer": _Process._int,
    "iterate": _Process._iter,
    "slice": _Process._slice,
    "next": _Process._next_of,
    "reverse": _Process._reversed,
    "chain": _Process._chain,
    "repeat": _Process._repeat,
    "takewhile": _Process._takewhile,
    "nothing": _Process._none,
    "islice": _Process._islice,
    "ceiling": _Process._ceil,
    "floor": _Process._floor,
    "split": _Process._split,
}
_DOES: Mapping[type, Callable[[_Process, _Activation, int, Any], Any]] = {
    s.Const: _Process._const,
    s.Parameter: _Process._parameter,
    s.Store: _Process._store,
    s.Load: _Process._load,
    s.Binary: _Process._binary,
    s.Unary: _Process._unary,
    s.Compare: _Process._compare,
    s.BoolOp: _Process._boolop,
    s.IfExp: _Process._ifexp,
    s.Display: _Process._display,
    s.Slice: _Process._cut,
    s.Subscript: _Process._subscript,
    s.Item: _Process._item,
    s.Attribute: _Process._attribute,
    s.Collected: _Process._collect,
    s.MakeFunction: _Process._closure,
    s.Call: _Process._call,
    **dict.fromkeys(
        (s.StoreSubscript, s.StoreAttribute, s.Delete, s.Import, s.Enter, s.Leave, s.FString, s.DictDisplay, s.Raise),
        _Process._beside,
    ),
}
