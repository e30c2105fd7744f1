"""One process of a small world: what a function calls when that process runs it, and with how many rows.

Control flow, numbers and the lengths of sequences are followed, also through the functions of the program that are
called; contents are not. What cannot be followed is an unknown, and an unknown that decides something and may differ
between processes ends the search.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from spmdlint.analysis.evaluation.certainty import fails, is_quiet
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.folding import ARITHMETIC, COMPARISONS
from spmdlint.analysis.evaluation.values import Applied, Constant, External, Frame, FunctionValue, certain
from spmdlint.analysis.worlds.values import (
    Array,
    Closure,
    Entries,
    ExitedError,
    Key,
    LeftError,
    Method,
    Rows,
    Shape,
    Together,
    TogetherError,
    UndecidedError,
    Unknown,
    VoidError,
)
from spmdlint.knowledge.elements import Deed, elements
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s
from spmdlint.program.uniform import Uniform

MAX_STEPS = 4_000
"""The most operations that a process runs before its world says nothing."""
MAX_DEPTH = 3

Given = Mapping[Key, int]


class Job(Struct, frozen=True):
    """What all processes of a world run: a function, in which some calls are looked at, or how long other values are.

    ``rebound`` are the names that functions inside others may change at any time; ``value_of`` gives an unknown.
    ``answers`` are those that the conditions of the function have had so far, by the number of the condition; ``fixed``
    is what is the same in all worlds of values that are not followed.
    """

    ev: Evaluator
    varies: Callable[[Frame, int], bool]
    frame: Frame
    calls: frozenset[int]
    rebound: frozenset[str]
    value_of: Callable[[Key, Given], int]
    answers: dict[int, set[str]]
    uniform: Uniform
    fixed: dict[tuple[Frame, int], Any] = field(default_factory=dict)


class _Varying(Struct, frozen=True):
    """An operation that is not the same in all worlds, and the function of the process that it asks, if any."""

    asked: str
    varies: bool


class Made(Struct, frozen=True):
    """One of the calls that are looked at, and how many rows each of its arguments has, as far as that is known."""

    call: int
    rows: tuple[int | None, ...]


class Activation:
    """A function that runs: its names and the values of its operations."""

    def __init__(self, frame: Frame, outer: Activation | None, depth: int, caller: Activation | None = None) -> None:
        self.frame = frame
        self.caller = caller
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


class Process:
    """One process of a world; an ``unguarded`` one passes the conditions that would end it in an exception.

    ``together`` is what it does together with the others, in order. It waits before the next one; if ``alone``, it goes
    on, and what they would give each other decides nothing.
    """

    def __init__(
        self,
        job: Job,
        count: int,
        rank: int,
        given: Given,
        together: Sequence[Together] = (),
        *,
        alone: bool = False,
        unguarded: bool = False,
    ) -> None:
        self.job = job
        self.ev = job.ev
        self.count = count
        self.rank = rank
        self.given = given
        self.together = together
        self.alone = alone
        self.unguarded = unguarded
        self._met = 0
        self._place: Hashable = None
        self._made: list[Made] = []
        self._steps = 0
        self._lists: dict[Key, list[Any]] = {}

    def calls(self) -> tuple[Made, ...] | None:
        """The calls that it makes; None if it ends in an exception."""
        root = Activation(self.job.frame, None, 0)
        try:
            self._run(root, {})
        except LeftError:
            return None
        except ExitedError:
            return tuple(self._made)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, StopIteration) as error:
            raise VoidError from error
        return tuple(self._made)

    # -- control flow

    def _run(self, active: Activation, arguments: Mapping[str, Any]) -> Any:
        function, block, entered, returned = active.function, s.ENTRY, "next", None
        for place, parameter in active.frame.code.of_kind(s.Parameter):
            if parameter.name in arguments:
                active.values[place] = arguments[parameter.name]
        while block != s.EXIT:
            if block == s.FAILURE:
                raise LeftError
            here = function.blocks[block]
            for number in here.operations:
                operation = function.operations[number]
                if isinstance(operation, s.Return):  # what cleans up comes after it
                    returned = None if operation.value is None else active.values[operation.value]
                    continue
                raised = operation.exception if isinstance(operation, s.Raise) else None
                if raised is not None and is_quiet(self.ev, active.frame, raised):
                    raise ExitedError
                if isinstance(operation, s.Next):
                    self._enter(active, number, operation, entered)
                    continue
                self._do(active, number, operation)
            block, entered = self._next(active, block)
        return returned

    def _enter(self, active: Activation, number: int, operation: s.Next, entered: str) -> None:
        if operation.asynchronous:
            raise UndecidedError
        if number not in active.loops or entered not in ("back", "continue"):
            active.loops[number] = self._iterator(active.values[operation.iterable])
            for other, collected in active.frame.code.of_kind(s.Collected):
                if collected.loops and collected.loops[0] == number:
                    active.collected[other] = []

    def _next(self, active: Activation, number: int) -> tuple[int, str]:
        block = active.function.blocks[number]
        edges = {edge.kind: edge.target for edge in block.edges if edge.kind != "except"}
        if block.test is None:
            if len(edges) != 1:
                raise UndecidedError
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
            raise UndecidedError
        kind = "true" if self._truth(active.values[block.test]) else "false"
        if self.unguarded:
            left = [k for k in edges if not fails(self.ev, active.frame, edges[k], number)]
            kind = left[0] if len(left) == 1 else kind
        if active.depth == 0:
            self.job.answers.setdefault(block.test, set()).add(kind)
        return edges[kind], kind

    # -- operations

    def _do(self, active: Activation, number: int, operation: s.Operation) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise VoidError
        if active.depth == 0 and number in self.job.calls and isinstance(operation, s.Call):
            values = (active.values[argument.value] for argument in operation.arguments)
            self._made.append(Made(number, tuple(self._rows_of(value) for value in values)))
        value = self._value(active, number, operation)
        active.values[number] = value
        if active.depth == 0 and number in self.job.calls and not isinstance(operation, s.Call):
            self._made.append(Made(number, (self._size_of(value),)))
        for collected in active.elements.get(number, ()):
            active.collected.setdefault(collected, []).append(value)

    def _value(self, active: Activation, number: int, operation: s.Operation) -> Any:
        does = _DOES.get(type(operation))
        return _refuse() if does is None else does(self, active, number, operation)

    def _const(self, _active: Activation, _number: int, operation: s.Const) -> Any:
        return operation.value

    def _parameter(self, active: Activation, number: int, _operation: s.Parameter) -> Any:
        return active.values[number] if number in active.values else self._unknown(active, number)

    def _store(self, active: Activation, _number: int, operation: s.Store) -> Any:
        if operation.name in active.function.nonlocals or operation.name in active.function.globals:
            return _refuse()
        value = active.values[operation.value]
        if operation.value in self.job.uniform.values(active.frame.ref):
            value = Unknown((active.frame.ref, operation.value), loose=False)
        active.names[operation.name] = value
        return value

    def _load(self, active: Activation, number: int, operation: s.Load) -> Any:
        name, outer = operation.name, active
        if name in self.job.rebound:
            return Unknown((active.frame.ref, number), loose=True)
        if active.function.binds(name):
            return active.names[name] if name in active.names else _void()
        while outer.outer is not None:
            outer = outer.outer
            if outer.function.binds(name):
                return outer.names[name] if name in outer.names else self._unknown(active, number, loose=True)
        return self._unknown(active, number)

    def _boolop(self, active: Activation, _number: int, operation: s.BoolOp) -> Any:
        left, right = operation.operands
        first = active.values[left]
        return active.values[right] if self._truth(first) == (operation.operator == "and") else first

    def _ifexp(self, active: Activation, _number: int, operation: s.IfExp) -> Any:
        return active.values[operation.body if self._truth(active.values[operation.test]) else operation.orelse]

    def _display(self, active: Activation, _number: int, operation: s.Display) -> Any:
        if operation.starred and operation.kind == "tuple" and 0 not in operation.starred:
            return Shape(active.values[operation.elements[0]])
        if operation.starred or operation.kind == "set":
            return _refuse()
        made = [active.values[each] for each in operation.elements]
        return tuple(made) if operation.kind == "tuple" else made

    def _cut(self, active: Activation, _number: int, operation: s.Slice) -> slice:
        ends = (operation.lower, operation.upper, operation.step)
        return slice(*(None if end is None else self._end(active.values[end]) for end in ends))

    def _collect(self, active: Activation, number: int, operation: s.Collected) -> Any:
        collected = active.collected.get(number, [])
        if operation.kind == "dict":
            return Entries(collected)
        return collected if operation.kind in ("list", "generator") else _refuse()

    def _closure(self, active: Activation, _number: int, operation: s.MakeFunction) -> Closure:
        return Closure(self.ev.project.ref(active.frame.ref.path, operation.function), active)

    def _beside(self, active: Activation, number: int, _operation: s.Operation) -> Any:
        """What happens beside the counts, and what is not followed."""
        return Unknown((active.frame.ref, number), loose=True)

    def _unknown(self, active: Activation, number: int, *parts: Hashable, loose: bool = False) -> Any:
        """What an operation gives, if it is known apart from this process; else an unknown."""
        place = (active.frame, number)
        if place not in self.job.fixed:
            self.job.fixed[place] = self._fixed(*place)
        known = self.job.fixed[place]
        if not isinstance(known, _Varying):
            return known
        asked = self._of_process(known.asked)
        return Unknown((active.frame.ref, number, *parts), loose=loose or known.varies) if asked is None else asked

    def _fixed(self, frame: Frame, number: int) -> Any:
        """What an operation gives in all worlds, or else what it asks of them."""
        known = certain(self.ev.value(frame, number))
        if isinstance(known, Constant) and isinstance(known.value, (int, str, float, type(None))):
            return known.value
        if isinstance(known, (External, FunctionValue)):
            return known
        return _Varying(known.name if isinstance(known, Applied) else "", self.job.varies(frame, number))

    def _of_process(self, name: str) -> int | None:
        """What a function says of the processes: which one this is, or how many there are."""
        if units().places.get(name) == "process":
            return self.rank
        return self.count if units().counts.get(name) == "process" else None

    # -- unknown values

    def _asked(self, kind: str, unknown: Unknown) -> int:
        if unknown.loose:
            raise UndecidedError
        return self.job.value_of((kind, *unknown.key), self.given)

    def _number(self, value: Any) -> Any:
        return self._asked("number", value) if isinstance(value, Unknown) else value

    def _end(self, value: Any) -> Any:
        value = self._number(value)
        return value if value is None or isinstance(value, int) else _refuse()

    def _truth(self, value: Any) -> bool:
        if isinstance(value, Unknown):
            if value.key in self._lists:
                return bool(self._lists[value.key])
            return bool(self._asked("truth", value))
        if isinstance(value, (Closure, Method, External, FunctionValue)):
            return True
        return bool(value)

    def _sequence(self, value: Any) -> Any:
        """A value as a sequence: an unknown one has as many elements as this world says."""
        if isinstance(value, Unknown):
            if value.key not in self._lists:
                length = self._asked("length", value)
                self._lists[value.key] = Rows(Unknown((value.key, place), loose=True) for place in range(length))
            return self._lists[value.key]
        if isinstance(value, (list, tuple, range, str)):
            return value
        return _refuse()

    def _rows_of(self, value: Any) -> int | None:
        """How many rows an argument has; None if that is not known, or if it is no array."""
        listed = self._lists.get(value.key) if isinstance(value, Unknown) else value
        return len(listed) if isinstance(listed, (Rows, range)) else None

    def _size_of(self, value: Any) -> int | None:
        """How many elements a sequence has; None if that is not known."""
        listed = self._lists.get(value.key) if isinstance(value, Unknown) else value
        return len(listed) if isinstance(listed, (list, tuple, range)) else None

    def _is_listed(self, value: Any) -> bool:
        return type(value) is list or (isinstance(value, Unknown) and value.key in self._lists)

    def _iterator(self, value: Any) -> Iterator[Any]:
        if isinstance(value, Entries):
            return iter([self._some() for _ in value])
        return value if isinstance(value, Iterator) else iter(self._sequence(value))

    # -- operators

    def _binary(self, active: Activation, _number: int, operation: s.Binary) -> Any:
        left, sign, right = active.values[operation.left], operation.operator, active.values[operation.right]
        if isinstance(left, Rows) or isinstance(right, Rows):
            return self._of_rows(left, sign, right, operation)
        if isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)):
            return self._joined(left, sign, right, operation)
        known = _BINARY.get(sign)
        if known is None:
            return _refuse()
        if (isinstance(left, Unknown) and left.loose) or (isinstance(right, Unknown) and right.loose):
            return Unknown((operation.left, sign, operation.right), loose=True)
        one, other = self._number(left), self._number(right)
        if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
            return Unknown((operation.left, sign, operation.right), loose=True)
        return known(one, other)

    def _of_rows(self, left: Any, sign: str, right: Any, operation: s.Binary) -> Any:
        """What an operator makes of arrays, or of what may be arrays or lists."""
        if not isinstance(left, Array) and not isinstance(right, Array):
            if sign == "+" and all(isinstance(side, (list, tuple, Unknown)) for side in (left, right)):
                return self._joined(left, sign, right, operation)
            if sign == "*" and (isinstance(left, int) or isinstance(right, int)):
                return _refuse()  # longer as a list, and larger as an array
        return self._each_row(_BINARY.get(sign), left, right)

    def _each_row(self, does: Callable[[Any, Any], Any] | None, left: Any, right: Any) -> Any:
        """What an operator makes of two arrays, or of an array and a number, row by row."""
        sides = [side if isinstance(side, (list, tuple, range)) else None for side in (left, right)]
        length = next(len(side) for side in sides if side is not None)
        if any(side is not None and len(side) != length for side in sides):
            return _refuse()  # one has fewer dimensions than the other, or the program fails
        pairs = zip(*(side or [value] * length for side, value in zip(sides, (left, right), strict=True)), strict=True)
        return Array(
            does(one, other)
            if does is not None and isinstance(one, (int, float)) and isinstance(other, (int, float))
            else Unknown(("row",), loose=True)
            for one, other in pairs
        )

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

    def _unary(self, active: Activation, _number: int, operation: s.Unary) -> Any:
        sign, value = operation.operator, active.values[operation.operand]
        if sign == "not":
            return not self._truth(value)
        number = self._number(value)
        if sign == "-" and isinstance(number, (int, float)):
            return -number
        return number if sign == "+" else _refuse()

    def _compare(self, active: Activation, _number: int, operation: s.Compare) -> Any:
        values = [active.values[each] for each in operation.operands]
        if any(isinstance(value, Rows) for value in values):
            sign = COMPARISONS.get(operation.operators[0])
            return self._each_row(sign, *values) if len(values) == 2 else _refuse()
        pairs = zip(values, operation.operators, values[1:], strict=False)
        return all(self._compared(left, sign, right) for left, sign, right in pairs)

    def _compared(self, left: Any, sign: str, right: Any) -> bool:
        if left is None or right is None or isinstance(left, str) or isinstance(right, str):
            if not isinstance(left, Unknown) and not isinstance(right, Unknown):
                return bool(COMPARISONS[sign](left, right)) if sign in COMPARISONS else bool(_refuse())
            unknown = left if isinstance(left, Unknown) else right
            other = right if isinstance(left, Unknown) else left
            answer = bool(self._asked("truth", Unknown((*unknown.key, other), loose=unknown.loose)))
            return answer != (sign in ("is not", "!=")) if sign in _EQUAL else bool(_refuse())
        if sign not in COMPARISONS:
            return bool(_refuse())
        return bool(COMPARISONS[sign](self._number(left), self._number(right)))

    # -- parts and attributes

    def _subscript(self, active: Activation, number: int, operation: s.Subscript) -> Any:
        base, index = active.values[operation.base], active.values[operation.index]
        if isinstance(base, Method):
            return len(self._sequence(base.base)) if base.name == "shape" and index == 0 else self._some()
        if isinstance(index, tuple) and index:
            index = index[0]  # the others choose within the rows
            if not isinstance(index, (slice, list)):
                return self._some()
        if isinstance(index, slice):
            cut = self._sequence(base)
            return type(cut)(cut[index]) if isinstance(cut, Rows) else cut[index]
        if isinstance(index, list):
            return self._taken(base, index)
        if isinstance(base, Entries):
            return self._some()
        if isinstance(base, (list, tuple, range)):
            place = self._number(index)
            return base[place] if isinstance(place, int) else _refuse()
        return Unknown((active.frame.ref, number), loose=True)

    def _taken(self, base: Any, index: list[Any]) -> Any:
        """The rows that a list of numbers, or a mask, takes from an array."""
        if not index or type(index[0]) is not bool:
            return Array(Unknown(("row",), loose=True) for _ in index)
        rows = self._sequence(base)
        if len(rows) != len(index):
            return _void()
        return Array(row for row, taken in zip(rows, index, strict=True) if self._truth(taken))

    @staticmethod
    def _some() -> Unknown:
        return Unknown(("some",), loose=True)

    def _item(self, active: Activation, number: int, operation: s.Item) -> Any:
        value = active.values[operation.value]
        if operation.star:
            return _refuse()
        if isinstance(value, (list, tuple)):
            return value[operation.index] if len(value) == operation.total else _void()
        return self._unknown(active, number, loose=isinstance(value, Unknown) and value.loose)

    def _attribute(self, active: Activation, number: int, operation: s.Attribute) -> Any:
        base, name = active.values[operation.base], operation.name
        if isinstance(base, (External, FunctionValue)):
            return self._unknown(active, number)
        if isinstance(base, (list, tuple, range, str)) or (isinstance(base, Unknown) and name in _OF_LISTS):
            return Method(base, name)
        if (
            isinstance(base, Unknown)
            and name in _VIEWS
            and not isinstance(certain(self.ev.value(active.frame, number)), FunctionValue)
        ):
            return Method(base, name)  # of a dictionary, as far as anyone can tell
        value = self._unknown(active, number, loose=isinstance(base, Unknown) and base.loose)
        if isinstance(value, Unknown) and isinstance(base, Unknown) and not self._is_set(active, name):
            return Unknown((*base.key, name), loose=value.loose)  # the same field, wherever it is read
        return value

    @staticmethod
    def _is_set(active: Activation, name: str) -> bool:
        """Whether a function that runs sets an attribute of this name."""
        running: Activation | None = active
        while running is not None:
            if any(operation.name == name for _, operation in running.frame.code.of_kind(s.StoreAttribute)):
                return True
            running = running.caller
        return False

    # -- calls

    def _call(self, active: Activation, number: int, operation: s.Call) -> Any:
        if operation.decorator:
            return _refuse()
        callee = active.values[operation.function]
        plain = all(not argument.star for argument in operation.arguments)
        positional = [active.values[a.value] for a in operation.arguments if a.keyword is None and not a.star]
        keywords = {a.keyword: active.values[a.value] for a in operation.arguments if a.keyword is not None}
        deed = elements().get(callee.name) if isinstance(callee, External) and keywords.keys() <= _BESIDE else None
        if active.depth == 0 and number in self.job.calls and deed not in _TOGETHER:
            return Unknown((active.frame.ref, number), loose=True)
        if plain:
            if isinstance(callee, External):
                asked = self._of_process(callee.name)
                self._place = (active.frame.ref, number)
                if asked is not None:
                    return asked
                if deed is not None and deed in _COMPUTING:
                    with suppress(UndecidedError):
                        return _ELEMENTS[deed](self, *positional)
                    return self._some()
                if deed is not None:
                    return _ELEMENTS[deed](self, *positional)
            if isinstance(callee, Method) and not keywords:
                return self._method(callee, positional)
            if isinstance(callee, (Closure, FunctionValue)):
                return self._inside(active, number, callee, positional, keywords)
        given = [*positional, *keywords.values()]
        if isinstance(callee, External):
            return self._unknown(active, number, loose=not _are_alike(given))
        if isinstance(callee, Unknown) and callee.loose and not any(self._is_listed(value) for value in given):
            return Unknown((active.frame.ref, number), loose=True)
        return self._not_followed(active, number, given)

    def _inside(
        self, active: Activation, number: int, callee: Any, positional: list[Any], keywords: dict[str, Any]
    ) -> Any:
        """The result of a function of the program, which is run if it is small enough to be followed."""
        operation = active.function.operations[number]
        assert isinstance(operation, s.Call)
        if self.job.uniform.returned(callee.ref):
            return Unknown((active.frame.ref, number), loose=False)
        if isinstance(callee, FunctionValue) and callee.receiver is not None:
            method = active.function.operations[operation.function]
            if not isinstance(method, s.Attribute):
                return self._not_followed(active, number, [*positional, *keywords.values()])
            positional = [active.values[method.base], *positional]
        given = [*positional, *keywords.values()]
        inner = self._entered(callee, active.depth + 1, active) if active.depth < MAX_DEPTH else None
        formals = inner.function.formals if inner is not None else ()
        named = {**{formal.name: value for formal, value in zip(formals, positional, strict=False)}, **keywords}
        if inner is not None and len(named) == len(given) and all(f.default or f.name in named for f in formals):
            with suppress(UndecidedError):
                return self._run(inner, named)
        return self._not_followed(active, number, given)

    def _not_followed(self, active: Activation, number: int, given: Sequence[Any]) -> Any:
        """What a call gives that is not run; it may make a list longer."""
        if any(self._is_listed(value) for value in given):
            return _refuse()
        return self._unknown(active, number, loose=not _are_alike(given))

    def _entered(self, callee: Any, depth: int, caller: Activation | None = None) -> Activation | None:
        """A function of the program, ready to run; None if it cannot be."""
        if not isinstance(callee, (Closure, FunctionValue)):
            return None
        function = self.ev.project.function(callee.ref)
        simple = all(formal.kind in ("positional-only", "standard") for formal in function.formals)
        if not simple or function.generator or function.asynchronous:
            return None
        outer = callee.outer if isinstance(callee, Closure) else None
        return Activation(self.ev.free_frame(callee.ref), outer, depth, caller)

    def _method(self, method: Method, arguments: list[Any]) -> Any:
        rows = self._sequence(method.base)
        if isinstance(rows, Entries):
            return self._of_entries(rows, method.name) if not arguments else _refuse()
        match method.name, arguments:
            case "append", [value] if isinstance(rows, list):
                return rows.append(value)
            case "extend", [more] if isinstance(rows, list):
                return rows.extend(self._listed(more))
            case "copy", []:
                return type(rows)(rows) if isinstance(rows, list) else list(rows)
            case "astype", _:
                return Array(int(row) if isinstance(row, float) else row for row in rows)
            case "pop", [] if isinstance(rows, list):
                return rows.pop()
            case "popleft", [] if isinstance(rows, list):
                return rows.pop(0)
            case "items" | "keys" | "values", [] if isinstance(method.base, Unknown):
                return list(rows)
            case "tolist", []:
                return list(rows)
            case (("min" | "max" | "sum" | "all" | "any"), []) if isinstance(rows, Array):
                return _OF_ALL[method.name]([self._number(row) for row in rows])
            case "clear", [] if isinstance(rows, list):
                return rows.clear()
            case "insert", [place, value] if isinstance(rows, list):
                return rows.insert(self._end(place), value)
        return self._some() if isinstance(rows, Rows) else _refuse()

    def _of_entries(self, entries: Entries, name: str) -> list[Any]:
        """What ``items()`` or another view of a dictionary gives."""
        if name == "items":
            return [(self._some(), value) for value in entries]
        if name == "values":
            return list(entries)
        return [self._some() for _ in entries] if name == "keys" else list(_refuse())

    # -- what the processes do together

    def _numbers_of_all(self, value: Any) -> tuple[float, ...] | None:
        """The number that each process gives; None if it is not known, and the same value for all if it is unknown."""
        if not isinstance(value, (int, float)):
            return None
        if self._met < len(self.together):
            met = self.together[self._met]
            self._met += 1
            return met.numbers if met.place == self._place else _void()
        if self.alone:
            return None
        raise TogetherError(self._place, value)

    def _gathered(self, value: Any, *_: Any) -> Any:
        numbers = self._numbers_of_all(value)
        return self._agreed(value) if numbers is None else Array(numbers)

    def _broadcast(self, value: Any, *_: Any) -> Any:
        numbers = self._numbers_of_all(value)
        return self._agreed(value) if numbers is None else numbers[0]

    def _agreed(self, value: Any) -> Unknown:
        """What all get where it is not known what each gives; of a value that is followed, as a list, nothing is."""
        return Unknown((self._place,), loose=not isinstance(value, Unknown))

    def _equal(self, value: Any, *_: Any) -> None:
        numbers = self._numbers_of_all(value)
        if numbers is not None and len(set(numbers)) > 1:
            raise LeftError

    # -- stores and deletions in sequences

    def _put(self, active: Activation, number: int, operation: s.StoreSubscript) -> Any:
        base, index = active.values[operation.base], active.values[operation.index]
        if isinstance(base, Entries):
            return _refuse()
        if isinstance(index, slice) and (self._is_listed(base) or type(base) is Rows):
            self._sequence(base)[index] = self._listed(active.values[operation.value])
        return self._beside(active, number, operation)

    def _delete(self, active: Activation, number: int, operation: s.Delete) -> Any:
        if operation.base is not None and operation.index is not None:
            base, index = active.values[operation.base], active.values[operation.index]
            if isinstance(base, Entries):
                return _refuse()
            if isinstance(index, slice) or self._is_listed(base) or type(base) is Rows:
                rows = self._sequence(base)
                if not isinstance(rows, list):
                    return _refuse()
                del rows[index if isinstance(index, slice) else self._end(index)]
        return self._beside(active, number, operation)

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
        if not isinstance(function, (Closure, FunctionValue)):
            return Unknown(("applied",), loose=True)
        return self._called(function, [row])

    def _called(self, function: Any, given: list[Any]) -> Any:
        """The result of a function that a library's function calls."""
        inner = self._entered(function, MAX_DEPTH)
        if (
            getattr(function, "receiver", None) is not None
            or inner is None
            or len(inner.function.formals) != len(given)
        ):
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

    def _split(self, rows: Any, parts: Any) -> list[Array]:
        """As ``numpy.array_split`` does: the first parts get one more."""
        whole, number = Array(self._sequence(rows)), self._end(parts)
        size, rest = divmod(len(whole), number)
        sizes = [size + (place < rest) for place in range(number)]
        ends = list(itertools.accumulate(sizes, initial=0))
        return [Array(whole[start:end]) for start, end in itertools.pairwise(ends)]

    def _split_evenly(self, rows: Any, parts: Any) -> list[Array]:
        """As ``numpy.split`` does, which raises if the rows do not divide."""
        number = self._end(parts)
        if len(self._sequence(rows)) % number:
            raise LeftError
        return self._split(rows, number)

    def _array(self, rows: Any, *_: Any) -> Any:
        return Array(self._iterator(rows)) if not isinstance(rows, (int, float, Unknown)) else rows

    def _arange(self, *ends: Any) -> Array:
        return Array(self._range(*ends[:3]))

    def _filled(self, shape: Any, *_: Any) -> Array:
        first = shape.first if isinstance(shape, Shape) else shape[0] if isinstance(shape, (tuple, list)) else shape
        return Array(Unknown(("row",), loose=True) for _ in range(self._end(first)))

    def _concatenated(self, parts: Any, *_: Any) -> Array:
        return Array(row for part in self._sequence(parts) for row in self._sequence(part))

    def _padded(self, rows: Any, widths: Any, *_: Any) -> Array:
        first = widths[0] if isinstance(widths, (tuple, list)) and widths else widths
        ends = first if isinstance(first, tuple) else widths if isinstance(widths, tuple) else (first, first)
        before, after = (self._end(end) for end in ends)
        if before < 0 or after < 0:
            raise LeftError
        more = [Unknown(("row",), loose=True)]
        return Array([*(more * before), *self._sequence(rows), *(more * after)])

    def _linspace(self, first: Any, last: Any, number: Any = 50, *_: Any) -> Array:
        one, other, steps = self._end(first), self._end(last), self._end(number) - 1
        return Array(one + (other - one) * step / steps for step in range(steps + 1))

    def _none(self, *_: Any) -> None:
        return None


def _are_alike(values: Iterable[Any]) -> bool:
    """Whether what a call is given is the same on every process, so that its result is: a number may be its own."""
    return all(isinstance(value, _ALIKE) for value in values)


def _refuse() -> Any:
    raise UndecidedError


def _void() -> Any:
    raise VoidError


_ALIKE = (Unknown, str, type(None), External, FunctionValue)
_VIEWS = frozenset(("items", "keys", "values"))
_OF_LISTS = frozenset("append extend insert clear copy pop popleft tolist shape astype".split())
_OF_ALL: Mapping[str, Callable[[Sequence[Any]], Any]] = {"min": min, "max": max, "sum": sum, "all": all, "any": any}
_BESIDE = frozenset(("dtype", "constant_values", "fail_message"))
"""Arguments that say nothing of how many rows there are."""
_COMPUTING: frozenset[Deed] = frozenset(
    ("length", "array", "numbers", "fill", "join", "pad", "space", "minimum", "maximum", "integer", "ceiling", "floor")
)
"""What only computes a value: if it is not known, it decides nothing, but may never be asked."""
_TOGETHER: frozenset[Deed] = frozenset(("gather", "broadcast", "equal"))
_EQUAL = frozenset(("is", "is not", "==", "!="))
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {**ARITHMETIC, "/": operator.truediv}
_ELEMENTS: Mapping[Deed, Callable[..., Any]] = {
    "length": Process._len,
    "range": Process._range,
    "list": Process._listed,
    "enumerate": Process._enumerate,
    "zip": Process._zip,
    "filter": Process._filter,
    "map": Process._map,
    "minimum": Process._min,
    "maximum": Process._max,
    "divide": Process._divmod,
    "integer": Process._int,
    "iterate": Process._iter,
    "slice": Process._slice,
    "next": Process._next_of,
    "reverse": Process._reversed,
    "chain": Process._chain,
    "repeat": Process._repeat,
    "takewhile": Process._takewhile,
    "nothing": Process._none,
    "gather": Process._gathered,
    "broadcast": Process._broadcast,
    "equal": Process._equal,
    "islice": Process._islice,
    "ceiling": Process._ceil,
    "floor": Process._floor,
    "split": Process._split,
    "split evenly": Process._split_evenly,
    "array": Process._array,
    "numbers": Process._arange,
    "fill": Process._filled,
    "join": Process._concatenated,
    "pad": Process._padded,
    "space": Process._linspace,
}
_DOES: Mapping[type, Callable[[Process, Activation, int, Any], Any]] = {
    s.Const: Process._const,
    s.Parameter: Process._parameter,
    s.Store: Process._store,
    s.Load: Process._load,
    s.Binary: Process._binary,
    s.Unary: Process._unary,
    s.Compare: Process._compare,
    s.BoolOp: Process._boolop,
    s.IfExp: Process._ifexp,
    s.Display: Process._display,
    s.Slice: Process._cut,
    s.Subscript: Process._subscript,
    s.Item: Process._item,
    s.Attribute: Process._attribute,
    s.Collected: Process._collect,
    s.MakeFunction: Process._closure,
    s.Call: Process._call,
    s.StoreSubscript: Process._put,
    s.Delete: Process._delete,
    **dict.fromkeys(
        (s.StoreAttribute, s.Import, s.Enter, s.Leave, s.FString, s.DictDisplay, s.Raise),
        Process._beside,
    ),
}
