from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Mixup, Placed, Program, WholeBatch

_UNITS = {
    "process": "the processes",
    "device": "the devices of all processes",
    "local": "the devices of this process",
}
_ONE = {
    "process": "a process",
    "device": "a device among those of all processes",
    "local": "a device among those of this process",
}
_MESSAGES = {
    "element": (
        "{other} is the number of {other_one}, and chooses from {one}, which lists {one_unit}.",
        (
            "Where a process has more than one device it is another one's, or past the end. Choose from a list of what "
            "is counted."
        ),
    ),
    "first": (
        "The first {other} of {one} are the devices of process 0, on every process.",
        "Use jax.local_devices() for those of this process.",
    ),
    "share": (
        "{one} is the number of {one_one}, and there are as many parts as {other_unit} ({other}).",
        (
            "The shares overlap, or parts of the data are left out on all processes. Divide by the number of what the "
            "place counts: process_index goes with process_count."
        ),
    ),
    "compare": (
        "{one} is the number of {one_one}, and is compared with {other}, which counts {other_unit}.",
        "Compare it with jax.process_count().",
    ),
    "rows": (
        "This has a row for each of {one_unit} ({one}), and a map over the devices of this process takes it.",
        "It fails where there is a second process. Make jax.local_device_count() rows.",
    ),
    "part": (
        "This process hands over rows for {one_unit} ({one}) as its own part.",
        (
            "The array gets that many rows from every process. Hand over rows for jax.local_device_count(), or say the "
            "global_shape."
        ),
    ),
    "mesh": (
        "A mesh over the devices of all processes is given the size of {one_unit} ({one}).",
        (
            "It fails, or leaves out the devices of the other processes. Use jax.device_count(), or pass "
            "devices=jax.local_devices()."
        ),
    ),
    "mean": (
        "A sum over the devices of all processes is divided by the number of {one_unit} ({one}).",
        "The mean is too large by the number of processes. Use jax.lax.pmean, or divide by jax.lax.axis_size.",
    ),
    "twice": (
        "What was divided by {one} already is divided by {other}, which counts {other_unit}.",
        "The number of processes goes into it twice. Divide by jax.local_device_count(), or the whole by this.",
    ),
}


class LocalGlobalMixup(Rule):
    """The number of processes, of all devices and of this process's devices are taken for one another.

    ## What it does

    Knows what a value counts: processes, the devices of all processes, or the devices of this process. Finds where two
    that count different things meet: an element of `jax.local_devices()` chosen by `jax.process_index()`, a share of
    the data by the number of the process and `jax.device_count()`, rows for all devices given to `jax.pmap`, a
    process's portion of a batch divided by the number of all devices. Finds also arrays that are put on the first of
    all devices, and a process's own part of the data that `jax.device_put` is given with a sharding over the devices of
    all. Finds, too, a part that is read in batches of a size which is divided by the number of processes elsewhere.

    ## Why it matters

    On one process these numbers are equal, or the difference does no harm. On many, parts of the data are read twice
    or never, a process uses another one's device, or a mean is too large by the number of processes.

    ## Example

    ```python
    import jax

    def my_rows(rows):
        return rows[jax.process_index() :: jax.device_count()]
    ```

    ## Use instead

    ```python
    import jax

    def my_rows(rows):
        return rows[jax.process_index() :: jax.process_count()]
    ```

    ## Limits

    What is computed from two counts, such as the devices by process, has no unit. Where nothing but the number of
    devices is asked for, only files that name several processes are looked at. With `--preview` also meshes over all
    devices that are as large as those of one process: many such programs are for one process.
    """

    code = "SPMD403"
    name = "local-global-mixup"

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.mixups():
            yield self._diagnostic(program, found)
        for placed in program.placements():
            yield self._placed(program, placed)
        for batch in program.whole_batches():
            yield self._whole_batch(program, batch)

    def _placed(self, program: Program, found: Placed) -> Diagnostic:
        if found.reason is None:
            message = (
                "This is put on a device by its number among those of all processes. It belongs to one of them: on the "
                "others JAX raises, because a process can put data on its own devices only."
            )
            way_out = "Choose from jax.local_devices(), which takes a backend, too."
        else:
            source = found.reason.source
            message = (
                f"jax.device_put takes this for the whole array over the devices of all processes, but each process "
                f"gives its own: {source.text} ({program.where(source.site, program.place(found.site).path)})."
            )
            way_out = "Use jax.make_array_from_process_local_data, which puts the parts together."
        chain = found.reason.chain() if found.reason is not None else ()
        listed = "These are the devices of all processes." if found.reason is None else "The mesh is made here."
        return self.finding(
            message=message,
            place=program.place(found.site),
            help=way_out,
            related=(
                *(Related(program.place(step.site), sentence(step.text)) for step in chain),
                Related(program.place(found.devices), listed),
            ),
        )

    def _whole_batch(self, program: Program, found: WholeBatch) -> Diagnostic:
        divided = program.place(found.divided)
        message = (
            f"{found.size!r} counts the examples of all processes: it is divided by their number "
            f"({program.where(found.divided, program.place(found.site).path)}). Here each process takes so many of its "
            "own part."
        )
        return self.finding(
            message=message,
            place=program.place(found.site),
            help="Make batches of what is left after the division.",
            related=(
                *(Related(program.place(step.site), sentence(step.text)) for step in found.reason.chain()),
                Related(divided, "It is divided here."),
            ),
        )

    def _diagnostic(self, program: Program, found: Mixup) -> Diagnostic:
        message, way_out = _MESSAGES[found.kind]
        other = found.other
        words = {"one": found.one.text, "one_unit": _UNITS[found.one.unit], "one_one": _ONE[found.one.unit]}
        if other is not None:
            words.update(other=other.text, other_unit=_UNITS[other.unit], other_one=_ONE[other.unit])
        made = [found.one] if other is None else [found.one, other]
        return self.finding(
            message=message.format(**words),
            place=program.place(found.site),
            help=way_out,
            related=tuple(Related(program.place(each.site), f"{each.text} is asked here.") for each in made),
        )
