from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Diagnostic, Related, sentence
from spmdlint.rule import Rule

if TYPE_CHECKING:
    from spmdlint.rule import Mixup, Placed, Program

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
        "{other} is the index of {other_one}, but it selects from {one}, which lists {one_unit}.",
        (
            "With more than one device per process, this is a device of another process, or past the end. Select from "
            "a list of what the index counts."
        ),
    ),
    "first": (
        "The first {other} of {one} are the devices of process 0, on every process.",
        "Use jax.local_devices() for the devices of this process.",
    ),
    "share": (
        "{one} is the index of {one_one}, but there is one part for each of {other_unit} ({other}).",
        (
            "The shares overlap, or parts of the data are left out on all processes. Divide by the count that belongs "
            "to the index: process_index goes with process_count."
        ),
    ),
    "compare": (
        "{one} is the index of {one_one}, but it is compared with {other}, which counts {other_unit}.",
        "Compare it with jax.process_count().",
    ),
    "rows": (
        "This has one row for each of {one_unit} ({one}), but a map over the devices of this process takes it.",
        "This fails with more than one process. Make jax.local_device_count() rows.",
    ),
    "part": (
        "This process passes rows for {one_unit} ({one}) as its own part.",
        (
            "The global array gets that many rows from every process. Pass rows for jax.local_device_count(), or set "
            "the global_shape."
        ),
    ),
    "mesh": (
        "The size of a mesh over the devices of all processes is the number of {one_unit} ({one}).",
        (
            "This fails, or leaves out the devices of the other processes. Use jax.device_count(), or pass "
            "devices=jax.local_devices()."
        ),
    ),
    "mean": (
        "A sum over the devices of all processes is divided by the number of {one_unit} ({one}).",
        (
            "The mean is too large by a factor of the number of processes. Use jax.lax.pmean, or divide by "
            "jax.lax.axis_size."
        ),
    ),
    "sum": (
        "Process 0 with {other} 1 and process 1 with {other} 0 get the same seed: {one} and {other} are added to it.",
        "Multiply {one} by how many there are on each process, or fold both into a key, one after the other.",
    ),
    "twice": (
        "A value that was already divided by {one} is divided by {other}, which counts {other_unit}.",
        "This divides by the number of processes twice. Use jax.local_device_count(), or divide the whole value here.",
    ),
}


_ASSEMBLE = "Use jax.make_array_from_process_local_data, which assembles the parts."
_SAME_EVERYWHERE = (
    "An array of which each device has a copy has one value. Compute it in the same way on every process, or take that "
    "of one process with multihost_utils.broadcast_one_to_all."
)
_ON_ONE = (
    "This is put on a device selected by its index among the devices of all processes. It belongs to one process: the "
    "others cannot read what is put there, and JAX raises, at once or at the first read."
)
_SELECT = "Select from jax.local_devices(), which also takes a backend."
_ON_EACH = (
    "An array is put on each of the devices of all processes, and JAX raises: nothing can be copied from here to a "
    "device of a different process."
)
_LIST = "Pass jax.local_devices(), or use jax.device_put with a sharding over the devices of all."


class LocalGlobalMixup(Rule):
    """The counts of processes, of all devices and of this process's devices are mixed up.

    ## What it does

    Tracks what a value counts: processes, the devices of all processes, or the devices of this process. Finds places
    where two values that count different things meet, such as

    - an element of `jax.local_devices()` selected by `jax.process_index()`;
    - a share of the data by the process index and `jax.device_count()`;
    - rows for all devices passed to `jax.pmap`;
    - a process's portion of a batch divided by the number of all devices;
    - a seed to which the index of the process and that of one of its threads or workers are added.

    Also finds arrays that are put on the first of all devices, and a process's own part of the data that is passed to
    `jax.device_put` with a sharding over the devices of all processes.

    ## Why it matters

    On one process these numbers are equal, or the difference does no harm. On several, parts of the data are read twice
    or never, a process uses another process's device, or a mean is too large by a factor of the number of processes.

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

    A value computed from two counts, such as the devices per process, has no unit. If a program asks only for the
    number of devices, only files that look like part of a multi-process program are checked. With `--preview`, meshes
    over all devices that are as large as those of one process are also reported: many such programs are written for one
    process.
    """

    code = "SPMD403"
    name = "local-global-mixup"
    several = True
    partly_preview = True

    def check(self, program: Program) -> Iterator[Diagnostic]:
        for found in program.mixups():
            yield self._diagnostic(program, found)
        for placed in program.placements():
            yield self._placed(program, placed)

    def _placed(self, program: Program, found: Placed) -> Diagnostic:
        if found.reason is None:
            message, way_out = (_ON_EACH, _LIST) if found.each else (_ON_ONE, _SELECT)
        else:
            source = found.reason.source
            where = program.where(source.site, program.place(found.site).path)
            passes = "a value of its own, of which every device is to get a copy" if found.copied else "its own part"
            message = (
                f"jax.device_put expects the same whole array on every process, but each process passes {passes}: "
                f"{source.text} ({where})."
            )
            way_out = _SAME_EVERYWHERE if found.copied else _ASSEMBLE
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

    def _diagnostic(self, program: Program, found: Mixup) -> Diagnostic:
        message, way_out = _MESSAGES[found.kind]
        other = found.other
        words = {"one": found.one.text, "one_unit": _UNITS[found.one.unit], "one_one": _ONE[found.one.unit]}
        if other is not None:
            words.update(other=other.text, other_unit=_UNITS[other.unit], other_one=_ONE[other.unit])
        made = [found.one] if other is None else [found.one, other]
        steps = [(step.site, step.text) for step in found.reason.chain()[1:]] if found.reason is not None else []
        return self.finding(
            message=message.format(**words),
            place=program.place(found.site),
            help=way_out.format(**words),
            related=(
                *(Related(program.place(each.site), f"This is {each.text}.") for each in made),
                *(Related(program.place(site), sentence(text)) for site, text in steps),
            ),
        )
