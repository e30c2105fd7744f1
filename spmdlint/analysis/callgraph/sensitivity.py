"""For which functions it matters what they are called with: only of those are the ways of being called told apart.

A function that calls nothing but functions of libraries that the linter knows nothing of does the same in all its
calls, as far as anybody asks. One that calls what it is given does something of interest only when it is given that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import NOTHING as NO_VALUE
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    Called,
    ClassValue,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Frame,
    Free,
    FunctionValue,
    Instance,
    Member,
    Unknown,
    Value,
    Values,
)
from spmdlint.program.link import FunctionRef

Need = Literal[0, 1, 2]
NOTHING: Need = 0
"""It does the same whatever it is given."""
CODE: Need = 1
"""It may run code that it is given."""
EVERYTHING: Need = 2
"""It calls what rules ask about, with what it is given."""
_OF_VALUES = (None, "copy", "identity", "record")
_RUNNING = ("apply", "currying")
_PLAIN = (Constant, Unknown, Free)


class Sensitivity:
    """What each function needs to be told apart by. One per run, complete after :meth:`settle`."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._needs: dict[FunctionRef, Need] = {}
        self._values: dict[Value, bool] = {}
        self._frames: dict[Frame, bool] = {}

    def note(self, ref: FunctionRef, callees: Iterable[Value], *, spanning: bool) -> None:
        """Note what a function calls where nothing is known of its callers; ``spanning``: it may be a parallel call."""
        need = self._needs.get(ref, NOTHING)
        if need != EVERYTHING:
            found = EVERYTHING if spanning else max(map(self._of_callee, callees), default=NOTHING)
            self._needs[ref] = max(need, found)

    def settle(self, called: Mapping[FunctionRef, Iterable[FunctionRef]]) -> None:
        """Carry what functions need to those that call them."""
        callers: dict[FunctionRef, list[FunctionRef]] = {}
        for caller, callees in called.items():
            for callee in callees:
                callers.setdefault(callee, []).append(caller)
        pending = [ref for ref, need in self._needs.items() if need == EVERYTHING]
        while pending:
            for caller in callers.get(pending.pop(), ()):
                if self._needs.get(caller, NOTHING) != EVERYTHING:
                    self._needs[caller] = EVERYTHING
                    pending.append(caller)

    def tells_apart(self, frame: Frame) -> bool:
        """May a frame do something else than the one of which nothing is known."""
        need = self._needs.get(frame.ref, NOTHING)
        return need == EVERYTHING or (need == CODE and self._holds_code(frame))

    def _of_callee(self, callee: Value) -> Need:
        if isinstance(callee, (External, Applied)):
            return self._of_library(callee.name)
        return NOTHING if isinstance(callee, Constant) else CODE

    def _of_library(self, name: str) -> Need:
        known = self.ev.knowledge.get(name)
        if known is None:
            return NOTHING
        if known.parallel or known.spans or known.gathers or known.agreement or known.checkpoint or known.ends:
            return EVERYTHING
        return NOTHING if known.kind in _OF_VALUES else CODE if known.kind in _RUNNING else EVERYTHING

    # -- what is given

    def _holds_code(self, frame: Frame | None) -> bool:
        """Is a parameter, here or around, bound to code that does something of interest."""
        if frame is None:
            return False
        known = self._frames.get(frame)
        if known is None:
            self._frames[frame] = False  # what is defined in terms of itself
            known = any(map(self._any_code, frame.bindings.values())) or self._holds_code(frame.outer)
            self._frames[frame] = known
        return known

    def _any_code(self, values: Values) -> bool:
        return any(not isinstance(value, _PLAIN) and self._is_code(value) for value in values)

    def _in_arguments(self, arguments: Arguments | None) -> bool:
        if arguments is None:
            return False
        given = (*arguments.positional, *(values for _, values in arguments.keywords))
        return any(map(self._any_code, given))

    def _is_code(self, value: Value) -> bool:
        known = self._values.get(value)
        if known is None:
            self._values[value] = False
            known = self._values[value] = self._find_code(value)
        return known

    def _find_code(self, value: Value) -> bool:
        if isinstance(value, External):
            return self._of_library(value.name) != NOTHING
        if isinstance(value, Applied):
            return self._of_library(value.name) == EVERYTHING or self._in_arguments(value.arguments)
        if isinstance(value, Member):
            return self._is_code(value.base)
        if isinstance(value, Called):
            return self._is_code(value.function)
        if isinstance(value, Collection):
            return any(map(self._any_code, (*value.elements, value.each or NO_VALUE)))
        if isinstance(value, DictionaryValue):
            return any(map(self._any_code, (*(values for _, values in value.items), value.each or NO_VALUE)))
        if isinstance(value, FunctionValue):
            around = self._holds_code(value.outer)
            received = value.receiver is not None and self._is_code(value.receiver)
            return self._needs.get(value.ref) == EVERYTHING or around or received
        if isinstance(value, ClassValue):
            return self._is_of_interest(value) or self._holds_code(value.outer)
        if isinstance(value, Instance):
            return self._is_code(value.cls) or self._in_arguments(value.arguments)
        return True

    def _is_of_interest(self, cls: ClassValue) -> bool:
        """Does a method of a class, or of one that it derives from, do something of interest."""
        methods = self.ev.project.methods
        refs = (ref for each in self.ev.objects.lineage(cls) for ref in (each.ref, *methods(each.ref).values()))
        return any(self._needs.get(ref) == EVERYTHING for ref in refs)
