"""What is known of a call before it is executed: the user's function, its arguments, the module for the compiler.

Modules are read as JAX passes them to XLA, so that nothing is traced or lowered twice.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from typing import Any

from spmdlint.runtime_checks.calls.fingerprint import describe_static
from spmdlint.runtime_checks.intercept.identity import name_of, users
from spmdlint.runtime_checks.intercept.observer import Compiled, Context, Observer
from spmdlint.runtime_checks.intercept.seam import Patches, module, need


def install_jit_calls(observer: Observer, patches: Patches) -> None:
    """Record which jitted function is called, and with which arguments."""
    pjit = module("jax._src.pjit")
    thread = observer.thread
    known: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def before(*args: Any, jaxpr: Any, name: Any, **_named: Any) -> tuple[Context | None]:
        previous = thread.context
        (fun, static), thread.inferred = thread.inferred, (None, {})
        debug = users(known, fun, getattr(getattr(jaxpr, "jaxpr", None), "debug_info", None))
        thread.context = Context(
            name=name_of(fun, str(name), sys._getframe(1)),
            source=getattr(debug, "func_src_info", None),
            values=args,
            names=getattr(debug, "arg_names", None),
            static=static,
            jaxpr=jaxpr,
        )
        return (previous,)

    def lastly(seen: tuple[Context | None] | None) -> None:
        thread.context = seen[0] if seen is not None else None

    patches.around(pjit, "_pjit_call_impl_python", before, lastly=lastly, takes=("jaxpr", "name"))


def install_static_arguments(observer: Observer, patches: Patches) -> None:
    """Record the function and the static arguments of a call, which are gone once it is traced."""
    pjit = module("jax._src.pjit")
    thread = observer.thread

    def after(_seen: None, _result: Any, fun: Any, info: Any, args: Any, kwargs: Any) -> None:
        # After the original: tracing also calls this for the functions inside.
        thread.inferred = fun, static_arguments(info, args, kwargs)

    patches.around(pjit, "_infer_params", after=after, takes=("args", "kwargs"))


def static_arguments(info: Any, args: Any, kwargs: Mapping[str, Any]) -> dict[str, str]:
    """The static arguments of a call by name, as text that is the same on every process."""
    numbers, names = getattr(info, "static_argnums", ()) or (), getattr(info, "static_argnames", ()) or ()
    if not numbers and not names:
        return {}
    signature = getattr(info, "fun_signature", None)
    parameters = list(signature.parameters) if signature is not None else []
    found: dict[str, str] = {}
    for number in numbers:
        place = number if number >= 0 else number + len(args)
        if 0 <= place < len(args):
            name = parameters[place] if place < len(parameters) else str(place)
            found[name] = describe_static(args[place])
    found.update({name: describe_static(kwargs[name]) for name in names if name in kwargs})
    return found


def install_compiler(observer: Observer, patches: Patches) -> None:
    """Read each module that spans processes before it is compiled."""
    compiler = module("jax._src.compiler")

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

    takes = ("backend", "computation", "devices")
    patches.around(compiler, "compile_or_get_cached", before, after, lastly, takes=takes)


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
