"""What every process does although one is meant to: start the run of a tracker, write the file of a path, read a name.

The run, or the name, is there on some processes only, if a condition tells them apart where it is started or bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects
from spmdlint.analysis.callgraph.entries import upstream
from spmdlint.analysis.divergence.paths import opens_to_write
from spmdlint.analysis.evaluation.intent import handles
from spmdlint.analysis.evaluation.transfers import rows_of
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Site
from spmdlint.analysis.variance.content import STAMP
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.guarded import (
    called_by_some,
    decided,
    done_by_some,
    set_by_another,
    tells_when,
    tells_who,
)
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.reason import PARTS, of_kind, surest
from spmdlint.analysis.variance.truth import PLAIN, of_truth
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Once
from spmdlint.knowledge.startup import startup
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.testfiles import is_test

_IN_MEMORY = names("files_in_memory")
_ALIKE = frozenset(("data", "files", "listing", "records", "set", "shuffled", STAMP))
_Unset: TypeAlias = tuple[int, str, Reason, bool]
"""A use of what some processes lack, what that is, why they do, and whether it is a name or a field of the program."""
_Step: TypeAlias = tuple[Frame, int, bool, tuple[Site, ...]]
"""A call on a way, whether a function before it is of several processes, and the first call of the way."""
_CALLERS = 8
"""How many levels of callers are asked for the process."""


class DoneByAll(Struct, frozen=True):
    """A call that every process makes, and what it does; ``unset`` says why most lack what it needs.

    ``bound``: what they lack is a name or a field of the program, and not what a library's function sets.
    ``path`` are the calls that lead there, the nearest first, and other calls of its function; ``meets`` is a call on
    this way that all processes make, ``own`` why what each of them writes is its own, and ``connects`` where they are
    connected before in any case.
    """

    site: Site
    name: str
    what: Once | None
    unset: Reason | None = None
    bound: bool = False
    path: tuple[Site, ...] = ()
    meets: Site | None = None
    own: Reason | None = None
    connects: Site | None = None


class DoneByAllSearch:
    """Finds the calls in programs of several processes that nothing leaves to one of them. One per run.

    With ``preview`` also all files, and not only those on whose way all processes make a parallel call, whose content
    differs between processes, or which come after the program has connected its processes.
    """

    def __init__(self, effects: Effects, multi: MultiProcess, content: Origins, *, preview: bool) -> None:
        self.ev = evaluator = effects.ev
        self.reach = effects.reach
        self.effects = effects
        self.multi = multi
        self.content = content
        self.preview = preview
        self.control = evaluator.once(Control)
        setters = {known.set_by for known in evaluator.knowledge.functions.values() if known.set_by}
        self._unset: dict[FunctionRef, dict[str, Reason]] = {}
        self._starting = upstream(evaluator.project, self.reach, setters)
        self._connecting = upstream(evaluator.project, self.reach, startup().initialize)

    def found(self) -> Iterator[DoneByAll]:
        """Each such call."""
        several = self.multi.surely_runs_several
        for ref in self.ev.project.functions():
            if ref not in self.reach.host or is_test(ref.path, self.ev.project.roots[-1]):
                continue
            frame = self.ev.free_frame(ref)
            yield from self._without(frame)
            here = several(ref.path)
            if not (here or self._connecting):
                continue
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                known = next((each for each in rows_of(self.ev, frame, call) if each.once is not None), None)
                if known is None:
                    continue
                what = known.once
                expected = what != "run" and handles(self.ev, frame, number, "OSError", "IOError", "FileExistsError")
                if what == "file" and (self._is_open(frame, call) or (known.reads and not opens_to_write(frame, call))):
                    continue  # what can read as well writes if its mode says so
                taken = what == "folder" and (expected or any(each.keyword == "exist_ok" for each in call.arguments))
                if taken or self._is_for_one(frame, call, what != "run"):  # a folder is taken as it is
                    continue
                own = self._own_content(frame, number, call) if what == "file" and here else None
                paths = list(self._reached_by_all(frame, number, self._concerns))
                for path, anyway in (*((each, False) for each in paths), *((each, self.preview) for each in paths[:1])):
                    way = (Site(ref, number), *path)
                    meets = self._met_on(way, what) if here and own is None else None
                    sure = here and bool(anyway or meets or own or (what == "run" and self.multi.needs(ref.path)))
                    connects = self._connected_before(way) if not (meets or own or expected) else None
                    if sure or connects is not None:
                        led = (*path, *(other[0] for other in paths if other[:1] != path[:1]))
                        yield DoneByAll(way[0], known.name, what, path=led, meets=meets, own=own, connects=connects)
                        break

    def _concerns(self, ref: FunctionRef) -> bool:
        """Whether a function is of several processes: its file needs them, it meets, or it leads to connecting."""
        known = self.multi.needs(ref.path) or ref in self._connecting
        return known or any(each.everyone for each in self.effects.of_function(self.ev.free_frame(ref)))

    def _met_on(self, way: tuple[Site, ...], what: Once | None) -> Site | None:
        """A call that all processes make on the way to a write, before it or after.

        Where the writer tests for the file, or expects to fail, it tells nothing but what is always done before.
        """
        frame, written = self.ev.free_frame(way[0].ref), way[0].number
        tests = decided(self.content, self.control, frame, (written,), None, "", lambda found: found.kind == "files")
        careful = what == "file" and (tests is not None or handles(self.ev, frame, written, "OSError", "IOError"))

        def meets(frame: Frame, number: int, call: s.Call, at: int) -> bool:
            if careful and not frame.code.always_before(number, at):
                return False
            return any(each.everyone and not each.checkpoint for each in self.effects.of_call(frame, number, call))

        return self._call_on(way[:1] if careful else way, meets)

    def _connected_before(self, way: tuple[Site, ...]) -> Site | None:
        """A call on a way, in whichever case, by which the program has connected its processes, or a function of it."""

        def connects(frame: Frame, number: int, call: s.Call, at: int) -> bool:
            called = {each.ref for each in self.ev.value(frame, call.function) if isinstance(each, FunctionValue)}
            known = called & self._connecting or self.ev.may_call(frame, call, *startup().initialize)
            return number < at and bool(known)

        return self._call_on(way, connects) if self._connecting else None

    def _call_on(self, way: tuple[Site, ...], counts: Callable[[Frame, int, s.Call, int], bool]) -> Site | None:
        """The first call on a way that counts, and that one run can make as well as the step of the way beside it."""
        for at in way:
            frame = self.ev.free_frame(at.ref)
            block_of, flow = frame.code.function.block_of, frame.code.flow
            after = flow.reachable(block_of[at.number])
            for number, call in frame.code.of_kind(s.Call):
                one_run = block_of[number] in after or block_of[at.number] in flow.reachable(block_of[number])
                if number != at.number and one_run and counts(frame, number, call, at.number):
                    return Site(at.ref, number)
        return None

    def _without(self, frame: Frame) -> Iterator[DoneByAll]:
        """The first use in a function of a run, and of each name, that only some processes have, on a way all go."""
        told: set[str] = set()
        for number, name, unset, bound in (*self._runs(frame), *self._names(frame), *self._fields(frame)):
            key = name if bound else ""
            tried = handles(self.ev, frame, number, "AttributeError", "NameError")
            if key in told or tried or (bound and _may_be_left_out(frame, number)):
                continue
            # What a file does when it runs; of another function nobody knows on which processes it is called.
            program = self._starting.__contains__ if not bound else (lambda at: at.index == 0) if "." in name else bool
            path = next(self._reached_by_all(frame, number, program), None)
            asks = s.Const(name.rpartition(".")[2])  # hasattr(self, "name")
            asking = (asks in self.ev.code(at.ref).operations for at in (Site(frame.ref, number), *(path or ())))
            if path is not None and not any(asking):
                told.add(key)
                yield DoneByAll(Site(frame.ref, number), name, "run", unset, bound, path)

    def _runs(self, frame: Frame) -> Iterator[_Unset]:
        """The uses of what a function of a library sets, if only some processes call it."""
        for number, read in frame.code.of_kind(s.Attribute) if self._starting else ():
            needing = set_by_another(self.ev, frame, number)
            if needing is None or needing.attribute:  # it may be tested; what is read of it may not be read
                needing = set_by_another(self.ev, frame, read.base)
                if needing is None or not needing.attribute:
                    continue
            unset = done_by_some(self.content, self.control, frame, needing.set_by)
            if unset is not None:
                yield number, needing.name, unset, False

    def _names(self, frame: Frame) -> Iterator[_Unset]:
        """The reads of local names that only some processes have bound before."""
        function = frame.code.function
        formals = {formal.name for formal in function.formals}
        for number, load in frame.code.of_kind(s.Load):
            if load.name not in formals and function.binds(load.name):
                before = frame.code.flow.reaching(number, load.name)
                unset = self._in_one_arm(frame, before, function.block_of[number])
                if unset is not None:
                    yield number, load.name, unset, True

    def _fields(self, frame: Frame) -> Iterator[_Unset]:
        """The reads of fields that only some processes ever set, in methods that always read them of their own object.

        A condition may well hold on the same processes only.
        """
        cls, code = self.ev.project.enclosing_class(frame.ref), frame.code
        unset = self._unset_fields(cls) if cls is not None and code.function.formals else {}
        for block, number, read in code.each((s.Attribute,)) if unset else ():
            base = code.operations[read.base]
            mine = isinstance(base, s.Load) and base.name == code.function.formals[0].name
            if mine and read.name in unset and block in self.reach.certainty.blocks(frame):
                yield number, f"self.{read.name}", unset[read.name], True

    def _unset_fields(self, cls: FunctionRef) -> Mapping[str, Reason]:
        """The fields of a class and its subclasses that only some processes set, and why."""
        if cls not in self._unset:
            objects, made = self.ev.objects, self.ev.objects.class_of(cls)
            kin = [each.ref for each in (*objects.lineage(made), *objects.subclasses.get(cls, ()))]
            declared = {name for ref in kin for name in self.ev.project.function(ref).stores}
            why: dict[str, list[Reason | None]] = {}
            for name, sites in (each for ref in kin for each in objects.attribute_stores(ref).items()):
                for method in dict.fromkeys(at for at, _ in sites):
                    stores = [number for at, number in sites if at == method]
                    some = self._in_one_arm(self.ev.free_frame(method), stores, None)
                    why.setdefault(name, []).append(some or called_by_some(self.content, self.control, method))
            surely = why.keys() - declared if PLAIN.issuperset(objects.library_bases(made)) else frozenset[str]()
            self._unset[cls] = {name: each for name in surely if None not in why[name] for each in why[name] if each}
        return self._unset[cls]

    def _in_one_arm(self, frame: Frame, stores: Collection[int], use: int | None) -> Reason | None:
        """Why only some processes make any of these stores: they are in one arm of a branch that tells these apart.

        If a loop comes back to both the branch and the block ``use``, an earlier round may have made them.
        """
        block_of, flow = frame.code.function.block_of, frame.code.flow
        for branch in self.control.choosing(frame, stores, use):
            alike = any(all(block_of[each] in arm for each in stores) for arm in (branch.yes, branch.no))
            again = {*flow.loops_around(branch.block)} & {*(flow.loops_around(use) if use is not None else ())}
            found = of_truth(self.content, frame, branch.test) if alike and not again else None
            if found is not None and tells_who(found):
                return found.then(Site(frame.ref, branch.test), "whether it is set depends on this")
        return None

    def _is_open(self, frame: Frame, call: s.Call) -> bool:
        """Whether a call writes into what is open already: a file, whose path has been judged, or memory."""
        code = frame.code
        for made in (code.operations[code.root_of(argument.value)] for argument in call.arguments):
            if isinstance(made, s.Enter) or self.ev.may_call(frame, made, *_IN_MEMORY):
                return True
            if isinstance(made, s.Call) and any(each.once == "file" for each in rows_of(self.ev, frame, made)):
                return True
        return False

    def _own_content(self, frame: Frame, number: int, call: s.Call) -> Reason | None:
        """Why what a call writes, or what is written into the file that it opens, differs between processes."""
        code = frame.code
        given = [argument.value for argument in call.arguments]
        opened = {at for at, enter in code.of_kind(s.Enter) if code.root_of(enter.manager) == number} | {number}
        for _, other in code.of_kind(s.Call):
            taken = code.taken_by(other)
            if any(code.root_of(each) in opened for each in taken):
                given += [each for each in taken if code.root_of(each) not in opened]
        return of_kind(surest(self.content.why(frame, each) for each in given), "identity", "group", *PARTS)

    def _is_for_one(self, frame: Frame, call: s.Call, writes: bool) -> bool:
        """Whether what a call is given tells the processes apart, such as a path of their own.

        A file may be told apart by the time or by chance, but each process still starts a run.
        """
        told = [found for each in frame.code.taken_by(call) if (found := self.content.why(frame, each)) is not None]
        return any(_tells_apart(each) and (writes or not tells_when(each)) for each in told)

    def _reached_by_all(
        self, frame: Frame, number: int, concerns: Callable[[FunctionRef], bool]
    ) -> Iterator[tuple[Site, ...]]:
        """Ways to a call with a function that it ``concerns``, on which no condition tells the processes apart.

        A way is the calls that lead there, the nearest first; of each nearest one there is one way.
        """
        latest: dict[_Step, tuple[Site, ...]] = {(frame, number, False, ()): ()}
        seen, told = set(latest), set[tuple[Site, ...]]()
        for _ in range(_CALLERS):
            further: dict[_Step, tuple[Site, ...]] = {}
            for (at, place, several, begun), path in latest.items():
                decides = [
                    decided(self.content, self.control, inside, places, None, "", _leaves_out)
                    for inside, places in ((at, (place,)), *_definition(at))
                ]
                method = at.code.operations[getattr(at.code.operations[place], "function", place)]
                if path and isinstance(method, s.Attribute):  # an object that only some processes have
                    decides.append(of_kind(self.content.why(at, method.base), "identity", "group"))
                if begun in told or any(decides):
                    continue
                callers = self.reach.callers.get(at.ref, ())
                edges = [edge for edge in callers if not is_test(edge.caller.ref.path, self.ev.project.roots[-1])]
                if (several := several or concerns(at.ref)) and not edges:
                    told.add(begun)
                    yield path
                block = at.code.function.block_of[place]
                for edge in (each for each in edges if block in self.ev.live_blocks(each.target.frame)):
                    further.setdefault((edge.caller, edge.number, several, begun or (edge.site,)), (*path, edge.site))
            latest = {step: path for step, path in further.items() if step not in seen}
            seen |= latest.keys()


def _may_be_left_out(frame: Frame, number: int) -> bool:
    """Whether an operation is in an operand that ``and``, ``or`` or a conditional expression may not evaluate."""
    either = ((o.operands[0], at) for at, o in frame.code.of_kind(s.BoolOp))
    return any(first < number < at for first, at in (*either, *((o.test, at) for at, o in frame.code.of_kind(s.IfExp))))


def _definition(frame: Frame) -> Iterator[tuple[Frame, tuple[int, ...]]]:
    """Where a nested function is defined: what holds there holds for its calls."""
    if frame.outer is not None:
        yield frame.outer, tuple(frame.outer.code.made_at.get(frame.ref.index, ()))


def _leaves_out(reason: Reason) -> bool:
    """Whether a condition tells the processes apart, and not only the moments at which each of them does it."""
    return _tells_apart(reason) and not tells_when(reason)


def _tells_apart(reason: Reason | None) -> bool:
    """Whether a difference tells the processes apart: all of them may find the same files, or have data to write."""
    return reason is not None and any(each.kind not in _ALIKE for each in reason.each())
