"""The report of a job: as data, and as text for a person."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from spmdlint.runtime_checks.records import Argument, Build, Finding, Kind, ModuleDifference, Place, State, Verdict
from spmdlint.runtime_checks.reporting.printing import plain
from spmdlint.runtime_checks.reporting.sentences import (
    alike,
    capitalized,
    count_of,
    how_it_ended,
    is_abort,
    is_without_exit,
    name_processes,
    racing_threads,
)

SCHEMA_VERSION = 1
MAX_TEXT = 1 << 20
MAX_ARGUMENTS = 12  # arguments of one process that the text shows
MAX_MODULE_LINE = 160
BEFORE_DIFFERENCE = 60

THREADS_RULE = "SPMD307"
# The rules of the linter that name the usual causes of each kind.
EXPLAINED_BY: Mapping[str, Sequence[str]] = {
    "sequence": f"SPMD201 SPMD202 SPMD301 SPMD303 SPMD304 SPMD306 {THREADS_RULE} SPMD309".split(),
    "arguments": ("SPMD401", "SPMD404", "SPMD201", "SPMD308"),
    "program": ("SPMD404", "SPMD509", "SPMD201", "SPMD508"),
    "missing": ("SPMD301", "SPMD303", "SPMD304", "SPMD306", "SPMD309"),
    "setup": ("SPMD601", "SPMD602"),
    "value": ("SPMD501", "SPMD508"),
}
ADVICE: Mapping[str, str] = {
    "sequence": "Make every process reach these calls in the same order: look for a branch on the process index, "
    "an iteration over a set or an unsorted listing, or a handler that skips a call.",
    "arguments": "Give the call the same global shape, dtype, sharding and static arguments on every process: pad to "
    "a global maximum, and use names in sorted order.",
    "program": "Trace the same program on every process: no values of one process, hash(), id() or the order "
    "of a set in static arguments, closures or pytrees.",
    "missing": "Make every process reach this call: end loops on an agreed count, and do not let one process return "
    "or raise alone.",
    "setup": "Start every process with the same JAX, the same flags and configuration, and equal devices.",
    "value": "Compute this value the same way everywhere, or broadcast it from one process "
    "(multihost_utils.broadcast_one_to_all).",
}
# By the field that differs, if more is known than the kind.
ADVICE_ON: Mapping[str, str] = {
    "name": "Build names from values that all processes share, such as the step, not from the time, a process id, "
    "a host name or a random number.",
    "static": "Give this argument the same value everywhere: choose it on one process and broadcast it "
    "(multihost_utils.broadcast_one_to_all), or read it from the configuration.",
    "died": "Find out what ended it: its last output for an exit status, the kernel's log (out of memory) or the "
    "scheduler's (a preemption) for signal 9, and `python -X faulthandler` for a crash (signals 6 and 11).",
    "left": "Find what ended it, such as os._exit(); its last output may tell. No process may end before the calls of "
    "the others, and each has to end by Python's exit (the end of the script, or sys.exit), in which JAX shuts down "
    "together with the other processes.",
    "raised": "Fix the exception. If one process may fail alone, let all agree on that before the next parallel call "
    "(an all-gather of a success flag), or let the exception end the job.",
    "source": "Pass is_source=True on exactly one process, or leave it out: then it is process 0.",
    "given": "JAX takes this for one value on all processes, and looks at none: compute it the same way everywhere, or "
    "broadcast it from one process (multihost_utils.broadcast_one_to_all). If it is to differ, pass "
    "runtime_checks.local(value).",
    "threads": "Make all parallel calls of a process in one thread, or give each thread its own processes: which "
    "thread comes first is not the same on all processes.",
    "placement": "Place the arguments of this call in the same way on every process, over one mesh with its axes in "
    "the same order, and name the same axes in its collectives.",
    "devices": "Build the mesh from jax.devices() in the same order on every process.",
    "origin": "Pass the same arrays in the same order everywhere: use sorted(...) instead of the order of a set or "
    "listing, and no step that only one process makes.",
    "made": "The call that made it differs between the processes: look for numbers, seeds and hashes that are compiled "
    "into it, and compute them the same way everywhere.",
}


@dataclass(slots=True)
class ProcessReport:
    """One process in a report.

    ``state`` is one of calling, waiting, late, finished, exited, raised, died, interrupted, disabled, unknown.
    ``index`` is the number of the call in its group, from 1, or the number of calls made if none is in progress.
    ``callers`` are the program's lines that led to the line, the nearest first, each as "file:line".
    """

    state: str
    index: int | None = None
    function: str | None = None
    filename: str | None = None
    line: int | None = None
    callers: list[str] = field(default_factory=list)
    arguments: list[Argument] | None = None
    static: dict[str, str] | None = None
    stack: list[str] | None = None
    detail: str | None = None

    def told(self) -> State:
        """The state and the place, for sentences."""
        where: State = {"index": self.index, "function": self.function, "filename": self.filename, "line": self.line}
        return {"state": self.state, "detail": self.detail, **where, "callers": self.callers}


@dataclass(slots=True)
class Report:
    """A verdict with its explanation; the keys of ``processes`` are numbers as text, as in JSON."""

    verdict: Verdict
    message: str
    kind: Kind | None = None
    index: int | None = None
    group: list[int] = field(default_factory=list)
    explained_by: list[str] = field(default_factory=list)
    processes: dict[str, ProcessReport] = field(default_factory=dict)
    module: ModuleDifference | None = None
    advice: str | None = None
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    layers: dict[str, str] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    def add_build(self, build: Build) -> None:
        """Add what the processes run with, if it is known."""
        self.versions, self.layers = build.get("versions") or {}, build.get("layers") or {}

    @property
    def title(self) -> str:
        return f"spmdlint: {self.verdict}" + (f" ({self.kind})" if self.kind else "")


def reported(record: Place, state: str) -> ProcessReport:
    """A process's position as it published it."""
    return ProcessReport(
        state=state,
        index=record.get("index"),
        function=record.get("function"),
        filename=record.get("filename"),
        line=record.get("line"),
        callers=list(record.get("callers") or []),
    )


def ended(state: State, word: str, last: Place | None = None) -> ProcessReport:
    """A process that has ended, in this word; where its line is not known, at its ``last`` call."""
    one = reported(state, word)
    one.detail, one.stack = state.get("detail"), state.get("stack")
    if one.line is None and last is not None:
        one.function, one.filename, one.line = last.get("function"), last.get("filename"), last.get("line")
        one.index, one.callers = one.index or last.get("index"), list(last.get("callers") or [])
    return one


def diverged(
    kind: Kind, message: str, index: int | None, processes: Mapping[int, ProcessReport], field: str | None = None
) -> Report:
    """A report of a proven divergence, with the rules that may explain it and what to do; ``field`` is what differs."""
    # Of a signal, or an end as by ``os._exit``, no line of the program is known.
    states = {"died" if is_without_exit(one.detail) else one.state for one in processes.values()}
    unplaced = kind == "missing" and "died" in states and "raised" not in states
    return Report(
        verdict="diverged",
        kind=kind,
        message=message,
        index=index,
        group=sorted(processes),
        explained_by=[] if unplaced else list(EXPLAINED_BY[kind]),
        processes={str(number): processes[number] for number in sorted(processes)},
        advice=ADVICE_ON.get(field or "", ADVICE[kind]),
    )


def blaming_threads(report: Report, threads: Mapping[int, Sequence[str]]) -> None:
    """Tell of a death with the threads first if a process was aborted and several make parallel calls there.

    Calls of threads are numbered as they come, and the backend may run them in another order: then it gives one call
    the data of another.
    """
    if threads and any(is_abort(one.detail) for one in report.processes.values()):
        first = racing_threads(threads)
        report.message = f"{first[0].lower()}{first[1:]} Then {report.message}"
        report.explained_by = [THREADS_RULE, *report.explained_by]
        report.advice = ADVICE_ON["threads"]


def after_death(
    dead: Mapping[int, State],
    then: str,
    index: int | None,
    processes: Mapping[int, ProcessReport],
    threads: Mapping[int, Sequence[str]],
) -> Report:
    """A report on processes that ended without a word, and what followed; ``threads`` as in :func:`blaming_threads`."""
    words = "; ".join(f"process {number} {how_it_ended(one.get('detail'))}" for number, one in sorted(dead.items()))
    left = all(is_without_exit(one.get("detail")) for one in dead.values())
    message = f"{words}{then}." if left else f"{name_processes(dead)} died: {words}{then}."
    report = diverged("missing", message, index, processes, "left" if left else "died")
    blaming_threads(report, threads)
    return report


def as_text(report: Report) -> str:
    """The report for a person: what differs, then the position of each process, then why and what to do."""
    lines = [f"{report.title}: {report.message}"]
    marked = uneven(report.processes)
    for numbers, process in folded(report.processes):
        lines += ["", *_process_lines(numbers, process, *marked)]
    lines += _module_lines(report.module)
    lines += explanation(report)
    if report.advice:
        lines += ["", f"  What to do: {report.advice}"]
    lines += [f"  Note: {note}" for note in report.notes]
    return plain("\n".join(lines), MAX_TEXT) + "\n"


def explanation(report: Report) -> list[str]:
    """What the linter says of a report, in lines."""
    lines = []
    for finding in report.findings:
        lines += ["", f"  The linter reports {finding['code']}: {finding['place']}: {finding['message']}"]
    if report.explained_by:
        lines += ["", f"  Rules that may explain it: {', '.join(report.explained_by)} (spmdlint rule CODE)."]
    return lines


def folded(processes: Mapping[str, ProcessReport]) -> list[tuple[list[int], ProcessReport]]:
    """Group the processes that are at the same place with the same arguments."""
    told = alike({int(number): repr(process) for number, process in processes.items()})
    return [(numbers, processes[str(numbers[0])]) for numbers in told.values()]


def _module_lines(module: ModuleDifference | None) -> list[str]:
    """The first differing line of the lowered modules, cut to the difference: such lines can be very long."""
    if not module:
        return []
    sides = module["sides"]
    start = max(0, shared([side["text"] for side in sides]) - BEFORE_DIFFERENCE)
    lines = ["", f"  The lowered modules first differ in line {module['line']}:"]
    for side in sides:
        text = ("..." if start else "") + side["text"][start : start + MAX_MODULE_LINE]
        text += "..." if len(side["text"]) > start + MAX_MODULE_LINE else ""
        lines.append(f"    {name_processes(side['processes'])}: {text}")
        if side["source"]:
            lines.append(f"      from {side['source']}")
    return lines


def shared(texts: Sequence[str]) -> int:
    """How many characters all texts begin with."""
    least = min(map(len, texts))
    return next((n for n in range(least) if len({text[n] for text in texts}) > 1), least)


def uneven(processes: Mapping[str, ProcessReport]) -> tuple[set[str], set[str]]:
    """The paths of arguments, and the names of static ones, that are not the same on all processes that tell them."""

    def arguments(one: ProcessReport) -> dict[str, str]:
        return {str(each.get("path")): argument_words(each) for each in one.arguments or ()}

    return _uneven(processes, arguments), _uneven(processes, lambda one: one.static or {})


def _uneven(processes: Mapping[str, ProcessReport], say: Callable[[ProcessReport], Mapping[str, str]]) -> set[str]:
    """What is not the same on all processes that say something; nothing if they call more functions than one."""
    said = [(process.function, told) for process in processes.values() if (told := say(process))]
    if len({function for function, _ in said}) > 1:
        return set()
    return {name for _, told in said for name in told if len({one.get(name) for _, one in said}) > 1}


def _process_lines(
    numbers: Sequence[int], process: ProcessReport, arguments: Container[str], static: Container[str]
) -> list[str]:
    where = f"{process.filename}:{process.line}" if process.filename else "an unknown line"
    made = ""
    if process.index is not None:
        under_way = process.state in ("calling", "waiting")
        made = f", call {process.index}" if under_way else f", after {count_of(process.index)}"
    lines = [f"  {capitalized(name_processes(numbers))}: {process.state}{made}"]
    if process.function or process.filename:  # if the setup differs, no process has reached a call
        lines.append(f"    {process.function or '?'}  at {where}")
    if process.callers and not process.stack:  # which has them
        lines.append(f"    called from {', '.join(process.callers)}")
    if process.detail:
        lines.append(f"    {process.detail}")
    for name, value in sorted((process.static or {}).items(), key=lambda item: item[0] not in static):
        lines.append(f"  {'>' if name in static else ' '} static {name} = {value}")
    lines += _argument_lines(process.arguments or [], arguments)
    if process.stack:
        lines.append("    stack, innermost last:")
        lines += [f"      {frame}" for frame in process.stack[-8:]]
    return lines


def _argument_lines(arguments: Sequence[Argument], differing: Container[str]) -> list[str]:
    odd = sum(str(argument.get("path")) in differing for argument in arguments)
    odd_first = sorted(arguments, key=lambda argument: str(argument.get("path")) not in differing)
    shown = [
        f"  {'>' if number < odd else ' '} {argument_words(one)}"
        for number, one in enumerate(odd_first[:MAX_ARGUMENTS])
    ]
    left = len(arguments) - len(shown)
    if left:
        differ = f", {odd - len(shown)} of which differ" if odd > len(shown) else ""
        shown.append(f"    and {count_of(left, 'more argument')}{differ}")
    return shown


def argument_words(argument: Argument) -> str:
    """An argument in words: its path, dtype, shape, spec and origin."""
    if argument.get("value"):
        made = f", made by {argument['origin']}" if argument.get("origin") else ""
        return f"{argument.get('path')}: {argument['value']}{made}"
    shape = "x".join(str(n) for n in argument.get("shape") or []) or "scalar"
    words = f"{argument.get('path')}: {argument.get('dtype')}[{shape}]"
    if argument.get("spec"):
        words += f" {argument['spec']}"
    if argument.get("origin"):
        words += f" from {argument['origin']}"
    return words
