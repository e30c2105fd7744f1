"""Stores from other places: to fields, and to names of modules and of enclosing functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.receivers import is_receiver
from spmdlint.analysis.evaluation.values import ClassValue, Frame, Instance, ModuleValue, certain
from spmdlint.analysis.variance.agreed import is_agreed, parts
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

# ``super().setup()``; ``Base.setup(self)`` names the method itself.
_ABOVE = frozenset(("super",))


def overridden(ev: Evaluator, cls: ClassValue, method: FunctionRef) -> bool:
    """Whether a class overrides an inherited method and never calls it."""
    name = ev.project.function(method).name
    own = [methods[name] for each in ev.objects.lineage(cls) if name in (methods := ev.project.methods(each.ref))]
    return method in own[1:] and not ev.code(own[0]).mentions(_ABOVE | {name})


def receiver(ev: Evaluator, frame: Frame) -> ClassValue | None:
    """The class of the object whose method a frame belongs to, as far as the call shows."""
    operations = frame.code.operations
    if ev.project.enclosing_class(frame.ref) is None or not operations or not isinstance(operations[0], s.Parameter):
        return None
    value = certain(ev.value(frame, 0))
    return value.cls if isinstance(value, Instance) else None


Store = tuple[FunctionRef, int]


def of_module(ev: Evaluator, path: Path, name: str) -> Iterator[Store]:
    """The stores to a name of a module that its functions make."""
    return _stores(ev, path, ev.names.setters(ev.project.modules[path]).get(name, ()), name)


def of_function(ev: Evaluator, frame: Frame, name: str) -> Iterator[Store]:
    """The stores to a name of a function that are made by functions defined in it."""
    return _stores(ev, frame.ref.path, frame.code.set_inside.get(name, ()), name)


def _stores(ev: Evaluator, path: Path, functions: Iterable[int], name: str) -> Iterator[Store]:
    for index in functions:
        for number in ev.project.modules[path].summary.functions[index].stores[name]:
            yield FunctionRef(path, index), number


_DEPTH = 6
NAMESPACES = frozenset("args cfg conf config configs flags FLAGS hparams opt options opts settings".split())
"""Names that programs give to the object with their settings."""


class OutsideStores:
    """Such stores, by the name of the field. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._renewed: dict[tuple[FunctionRef, str], bool] = {}
        self._found: dict[tuple[ClassValue, str], Sequence[tuple[FunctionRef, int]]] = {}

    def stores(self, cls: ClassValue, name: str) -> Sequence[tuple[FunctionRef, int]]:
        """The stores to a field of a class: on its objects, or on what must be one because of the field's name."""
        key = cls, name
        if key not in self._found:
            self._found[key] = tuple(self._find(cls, name))
        return self._found[key]

    def _find(self, cls: ClassValue, name: str) -> Iterator[tuple[FunctionRef, int]]:
        for ref, number in self.ev.project.fields_of_others.get(name, ()):
            frame = self.ev.free_frame(ref)
            stored = frame.code.operations[number]
            assert isinstance(stored, s.StoreAttribute)
            bases = self.ev.objects.by_name.owners(frame, stored.base, name)
            if any(isinstance(base, Instance) and base.cls == cls for base in bases):
                yield ref, number

    def renewed(self, cls: ClassValue, name: str) -> bool:
        """Whether the processes agree on what is in a field, and put that into it: ``x.stop = broadcast(x.stop)``."""
        key = cls.ref, name
        if key not in self._renewed:
            own = self.ev.objects.attribute_stores(cls.ref).get(name, ())
            self._renewed[key] = any(self._renews(ref, number, name) for ref, number in (*own, *self.stores(cls, name)))
        return self._renewed[key]

    def _renews(self, ref: FunctionRef, number: int, name: str) -> bool:
        frame = self.ev.free_frame(ref)
        stored = frame.code.operations[number]
        if not isinstance(stored, s.StoreAttribute) or not is_agreed(self.ev, frame, stored.value):
            return False
        read = (frame.code.operations[part] for part in parts(self.ev, frame, stored.value, _DEPTH))
        return any(isinstance(operation, s.Attribute) and operation.name == name for operation in read)

    def of_name(self, frame: Frame, load: s.Attribute) -> list[tuple[FunctionRef, int]]:
        """The stores to a field of an object of which nothing else is known: ``args.rank = jax.process_index()``.

        The object is identified by one name in a function. An object with settings is the same in a whole file.
        """
        name, base = self._namespace(frame, load.base), frame.code.operations[load.base]
        found: list[tuple[FunctionRef, int]] = []
        for ref, number in self.ev.project.fields_of_others.get(load.name, ()):
            other = self.ev.free_frame(ref)
            stored = other.code.operations[number]
            assert isinstance(stored, s.StoreAttribute)
            if ref == frame.ref and isinstance(base, s.Load) and other.code.operations[stored.base] == base:
                same = self.ev.reaching(frame, load.base, base.name) == self.ev.reaching(frame, stored.base, base.name)
            else:
                near = name is not None and ref.path == frame.ref.path
                same = near and self._namespace(other, stored.base) == name
            found += [(ref, number)] if same else []
        return [] if any(self._renews(ref, number, load.name) for ref, number in found) else found

    def of_part(self, frame: Frame, load: s.Attribute) -> Iterator[tuple[FunctionRef, int]]:
        """The stores that methods make to a field of a part of their object: ``self.params.seed``."""
        part, cls = self._part(frame, load.base), receiver(self.ev, frame)
        if part is None or cls is None:
            return
        classes = {each.ref for each in self.ev.objects.lineage(cls)}
        for ref, number in self.ev.project.fields_of_others.get(load.name, ()):
            other = self.ev.free_frame(ref)
            stored = other.code.operations[number]
            assert isinstance(stored, s.StoreAttribute)
            is_own = self.ev.project.enclosing_class(ref) in classes and not overridden(self.ev, cls, ref)
            if is_own and self._part(other, stored.base) == part:
                yield ref, number

    @staticmethod
    def _part(frame: Frame, number: int) -> str | None:
        part = frame.code.operations[number]
        is_own = isinstance(part, s.Attribute) and is_receiver(frame.code.function, part.base)
        return part.name if is_own and isinstance(part, s.Attribute) else None

    def _namespace(self, frame: Frame, number: int) -> str | None:
        operation = frame.code.operations[number]
        if not isinstance(operation, s.Load) or operation.name not in NAMESPACES:
            return None
        known = any(isinstance(v, (Instance, ClassValue, ModuleValue)) for v in self.ev.value(frame, number))
        return None if known else operation.name
