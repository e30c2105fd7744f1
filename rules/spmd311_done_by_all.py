from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Program


class DoneByAll(Rule):
    """Every process does what one process is meant to do.

    ## What it does

    Finds calls that start the run of an experiment tracker (`wandb.init`, `mlflow.start_run`, `neptune.init_run`,
    `comet_ml.Experiment`) in a program for several processes, where no condition on the way leaves them to one process
    and no argument tells the processes apart; and uses of such a run (`wandb.log`, `wandb.run.id`) on a way that all
    processes go, if only some have started one. Likewise uses of local names, and of an object's own fields, that are
    bound only where a condition tells the processes apart. Also files that all processes write under one path, if on
    the way there they make a call that all of them must make, if what they write differs, or if the program has
    connected its processes before (`jax.distributed.initialize`); with `--preview`, all files that all processes write.
    Likewise folders that all of them make, without `exist_ok=True`.

    ## Why it matters

    The tracker shows one run for each process, each with the numbers of its own process only, and one cannot tell which
    is which. A process that has no run, or no such name, fails where it uses it, and the others wait for it. Files on a
    shared disk are written by all processes at the same time: the last one wins, or they mix. Of a folder all may find
    that it is not there yet, and all but the fastest fail.

    ## Example

    ```python
    import jax
    import wandb

    def train(config, step, batches):
        jax.distributed.initialize()
        wandb.init(project="demo", config=config)
        for batch in batches:
            wandb.log({"loss": step(batch)})
    ```

    ## Use instead

    ```python
    import jax
    import wandb

    def train(config, step, batches):
        jax.distributed.initialize()
        wandb.init(project="demo", config=config, mode="online" if jax.process_index() == 0 else "disabled")
        for batch in batches:
            wandb.log({"loss": step(batch)})
    ```

    ## Limits

    A program that lets every process start a run on purpose names the process in one of the arguments (`name`, `group`,
    `tags`), and is not reported. Whether processes share a disk is not known.
    """

    code = "SPMD311"
    name = "done-by-all"
    several = True
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.done_by_all():
            place = program.place(found.site)
            related = [Related(program.place(call), "This leads to it.") for call in found.path]
            if found.unset is not None:
                test = program.where(found.unset.site, place.path)
                message = f"{found.name} fails on most processes: the condition at {test} lets only some start a run."
                way_out = "Use it only where the run was started, or start one on all (mode='disabled' on the others)."
                if found.bound:
                    message = f"{found.name} fails on most processes: the condition at {test} lets only some set it."
                    way_out = "Set it on all processes (to None on the others), or use it under the same condition."
                related += [Related(program.place(at.site), sentence(at.text)) for at in found.unset.chain()]
            elif found.what == "folder":
                since = ""
                if (call := found.meets or found.connects) is not None:
                    told = program.where(call, place.path)
                    since = f": all make the call at {told}" if found.meets else f": {told} connects the processes"
                message = (
                    f"All processes make this folder{since}. Only the first does, and the others raise FileExistsError."
                )
                way_out = "Pass exist_ok=True (a test before it may be true on several), or make it on one process."
            elif found.what == "file":
                message = "Every process writes this file, under the same path."
                if found.meets is not None:
                    met = program.where(found.meets, place.path)
                    message = f"All processes make the call at {met}, and each writes this file, under the same path."
                elif found.own is not None:
                    message = "Every process writes this file under the same path, and each something else."
                    related += [Related(program.place(at.site), sentence(at.text)) for at in found.own.chain()]
                elif found.connects is not None:
                    before = program.where(found.connects, place.path)
                    message = f"Every process writes this file, under the same path: {before} connects the processes."
                way_out = "Write it on one process (if jax.process_index() == 0), or put the process into its name."
            else:
                message = f"Every process calls {found.name} with the same arguments, and starts a run of its own."
                way_out = "Call it on one process only, pass mode= by jax.process_index(), or name the process in it."
            yield self.finding(message=message, place=place, help=way_out, related=tuple(related))
