from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import ExceptionPath, Program


class ExceptionOnOneProcess(Rule):
    """An exception on one process makes it make, or leave out, a parallel call.

    ## What it does

    Finds barriers and the like in handlers that catch everything, or what files and networks raise, and go on; and in
    the `__exit__` of context managers, whether an exception is on its way or not. Also handlers that go on after
    parallel calls in the `try` were skipped, where a file is read there that is one process's own, or where the
    project itself raises what they catch for what it finds in this process's data, or on one process alone; with
    `--preview`, where anything may fail there.

    ## Why it matters

    Files, networks and data fail on one process at a time. The process that gets into the handler waits there for the
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

    Which other exceptions come on one process only cannot be known; handlers of these are not reported, and neither are
    those that raise again. A handler whose `try` makes parallel calls itself may answer a failure that
    all processes share, so it is not reported for its own calls, but for one of `KeyboardInterrupt` with `--preview`.
    """

    code = "SPMD304"
    name = "exception-path"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.exception_paths():
            yield self._diagnostic(program, found)

    def _diagnostic(self, program: Program, found: ExceptionPath) -> Diagnostic:
        place = program.place(found.call.site)
        clause = program.where(found.handler, place.path)
        if found.how == "in a handler":
            message = (
                f"{found.call.name} is a parallel call, and only a process that gets into the handler at {clause} "
                "makes it."
            )
            way_out = "Keep the result of the handler, and make the call after it, on every process."
        elif found.how == "on the way out":
            message = (
                f"{found.call.name} is a parallel call, and this __exit__ makes it although an exception may be on its "
                "way on this process only: it waits for processes that are elsewhere, and the error is never shown."
            )
            way_out = "Make it only if there is no exception (exc_type is None), or after the with block."
        else:
            what = "anything before it fails" if found.reason is None else "this is raised"
            message = (
                f"{found.call.name} is a parallel call, and the handler at {clause} goes on if {what} "
                "on this process only."
            )
            way_out = "Catch what can fail alone, and agree with the other processes before going on."
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
