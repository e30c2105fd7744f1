from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import ExceptionPath, Program


class ExceptionOnOneProcess(Rule):
    """An exception on one process makes it skip a parallel call, or make an extra one.

    ## What it does

    Finds barriers and similar calls in handlers that catch everything, or errors of files and networks, and then go on;
    and in the `__exit__` of context managers, if it makes them even when an exception is propagating. Also finds
    handlers that go on after parallel calls in the `try` were skipped, if the `try` reads a file that belongs to one
    process, or if the project itself raises what they catch because of this process's data, or on one process only;
    with `--preview`, if anything in the `try` may fail.

    ## Why it matters

    Files, networks and data fail on one process at a time. The process that enters the handler waits there for the
    others, which did not fail; or it goes on to its next parallel call, while the others wait in the one that it left.

    ## Example

    ```python
    from jax.experimental import multihost_utils

    def load(path):
        try:
            return open(path).read()
        except OSError:
            multihost_utils.sync_global_devices("no file")
            return None
    ```

    ## Use instead

    ```python
    import numpy as np
    from jax.experimental import multihost_utils

    def load(path):
        try:
            text = open(path).read()
        except OSError:
            text = None
        if not multihost_utils.process_allgather(np.array(text is not None)).all():
            return None
        return text
    ```

    ## Limits

    Which other exceptions occur on one process only cannot be known, so handlers of these are not reported. Neither are
    handlers that re-raise. A handler whose `try` makes parallel calls itself may respond to a failure that all
    processes share, so its own calls are not reported; with `--preview`, those in a handler of `KeyboardInterrupt` are.
    """

    code = "SPMD304"
    name = "exception-path"
    several = True
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.exception_paths():
            yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: ExceptionPath) -> Diagnostic:
        place, name = program.place(found.call.site), program.call_name(found.call)
        clause = program.where(found.handler, place.path)
        if found.how == "in a handler":
            message = f"{name} is a parallel call, and only a process that enters the handler at {clause} makes it."
            way_out = "Store the outcome in the handler, and make the call after it, on every process."
        elif found.how == "on the way out":
            message = (
                f"{name} is a parallel call, and this __exit__ makes it even if an exception is propagating "
                "on this process only: it waits for processes that are elsewhere, and the error is never shown."
            )
            way_out = "Make the call only if there is no exception (exc_type is None), or after the with block."
        else:
            what = "anything before it fails" if found.reason is None else "an exception is raised"
            message = (
                f"{name} is a parallel call, and the handler at {clause} goes on without it if {what} "
                "on this process only."
            )
            way_out = "Guard only the code that can fail, and agree with the other processes before going on."
        related = []
        if found.how != "on the way out":
            related.append(Related(program.place(found.handler), "This is the handler."))
        steps = found.reason.chain() if found.reason is not None else []
        related += [Related(program.place(step.site), sentence(step.text)) for step in steps]
        related += [Related(program.place(site), "This leads to the parallel call.") for site in found.call.path[1:]]
        return self.finding(
            message=message,
            place=place,
            help=way_out,
            related=tuple(related),
        )
