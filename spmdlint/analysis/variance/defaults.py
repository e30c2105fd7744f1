"""Values used where none is given: defaults of fields and of command-line options, and of parameters left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from spmdlint.analysis.evaluation.bindings import by_position
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.standard import FIELD_FUNCTIONS
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    ClassValue,
    Constant,
    External,
    Frame,
    FunctionValue,
    Instance,
    ModuleValue,
    certain,
    constant,
    text,
)
from spmdlint.analysis.variance.narrowed import arm_of_none, where_none
from spmdlint.analysis.variance.outside import NAMESPACES
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_FACTORIES = ("default_factory", "factory")


def default_values(evaluator: Evaluator, cls: FunctionRef, name: str) -> Iterator[int]:
    """The values that the body of a class gives a field, except functions and calls."""
    frame = evaluator.free_frame(cls)
    operations = frame.code.operations
    for value in _stored(frame, name):
        made = operations[value]
        if isinstance(made, s.Call):
            if _declares(evaluator, frame, value):
                yield from (argument.value for argument in made.arguments if argument.keyword == "default")
        elif not isinstance(made, s.MakeFunction):
            yield value


def factories(evaluator: Evaluator, cls: FunctionRef, name: str) -> Iterator[tuple[int, Frame | External]]:
    """The functions that make the default of a field: where each is named, and its frame, or that of a library."""
    frame = evaluator.free_frame(cls)
    for value in _stored(frame, name):
        made = frame.code.operations[value]
        if isinstance(made, s.Call) and _declares(evaluator, frame, value):
            for argument in made.arguments:
                factory = certain(evaluator.value(frame, argument.value)) if argument.keyword in _FACTORIES else None
                if isinstance(factory, FunctionValue):
                    entered = evaluator.entered_frame(factory, Arguments(), 1)
                    if entered is not None:
                        yield argument.value, entered
                elif isinstance(factory, External):
                    yield argument.value, factory


def _stored(frame: Frame, name: str) -> list[int]:
    operations = frame.code.operations
    stores = [operations[number] for number in frame.code.function.stores.get(name, ())]
    return [store.value for store in stores if isinstance(store, s.Store)]


def _declares(evaluator: Evaluator, frame: Frame, value: int) -> bool:
    made = certain(evaluator.value(frame, value))
    return isinstance(made, Applied) and made.name in FIELD_FUNCTIONS


_ARGPARSE = frozenset(("add_argument",))
_ABSL = frozenset(("DEFINE_integer", "DEFINE_float", "DEFINE_string"))


class Options:
    """Knows where each option is declared. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def default(self, frame: Frame, load: s.Attribute) -> tuple[Frame, int] | None:
        """The place of the default of the option that a settings field holds, if only one option has that name.

        Those that the file itself declares come before those of other programs.
        """
        base = frame.code.operations[load.base]
        if not isinstance(base, (s.Load, s.Attribute)) or base.name not in NAMESPACES:
            return None
        if any(isinstance(v, (Instance, ClassValue, ModuleValue)) for v in self.ev.value(frame, load.base)):
            return None
        found = self._declared.get(load.name, ())
        found = [each for each in found if each[0].ref.path == frame.ref.path] or found
        return found[0] if len(found) == 1 else None

    @cached_property
    def _declared(self) -> dict[str, list[tuple[Frame, int]]]:
        """The defaults, by the names of their options."""
        found: dict[str, list[tuple[Frame, int]]] = {}
        for ref in self.ev.project.functions():
            code = self.ev.code(ref)
            frame = self.ev.free_frame(ref)
            for call in code.calls_named(_ARGPARSE).values():
                for argument in call.arguments:
                    if argument.keyword == "default" and call.arguments[0].keyword is None:
                        self._keep(found, frame, call.arguments[0].value, argument.value)
            for call in code.calls_named(_ABSL).values():
                given = by_position(call)
                if len(given) > 1:
                    self._keep(found, frame, given[0], given[1])
        return found

    def _keep(self, found: dict[str, list[tuple[Frame, int]]], frame: Frame, name: int, default: int) -> None:
        spelled = text(self.ev.value(frame, name))
        if spelled is not None:
            found.setdefault(spelled.lstrip("-").replace("-", "_"), []).append((frame, default))


def passes_value(ev: Evaluator, caller: Frame, number: int) -> bool:
    """Whether a call most likely passes a value: not None, and not a parameter of the caller that has a default."""
    if constant(ev.value(caller, number)) == Constant(None):
        return False
    root = caller.code.operations[caller.code.root_of(number)]
    if not isinstance(root, s.Parameter):
        return True
    return not any(formal.name == root.name and formal.default for formal in caller.code.function.formals)


def parameters_asked(frame: Frame, number: int) -> frozenset[str]:
    """The parameters that a condition or an operand names, if they still have the value that was passed."""
    code = frame.code
    operation = code.operations[number]
    if isinstance(operation, s.Load):
        root = code.operations[code.root_of(number)]
        return frozenset((root.name,)) if isinstance(root, s.Parameter) and root.name == operation.name else frozenset()
    inner: tuple[int, ...] = ()
    if isinstance(operation, s.Compare):
        inner = operation.operands
    return frozenset().union(*(parameters_asked(frame, each) for each in inner))


def where_given(frame: Frame, operation: s.IfExp | s.BoolOp, name: str) -> tuple[int, ...] | None:
    """The operands that remain of a choice if a parameter has a value; None if that does not decide it."""
    function = frame.code.function
    if isinstance(operation, s.BoolOp):
        left = operation.operands[0]
        return (left,) if operation.operator == "or" and isinstance(function.operations[left], s.Load) else None
    absent = where_none(function, operation.test, name)
    if absent is None:
        return None
    return (operation.orelse,) if absent else (operation.body,)


def stored_where_missing(ev: Evaluator, frame: Frame, store: int, name: str) -> bool:
    """Whether a store to a parameter's name runs only where the caller omitted the parameter."""
    function, flow = frame.code.function, ev.flow(frame.ref)
    here = function.block_of[store]
    for block in flow.dominators_of(here):
        test = function.blocks[block].test
        if test is None or name not in parameters_asked(frame, test):
            continue
        absent = arm_of_none(function, block, name)
        if absent is not None and flow.leads(block, absent, here):
            return True
    return False
