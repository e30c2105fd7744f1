"""``pmap`` before it became jit and shard_map (JAX 0.6 to 0.9), with its own dispatch path."""

from __future__ import annotations

from typing import Any

from spmdlint.runtime_checks.intercept.observer import Context, Observer
from spmdlint.runtime_checks.intercept.seam import MissingSeamError, Patches, module, need


def has_own_path() -> bool:
    """Whether this JAX has the old path."""
    return hasattr(module("jax._src.interpreters.pxla"), "xla_pmap_impl_lazy")


def install_pmap(observer: Observer, patches: Patches) -> None:
    """Record which mapped function is called, and keep it off the C++ fast path if it spans processes."""
    pxla, api = module("jax._src.interpreters.pxla"), module("jax._src.api")
    data = need(api, "_PmapFastpathData")
    if "xla_executable" not in getattr(data, "_fields", ()):
        raise MissingSeamError("_PmapFastpathData has no xla_executable")
    thread = observer.thread

    def before(fun: Any, *args: Any, **named: Any) -> None:
        debug = getattr(fun, "debug_info", None)
        # The executable is called after this returns; the execution removes the context.
        thread.context = Context(
            name=str(named.get("name")),
            source=getattr(debug, "func_src_info", None),
            values=args,
            names=getattr(debug, "arg_names", None),
            loose=True,
        )

    def off_the_path(built: Any) -> Any:
        return None if observer.spans(built.xla_executable) else built

    patches.around(pxla, "xla_pmap_impl_lazy", before)
    patches.around(api, "_PmapFastpathData", instead=off_the_path)
