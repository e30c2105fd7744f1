"""The state of interception: which executables span processes, what they are, and which call is in progress."""

from __future__ import annotations

import os
import re
import sys
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from spmdlint.runtime_checks.agreement.setup import meaningful
from spmdlint.runtime_checks.agreement.this_process import ThisProcess
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.communication import (
    Communication,
    combined,
    compiled_communicates,
    lowered_communicates,
)
from spmdlint.runtime_checks.calls.fingerprint import Program, configuration, key_order
from spmdlint.runtime_checks.calls.frames import entered, user_site
from spmdlint.runtime_checks.calls.given import Given
from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.calls.modules import canonical, digest, pack_texts
from spmdlint.runtime_checks.calls.named import Caller
from spmdlint.runtime_checks.calls.recent import Recent
from spmdlint.runtime_checks.intercept.identity import identity_of, is_source
from spmdlint.runtime_checks.recording.journal import Journal

MAX_KEPT = 32 << 20  # maximum size of a module kept to explain a difference; its digest is always taken
LOOKS = 8  # calls of a program, in background mode, for which arrays made of values from the host are looked at
FRESH = 512  # how many executables that are compiled and not yet called are remembered
_GPUS = ("gpu", "cuda", "rocm")
_ALONE = "xla_gpu_shard_autotuning=false"
_TOGETHER = f"for GPUs its processes compile it together, and wait for each other, unless XLA_FLAGS has --{_ALONE}"
_WRAPPED_NAME = re.compile(r"^(?:jit|pmap|pjit)[_(](.*?)\)?$")


@dataclass(slots=True)
class Context:
    """The call of a jitted or mapped function that is in progress in a thread.

    ``agreed`` is the call's origin after the processes have agreed on it before the compilation of ``agreed_module``. A
    ``loose`` context is not removed by its creator: the next execution ends it. ``jaxpr`` is what the arguments are
    given to, None if it is not known. ``broadcast`` are the arguments of old ``pmap`` that are one value: the others
    are this process's rows.
    """

    name: str
    source: str | None
    values: Sequence[Any]
    names: Sequence[str] | None
    static: Mapping[str, str] = field(default_factory=dict)
    jaxpr: Any = None
    broadcast: Collection[int] | None = None
    agreed: str | None = None
    agreed_module: str | None = None
    loose: bool = False


@dataclass
class Compiled:
    """The facts about a module on its way to the compiler.

    ``packed`` are its texts, "canonical" and "located", if known.
    ``together``: its compiler waits until the other processes compile it too.
    """

    devices: tuple[int, ...]
    process_of: tuple[int, ...]
    module: str | None = None
    packed: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    communication: Communication = Communication.NO
    together: bool = False

    def texts(self) -> Mapping[str, str]:
        return self.packed


@dataclass(slots=True)
class Known:
    """An executable that spans processes, including this one.

    ``looks`` is how often it was kept off the fast path for arrays that are made of values from the host, and
    ``broadcasts`` whether it always is, because it has sources.
    """

    program: Program
    compiled: Compiled
    looks: int = 0
    broadcasts: bool = False


@dataclass(slots=True)
class Probe:
    """What the layers see of the calls of a self-test: in Python, and inside the fast path."""

    journal: Journal = field(default_factory=lambda: Journal(Ledger()))
    dispatched: int = 0
    known: Known | None = None

    @property
    def seen(self) -> int:
        self.journal.drain()
        return self.dispatched + self.journal.made


class _Thread(threading.local):
    context: Context | None = None
    inferred: tuple[Any, Mapping[str, str]] = (None, {})  # the function, and its static arguments
    spanning: Any = None
    known: Known | None = None
    hosts: Sequence[tuple[int, str]] = ()
    looks: bool = False
    placing: bool = False
    probe: Probe | None = None
    in_barrier: bool = False
    """Whether a barrier runs, which all processes have agreed on by its name: its program is no call of its own."""


class Observer:
    """Combines the events of the seams into calls. Records of executables die with the executables."""

    def __init__(self, caller: Caller, own: ThisProcess, background: Background | None) -> None:
        self.caller = caller
        self.own = own
        self.guard = caller.guard
        self.background = background
        self.thread = _Thread()
        self.closed = False  # layers that others have wrapped stay in place, and do nothing from then on
        self._fresh: Recent[Any, Compiled] = Recent(FRESH)
        self._known: weakref.WeakKeyDictionary[Any, Known | None] = weakref.WeakKeyDictionary()
        self._debug: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def lowered(self, operation: Any, devices: Sequence[Any], options: Any = None) -> Compiled | None:
        """A module goes to the compiler. None if its devices belong to one process, or none is here.

        ``options`` are the `CompileOptions` of this compilation.

        If the module names a collective between processes and is about to be executed, the processes agree on the
        call now, before they spend half an hour compiling different modules.
        """
        compiled = self.read(operation, devices, options)
        context = self.thread.context
        if compiled is None or context is None or self.caller.me not in compiled.process_of:
            return compiled
        if compiled.communication is Communication.YES:
            known = Known(self._program(compiled, context), compiled)
            context.agreed_module = compiled.module
            used = _used_by(context.jaxpr) if context.broadcast is None else context.broadcast
            context.agreed = self.caller.call(self._call(known, context, context.values, used))
        return compiled

    def read(self, operation: Any, devices: Sequence[Any], options: Any = None) -> Compiled | None:
        """A module, its devices, and the configuration and options with which it is compiled; None if one's own."""
        process_of = tuple(int(device.process_index) for device in devices)
        if len(set(process_of)) < 2:
            return None
        text = canonical(operation.get_asm(enable_debug_info=False))
        texts = {}
        if len(text) < MAX_KEPT:
            located = operation.get_asm(enable_debug_info=True, large_elements_limit=16)
            texts = {"canonical": text, "located": located}
        on_gpus = any(getattr(device, "platform", "") in _GPUS for device in devices)
        given = getattr(options, "env_option_overrides", None) or ()
        overrides = " ".join(meaningful(f"{name}={value}" for name, value in given))
        return Compiled(
            devices=tuple(int(device.id) for device in devices),
            process_of=process_of,
            module=digest(text),
            packed=pack_texts(texts),
            environment=configuration() | ({"compiler_options": overrides} if overrides else {}),
            communication=lowered_communicates(text, process_of),
            together=on_gpus and _ALONE not in os.environ.get("XLA_FLAGS", ""),
        )

    def compiling(self, compiled: Compiled | None) -> None:
        """A compilation begins, or has ended: compilers wait for each other, forever if they got different programs."""
        if compiled is None:
            self.own.compiles(None)
            return
        context = self.thread.context
        name, place = identity_of(context.source, context.name) if context else ("?", None)
        words = f"{name}{f' (defined at {place})' if place else ''}, module {str(compiled.module)[:8]}"
        self.own.compiles(f"{words}; {_TOGETHER}" if compiled.together else words)

    def compiled(self, executable: Any, compiled: Compiled) -> None:
        """The compiler has finished a module that spans processes."""
        if compiled.communication is not Communication.YES:
            compiled.communication = _communication(executable, compiled.process_of)
        self._fresh[executable] = compiled

    def adopt(self, execute: Any, operation: Any, debug: Any) -> None:
        """Record the function of an executable, and the lowered module of one compiled before the checks."""
        if debug is not None and execute not in self._debug:
            self._debug[execute] = debug
        if execute in self._known or execute.xla_executable in self._fresh or operation is None:
            return
        compiled = self.read(operation, devices_of(execute))
        if compiled is not None:
            self.compiled(execute.xla_executable, compiled)

    def executing(self, execute: Any, values: Sequence[Any]) -> tuple[Program, str, Given] | None:
        """An executable is about to be dispatched. None if it does not span processes, or none of them is here."""
        self.thread.hosts, self.thread.looks = (), False
        if self.thread.probe is not None:
            self._probed(execute, self.thread.probe)
            return None
        context = self.thread.context
        known = self._lookup(execute, context)
        if known is None:
            if context is not None and context.loose:
                self.thread.context = None
            return None
        if context is not None and context.agreed is not None and context.agreed_module != known.compiled.module:
            context = None  # a small program before the one that was agreed on, such as the reshard of a constant
        else:
            self.thread.context = None
        self.thread.spanning, self.thread.known = execute.xla_executable, known
        context = context or self._from_debug(execute)
        agreed = context.agreed
        if agreed is None and self.thread.in_barrier:
            return None
        used = _used(execute, values) if context.broadcast is None else context.broadcast
        call = self._call(known, context, values, used)
        known.broadcasts = call.source is not None
        if call.given and self.background is not None:
            self._look_at(call, sorted(used))
        return known.program, self.caller.call(call) if agreed is None else agreed, call.given

    def _probed(self, execute: Any, probe: Probe) -> None:
        """A call of the self-test: it is treated as one that spans processes, and not counted among the program's."""
        probe.dispatched += 1
        self.thread.spanning = execute.xla_executable
        if probe.known is None:
            compiled = Compiled((0,), (self.caller.me,), communication=Communication.YES)
            probe.known = Known(Program("self-test", (self.caller.me,)), compiled)
        self.thread.known = probe.known

    def executed(self, program: Program, origin: str, given: Given, values: Sequence[Any], outputs: Any) -> None:
        """The outputs of a dispatched call exist: tag them."""
        if not isinstance(outputs, list | tuple):
            return
        if not program.communicates and given:
            self.own.values.derived(program.digest, given, outputs, where_called(sys._getframe(1), program.function))
        if self.background is None:
            last = self.own.ledger.last
            site = last.site if last is not None and program.communicates else None
            where = f" (call {last.index}, {site.short})" if last is not None and site is not None else ""
            provenance = self.own.provenance
            tagged = provenance.hand_on(values, outputs) if not program.communicates else frozenset[int]()
            provenance.mark(outputs, origin, f"{program.function}{where}", tagged)

    def spans(self, executable: Any) -> bool:
        """Whether the executable that this thread has just called spans processes."""
        return executable is not None and self.thread.spanning is executable and not self.closed

    def _look_at(self, call: Call, used: Sequence[int]) -> None:
        """Note which arguments of a call, of those that its program uses, come from the host, and which are made of it.

        They are counted from the last.
        """
        last, values = len(call.values) - 1, self.own.values
        backs = enumerate(last - number for number in reversed(used))
        given = [(place, str(back)) for place, back in backs if str(back) in call.given]
        self.thread.hosts = [(place, key) for place, key in given if values.is_from_host(call.values[last - int(key)])]
        self.thread.looks = not call.program.communicates or len(self.thread.hosts) < len(given)

    def is_looked_at(self, known: Known) -> bool:
        """Whether the next call, too, is to come off the fast path, where arrays made of values are not seen.

        What is made anew for each call would never come to it, so this has a bound.
        """
        known.looks += self.thread.looks
        return known.broadcasts or (self.thread.looks and known.looks <= LOOKS)

    def _lookup(self, execute: Any, context: Context | None) -> Known | None:
        try:
            return self._known[execute]
        except KeyError:
            pass
        compiled = self._fresh.pop(execute.xla_executable, None)
        if compiled is None:
            compiled = self._unseen(execute)
        known = None
        if compiled is not None and self.caller.me in compiled.process_of:
            program = self._program(compiled, context or self._from_debug(execute))
            if program.function == "?":
                # Only the executable's name is known, which may be a wrapper's: it is shown, but does not decide.
                found = _WRAPPED_NAME.match(str(execute.name))
                context = Context(found[1] if found else str(execute.name), None, (), None)
                program = replace(self._program(compiled, context), identified=False)
            known = Known(program, compiled)
        self._known[execute] = known
        return known

    def _unseen(self, execute: Any) -> Compiled | None:
        """An executable whose compilation was not seen: loaded, or compiled ahead of time before the checks were on."""
        devices = devices_of(execute)
        process_of = tuple(int(device.process_index) for device in devices)
        if len(set(process_of)) < 2:
            return None
        communication = _communication(execute.xla_executable, process_of)
        return Compiled(tuple(int(d.id) for d in devices), process_of, communication=communication)

    def _from_debug(self, execute: Any) -> Context:
        """What is known of the call of an executable without its context."""
        debug = self._debug.get(execute)
        return Context("?", getattr(debug, "func_src_info", None), (), getattr(debug, "arg_names", None))

    def _program(self, compiled: Compiled, context: Context) -> Program:
        name, place = identity_of(context.source, context.name)
        return Program(
            function=name,
            defined_at=place,
            processes=tuple(sorted(set(compiled.process_of))),
            devices=compiled.devices,
            module=compiled.module,
            environment=compiled.environment,
            order=key_order(context.names),
            communicates=compiled.communication is Communication.YES,
            undecided=compiled.communication is Communication.UNKNOWN,
        )

    def _call(self, known: Known, context: Context, values: Sequence[Any], used: Collection[int] | None) -> Call:
        program, site = known.program, user_site(sys._getframe(2))
        return Call(
            program=program,
            site=site,
            values=values,
            names=context.names,
            static=context.static,
            tags=self.own.provenance.tags_of(values),
            texts=known.compiled.texts,
            source=is_source(program, sys._getframe(2)),
            given=self.own.values.given(program.function, site, values, used),
        )


def where_called(frame: FrameType, function: str) -> str:
    """A function, or if it is a private one, that of JAX which the program has called; and the line."""
    site = user_site(frame)
    called = entered(frame) if function.startswith("_") else None
    if called is not None and called.startswith("__"):
        called = "JAX"  # by calling an object of it
    return f"{called or function}{f' at {site.short}' if site is not None else ''}"


def _used(execute: Any, values: Sequence[Any]) -> Collection[int]:
    """The arguments that an executable uses, which hold one value: old ``pmap`` takes this process's rows."""
    if any(type(one).__name__ == "PmapSharding" for one in getattr(execute.in_handler, "in_shardings", None) or ()):
        return ()
    return getattr(execute, "kept_var_idx", None) or range(len(values))


def _used_by(jaxpr: Any) -> Collection[int] | None:
    """The same of a program that is not compiled yet."""
    inside = getattr(jaxpr, "jaxpr", None)
    if inside is None:
        return None
    used = {id(one) for equation in inside.eqns for one in equation.invars} | {id(one) for one in inside.outvars}
    return {number for number, one in enumerate(inside.invars) if id(one) in used}


def _communication(executable: Any, process_of: Sequence[int]) -> Communication:
    """Whether an executable communicates between processes, by its modules as XLA has compiled them (HLO text)."""
    try:
        return combined(compiled_communicates(one.to_string(), process_of) for one in executable.hlo_modules())
    except Exception:  # a runtime without access to them, whatever it raises, or a text in a form that is not known
        return Communication.UNKNOWN


def devices_of(execute: Any) -> list[Any]:
    """The device assignment of an executable, read from the shardings of its arguments and results."""
    handlers = (getattr(execute.in_handler, "in_shardings", None), getattr(execute.out_handler, "out_shardings", None))
    for shardings in handlers:
        for sharding in shardings or ():
            devices = getattr(sharding, "_device_assignment", None)
            if devices is not None:
                return list(devices)
    return []
