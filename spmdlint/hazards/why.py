"""The reasons of a finding: the shortest way back from a value to the source of one kind of cause.

The search goes backwards along the edges that the solver of the facts used: from an operation to those it is made of,
from a phi to the branches that decide it, from a cell to the operations of its writers. No analysis reads a reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from spmdlint.core.evaluation import Evaluation
from spmdlint.core.ssa import NOTHING, Definition
from spmdlint.core.values import Class, External, Function, Member, ModuleValue, Object, Result, Site, Value
from spmdlint.domains.content import BIT, Content, Mask, any_facet
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import inputs

Node: TypeAlias = tuple[object, ...]
"""An operation ("at", function, number), a phi ("phi", function, number), or the key of a cell."""
MAX_NODES = 4000


class Reason(Struct, frozen=True):
    """Why a value has a cause: the step at a site, and the reason before it. ``kind`` is that of the source."""

    site: Site
    text: str
    kind: str
    before: Reason | None = None

    def chain(self) -> list[Reason]:
        """The steps from the source to this one."""
        found: list[Reason] = []
        step: Reason | None = self
        while step is not None:
            found.append(step)
            step = step.before
        return found[::-1]

    @property
    def source(self) -> Reason:
        return self.chain()[0]


class Why:
    """Rebuilds reasons. One per run."""

    def __init__(self, evaluation: Evaluation, content: Content) -> None:
        self.ev = evaluation
        self.content = content

    def of(self, ref: FunctionRef, number: int, kind: str) -> Reason:
        """Why an operation has a cause of a kind."""
        bit = BIT[kind]
        start: Node = ("at", ref, number)
        came_from: dict[Node, Node | None] = {start: None}
        pending = deque([start])
        end = start
        while pending and len(came_from) < MAX_NODES:
            node = pending.popleft()
            before = list(self._before(node, bit))
            if not before and node[0] == "at" and self._is_source(node, bit):
                end = node
                break
            for each in before:
                if each not in came_from:
                    came_from[each] = node
                    pending.append(each)
        else:
            end = start
        return self._reason(end, came_from, kind)

    def source(self, ref: FunctionRef, number: int, kind: str) -> str:
        """The name of the library's function that is the source of a cause; empty if it is none."""
        site = self.of(ref, number, kind).source.site
        evaluated = self.ev.functions[site.ref]
        call = evaluated.calls.get(site.number)
        callees = self.ev.callees(call.callees) if call is not None else evaluated.values[site.number]
        for a in callees:
            if isinstance(a, External):
                return a.name
            if isinstance(a, Member) and isinstance(a.base, Result):
                return self.ev.knowledge.outside(f"{a.base.name}.{a.name}")
        return ""

    def _reason(self, end: Node, came_from: dict[Node, Node | None], kind: str) -> Reason:
        found: Reason | None = None
        node: Node | None = end
        seen: set[Site] = set()
        while node is not None:
            site, text = self._step(node, kind, first=found is None)
            if site is not None and text and site not in seen:
                seen.add(site)
                found = Reason(site, text, kind, found)
            node = came_from[node]
        if found is None:
            assert end[0] == "at"
            found = Reason(Site(end[1], end[2]), f"this differs between processes ({kind})", kind)  # type: ignore[arg-type]
        return found

    # -- the way back

    def _has(self, ref: FunctionRef, number: int, bit: Mask) -> bool:
        return bool(any_facet(self.content.of(ref, number)) & bit)

    def _before(self, node: Node, bit: Mask) -> Iterator[Node]:
        head = node[0]
        if head == "at":
            yield from self._before_operation(node[1], node[2], bit)  # type: ignore[arg-type]
        elif head == "phi":
            yield from self._before_phi(node[1], node[2], bit)  # type: ignore[arg-type]
        else:
            yield from self._before_cell(node, bit)

    def _definition(self, ref: FunctionRef, definition: Definition) -> Node | None:
        if definition == NOTHING:
            return None
        return ("at", ref, definition) if definition >= 0 else ("phi", ref, NOTHING - 1 - definition)

    def _carries(self, node: Node, bit: Mask) -> bool:
        if node[0] == "at":
            return self._has(node[1], node[2], bit)  # type: ignore[arg-type]
        if node[0] == "phi":
            facts = self.content.functions.get(node[1])  # type: ignore[call-overload]
            if facts is None:
                return False
            mask = self.content.concrete(node[1], facts.phis[node[2]])  # type: ignore[arg-type]
            return bool(any_facet(mask) & bit)
        if node[0] == "result":
            return bool(any_facet(self.content.concrete(node[1], self.content.read(node))) & bit)  # type: ignore[arg-type]
        return bool(any_facet(self.content.read(node)) & bit)

    def _before_phi(self, ref: FunctionRef, number: int, bit: Mask) -> Iterator[Node]:
        ssa = self.ev.structure.ssa(ref)
        phi = ssa.phis[number]
        for definition in phi.definitions:
            node = self._definition(ref, definition)
            if node is not None and self._carries(node, bit):
                yield node
        for block in ssa.gates(phi):
            test = ssa.blocks[block].test
            if test is not None and self._has(ref, test, bit):
                yield ("at", ref, test)

    def _before_operation(self, ref: FunctionRef, number: int, bit: Mask) -> Iterator[Node]:
        o = self.ev.project.function(ref).operations[number]
        for each in self._made_from(ref, number, o):
            if self._carries(each, bit):
                yield each

    def _made_from(self, ref: FunctionRef, number: int, o: s.Operation) -> Iterator[Node]:
        values = self.ev.functions[ref].values
        if isinstance(o, s.Load):
            yield from self._before_load(ref, number, o)
        elif isinstance(o, s.Parameter):
            yield ("entry", ref, o.name)
        elif isinstance(o, s.Attribute):
            yield from self._fields(values[o.base], o.name)
            yield ("at", ref, o.base)
        elif isinstance(o, s.Call):
            yield from self._before_call(ref, number, o)
        elif isinstance(o, s.Collected):
            yield ("at", ref, o.element)
            ssa = self.ev.structure.ssa(ref)
            for block in ssa.controlling(ssa.function.block_of[o.element]):
                test = ssa.blocks[block].test
                if test is not None:
                    yield ("at", ref, test)
        elif isinstance(o, s.Return):
            if o.value is not None:
                yield ("at", ref, o.value)
        elif isinstance(o, s.StoreAttribute | s.StoreSubscript):
            yield ("at", ref, o.value)
        else:
            for each in inputs(o):
                yield ("at", ref, each)
            if isinstance(o, (s.Matches, s.Captured)):
                yield ("at", ref, o.subject)
        for given in (o.iterable,) if isinstance(o, s.Next) else (o.base,) if isinstance(o, s.Subscript) else ():
            yield from self._items(values[given])

    def _before_load(self, ref: FunctionRef, number: int, o: s.Load) -> Iterator[Node]:
        ssa = self.ev.structure.ssa(ref)
        definition = ssa.loads.get(number)
        if definition is None or definition == NOTHING:
            yield from self._outer(ref, o.name)
            return
        node = self._definition(ref, definition)
        if node is not None:
            yield node
        for loop in ssa.left_between(ssa.block_of(definition), ssa.function.block_of[number]):
            for block in loop.exits:
                test = ssa.blocks[block].test
                if test is not None:
                    yield ("at", ref, test)

    def _outer(self, ref: FunctionRef, name: str) -> Iterator[Node]:
        summary = self.ev.project.modules[ref.path].summary
        scope = summary.scope_of(self.ev.project.function(ref), name)
        if scope is not None:
            yield ("variable", self.ev.project.ref(ref.path, scope.index), name)
        else:
            yield ("global", ref.path, name)

    def _fields(self, base: Value, name: str) -> Iterator[Node]:
        for a in self.ev.resolved(base):
            if isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                classes = [a.kind, *self.ev.derived(a.kind)] if a.site is None else [a.kind]
                for cls in classes:
                    for owner in self.ev.lineage(cls):
                        yield ("field", owner, name)
                        yield ("attribute", owner, name)
                    for held in self.ev.class_attribute(cls, name) or ():
                        if isinstance(held, Function) and self.ev.roles.get(held.ref) == "property":
                            yield ("result", held.ref)
            elif isinstance(a, Result):
                yield ("field", a.site, name)
            elif isinstance(a, ModuleValue):
                yield ("global", a.path, name)
            elif isinstance(a, Class):
                for owner in self.ev.lineage(a.ref):
                    yield ("attribute", owner, name)

    def _items(self, value: Value) -> Iterator[Node]:
        for a in self.ev.resolved(value):
            if isinstance(a, Object) and isinstance(a.kind, str):
                yield ("item", a.site, a.kind)

    def _before_call(self, ref: FunctionRef, number: int, o: s.Call) -> Iterator[Node]:
        call = self.ev.functions[ref].calls.get(number)
        for a in self.ev.callees(call.callees) if call is not None else ():
            if isinstance(a, Function):
                yield ("result", a.ref)
            elif isinstance(a, Member) and isinstance(a.base, Object):
                yield ("item", a.base.site, a.base.kind)
        for argument in o.arguments:
            yield ("at", ref, argument.value)
            yield from self._items(self.ev.functions[ref].values[argument.value])
        method = self.ev.project.function(ref).operations[o.function]
        if isinstance(method, s.Attribute):
            yield ("at", ref, method.base)
        yield ("at", ref, o.function)

    def _before_cell(self, node: Node, bit: Mask) -> Iterator[Node]:
        kind = node[0]
        for writer in self.content.cells.writers(node):
            for each in self._writing(kind, node, writer):
                if self._carries(each, bit):
                    yield each
            for runs in ("runs", "registered"):
                if any_facet(self.content.read((runs, writer))) & bit and kind not in ("entry", "result", "runs"):
                    yield (runs, writer)

    def _writing(self, kind: object, node: Node, writer: FunctionRef) -> Iterator[Node]:
        """The operations by which a function may have written a cell."""
        function, ssa = self.ev.project.function(writer), self.ev.structure.ssa(writer)
        if kind == "result":
            definition = self._definition(writer, ssa.result)
            if definition is not None:
                yield definition
            for number, o in enumerate(function.operations):
                if isinstance(o, (s.Return, s.Yield)):
                    yield ("at", writer, number)
        elif kind in ("entry", "runs", "registered"):
            yield from self._calling(kind, node, writer)
        elif kind == "field":
            for number, o in enumerate(function.operations):
                if isinstance(o, s.StoreAttribute) and o.name == node[2]:
                    yield ("at", writer, number)
                    yield from self._around(writer, number)
            if function.kind == "class":
                yield ("entry", writer, node[2])
        elif kind == "item":
            yield from self._putting(writer)
        else:
            for number in function.stores.get(str(node[2]), ()):
                yield ("at", writer, number)
                yield from self._around(writer, number)
            yield from (("phi", writer, number) for number, phi in enumerate(ssa.phis) if phi.name == node[2])

    def _putting(self, writer: FunctionRef) -> Iterator[Node]:
        """The operations by which a function puts elements into containers."""
        for number, o in enumerate(self.ev.project.function(writer).operations):
            if isinstance(o, (s.StoreSubscript, s.Display, s.DictDisplay, s.Collected)):
                yield ("at", writer, number)
                yield from self._around(writer, number)
            elif isinstance(o, s.Call):
                yield from (("at", writer, a.value) for a in o.arguments)
                yield from self._around(writer, number)

    def _calling(self, kind: object, node: Node, writer: FunctionRef) -> Iterator[Node]:
        function = self.ev.project.function(writer)
        for number, call in self.ev.functions[writer].calls.items():
            o = function.operations[number]
            runs = (each.ref for each in self.ev.callees(call.callees) if isinstance(each, (Function, Class)))
            targets = {target for ref in runs for target in (ref, self.ev.method(ref, "__init__"))}
            if node[1] in targets and isinstance(o, s.Call):
                if kind != "entry":
                    yield from self._around(writer, number)
                    yield (str(kind), writer)
                else:
                    yield from (("at", writer, a.value) for a in o.arguments)
                    method = function.operations[o.function]
                    if isinstance(method, s.Attribute):
                        yield ("at", writer, method.base)

    def _around(self, ref: FunctionRef, number: int) -> Iterator[Node]:
        ssa = self.ev.structure.ssa(ref)
        for block in ssa.controlling(ssa.function.block_of[number]):
            test = ssa.blocks[block].test
            if test is not None:
                yield ("at", ref, test)

    def _is_source(self, node: Node, bit: Mask) -> bool:
        return self._has(node[1], node[2], bit)  # type: ignore[arg-type]

    # -- in words

    def _step(self, node: Node, kind: str, *, first: bool) -> tuple[Site | None, str]:
        if node[0] != "at":
            return None, ""
        ref, number = node[1], node[2]
        assert isinstance(ref, FunctionRef)
        assert isinstance(number, int)
        o = self.ev.project.function(ref).operations[number]
        site = Site(ref, number)
        if first:
            return site, self._source_text(ref, number, o)
        if isinstance(o, s.Store):
            return site, f"{o.name} is set from it" if not o.name.startswith("<") else ""
        if isinstance(o, s.StoreAttribute):
            return site, f"it is stored in the field {o.name}"
        if isinstance(o, s.Return):
            return site, f"{self.ev.project.function(ref).name}() returns it"
        if isinstance(o, s.Call):
            method = self.ev.project.function(ref).operations[o.function]
            name = method.name if isinstance(method, (s.Attribute, s.Load)) else ""
            return site, f"{name}() gives it" if name else ""
        return None, ""

    def _source_text(self, ref: FunctionRef, number: int, o: s.Operation) -> str:
        call = self.ev.functions[ref].calls.get(number)
        if call is not None:
            for a in self.ev.callees(call.callees):
                if isinstance(a, External):
                    return f"{a.name}() differs between processes"
            if isinstance(o, s.Call):
                method = self.ev.project.function(ref).operations[o.function]
                if isinstance(method, s.Attribute):
                    return f".{method.name}() may differ between processes"
        for a in self.ev.functions[ref].values[number]:
            if isinstance(a, External):
                return f"{a.name} differs between processes"
        if isinstance(o, s.Subscript):
            return "this variable is the process's rank"
        if isinstance(o, s.Caught):
            return "this exception comes from outside, to one process and not to another"
        return "this differs between processes"
