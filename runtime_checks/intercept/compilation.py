"""The compiler: modules as JAX passes them to XLA, so that nothing is traced or lowered twice."""

from __future__ import annotations

from typing import Any

from spmdlint.runtime_checks.intercept.observer import Compiled, Observer
from spmdlint.runtime_checks.intercept.seam import Patches, module, need, need_parameters


def install_compiler(observer: Observer, patches: Patches) -> None:
    """Read each module that spans processes before it is compiled."""
    compiler = module("jax._src.compiler")
    need_parameters(need(compiler, "compile_or_get_cached"), "backend", "computation", "devices")

    def before(_backend: Any, computation: Any, devices: Any, *args: Any, **named: Any) -> Compiled | None:
        assignment = list(devices.flat) if hasattr(devices, "flat") else list(devices)
        options = named.get("compile_options", args[0] if args else None)
        seen = observer.lowered(computation.operation, assignment, options)
        if seen is not None:
            observer.compiling(seen)
        return seen

    def after(seen: Compiled | None, executable: Any, *_args: Any, **_named: Any) -> None:
        if seen is not None:
            observer.compiled(executable, seen)

    def lastly(seen: Compiled | None) -> None:
        if seen is not None:
            observer.compiling(None)

    patches.around(compiler, "compile_or_get_cached", before, after, lastly)


def install_lowerings(observer: Observer, patches: Patches) -> None:
    """Record the source of each executable, and the module of those compiled before the checks were on."""
    pxla = module("jax._src.interpreters.pxla")
    computation = need(pxla, "MeshComputation")
    need(computation, "compile")

    def after(_seen: None, executable: Any, lowering: Any, *_args: Any, **_named: Any) -> None:
        execute = getattr(executable, "unsafe_call", None)
        if hasattr(execute, "xla_executable"):
            info = getattr(executable, "_all_args_info", None)
            lowered = getattr(getattr(lowering, "_hlo", None), "operation", None)
            observer.adopt(execute, lowered, getattr(info, "debug_info", None))

    patches.around(computation, "compile", after=after)
