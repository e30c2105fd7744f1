from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class CallWhileTracing(Rule):
    """A call that all processes must make together is in code that JAX traces.

    ## What it does

    Finds `multihost_utils` calls and the like in functions that a `jit`, `pmap` or `shard_map` traces, directly or
    through several calls; also in device callbacks, in `__del__`, and in threads.

    ## Why it matters

    Traced code runs once per compilation, not once per call. A process that finds the program in its cache, or that
    compiles again for another shape, makes a different number of these calls than the others, and waits for them.

    ## Example

    ```python
    import jax
    from jax.experimental import multihost_utils

    @jax.jit
    def normalise(x):
        total = multihost_utils.process_allgather(x.shape[0]).sum()
        return x / total
    ```

    ## Use instead

    ```python
    import jax
    from jax.experimental import multihost_utils

    @jax.jit
    def normalise(x, total):
        return x / total

    def run(x):
        return normalise(x, multihost_utils.process_allgather(x.shape[0]).sum())
    ```

    ## Limits

    A call in a branch that cannot be decided is not reported, nor is one in a function that reaches a jit only through
    a value that is not known for certain. Maps over several devices, and jits with shardings, that are passed to a
    thread pool count if the program launches others alongside them, and those in a `threading.Thread` if there is a
    training loop beside it; in other threads, they are reported with `--preview`. Barriers in threads are not reported.
    Of finalizers, only `__del__` is checked.
    """

    code = "SPMD307"
    name = "call-while-tracing"
    several = True
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        yield from self._elsewhere(program)
        for found in program.calls_while_tracing():
            place = program.place(found.site)
            short = found.name.rsplit(".", 1)[-1]
            traced, *between = found.way
            related = [Related(program.place(traced), "This makes JAX trace it.")]
            related += self.leading(program, between)
            yield self.finding(
                message=(
                    f"{short} is a call that all processes must make together, but {program.where(traced, place.path)} "
                    "makes JAX trace it: it runs once per compilation, and how often that is differs between processes."
                ),
                place=place,
                help="Make the call outside and pass its result in, or use a jax.lax collective over a mapped axis.",
                related=tuple(related),
            )

    def _elsewhere(self, program: Program) -> Iterator[Diagnostic]:
        """Device callbacks, threads, and finalizers."""
        for found in program.calls_elsewhere():
            place, name = program.place(found.site), program.call_name(found.call)
            at = program.where(found.call.path[-1], place.path)
            if found.how == "callback":
                message = (
                    f"{found.starter} runs this function while the devices are still in the computation that calls "
                    f"it, and the function makes the parallel call {name} at {at}, which waits for them."
                )
                help_ = "Return the value from the computation and make the call in the loop around it."
            elif found.how == "finalizer":
                message = (
                    f"__del__ makes the parallel call {name} at {at}, but objects are collected at "
                    "different times on different processes."
                )
                help_ = "Make the call in a method that the program calls, or in the __exit__ of a context manager."
            else:
                message = (
                    f"{found.starter} runs this function in a thread, and it launches {name} at {at}: its "
                    "position among the main thread's calls differs between processes."
                )
                help_ = "Launch it from the main thread, and only read and write data in the other thread."
            yield self.finding(
                message=message,
                place=place,
                help=help_,
                related=tuple(Related(program.place(site), "This leads to the call.") for site in found.call.path),
            )
