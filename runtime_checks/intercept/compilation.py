"""The compiler: modules as JAX passes them to XLA, so that nothing is traced or lowered twice."""

from __future__ import annotations

from typing import Any

from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import Patches, module, need, need_parameters


def install_compiler(observer: Observer, patches: Patches) -> None:
    """Read each module that spans processes before it is compiled."""
    compiler = module("jax._src.compiler")
    need_parameters(need(compiler, "compile_or_get_cached"), "backend", "computation", "devices")

    def make(original: Any) -> Any:
        def watched(backend: Any, computation: Any, devices: Any, *args: Any, **named: Any) -> Any:
            assignment = list(devices.flat) if hasattr(devices, "flat") else list(devices)
            options = named.get("compile_options", args[0] if args else None)
            seen = observer.lowered(computation.operation, assignment, options)
            if seen is None:
                return original(backend, computation, devices, *args, **named)
            with observer.compiling(seen):
                executable = original(backend, computation, devices, *args, **named)
            observer.compiled(executable, seen)
            return executable

        return watched

    patches.replace(compiler, "compile_or_get_cached", make)


def install_lowerings(observer: Observer, patches: Patches) -> None:
    """Record the source of each executable, and the module of those compiled before the checks were on."""
    pxla = module("jax._src.interpreters.pxla")
    computation = need(pxla, "MeshComputation")
    need(computation, "compile")

    def make(original: Any) -> Any:
        def watched(self: Any, *args: Any, **named: Any) -> Any:
            executable = original(self, *args, **named)
            execute = getattr(executable, "unsafe_call", None)
            if hasattr(execute, "xla_executable"):
                info = getattr(executable, "_all_args_info", None)
                lowered = getattr(getattr(self, "_hlo", None), "operation", None)
                observer.adopt(execute, lowered, getattr(info, "debug_info", None))
            return executable

        return watched

    patches.replace(computation, "compile", make)
