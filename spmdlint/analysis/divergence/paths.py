"""Which calls write or read the file at a path, and when two paths are the same, as far as is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, FunctionValue
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

OPENERS = frozenset(("open", "GFile", "gopen"))
WRITERS = frozenset(
    "save savez savez_compressed savetxt write_text write_bytes to_csv to_parquet copy copyfile move rename replace "
    "download urlretrieve".split()
)
"""Functions and methods that make a file, by the last part of their name."""
_WRITERS = WRITERS | {"save_model"}
_READERS = frozenset(
    "load loadtxt genfromtxt fromfile memmap read_text read_bytes read_csv read_parquet read_json from_file "
    "from_pretrained TFRecordDataset load_model".split()
)
_OF_PATHS = frozenset("read_bytes read_text write_bytes write_text".split())
"""Methods that only paths have."""
_WRITTEN_PATH = re.compile(r"/|\\|\.[A-Za-z]\w*$")
_DEPTH = 8
_CALLS = 2
"""How many levels of calls into the project's functions are followed."""

Shape = tuple[object, ...]
"""How a path is made: equal for two paths that are made from the same values in the same way."""


class PathUse(Struct, frozen=True):
    """A call that writes or reads the file at a path, itself or in a function of the project."""

    number: int
    path: Shape
    writes: bool


class PathUses:
    """Finds such calls in a function, and in those functions of the project that it passes a path to. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def makes_any(self, frame: Frame) -> bool:
        """Whether a function may write a file at all: far cheaper to find out than what it does in which order."""
        return any(
            True for block in sorted(self.ev.live_blocks(frame)) for use in self.of_block(frame, block) if use.writes
        )

    def of_block(self, frame: Frame, block: int, calls: int = _CALLS) -> Iterator[PathUse]:
        """The paths that the calls of a block write and read, in order."""
        for number, call in frame.code.calls_in([block]):
            yield from self.of_call(frame, number, call, calls)

    def of_call(self, frame: Frame, number: int, call: s.Call, calls: int = _CALLS) -> Iterator[PathUse]:
        """The paths that one call writes and reads."""
        callee = self.ev.callee(frame, call)
        if isinstance(callee, FunctionValue):
            if calls:
                yield from self._through(frame, number, call, callee, calls)
            return
        method = frame.code.operations[call.function]
        name = method.name if isinstance(method, (s.Attribute, s.Load)) else ""
        writes = opens_to_write(frame, call) if name in OPENERS else name in _WRITERS
        if not writes and name not in _READERS | OPENERS:
            return
        given = [argument.value for argument in call.arguments if not argument.star]
        if isinstance(method, s.Attribute) and name in _OF_PATHS:
            given.append(method.base)
        for each in given:
            path = shape(frame, each)
            if path is not None:
                yield PathUse(number, path, writes)

    def _through(self, frame: Frame, number: int, call: s.Call, callee: FunctionValue, calls: int) -> Iterator[PathUse]:
        """The uses of a path in a function of the project that it is passed to unchanged."""
        given, inside = self.passed(frame, call, callee), self.ev.free_frame(callee.ref)
        for block in sorted(self.ev.live_blocks(inside)) if given else ():
            for use in self.of_block(inside, block, calls - 1):
                path = seen_outside(use.path, callee.ref, given)
                if path is not None:
                    yield PathUse(number, path, use.writes)

    def passed(self, frame: Frame, call: s.Call, callee: FunctionValue) -> dict[Shape, Shape]:
        """How the arguments of a call are made, by the parameters of the called function."""
        function = self.ev.project.function(callee.ref)
        given: dict[Shape, Shape] = {}
        for formal in function.formals:
            value = passed_to(function, call, formal.name, bound=callee.receiver is not None)
            path = _shape(frame, value, _DEPTH) if value is not None else None
            if path is not None:
                given[("name", callee.ref, formal.name)] = path
        method = frame.code.operations[call.function]
        if callee.receiver is not None and function.formals and isinstance(method, s.Attribute):
            receiver = _shape(frame, method.base, _DEPTH)
            if receiver is not None:
                given[("name", callee.ref, function.formals[0].name)] = receiver
        return given


def seen_outside(path: Shape, callee: FunctionRef, given: Mapping[Shape, Shape]) -> Shape | None:
    """A path of a called function as its caller sees it, by its arguments; None if it is made from anything else."""
    made = _seen_outside(path, callee, given)
    return made if made is not None and _may_be_path(made) else None


def _seen_outside(path: Shape, callee: FunctionRef, given: Mapping[Shape, Shape]) -> Shape | None:
    if path in given:
        return given[path]
    if path[0] == "name" and path[1] == callee:
        return None
    parts = [_seen_outside(part, callee, given) if isinstance(part, tuple) else part for part in path]
    return None if any(part is None for part in parts) else tuple(parts)


def shape(frame: Frame, number: int, depth: int = _DEPTH) -> Shape | None:
    """How a path is made; None for a constant that does not look like one, and for what is not followed."""
    made = _shape(frame, number, depth)
    return made if made is not None and _may_be_path(made) else None


def _may_be_path(made: Shape) -> bool:
    """Whether it may be a path: a constant must be a text with a folder or a suffix, unlike a mode or an encoding."""
    return made[0] != "constant" or (isinstance(made[1], str) and _WRITTEN_PATH.search(made[1]) is not None)


def _shape(frame: Frame, number: int, depth: int) -> Shape | None:
    code = frame.code
    root = code.root_of(number)
    operation = code.operations[root]
    if depth == 0:
        return None
    if isinstance(operation, s.Const):
        return ("constant", operation.value) if isinstance(operation.value, (str, int)) else None
    if isinstance(operation, s.Parameter):
        return ("name", frame.ref, operation.name)
    parts: tuple[int, ...]
    if isinstance(operation, s.Attribute):
        kind, parts = f".{operation.name}", (operation.base,)
    elif isinstance(operation, s.Binary) and operation.operator in ("/", "+"):
        kind, parts = operation.operator, (operation.left, operation.right)
    elif isinstance(operation, s.FString):
        kind, parts = "f", operation.parts
    elif isinstance(operation, s.Call) and not any(a.keyword or a.star for a in operation.arguments):
        kind, parts = "call", (operation.function, *(argument.value for argument in operation.arguments))
    elif isinstance(operation, s.Load):
        return _name(frame, root, operation)
    else:
        # Whatever it is, a name that is given one value once stands for that value.
        return ("name", frame.ref, root) if root != number else None
    inner = tuple(_shape(frame, part, depth - 1) for part in parts)
    return (kind, *inner) if all(each is not None for each in inner) else None


def _name(frame: Frame, number: int, load: s.Load) -> Shape:
    """A name, with the stores that may give its value: a name that is stored anew is a different one."""
    scope = frame.code.scope_of(load.name)
    if scope is None:
        return ("global", load.name)
    stores = sorted(frame.code.flow.reaching(number, load.name)) if scope is frame.code.function else ()
    return ("name", frame.ref, load.name, *stores)


def lies_in(path: Shape, place: Shape) -> bool:
    """Whether a path is the same as another one, or is joined to it as a folder."""
    if path == place:
        return True
    joined = path[0] == "call" and len(path) > 2 and isinstance(path[1], tuple) and path[1][0] == ".join"
    before = path[2] if joined else path[1] if path[0] == "/" else None
    return isinstance(before, tuple) and lies_in(before, place)


def opens_to_write(frame: Frame, call: s.Call) -> bool:
    """Whether a file is opened with a mode that creates it, the second argument or the first of a path's method."""
    modes = [a.value for place, a in enumerate(call.arguments) if a.keyword == "mode" or (place < 2 and not a.keyword)]
    said = [frame.code.operations[mode] for mode in modes]
    told = [mode.value for mode in said if isinstance(mode, s.Const) and isinstance(mode.value, str)]
    return any(mode.startswith(tuple("wax")) and not mode.strip("waxbt+") for mode in told)
