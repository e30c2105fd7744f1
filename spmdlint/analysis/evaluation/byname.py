"""Resolves attributes of unknown objects by name: to the only class in the project with an attribute of that name.

Most method names in a Python program are unique to one class, except those in :data:`_COMMON`. For these, and where
several classes share a name, the object's own name decides: a `learner` is a `Learner`. An annotation narrows the
choice, and if a method forwards its own call to an object, that object is not of the method's class.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.annotations import PROTOCOLS
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    ClassValue,
    External,
    Frame,
    Free,
    Instance,
    Unknown,
    Value,
    Values,
)
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

# Method names that every library uses: a single definition in the project says nothing about an unknown object.
_COMMON = frozenset(name for kind in (dict, list, set, str, bytes, int, float) for name in dir(kind)) | frozenset(
    """
    init apply step run save restore load close read write open start stop join result submit wait done map filter sum
    mean min max reshape astype at shape dtype size T item tolist replace call update flush log info lower compile trace
    eval train reset next send put fit build create register name state params config model forward""".split()
)
# What programs call their settings, whose fields may be named after any class, and words in their class names.
_SETTINGS = frozenset("args config cfg conf flags opt opts options hparams hps settings namespace FLAGS".split())
_SETTINGS_CLASSES = ("config", "args", "argument", "option", "setting", "param", "flag", "spec")
# Annotations that say nothing about the class.
_OPEN = names("open_modules")


class ByName:
    """Finds classes by the attributes that they have. One per evaluator."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self.project = evaluator.project
        self._classes_of: dict[Path, list[tuple[str, FunctionRef]]] = {}

    def method(self, base: Value, name: str, frame: Frame) -> Values:
        """The only method of this name, in the file that uses it or else in the project, bound to an unknown object."""
        if isinstance(base, Unknown) and ("_" not in name or name in self.ev.knowledge.methods):
            return ANYTHING  # any library may use a single word
        called = base.name.replace("_", "").lower() if isinstance(base, Free) else ""
        if is_common(name) and not called:
            return ANYTHING
        owners = [o for o in self.project.methods_by_name.get(name, ()) if o != frame.ref]
        classes = [cls for o in owners if (cls := self.project.enclosing_class(o)) is not None]
        namesakes = self._namesakes(called, classes, base, frame) if isinstance(base, Free) and called else []
        if is_common(name) and not namesakes:
            return ANYTHING
        owner = self._only(self._admitted(base, namesakes or classes), frame.ref.path)
        if owner is None:
            return ANYTHING
        return self.ev.objects.in_lineage([owner], name, Instance(owner)) or ANYTHING

    def _namesakes(self, called: str, classes: list[FunctionRef], base: Free, frame: Frame) -> list[FunctionRef]:
        """The classes that an object is named after: `learner` is a `Learner`, unless a `SlowLearner` fits as well.

        In that case it is a class if that is the only one with a fitting name that its file defines or imports, and if
        it has every attribute that the function reads from the object.
        """
        named = [(self.project.function(cls).name.lower(), cls) for cls in classes]
        alike = [(name, cls) for name, cls in named if name.endswith(called)]
        if all(name == called for name, _ in alike):
            return [cls for _, cls in alike]
        named_so = [ref for name, ref in self._visible(base.ref.path) if name.endswith(called)]
        only = len(named_so) == 1 and any(cls == named_so[0] for _, cls in alike)
        return named_so if only and self._has(named_so[0], self._asked(frame, base.name)) else []

    def _visible(self, path: Path) -> list[tuple[str, FunctionRef]]:
        """The classes that a file defines, or imports by name, each with its name in lower case."""
        if path not in self._classes_of:
            functions = self.project.modules[path].summary.functions
            found = [(each.name.lower(), FunctionRef(path, each.index)) for each in functions if each.kind == "class"]
            top = self.ev.free_frame(FunctionRef(path, 0))
            for number, imported in top.code.of_kind(s.Import):
                for value in self.ev.value(top, number) if imported.name is not None else ():
                    if isinstance(value, ClassValue):
                        found.append((self.project.function(value.ref).name.lower(), value.ref))
            self._classes_of[path] = found
        return self._classes_of[path]

    @staticmethod
    def _asked(frame: Frame, name: str) -> set[str]:
        """The attributes that a function reads from a name."""
        operations = frame.code.operations
        attributes = ((o, operations[o.base]) for _, o in frame.code.of_kind(s.Attribute))
        return {o.name for o, asked in attributes if isinstance(asked, s.Load) and asked.name == name}

    def _has(self, cls: FunctionRef, names: set[str]) -> bool:
        """Whether a class itself defines or stores all of these attributes."""
        methods, stores = self.project.methods(cls), self.project.function(cls).stores
        return names <= self.ev.objects.attribute_stores(cls).keys() | methods.keys() | stores.keys()

    def owners(self, frame: Frame, number: int, name: str) -> Values:
        """The object an attribute is read from: if it is unknown, the only class with an attribute of that name."""
        bases = self.ev.value(frame, number)
        if not all(isinstance(base, (Free, Unknown)) for base in bases) or is_common(name):
            return bases
        classes = self._owners.get(name, [])
        if self._is_settings(frame, number) or any(isinstance(b, Free) and b.name in _SETTINGS for b in bases):
            named = ((cls, self.project.function(cls).name.lower()) for cls in classes)
            classes = [cls for cls, name in named if any(word in name for word in _SETTINGS_CLASSES)]
        for base in bases:
            classes = self._admitted(base, classes)
        owner = self._only(classes, frame.ref.path)
        return frozenset((Instance(owner),)) if owner is not None else bases

    @staticmethod
    def _is_settings(frame: Frame, number: int) -> bool:
        """Whether a value is part of the settings: ``config.dataset`` is named like a data set, but is not one."""
        operation = frame.code.operations[number]
        while isinstance(operation, s.Attribute):
            operation = frame.code.operations[operation.base]
            if isinstance(operation, (s.Load, s.Attribute)) and operation.name in _SETTINGS:
                return True
        return False

    def _only(self, classes: list[FunctionRef], user: Path) -> ClassValue | None:
        """The only one of some classes in the file that uses it, or in the files of the same component."""
        component = self.project.component
        near = [cls for cls in classes if component[cls.path] == component[user]]
        near = [cls for cls in near if cls.path == user] or near
        return self.ev.objects.class_of(near[0]) if len(near) == 1 else None

    def _admitted(self, base: Value, classes: list[FunctionRef]) -> list[FunctionRef]:
        """The classes that an object may belong to, according to its annotation."""
        objects = self.ev.objects
        declared = objects.annotations.declared(base) if classes and isinstance(base, Free) else None
        if isinstance(declared, ClassValue):
            if any(name in PROTOCOLS for name in objects.library_bases(declared)):
                return classes
            kin = {each.ref for each in (*objects.lineage(declared), *objects.subclasses.get(declared.ref, ()))}
            return [cls for cls in classes if cls in kin]
        if isinstance(declared, External) and not declared.name.startswith(_OPEN):
            return [cls for cls in classes if declared.name in objects.library_bases(objects.class_of(cls))]
        return classes

    @cached_property
    def _owners(self) -> dict[str, list[FunctionRef]]:
        """The classes that have an attribute, by its name: those whose methods store it, and those that define it."""
        objects = self.ev.objects
        found: dict[str, list[FunctionRef]] = {}
        for ref in self.project.functions():
            if self.project.function(ref).kind == "class":
                names = {*objects.attribute_stores(ref), *self.project.methods(ref), *self.project.function(ref).stores}
                for name in names:
                    found.setdefault(name, []).append(ref)
        return found

    def only_class_with(self, method: str, frame: Frame, number: int) -> ClassValue | None:
        """The only class of a file that defines a special method, for a parameter about which nothing is known.

        The class must have every attribute that the function reads from the parameter.
        """
        function = self.ev.function(frame)
        load = function.operations[number]
        if not isinstance(load, s.Load) or not all(isinstance(v, Free) for v in self.ev.value(frame, number)):
            return None
        owners = [o for o in self.project.methods_by_name.get(method, ()) if o.path == frame.ref.path]
        cls = self.project.enclosing_class(owners[0]) if len(owners) == 1 else None
        if cls is None:
            return None
        return self.ev.objects.class_of(cls) if self._has(cls, self._asked(frame, load.name)) else None


def is_common(name: str) -> bool:
    """Whether methods of every library share this name."""
    return name in _COMMON or name.startswith("__")
