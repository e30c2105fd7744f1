"""Inside the C++ fast path: one call into Python per dispatch, whatever the number of arguments.

On every call, before it dispatches, C++ asks the layout of each argument for its XLA layout. So the factory of the
fast path's data puts an object of this package in one slot of the executables that span processes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, TypeVar

from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.intercept.execution import clear_fast_paths
from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import MissingSeamError, Patches, module, need
from spmdlint.runtime_checks.recording.journal import Event, Journal, ValuedCall

T = TypeVar("T")


class LayoutHook:
    """Stands for the layout of one argument; ``real`` is the original, None for the default layout.

    C++ calls ``_to_xla_layout`` at every dispatch. Each hook has its own function, because attribute look-ups would
    double the cost per call.
    """

    __slots__ = (
        "__weakref__", "_journal", "_layout", "_mend", "_program", "_retired", "_to_xla_layout", "_usual", "real",
    )  # fmt: skip

    def __init__(self, journal: Journal, program: Program, real: Any, start: Any) -> None:
        self._journal = journal
        self._program = program
        self.real = real
        self._layout = start
        self._retired = False
        self._usual, self._mend = _noting(journal, program, real, start)
        self._to_xla_layout = self._usual
        journal.hooks.add(self)

    def stop(self, ask: Callable[[], None]) -> None:
        """Check before each call from now on."""
        usual = self._usual

        def first_ask(dtype: Any) -> Any:
            ask()
            return usual(dtype)

        self._to_xla_layout = first_ask

    def retire(self) -> None:
        """Record nothing from now on."""
        real, layout = self.real, self._layout
        self._retired = True
        self._to_xla_layout = lambda dtype: layout if real is None else real._to_xla_layout(dtype)

    def mend(self, layout: Any) -> None:
        """Return another layout from now on."""
        self._layout = layout
        self._mend(layout)
        if self._retired:
            self.retire()

    def __eq__(self, layout: object) -> bool:
        """Whether JAX would find the original equal to the layout of an array; the default one is not compared."""
        return self is layout or self.real is None or bool(self.real == layout)

    __hash__ = object.__hash__

    def called(self, frame: FrameType) -> None:
        """Record a call that C++ does not report."""
        if not self._retired and not self._journal.in_barrier():
            self._journal.note(self._journal.event_at(self._program, frame))


Given = Callable[[str, Any, FrameType], None]


def _host_calls(observer: Observer, journal: Journal, program: Program, last: str) -> Given:
    """The calls of a signature with arguments from the host: JAX places each of these anew, by ``shard_args``.

    They come one after the other, before the dispatch; with the ``last``, a call is recorded.
    """
    placed = threading.local()

    def given(key: str, value: Any, frame: FrameType) -> None:
        if journal.retired:
            return
        tags: dict[str, str] = vars(placed)
        tag = observer.own.values.tag(value, f"{program.function} {key}")
        if tag is not None:
            tags[key] = tag
        if key == last:
            journal.note_slowly(ValuedCall(journal.event_at(program, frame), dict(tags)))
            tags.clear()

    return given


@dataclass(slots=True, eq=False)
class HostHook:
    """Stands for the layout of an argument from the host, of which C++ does not ask; ``real`` is the original."""

    given: Given
    key: str
    real: Any
    layout: Any

    def _to_xla_layout(self, dtype: Any) -> Any:
        return self.layout if self.real is None else self.real._to_xla_layout(dtype)

    __eq__ = LayoutHook.__eq__
    __hash__ = object.__hash__


def _hook_type(kind: type[T], layout_type: Any) -> type[T]:
    """The hooks as layouts of JAX's own type, so that JAX asks them whether they are equal to the layout of an array.

    Only then is a call right that JAX makes with a hook itself, after another tool has put ``shard_args`` back.
    """
    return type(kind.__name__, (kind, layout_type), {"__slots__": ()})


def _noting(journal: Journal, program: Program, real: Any, layout: Any) -> tuple[Callable[[Any], Any], Any]:
    """The function that runs at every dispatch, and the one that changes the layout it returns.

    JAX leaves the caches cold between two calls, so each attribute read here costs a tenth of the whole budget. Hence
    the thread is not checked if the line is the expected one (``Journal.expect``).
    """
    note, get_frame, failed = journal.note, sys._getframe, journal.failed
    event = journal.event_to_come(program)

    def look(frame: FrameType) -> Event:
        nonlocal event
        event = journal.expect(event, frame)
        return event

    def to_xla_layout(_dtype: Any) -> Any:
        try:
            frame = get_frame(1)
            if frame.f_lasti == event.expected and frame.f_code is event.code:
                note(event)
            elif not journal.in_barrier():
                note(look(frame))
        except Exception as error:
            failed(error)
        return layout

    def to_real_layout(dtype: Any) -> Any:
        to_xla_layout(dtype)
        return real._to_xla_layout(dtype)

    def mend(other: Any) -> None:
        nonlocal layout
        layout = other

    return (to_xla_layout if real is None else to_real_layout), mend


def install_fast_calls(observer: Observer, patches: Patches) -> None:
    """Intercept calls on the fast path without leaving it."""
    pxla = module("jax._src.interpreters.pxla")
    need(pxla, "shard_args")
    layouts = module("jax._src.layout")
    layout_type = getattr(layouts, "DeviceLocalLayout", None) or need(layouts, "Layout")
    hook_type, host_type = _hook_type(LayoutHook, layout_type), _hook_type(HostHook, layout_type)
    start = _any_layout(layout_type)
    journal = observer.own.journal
    journal.in_barrier = lambda: observer.thread.in_barrier

    def hooked(built: Any) -> Any:
        known = observer.thread.known
        if known is None or not observer.spans(built.xla_executable):
            return built
        if observer.thread.probe is None and observer.is_looked_at(known):
            return None
        if not known.program.communicates:
            return built
        if patches.put_back():
            return built  # nobody would see what the hook is for
        layouts = list(built.in_device_local_layouts)
        if not layouts:
            return None  # without arguments there is no layout: such a call goes through Python
        probe = observer.thread.probe
        # Where arguments from the host are among all, in order: not the constants, which JAX places once.
        places = sorted((len(layouts) - 1 - back, key) for back, key in observer.thread.hosts if probe is None)
        hosts = [(place, key) for place, key in places if place >= len(getattr(built, "const_args", ()))]
        if hosts:
            given = _host_calls(observer, journal, known.program, hosts[-1][1])
            for place, key in hosts:
                layouts[place] = host_type(given, key, layouts[place], start)
        else:
            layouts[0] = hook_type(journal if probe is None else probe.journal, known.program, layouts[0], start)
        return built._replace(in_device_local_layouts=layouts)

    patches.replace(pxla, "shard_args", partial(_placing, observer, patches, hook_type, host_type))
    takes = ("xla_executable", "in_device_local_layouts")
    patches.around(pxla, "MeshExecutableFastpathData", instead=hooked, takes=takes)
    clear_fast_paths()


def _placing(
    observer: Observer, patches: Patches, hook_type: type[LayoutHook], host_type: type[HostHook], original: Any
) -> Any:
    """``shard_args``, which places arguments that are not where a program takes them; it sees each one's hook."""

    def see(hook: LayoutHook, caller: FrameType, value: Any) -> None:
        layout = _layout_of(value)
        if layout is None:
            hook.called(caller)  # C++ asks only arrays for their layout: values from the host are seen here
        elif hook.real is None:
            hook.mend(layout)  # the layout that C++ compares with next time, so that it stays on the fast path

    def shard_args(shardings: Any, layouts: Any, *rest: Any, **named: Any) -> Any:
        hook = layouts[0] if len(layouts) == 1 else None
        if hook.__class__ is hook_type:
            layouts = [hook.real]
            patches.guard.run(see, hook, sys._getframe(1), rest[-1][0])
        elif hook.__class__ is host_type:
            layouts = [hook.real]
            patches.guard.run(hook.given, hook.key, rest[-1][0], sys._getframe(1))
            observer.thread.placing = True
            try:
                return original(shardings, layouts, *rest, **named)
            finally:
                observer.thread.placing = False
        return original(shardings, layouts, *rest, **named)

    return shard_args


def _any_layout(layout_type: Any) -> Any:
    """An initial XLA layout; the first call that does not match corrects it."""
    import numpy as np

    try:
        return layout_type((0,))._to_xla_layout(np.dtype("float32"))
    except (TypeError, AttributeError) as error:
        raise MissingSeamError(f"a layout cannot be made ({error})") from error


def _layout_of(value: Any) -> Any:
    """The XLA layout of an array on devices, or None for a value on the host."""
    described = getattr(value, "format", None) or getattr(value, "layout", None)
    layout = getattr(described, "layout", None) or getattr(described, "device_local_layout", None)
    convert = getattr(layout, "_to_xla_layout", None)
    return convert(value.dtype) if convert is not None else None
