"""The dispatch: every execution off JAX's C++ fast path, and keeping watched executables off that path.

JAX calls ``ExecuteReplicated`` for the first call of a signature, then passes C++ a ``MeshExecutableFastpathData`` so
that later calls never enter Python. A replacement factory returns None for executables that span processes: C++ then
calls Python again, and lockstep sees the arguments and the outputs of every call. Executables of one process keep
their fast path.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.given import Given
from spmdlint.runtime_checks.intercept.observer import Context, Observer, devices_of
from spmdlint.runtime_checks.intercept.seam import Patches, module, need


def install_dispatch(observer: Observer, patches: Patches) -> None:
    """Intercept every execution from Python."""
    pxla = module("jax._src.interpreters.pxla")
    execute = need(pxla, "ExecuteReplicated")
    for slot in ("xla_executable", "in_handler", "out_handler", "name", "__weakref__"):
        need(execute, slot)

    def after(seen: tuple[Program, str, Given] | None, outputs: Any, _execute: Any, *args: Any) -> None:
        if seen is not None:
            observer.executed(*seen, args, outputs)

    patches.around(execute, "__call__", lambda execute, *args: observer.executing(execute, args), after)


def install_every_call(observer: Observer, patches: Patches) -> None:
    """Keep executables that span processes off the C++ fast path, including those already on it."""
    _keep_off_the_path(observer, patches, module("jax._src.interpreters.pxla"), "MeshExecutableFastpathData")
    clear_fast_paths()


def _keep_off_the_path(observer: Observer, patches: Patches, owner: Any, name: str) -> None:
    def instead(built: Any) -> Any:
        return None if observer.spans(built.xla_executable) else built

    patches.around(owner, name, instead=instead, takes=("xla_executable",))


def clear_fast_paths() -> None:
    """Clear the C++ fast path; nothing is traced or compiled again.

    JAX clears that of the jitted functions that exist. A library that jits anew for each call, as ``process_allgather``
    does, leaves none between two calls, and finds the fast path again by the function inside.
    """
    cache = need(module("jaxlib._jax"), "PjitFunctionCache")
    need(cache, "clear_all")()
    for shared in list(vars(module("jax._src.pjit")).values()):
        if isinstance(shared, cache):
            shared.clear()


def has_own_path() -> bool:
    """Whether this JAX has the path of ``pmap`` before it became jit and shard_map (0.6 to 0.9)."""
    return hasattr(module("jax._src.interpreters.pxla"), "xla_pmap_impl_lazy")


def install_pmap(observer: Observer, patches: Patches) -> None:
    """Record which mapped function is called, and keep it off the C++ fast path if it spans processes."""
    pxla, api = module("jax._src.interpreters.pxla"), module("jax._src.api")
    thread = observer.thread

    def before(fun: Any, *args: Any, **named: Any) -> None:
        debug = getattr(fun, "debug_info", None)
        # The executable is called after this returns; the execution removes the context.
        thread.context = Context(
            name=str(named.get("name")),
            source=getattr(debug, "func_src_info", None),
            values=args,
            names=getattr(debug, "arg_names", None),
            broadcast=[number for number, axis in enumerate(named["in_axes"]) if axis is None],
            loose=True,
        )

    _keep_off_the_path(observer, patches, api, "_PmapFastpathData")
    patches.around(pxla, "xla_pmap_impl_lazy", before)


MOST = 64  # names
FORGOTTEN = "programs that JAX has dropped"


def ran_before() -> tuple[str, ...]:
    """The names of the programs over several processes that this process has made ready to execute, sorted.

    The last one is :data:`FORGOTTEN` if this process has compiled programs that are no more, such as that of a function
    made for one call: they may have spanned processes.
    """
    pxla: Any = sys.modules.get("jax._src.interpreters.pxla")
    kind = getattr(pxla, "ExecuteReplicated", None)
    if kind is None:
        return ()
    names = {
        str(getattr(one, "name", "?"))
        for one in gc.get_objects()
        if type(one) is kind and len({device.process_index for device in devices_of(one)}) > 1
    }
    # JAX's cache of compiled programs loses them with the functions that they are of.
    counts = getattr(getattr(pxla, "_cached_compilation", None), "cache_info", None)
    found = counts() if counts is not None else None
    forgotten = [FORGOTTEN] if found is not None and found.misses > found.currsize else []
    return (*sorted(names)[:MOST], *forgotten)
