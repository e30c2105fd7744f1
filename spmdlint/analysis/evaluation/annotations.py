"""What an annotation says about a parameter or field about which nothing else is known.

Python does not enforce annotations, but nobody writes a wrong class on purpose. A class with subclasses says little,
because the object may belong to any of them; it counts as unknown.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    ClassValue,
    Collection,
    DictionaryValue,
    External,
    Frame,
    Free,
    Instance,
    Site,
    Value,
    Values,
    certain,
    one,
)
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

_OPTIONAL = names("optional_annotations")
PROTOCOLS = names("protocols")
_LISTS = frozenset(("list", "sequence", "iterable", "iterator", "mutablesequence", "collection"))
_TABLES = frozenset(("dict", "mapping", "mutablemapping", "ordereddict", "defaultdict"))
_OPEN_BASES = names("open_bases")


class Annotations:
    """Reads annotations. One per evaluator."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def of_parameter(self, frame: Frame, name: str) -> Values | None:
        """An object of the class that a parameter is annotated with; None unless that is one certain class."""
        written = self.written(frame, name)
        return self.annotated(*written) if written is not None else None

    def class_of_parameter(self, frame: Frame, name: str) -> Value | None:
        """The class that a parameter is annotated with; the object may also belong to a subclass of it."""
        written = self.written(frame, name)
        return self._named(*written) if written is not None else None

    @staticmethod
    def written(frame: Frame, parameter: str) -> tuple[Frame, int] | None:
        """The frame and operation that evaluate the annotation of a parameter, or of the result: ``"return"``."""
        outer = frame.outer
        made = outer.code.made_functions.get(frame.ref.index) if outer is not None else None
        for name, number in made.annotations if made is not None else ():
            if name == parameter and outer is not None:
                return outer, number
        return None

    def declared(self, free: Free) -> Value | None:
        """The class that a parameter or field is annotated with, which may have subclasses; None if not known."""
        frame = self.ev.free_frame(free.ref)
        if self.ev.function(frame).kind != "class":
            return self.class_of_parameter(frame, free.name)
        annotation = self.of_field(frame, free.name)
        return self._named(frame, annotation) if annotation is not None else None

    @staticmethod
    def of_field(body: Frame, name: str) -> int | None:
        """The operation that evaluates the annotation of a field in the body of a class."""
        stores = (body.code.operations[number] for number in body.code.function.stores.get(name, ()))
        annotations = (each.annotation for each in stores if isinstance(each, (s.Declare, s.Store)))
        return next((annotation for annotation in annotations if annotation is not None), None)

    def annotated(self, frame: Frame, number: int) -> Values | None:
        """An object of the class that an annotation names; None unless it names a single certain class."""
        cls = self._named(frame, number)
        if isinstance(cls, ClassValue):
            return one(Instance(cls)) if self._is_one(cls) else self.ev.objects.abstract.implementers(cls)
        if isinstance(cls, External) and cls.name in self._owners:
            return one(Applied(cls.name, Arguments(open=True), Site(frame.ref, number)))
        return self._holding(frame, number)

    def _holding(self, frame: Frame, number: int) -> Values | None:
        """A collection of such objects: ``list[Metric]``, ``dict[str, Metric]``, ``tuple[Metric, ...]``."""
        operation = frame.code.operations[number]
        if not isinstance(operation, s.Subscript):
            return None
        name = getattr(certain(self.ev.value(frame, operation.base)), "name", "").rpartition(".")[2].lower()
        index = frame.code.operations[operation.index]
        if name in _LISTS:
            each = self.annotated(frame, operation.index)
            return None if each is None else one(Collection("list", (), open=True, each=each))
        if not isinstance(index, s.Display) or len(index.elements) != 2:
            return None
        if name in _TABLES:
            each = self.annotated(frame, index.elements[1])
            return None if each is None else one(DictionaryValue((), open=True, each=each))
        rest = frame.code.operations[index.elements[1]]
        if name == "tuple" and isinstance(rest, s.Const) and rest.value is ...:
            each = self.annotated(frame, index.elements[0])
            return None if each is None else one(Collection("tuple", (), open=True, each=each))
        return None

    def _named(self, frame: Frame, number: int) -> Value | None:
        operation = frame.code.operations[number]
        if isinstance(operation, s.Const):
            if not isinstance(operation.value, str):
                return None
            name = operation.value.strip().removesuffix("| None").rstrip()
            module = self.ev.project.modules[frame.ref.path]
            return certain(self.ev.names.global_name(module, name)) if name.isidentifier() else None
        if isinstance(operation, s.Subscript):
            base = certain(self.ev.value(frame, operation.base))
            wraps = isinstance(base, External) and base.name in _OPTIONAL
            return self._named(frame, operation.index) if wraps else None
        if isinstance(operation, s.Binary) and operation.operator == "|":
            sides = [side for side in (operation.left, operation.right) if not self._is_none(frame, side)]
            return self._named(frame, sides[0]) if len(sides) == 1 else None
        if isinstance(operation, (s.Load, s.Attribute)):
            return certain(self.ev.value(frame, number))
        return None

    @staticmethod
    def _is_none(frame: Frame, number: int) -> bool:
        operation = frame.code.operations[number]
        return isinstance(operation, s.Const) and operation.value is None

    def _is_one(self, cls: ClassValue) -> bool:
        """Whether an object annotated with this class is of exactly this class, and not of a subclass."""
        objects = self.ev.objects
        return (
            cls.ref not in objects.subclasses
            and not objects.is_enum(cls)
            and not any(name in _OPEN_BASES for name in objects.library_bases(cls))
        )

    @cached_property
    def _owners(self) -> frozenset[str]:
        """The library classes with methods that every process has to call, and those with declared methods."""
        knowledge = self.ev.knowledge
        owners = (name.rpartition(".")[0] for name, known in knowledge.functions.items() if known.parallel)
        declared = (name.rpartition(".")[0] for name in knowledge.declared)
        return frozenset((*(owner for owner in owners if owner in knowledge.functions), *declared))
