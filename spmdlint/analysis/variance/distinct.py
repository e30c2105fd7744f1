"""How many distinct elements there are: words, labels or identifiers that a process has collected from its own data.

``set(labels)``, and sets, dictionaries and counters that are filled one by one: ``words.update(line.split())``,
``counts[word] += 1``. What they hold, and so how much, depends on which files or rows the process has read.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.fillings import given_to
from spmdlint.analysis.evaluation.values import External, Frame, certain
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

DISTINCT = frozenset(("builtins.set", "builtins.frozenset", "collections.Counter", "numpy.unique"))
"""Functions that give the distinct elements of their argument."""
_TABLES = frozenset(
    (
        *("builtins.set", "builtins.dict"),
        *(f"collections.{name}" for name in "Counter defaultdict OrderedDict".split()),
    )
)
_PUTTING = frozenset(("add", "update", "setdefault"))
_TEXT = "how many distinct elements there are depends on this process's part of the data"


def of_elements(length: Origins, content: Origins, frame: Frame, number: int, given: int) -> Reason | None:
    """Why a call that takes the distinct elements of a value gives a different number of them."""
    found = content.of(frame, given)
    if found is None or found.kind != "data":
        return length.of(frame, given)
    return length.step(frame, number, _TEXT, found)


def of_collected(length: Origins, content: Origins, frame: Frame, load: s.Load) -> Reason | None:
    """Why a set or dictionary with a name, which starts empty, is filled with a different number of elements."""
    if not frame.code.function.binds(load.name) or not _starts_empty(length, frame, load.name):
        return None
    for number, given in _put(frame, load.name):
        found = content.of(frame, given)
        if found is not None and found.kind == "data":
            return length.step(frame, number, _TEXT, found)
    return None


def _starts_empty(origins: Origins, frame: Frame, name: str) -> bool:
    """Whether a name is only ever given an empty set, dictionary or counter."""
    made = given_to(frame.code.function, name)
    return bool(made) and all(_is_empty(origins, frame, operation) for operation in made)


def _is_empty(origins: Origins, frame: Frame, made: s.Operation) -> bool:
    if isinstance(made, s.DictDisplay):
        return not made.keys
    if not isinstance(made, s.Call):
        return False
    callee = certain(origins.ev.value(frame, made.function))
    if not isinstance(callee, External) or callee.name not in _TABLES:
        return False
    return not made.arguments or callee.name == "collections.defaultdict"


def _put(frame: Frame, name: str) -> Iterator[tuple[int, int]]:
    """The operations that put something under a name, each with the element, or with the key that it is under."""
    operations = frame.code.operations
    for number, put in frame.code.of_kind(s.StoreSubscript):
        if _is_name(operations, put.base, name):
            yield number, put.index
    for number, call in frame.code.calls_named(_PUTTING).items():
        method = operations[call.function]
        if isinstance(method, s.Attribute) and _is_name(operations, method.base, name) and call.arguments:
            yield number, call.arguments[0].value


def _is_name(operations: list[s.Operation], number: int, name: str) -> bool:
    load = operations[number]
    return isinstance(load, s.Load) and load.name == name
