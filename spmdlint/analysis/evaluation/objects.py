"""Objects of the project's classes: fields, methods, properties, bases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spmdlint.analysis.evaluation import standard
from spmdlint.analysis.evaluation.abstract import AbstractMethods
from spmdlint.analysis.evaluation.annotations import Annotations
from spmdlint.analysis.evaluation.byname import ByName
from spmdlint.analysis.evaluation.filled import is_fillable, opened, put_into_attribute
from spmdlint.analysis.evaluation.patched import Patched
from spmdlint.analysis.evaluation.registered import frames_at_import
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    NOTHING,
    Applied,
    Arguments,
    ClassValue,
    Collection,
    Constant,
    External,
    Frame,
    Free,
    FunctionValue,
    Instance,
    Member,
    SuperValue,
    Value,
    Values,
    certain,
    join,
    one,
)
from spmdlint.knowledge.files import names
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

_PROPERTIES = names("properties")
ALTERNATIVE_CONSTRUCTOR = "from_"
"""How the names of alternative constructors begin, by custom: class methods that make an object of the class."""
# Classes whose annotated fields are the parameters of their constructor, beside those of JAX's libraries in the table.
_FIELD_MAKERS = names("record_makers")


class Objects:
    """Looks up attributes. One per evaluator; a separate file only to keep both short."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self.project = evaluator.project
        self.abstract = AbstractMethods(self)
        self.annotations = Annotations(evaluator)
        self.by_name = ByName(evaluator)
        self.patched = Patched(evaluator)
        self._stores: dict[FunctionRef, dict[str, list[tuple[FunctionRef, int]]]] = {}
        self._bases: dict[ClassValue, tuple[Value, ...]] = {}
        self._copies: dict[FunctionRef, list[tuple[FunctionRef, int, s.Call]]] = {}
        self._finding_bases = 0  # while bases are being found, some are still missing
        self._lineages: dict[ClassValue, list[ClassValue]] = {}
        self._library_bases: dict[ClassValue, list[str]] = {}

    # -- classes

    def class_of(self, ref: FunctionRef) -> ClassValue:
        """The class with this body, as defined in the free frame of its scope."""
        return ClassValue(ref, self.ev.free_frame(ref).outer)

    def bases(self, cls: ClassValue) -> tuple[Value, ...]:
        """The known bases, in order."""
        if cls not in self._bases:
            self._bases[cls] = ()
            self._finding_bases += 1
            try:
                self._bases[cls] = tuple(self._find_bases(cls))
            finally:
                self._finding_bases -= 1
        return self._bases[cls]

    def _find_bases(self, cls: ClassValue) -> Iterator[Value]:
        if cls.outer is None:
            return
        code = cls.outer.code
        made = code.made_classes.get(cls.ref.index)
        for base in made.bases if made is not None else ():
            written = code.operations[base]
            generic = written.base if isinstance(written, s.Subscript) else base  # Trainer[Config]
            value = certain(self.ev.value(cls.outer, generic))
            if value is not None:
                yield value

    def lineage(self, cls: ClassValue) -> list[ClassValue]:
        """The class and its bases in the project, nearest first, each once."""
        known = self._lineages.get(cls)
        if known is not None:
            return known
        found = self._find_lineage(cls)
        if not self._finding_bases:
            self._lineages[cls] = found
        return found

    def _find_lineage(self, cls: ClassValue) -> list[ClassValue]:
        found: dict[ClassValue, None] = {}
        pending: list[Value] = [cls]
        while pending:
            current = pending.pop()
            if isinstance(current, ClassValue) and current not in found:
                found[current] = None
                pending += reversed(self.bases(current))
        return list(found)

    def library_bases(self, cls: ClassValue) -> list[str]:
        """The names of the bases that are library classes."""
        known = self._library_bases.get(cls)
        if known is not None:
            return known
        found = [b.name for c in self.lineage(cls) for b in self.bases(c) if isinstance(b, External)]
        if not self._finding_bases:
            self._library_bases[cls] = found
        return found

    def has_fields(self, cls: ClassValue) -> bool:
        """Whether the annotated fields of the class are the parameters of its constructor."""
        decorators = self.ev.decorators(cls.ref, cls.outer)
        makers = (*self.library_bases(cls), *decorators)
        return any(map(_makes_fields, makers)) or any(name.endswith(".dataclass") for name in decorators)

    def _constructed(self, cls: ClassValue) -> bool:
        """Whether the constructor of the class is generated from its fields, and not written by hand."""
        return self.has_fields(cls) and not any("__init__" in self.project.methods(c.ref) for c in self.lineage(cls))

    def attribute_stores(self, ref: FunctionRef) -> dict[str, list[tuple[FunctionRef, int]]]:
        """The operations in the methods of a class that store to attributes of their receiver."""
        if ref not in self._stores:
            found: dict[str, list[tuple[FunctionRef, int]]] = {}
            for method in self.project.methods(ref).values():
                function = self.project.function(method)
                if not function.formals:
                    continue
                receiver = function.formals[0].name
                for number, operation in self.ev.code(method).of_kind(s.StoreAttribute):
                    base = function.operations[operation.base]
                    if isinstance(base, s.Load) and base.name == receiver:
                        found.setdefault(operation.name, []).append((method, number))
            self._stores[ref] = found
        return self._stores[ref]

    def only_stored(self, classes: Sequence[ClassValue], name: str) -> tuple[Frame, int] | None:
        """The value that is stored to an attribute, if the methods of these classes store to it in only one place."""
        stores = [each for cls in classes for each in self.attribute_stores(cls.ref).get(name, ())]
        if len(stores) != 1:
            return None
        method, number = stores[0]
        stored = self.project.function(method).operations[number]
        return (self.ev.free_frame(method), stored.value) if isinstance(stored, s.StoreAttribute) else None

    def copied_fields(self, ref: FunctionRef, name: str) -> list[tuple[FunctionRef, int, int]]:
        """Where the methods of a class copy their receiver with a new field: the method, the call and the value."""
        if ref not in self._copies:
            self._copies[ref] = [
                (method, number, operation)
                for method in self.project.methods(ref).values()
                for number, operation in enumerate(self.project.function(method).operations)
                if isinstance(operation, s.Call) and self._copies_receiver(method, operation)
            ]
        return [
            (method, number, argument.value)
            for method, number, operation in self._copies[ref]
            for argument in operation.arguments
            if argument.keyword == name
        ]

    def _copies_receiver(self, method: FunctionRef, call: s.Call) -> bool:
        """Whether a call is ``self.replace(...)`` or ``dataclasses.replace(self, ...)``."""
        function = self.project.function(method)
        callee = function.operations[call.function]
        if not function.formals or not isinstance(callee, (s.Attribute, s.Load)) or callee.name not in standard.COPIES:
            return False
        copied = [callee.base] if isinstance(callee, s.Attribute) else []
        copied += [argument.value for argument in call.arguments[:1] if argument.keyword is None]
        loads = (function.operations[number] for number in copied)
        return any(isinstance(load, s.Load) and load.name == function.formals[0].name for load in loads)

    @cached_property
    def changed_fields(self) -> frozenset[str]:
        """The fields that some code sets in a copy of an object."""
        codes = (self.ev.code(ref) for ref in self.project.functions())
        calls = (call for code in codes for call in code.calls_named(standard.COPIES).values())
        return frozenset(argument.keyword for call in calls for argument in call.arguments if argument.keyword)

    @cached_property
    def subclasses(self) -> dict[FunctionRef, list[ClassValue]]:
        """The direct and indirect subclasses of each class in the project."""
        found: dict[FunctionRef, list[ClassValue]] = {}
        for ref in self.project.functions():
            if self.project.function(ref).kind == "class":
                cls = self.class_of(ref)
                for base in self.lineage(cls)[1:]:
                    found.setdefault(base.ref, []).append(cls)
        return found

    # -- attributes

    def attribute(self, base: Instance | ClassValue | SuperValue, name: str) -> Values:
        """The possible values of an attribute of an object, a class or ``super()``."""
        return self.ev.memo.once((base, name), lambda: self._attribute(base, name))

    def _attribute(self, base: Instance | ClassValue | SuperValue, name: str) -> Values:
        if isinstance(base, SuperValue):
            inherited = self.in_lineage(self.lineage(base.cls)[1:], name, base.receiver)
            owner = base.receiver if isinstance(base.receiver, Instance) else None
            return inherited or self._of_library(base.cls, name, owner)
        receiver = base if isinstance(base, Instance) else None
        cls = base.cls if isinstance(base, Instance) else base
        if receiver is not None and self.is_enum(cls):
            known = standard.enum_attribute(receiver, name)
            if known is not None:
                return known
        lineage = self.lineage(cls)
        stored = self._stored(lineage, name, base) if isinstance(base, Instance) else NOTHING
        found = self.in_lineage(lineage, name, receiver or base)
        if receiver is not None and receiver.arguments is None:
            found = self.abstract.overrides(cls, name, found)
        if self.patched.on(cls, name):
            return join(stored, found, ANYTHING)
        if stored:
            # A field that is declared and stored is not a parameter, unless the constructor is generated from
            # declarations.
            declared = () if self._constructed(cls) else (Free(each.ref, name) for each in lineage)
            return join(stored, found.difference(declared))
        return found or self._of_library(cls, name, receiver)

    def generator(self, instance: Instance, name: str) -> FunctionValue | None:
        """A method of a project object that is a generator, as ``__iter__`` may be; None otherwise."""
        method = next(iter(self.attribute(instance, name)), None)
        yields = isinstance(method, FunctionValue) and self.project.function(method.ref).generator
        return method if yields and isinstance(method, FunctionValue) else None

    def getter(self, instance: Instance, name: str) -> FunctionValue | None:
        """The function behind a property of an object, bound to it; None if the attribute is not a property."""
        for cls in self.lineage(instance.cls):
            stores = self.project.function(cls.ref).stores.get(name, ())
            if not stores:
                continue
            value = certain(self.ev.value(self.ev.frame(cls.ref, {}, cls.outer, 0), stores[-1]))
            if not isinstance(value, Applied) or value.name not in _PROPERTIES or not value.arguments.positional:
                return None
            inner = certain(value.arguments.positional[0])
            return replace(inner, receiver=instance) if isinstance(inner, FunctionValue) else None
        return None

    def called(self, value: Value) -> Value:
        """The value that runs when a value is called: for an object its ``__call__``, if that is certain.

        For a class it is the constructor that it inherits from a library, if there is one.
        """
        if isinstance(value, ClassValue):
            constructor = certain(self.attribute(Instance(value, Arguments()), "__init__"))
            return constructor if isinstance(constructor, External) else value
        if not isinstance(value, Instance):
            return value
        method = certain(self.attribute(value, "__call__"))
        return value if method is None else method

    def _of_library(self, cls: ClassValue, name: str, receiver: Instance | None) -> Values:
        """A method inherited from a library that makes, runs or copies an object, or is known."""
        for base in self.library_bases(cls):
            known = self.ev.knowledge.get(base if name == "__init__" else f"{base}.{name}")
            if known is not None and known.kind == "constructor":
                return one(cls)
            if known is not None and receiver is not None:
                copies = known.kind in ("forward", "copy")
                return one(Member(receiver, known.name) if copies else External(known.name))
        if receiver is None and name.startswith(ALTERNATIVE_CONSTRUCTOR) and self.library_bases(cls):
            return one(Member(cls, name))
        if receiver is None or name not in standard.COPIES or not self.field_names(cls):
            return ANYTHING
        return one(Member(receiver, name))

    def _stored(self, lineage: list[ClassValue], name: str, instance: Instance) -> Values:
        sets: list[Values] = []
        for cls in lineage:
            for method, number in self.attribute_stores(cls.ref).get(name, ()):
                frame = self.method_frame(method, instance, cls)
                operation = self.project.function(method).operations[number]
                assert isinstance(operation, s.StoreAttribute)
                if self.project.function(method).block_of[number] in self.ev.live_blocks(frame):
                    sets.append(self.ev.value(frame, operation.value))
        values = join(*sets)
        return self._filled(lineage, name, instance, values) if is_fillable(certain(values)) else values

    def _filled(self, lineage: list[ClassValue], name: str, instance: Instance, values: Values) -> Values:
        """A collection with the elements that its owner's methods append; anything if they change it otherwise."""
        added: list[Values] = []
        made = certain(values)
        assert is_fillable(made)
        for cls in lineage:
            for method in self.project.methods(cls.ref).values():
                code = self.ev.code(method)
                formals = code.function.formals
                found = put_into_attribute(code, formals[0].name, name, made) if formals and code.changes else []
                if found is None:
                    return join(values, ANYTHING)
                frame = self.method_frame(method, instance, cls) if found else None
                added += [self.ev.value(frame, value) for _, value in found] if frame is not None else []
        return one(opened(made, added)) if added else values

    def method_frame(self, method: FunctionRef, instance: Instance, cls: ClassValue) -> Frame:
        """The frame of a method of a class, called on an object of that class or of a subclass."""
        body = self.ev.frame(cls.ref, {}, cls.outer, 0)
        bound = FunctionValue(method, body, instance)
        if self.project.function(method).name == "__init__" and instance.arguments is not None:
            frame = self.ev.entered_frame(bound, instance.arguments, 1)
            if frame is not None:
                return frame
        formals = self.project.function(method).formals
        receiver = {formals[0].name: one(instance)} if formals else {}  # without parameters it is not called like this
        return self.ev.frame(method, receiver, body, 1)

    def in_lineage(self, lineage: list[ClassValue], name: str, receiver: Value) -> Values:
        """The value of a name in the nearest class that defines it, bound to the receiver; empty if none does."""
        for cls in lineage:
            body = self.project.function(cls.ref)
            declared = self.ev.names.declared(cls.ref.path)
            if declared and f"{body.qualname}.{name}" in declared:
                return one(External(declared[f"{body.qualname}.{name}"]))
            stores = body.stores.get(name, ())
            if not stores:
                continue
            frame = self.ev.frame(cls.ref, {}, cls.outer, 0)
            if isinstance(receiver, Instance) and self._constructed(receiver.cls):
                field = self._field(lineage, cls, name, receiver)
                if field is not None:
                    return field
            last = body.operations[stores[-1]]
            if isinstance(last, s.Declare):
                return self._declared(cls, name)
            if isinstance(receiver, ClassValue) and isinstance(last, s.Store) and self.is_enum(receiver):
                return self.ev.each(self.ev.value(frame, stores[-1]), lambda v: self._enum_member(v, receiver))
            values = standard.default_of(self.ev.value(frame, stores[-1]), one(Free(cls.ref, name)))
            values = self._registered(cls, name, values)
            return self.ev.each(values, lambda v: self._bound(v, receiver))
        return NOTHING

    def _registered(self, cls: ClassValue, name: str, values: Values) -> Values:
        """A collection of a class with what its methods put into it, if calls at import run them."""
        made = certain(values)
        if not is_fillable(made):
            return values
        added: list[Values] = []
        for method in self.project.methods(cls.ref).values():
            formals = self.project.function(method).formals
            for ref in (method, *self.project.methods(method).values()) if formals else ():
                put = put_into_attribute(self.ev.code(ref), formals[0].name, name, made)
                if put is None:
                    return join(values, ANYTHING)
                if put:
                    added += [self.ev.value(inner, n) for inner in frames_at_import(self.ev, ref) for _, n in put]
        return one(opened(made, added)) if added else values

    def is_enum(self, cls: ClassValue) -> bool:
        """Whether the class is an enum."""
        return any(name in standard.ENUMS for name in self.library_bases(cls))

    def _enum_member(self, value: Value, cls: ClassValue) -> Values:
        if isinstance(value, (Constant, Collection)):
            return standard.enum_member(cls, value)
        return self._bound(value, cls)

    def _field(self, lineage: list[ClassValue], cls: ClassValue, name: str, instance: Instance) -> Values | None:
        """The value of a dataclass-like field; None if the name is not a field."""
        body = self.project.function(cls.ref)
        annotated = [o for o in (body.operations[n] for n in body.stores[name]) if _annotated(o)]
        if not annotated:
            return None
        if instance.arguments is None:
            return self._declared(cls, name)
        given = instance.arguments.keyword(name)
        if given is not None:
            return given
        fields = [f for c in reversed(lineage) for f in self._own_fields(c)]
        position = fields.index(name) if name in fields else len(fields)
        if position < len(instance.arguments.positional):
            return instance.arguments.positional[position]
        if instance.arguments.open or isinstance(annotated[-1], s.Declare):
            return self._declared(cls, name)
        return standard.default_of(self.ev.value(self.ev.frame(cls.ref, {}, cls.outer, 0), body.stores[name][-1]))

    def _declared(self, cls: ClassValue, name: str) -> Values:
        """The value of a field that is only declared: an object of the class it is annotated with, or anything."""
        body = self.project.function(cls.ref)
        frame = self.ev.frame(cls.ref, {}, cls.outer, 0)
        for number in body.stores[name]:
            declared = body.operations[number]
            if isinstance(declared, (s.Declare, s.Store)) and declared.annotation is not None:
                found = self.annotations.annotated(frame, declared.annotation)
                if found is not None:
                    return found
        return one(Free(cls.ref, name))

    def field_names(self, cls: ClassValue) -> list[str] | None:
        """The fields that are the parameters of the constructor, in order; None if the class has no such fields."""
        named = any(name.lower().endswith(".namedtuple") for name in self.library_bases(cls))
        if not named and not self.has_fields(cls):
            return None
        return list(dict.fromkeys(f for c in reversed(self.lineage(cls)) for f in self._own_fields(c)))

    def _own_fields(self, cls: ClassValue) -> list[str]:
        body = self.project.function(cls.ref)
        return [name for name, stores in body.stores.items() if any(_annotated(body.operations[n]) for n in stores)]

    def _bound(self, value: Value, receiver: Value) -> Values:
        """The value of a class attribute when it is looked up on a receiver."""
        instance = isinstance(receiver, Instance)
        if isinstance(value, FunctionValue) and value.receiver is None:
            return one(replace(value, receiver=receiver)) if instance else one(value)
        if isinstance(value, Applied):
            inner = value.arguments.positional[0] if value.arguments.positional else ANYTHING
            if value.name in _PROPERTIES:
                if not instance:
                    return ANYTHING
                return self.ev.each(inner, lambda v: self._read_property(v, receiver))
            if value.name == "builtins.staticmethod":
                return inner
            if value.name == "builtins.classmethod":
                owner = receiver.cls if isinstance(receiver, Instance) else receiver
                return frozenset(replace(v, receiver=owner) if isinstance(v, FunctionValue) else v for v in inner)
            if instance and self.ev.kind(value) in ("jit", "map", "transform", "currying"):
                return one(replace(value, receiver=receiver))
        return one(value)

    def _read_property(self, getter: Value, receiver: Value) -> Values:
        if not isinstance(getter, FunctionValue):
            return ANYTHING
        frame = self.ev.entered_frame(replace(getter, receiver=receiver), Arguments(), 1)
        return self.ev.returned(frame) if frame is not None else ANYTHING

    # -- receivers

    def implicit_receiver(self, frame: Frame, name: str) -> Values | None:
        """The first parameter of a method without a known call: some object of its class."""
        function = self.ev.function(frame)
        cls = self.project.enclosing_class(frame.ref)
        if cls is None or not function.formals or function.formals[0].name != name:
            return None
        if name == "cls":
            return one(self.class_of(cls))
        return one(Instance(self.class_of(cls)))

    def super_value(self, frame: Frame, arguments: Arguments) -> Values:
        """The value of ``super()`` in a method, or in a function nested in one."""
        current: Frame | None = frame
        while current is not None:
            cls = self.project.enclosing_class(current.ref)
            formals = self.ev.function(current).formals
            if cls is not None and formals:
                receiver = current.bound(formals[0].name) or self.implicit_receiver(current, formals[0].name)
                value = certain(receiver) if receiver is not None else None
                return one(SuperValue(self.class_of(cls), value)) if value is not None else ANYTHING
            current = current.outer
        return ANYTHING


def _annotated(operation: s.Operation) -> bool:
    return isinstance(operation, s.Declare) or (isinstance(operation, s.Store) and operation.annotation is not None)


def _makes_fields(name: str) -> bool:
    return name in _FIELD_MAKERS or name in reading().field_makers
