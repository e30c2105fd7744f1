"""The dispatch: every execution off JAX's C++ fast path, and keeping watched executables off that path.

JAX calls ``ExecuteReplicated`` for the first call of a signature, then passes C++ a ``MeshExecutableFastpathData`` so
that later calls never enter Python. A replacement factory returns None for executables that span processes: C++ then
calls Python again, and lockstep sees the arguments and the outputs of every call. Executables of one process keep
their fast path.
"""

from __future__ import annotations

from typing import Any

from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import MissingSeamError, Patches, module, need


def install_dispatch(observer: Observer, patches: Patches) -> None:
    """Intercept every execution from Python."""
    pxla = module("jax._src.interpreters.pxla")
    execute = need(pxla, "ExecuteReplicated")
    for slot in ("xla_executable", "in_handler", "out_handler", "name", "__weakref__"):
        need(execute, slot)

    def make(original: Any) -> Any:
        def watched(self: Any, *args: Any) -> Any:
            seen = observer.executing(self, args)
            outputs = original(self, *args)
            if seen is not None:
                observer.executed(*seen, args, outputs)
            return outputs

        return watched

    patches.replace(execute, "__call__", make)


def install_every_call(observer: Observer, patches: Patches) -> None:
    """Keep executables that span processes off the C++ fast path, including those already on it."""
    pxla = module("jax._src.interpreters.pxla")
    data = need(pxla, "MeshExecutableFastpathData")
    if "xla_executable" not in getattr(data, "_fields", ()):
        raise MissingSeamError("MeshExecutableFastpathData has no xla_executable")

    def make(original: Any) -> Any:
        def factory(*args: Any, **named: Any) -> Any:
            built = original(*args, **named)
            return None if observer.spans(built.xla_executable) else built

        return factory

    patches.replace(pxla, "MeshExecutableFastpathData", make)
    clear_fast_paths()


def clear_fast_paths() -> None:
    """Clear the C++ fast path; nothing is traced or compiled again."""
    need(need(module("jaxlib._jax"), "PjitFunctionCache"), "clear_all")()
