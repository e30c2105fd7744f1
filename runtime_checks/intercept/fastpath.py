"""Inside the C++ fast path: one call into Python per dispatch, whatever the number of arguments.

On every call, before it dispatches, C++ asks the layout of each argument for its XLA layout. So the factory of the
fast path's data puts an object of this package in one slot of the executables that span processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.intercept.execution import clear_fast_paths
from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import MissingSeamError, Patches, module, need
from spmdlint.runtime_checks.recording.journal import Event, Journal


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
        if not self._retired:
            self._journal.note(self._journal.event_at(self._program, frame))


def _hook_type(layout_type: Any) -> type[LayoutHook]:
    """The hooks as layouts of JAX's own type, so that JAX asks them whether they are equal to the layout of an array.

    Only then is a call right that JAX makes with a hook itself, after another tool has put ``shard_args`` back.
    """
    return type("LayoutHook", (LayoutHook, layout_type), {"__slots__": ()})


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
            else:
                note(look(frame))
        except Exception as error:
            failed(error)
        return layout

    def to_real_layout(dtype: Any) -> Any:
        try:
            note(look(get_frame(1)))
        except Exception as error:
            failed(error)
        return real._to_xla_layout(dtype)

    def mend(other: Any) -> None:
        nonlocal layout
        layout = other

    return (to_xla_layout if real is None else to_real_layout), mend


def install_fast_calls(observer: Observer, patches: Patches) -> None:
    """Intercept calls on the fast path without leaving it."""
    pxla = module("jax._src.interpreters.pxla")
    fields = getattr(need(pxla, "MeshExecutableFastpathData"), "_fields", ())
    for name in ("xla_executable", "in_device_local_layouts"):
        if name not in fields:
            raise MissingSeamError(f"MeshExecutableFastpathData has no {name}")
    need(pxla, "shard_args")
    layout_type = _layout_type()
    hook_type, start = _hook_type(layout_type), _any_layout(layout_type)
    journal = observer.own.journal
    assert journal is not None, "this layer is for background mode"

    def hooked(built: Any) -> Any:
        known = observer.thread.known
        if known is None or not observer.spans(built.xla_executable) or not known.program.communicates:
            return built
        if patches.put_back():
            return built  # nobody would see what the hook is for
        layouts = list(built.in_device_local_layouts)
        if not layouts:
            return None  # without arguments there is no layout: such a call goes through Python
        probe = observer.thread.probe
        layouts[0] = hook_type(journal if probe is None else probe.journal, known.program, layouts[0], start)
        return built._replace(in_device_local_layouts=layouts)

    def see(hook: LayoutHook, caller: FrameType, rest: Any) -> None:
        layout = _layout_of(rest[-1][0])
        if layout is None:
            hook.called(caller)  # C++ asks only arrays for their layout: values from the host are seen here
        elif hook.real is None:
            hook.mend(layout)  # the layout that C++ compares with next time, so that it stays on the fast path

    def make_shard_args(original: Any) -> Any:
        def shard_args(shardings: Any, layouts: Any, *rest: Any, **named: Any) -> Any:
            if len(layouts) == 1 and layouts[0].__class__ is hook_type:
                hook = layouts[0]
                layouts = [hook.real]
                patches.guard.run(see, hook, sys._getframe(1), rest)
            return original(shardings, layouts, *rest, **named)

        return shard_args

    patches.replace(pxla, "shard_args", make_shard_args)
    patches.around(pxla, "MeshExecutableFastpathData", instead=hooked)
    clear_fast_paths()


def _layout_type() -> Any:
    layouts = module("jax._src.layout")
    return getattr(layouts, "DeviceLocalLayout", None) or need(layouts, "Layout")


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
