"""Abstract methods: what runs is the method of a subclass that defines it, whichever object the code is given."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import (
    ClassValue,
    External,
    FunctionValue,
    Instance,
    Values,
    certain,
    join,
)
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.objects import Objects

_MARKS = frozenset(names("abstract_marks"))
_REFUSALS = frozenset(names("refusals"))


MAX_IMPLEMENTATIONS = 16
"""The most methods that are followed in place of an abstract one."""


class AbstractMethods:
    """Finds the methods that stand for abstract ones. One per run."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.ev = objects.ev
        self._busy = False
        self._implemented: dict[FunctionRef, list[FunctionRef]] = {}
        self._implementers: dict[ClassValue, Values | None] = {}
        self._declared: dict[FunctionRef, FunctionRef | None] = {}

    def overrides(self, cls: ClassValue, name: str, found: Values) -> Values:
        """The methods of the subclasses that define it, if that of a class is abstract; what was found otherwise."""
        method = certain(found)
        if not isinstance(method, FunctionValue) or self._busy or not self._is_abstract(method.ref):
            return found
        own = [sub for sub in self._subclasses.get(cls.ref, ()) if name in self.ev.project.function(sub.ref).stores]
        if not 0 < len(own) <= MAX_IMPLEMENTATIONS:
            return found
        return join(*(self.objects.in_lineage([sub], name, Instance(sub)) for sub in own))

    def implementers(self, cls: ClassValue) -> Values | None:
        """An object of each subclass that implements all that a class leaves open; None if it leaves nothing open."""
        if self._busy or cls.ref not in self._subclasses:
            return None
        if cls not in self._implementers:
            subclasses = self._subclasses[cls.ref] if self._is_open(cls) else []
            made = [sub for sub in subclasses if not self._is_open(sub)]
            self._implementers[cls] = frozenset(map(Instance, made)) if 0 < len(made) <= MAX_IMPLEMENTATIONS else None
        return self._implementers[cls]

    def _is_open(self, cls: ClassValue) -> bool:
        """Whether a class has an abstract method."""
        names = {name for each in self.objects.lineage(cls) for name in self.ev.project.methods(each.ref)}
        found = (certain(self.objects.in_lineage(self.objects.lineage(cls), name, cls)) for name in names)
        return any(isinstance(method, FunctionValue) and self._is_abstract(method.ref) for method in found)

    def implementations(self, ref: FunctionRef) -> list[FunctionRef]:
        """The methods of subclasses that implement an abstract one; none if there are many, or if it is no such method.

        Which of them runs is not known, but one of them does.
        """
        if ref not in self._implemented:
            cls = self.ev.project.enclosing_class(ref)
            found: list[FunctionRef] = []
            if cls is not None and self._is_abstract(ref):
                name = self.ev.project.function(ref).name
                methods = (self.ev.project.methods(sub.ref).get(name) for sub in self._subclasses.get(cls, ()))
                found = [method for method in methods if method is not None and not self._is_abstract(method)]
            self._implemented[ref] = found if len(found) <= MAX_IMPLEMENTATIONS else []
        return self._implemented[ref]

    def declared(self, ref: FunctionRef) -> FunctionRef | None:
        """The abstract method that a method implements: what the code calls where it does not know the subclass."""
        if ref not in self._declared:
            self._declared[ref] = self._find_declared(ref)
        return self._declared[ref]

    def _find_declared(self, ref: FunctionRef) -> FunctionRef | None:
        body = self.ev.project.enclosing_class(ref)
        if body is None:
            return None
        name = self.ev.project.function(ref).name
        for ancestor in self.objects.lineage(ClassValue(body, self.ev.free_frame(body).outer)):
            method = self.ev.project.methods(ancestor.ref).get(name) if ancestor.ref != body else None
            if method is not None:
                return method if self._is_abstract(method) else None
        return None

    @cached_property
    def _subclasses(self) -> dict[FunctionRef, list[ClassValue]]:
        # To find the bases of all classes, methods may be looked up: with what is found without this.
        self._busy = True
        try:
            return self.objects.subclasses
        finally:
            self._busy = False

    def _is_abstract(self, ref: FunctionRef) -> bool:
        """Whether a method is marked as abstract, or does nothing but raise NotImplementedError."""
        cls = self.ev.project.enclosing_class(ref)
        if cls is None:
            return False
        marked = not _MARKS.isdisjoint(self.ev.decorators(ref, self.ev.free_frame(cls)))
        return marked or self._refuses(ref) or self._is_stub(ref)

    def _is_stub(self, ref: FunctionRef) -> bool:
        """Whether a method has no body but ``...`` and perhaps a docstring."""
        code = self.ev.code(ref)
        empty = all(isinstance(o, (s.Const, s.Parameter, s.Store, s.Return)) for o in code.operations)
        return empty and any(o.value is ... for _, o in code.of_kind(s.Const))

    def _refuses(self, ref: FunctionRef) -> bool:
        frame = self.ev.free_frame(ref)
        raised = [operation for _, operation in frame.code.of_kind(s.Raise)]
        if len(raised) != 1 or raised[0].exception is None or list(frame.code.of_kind(s.Return)):
            return False
        error = frame.code.operations[raised[0].exception]
        made = error.function if isinstance(error, s.Call) else raised[0].exception
        value = certain(self.ev.value(frame, made))
        return isinstance(value, External) and value.name in _REFUSALS
