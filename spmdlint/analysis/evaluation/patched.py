"""Attributes that are set from outside: not by the methods of their class, but on one of its objects or on the class.

Then an attribute may be anything else than what the class says, and nothing is certain of it any more. So that one such
line does not silence all classes of a project, it counts only for those that it may be about: if the object is known,
its class, and the bases and subclasses of that; otherwise, all classes in which the attribute is a field. A method is
not replaced on an object of which nobody knows whether it has it. What tests set, they set for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.receivers import is_receiver
from spmdlint.analysis.evaluation.values import ClassValue, Frame, Free, Instance, Unknown, Values
from spmdlint.program.testfiles import is_test

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator


class Patched:
    """Such attributes. One per evaluator."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self.project = evaluator.project
        self._root = self.project.roots[-1]
        self._known: dict[tuple[str, int, bool], tuple[tuple[Frame, int], ...]] = {}

    def on(self, cls: ClassValue, name: str) -> bool:
        """Whether an attribute of a class, or of its objects, may be set from outside."""
        return any(self._concerns(frame, base, cls, name) for frame, base in self._sets(name, cls.ref.path))

    def on_in(self, cls: ClassValue, name: str, reader: Path) -> bool:
        """Whether tests may have set the attribute for what reads it, which is in a file of tests itself."""
        if not is_test(reader, self._root) or is_test(cls.ref.path, self._root):
            return False
        return any(self._concerns(frame, base, cls, name) for frame, base in self._sets(name, reader))

    def on_others(self, name: str, reader: Path) -> bool:
        """Whether the attribute is set on anything that is not known to be of a class of the project.

        What a function sets on its first parameter is not counted: such a function completes the object that it gets,
        and what it stores is known.
        """
        return any(
            not is_receiver(frame.code.function, base)
            and not all(isinstance(value, (Instance, ClassValue)) for value in self._bases(frame, base))
            for frame, base in self._sets(name, reader)
        )

    def _sets(self, name: str, reader: Path) -> tuple[tuple[Frame, int], ...]:
        """Where the attribute is set in files that are connected with one, and the object that it is set on."""
        if name not in self.project.attributes_set:
            return ()
        key = (name, self.project.component[reader], is_test(reader, self._root))
        if key not in self._known:
            self._known[key] = tuple(self._find(*key))
        return self._known[key]

    def _find(self, name: str, component: int, by_tests: bool) -> Iterator[tuple[Frame, int]]:
        for ref, base in self.project.attributes_set[name]:
            if self.project.component[ref.path] == component and (by_tests or not is_test(ref.path, self._root)):
                yield self.ev.free_frame(ref), base

    def _concerns(self, frame: Frame, base: int, cls: ClassValue, name: str) -> bool:
        lineage = {each.ref for each in self.ev.objects.lineage(cls)}
        for value in self._bases(frame, base):
            if isinstance(value, (Free, Unknown)):
                if not any(name in self.project.methods(each) for each in lineage):
                    return True
            elif isinstance(value, (Instance, ClassValue)):
                other = value.cls if isinstance(value, Instance) else value
                if other.ref in lineage or cls in self.ev.objects.lineage(other):
                    return True
        return False

    def _bases(self, frame: Frame, base: int) -> Values:
        """The objects, or classes, on which an attribute is set."""
        own = self.project.enclosing_class(frame.ref)
        if own is not None and is_receiver(frame.code.function, base):
            return frozenset((self.ev.objects.class_of(own),))
        return self.ev.value(frame, base)
