"""Combines the results of the processes into one report and one exit status."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmdlint.runtime_checks.agreement.history import judge, read_history
from spmdlint.runtime_checks.agreement.judging import Evidence
from spmdlint.runtime_checks.agreement.offline import load, not_recorded
from spmdlint.runtime_checks.options import DIVERGED_STATUS, INTERRUPTED_STATUS
from spmdlint.runtime_checks.recording.reading import Row, read
from spmdlint.runtime_checks.records import Place, State, Verdict
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report, blaming_threads, diverged, ended, reported
from spmdlint.runtime_checks.reporting.sentences import (
    alike,
    call_words,
    count_of,
    first_of,
    name_processes,
    place,
    racing_threads,
    shortened,
    unsaid,
)

ENDED = "ended by the launcher"
UNPLACED = 4  # functions that are named
CHOSEN = "use assert_equal on the name or number by which one is chosen, or take them in sorted order"
TIMEOUT_STATUS = 124

States = Mapping[int, State]
"""What processes have said of themselves; it is empty of one that has not."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of one process: its exit status (negative: the signal) and when it was seen.

    ``by_launcher`` is whether the launcher has killed it, which says nothing about the program.
    """

    status: int
    when: float
    by_launcher: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What is known at the end of a run: how each process ended, and what it has said of itself, if anything.

    ``joined`` are the processes that called ``jax.distributed.initialize``. ``stopped`` is whether the launcher has
    ended processes that still ran, because the time-out expired, or the run was ``interrupted``.
    """

    mode: str
    ended: Mapping[int, Ended]
    states: States
    joined: Collection[int]
    stopped: bool = False
    interrupted: bool = False

    def conclude(self, left: Report | None) -> tuple[Report, int]:
        """The report of the run, which a process may have ``left``, and the exit status of the launcher."""
        if left is not None:
            return left, DIVERGED_STATUS
        report, status = self._concluded()
        report.add_build(next((state for _, state in sorted(self.states.items()) if state.get("versions")), State()))
        return report, status

    def _concluded(self) -> tuple[Report, int]:
        """The same where no process has left a report."""
        states, ends = self.states, self.ended
        statuses = {number: one.status for number, one in sorted(ends.items())}
        processes = {str(number): _process(states[number], ends.get(number)) for number in sorted(states)}
        if self.stopped and self.interrupted:
            return Report("failed", _interrupted_message(states), processes=processes), INTERRUPTED_STATUS
        if self.stopped:
            behind = _behind(states)
            for number in (number for number in states if behind and number not in behind):
                processes[str(number)] = _waiting(processes[str(number)], states[number])
            words = _late_message(self.mode, states, statuses, behind)
            return Report("late", words, processes=processes), TIMEOUT_STATUS
        failed = {number: status for number, status in statuses.items() if status != 0}
        if not failed:
            verdict, message = _agreed(self.mode, states, self.joined)
            return Report(verdict, message, processes=processes, notes=[*_racing(states), *_silent(states)]), 0
        by_themselves = {n: status for n, status in failed.items() if not ends[n].by_launcher} or failed
        ways = alike({number: _failure(states[number], status) for number, status in by_themselves.items()})
        failures = ", ".join(f"{name_processes(numbers)} {failure}" for failure, numbers in ways.items())
        rest = [number for number in failed if number not in by_themselves]
        if rest:
            failures += f"; {name_processes(rest)} still ran long after that, and {_was(rest)} {ENDED}"
        status = by_themselves[min(by_themselves, key=lambda number: ends[number].when)]
        return Report("failed", f"{failures}.", processes=processes), status if status > 0 else 128 - status


def _failure(state: State, status: int) -> str:
    """How a process failed: its exception and where it was raised, otherwise its exit status."""
    detail, at = str(state.get("detail") or "").partition("\n")[0], place(state)
    if state.get("state") != "raised" or not detail:
        return _status_words(status)
    return f"raised an exception{f' at {at}' if at else ''} ({shortened(detail)})"


def _agreed(mode: str, states: States, joined: Collection[int]) -> tuple[Verdict, str]:
    """The verdict and its sentence if every process ended well: how much was compared."""
    processes = name_processes(states)
    if mode == "off":
        return "unchecked", f"{processes} ended; nothing was compared (mode off)."
    if any("dispatch" in (state.get("off") or ()) for state in states.values()):
        return "unchecked", f"{processes} ended, but this JAX does not tell the checks of its calls (dispatch is off)."
    if len(states) == 1:
        return "unchecked", f"{processes} ended; there was only one, so nothing was compared; use -n 2 or more."
    off = [number for number, state in states.items() if state.get("state") == "disabled"]
    if off:
        return _switched_off(states, off)
    if not joined:
        return "unchecked", (
            f"{processes} ended, but none of them called jax.distributed.initialize(), so each ran as a separate job "
            "and nothing was compared. Call it before the first computation."
        )
    silent = [number for number in joined if not states.get(number)]
    if silent:
        ended = "without Python's exit, as by os._exit(): how many parallel calls they made is not known"
        return "clean", f"{name_processes(silent)} ended {ended}, and those that were compared agreed."
    counts = [sum(_counts(state).values()) for state in states.values() if state]
    if not any(counts):
        none = f"{processes} ended; they made no parallel calls, so nothing was compared."
        return "unchecked", f"{none}{_unseen(states)}"
    made = count_of(counts[0], "parallel call")
    if len(counts) < len(states) or len(set(counts)) > 1:  # not every process takes part in every call
        made = "parallel calls"
    return "clean", f"{processes} made the same {made}.{_unseen(states)}{_uncompared(states)}"


def _switched_off(states: States, off: Sequence[int]) -> tuple[Verdict, str]:
    """The verdict and its sentence if the program has called ``disable()``: only what came before was compared."""
    counts = sorted({sum(_counts(states[number]).values()) for number in off})
    if not any(counts):
        return "unchecked", (
            f"{name_processes(off)} switched the checks off by disable() before the first parallel call, so nothing "
            "was compared."
        )
    many = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    made = f"{many} parallel call{'' if many == '1' else 's'}"
    at = place(states[off[0]]) if len(off) < len(states) else ""
    switched = f"{name_processes(off)} switched the checks off by disable(){f' at {at}' if at else ''} after {made}"
    return "clean", f"{switched}, which agreed; what came after was not compared.{_unseen(states)}"


def _racing(states: States) -> list[str]:
    """The remark on processes in which several threads made parallel calls: in another run they may diverge."""
    threads = {number: names for number, state in states.items() if (names := state.get("threads"))}
    return [racing_threads(threads)] if threads else []


def _silent(states: States) -> Iterator[str]:
    """The remark on calls that only some processes made, and that exchanged nothing: other arrays make them hang."""
    counts = {number: state.get("quiet") or {} for number, state in states.items()}
    names = sorted({name for theirs in counts.values() for name in theirs})
    uneven = [name for name in names if len({theirs.get(name, 0) for theirs in counts.values()}) > 1]
    if uneven:
        yield (
            f"Not every process called {first_of(uneven, UNPLACED)} as often as the others. What they exchange is "
            "nothing here, as their arrays are whole on every process, so no process waited and the calls were not "
            "compared. With other arrays, or on another backend, such a program may hang."
        )


def _unseen(states: States) -> str:
    """What the layers that were off could not see."""
    off = sorted({str(name) for state in states.values() for name in state.get("off") or ()})
    if not off:
        return ""
    verb = "was" if len(off) == 1 else "were"
    return f" Not all was seen: {', '.join(off)} {verb} off (the guide says what each layer sees)."


def _uncompared(states: States) -> str:
    """Where a swap of arrays of one shape would not have been noticed."""
    names = sorted({str(name) for state in states.values() for name in state.get("unplaced") or ()})
    if not names:
        return ""
    several = "several arrays of one shape, not made by parallel calls or made of one array without them,"
    return f" Not compared: which of {several} was passed to {first_of(names, UNPLACED)} ({CHOSEN})."


def after_death(folder: Path, ended: Mapping[int, Ended], states: States) -> Report | None:
    """The verdict over the recordings of processes that could no longer report it themselves."""
    if any(told.get("state") == "aside" for told in states.values()):
        return None  # its checks failed: what it recorded is not all
    recorded, histories = load(folder), {}
    for number, told in states.items():
        status = ended[number].status if number in ended and not ended[number].by_launcher else None
        if not told and status is not None:
            told = State(state="died", detail=unsaid(status))
        histories[number] = read_history(recorded.rows.get(number, ()), told)
    report = judge(histories, Evidence(recorded.programs))
    if report is not None:
        report.notes += not_recorded(recorded.omitted)
    return report


def blame_threads(report: Report, folder: Path, ended: Mapping[int, Ended]) -> None:
    """Name the calls of the threads of processes that their backend has aborted, if several threads made calls there.

    Nobody has seen a difference: the calls came in one order, and the backend has run them in another.
    """
    if report.verdict != "failed":
        return
    threads: dict[int, list[str]] = {}
    for number in (number for number, one in ended.items() if one.status == -signal.SIGABRT):
        last: dict[bool, Row] = {row.aside: row for row in read(folder / f"{number}.ledger")}
        words = {False: "the main thread calls", True: "another thread calls"}
        told = (f"{words[aside]} {call_words(row.place())}" for aside, row in sorted(last.items()))
        if True in last:
            threads[number] = [" and ".join(told)]
    blaming_threads(report, threads)


def absent_from_start(absent: Mapping[int, State], waiting: Mapping[int, Place]) -> Report:
    """The report if some processes ended and others wait for them in ``jax.distributed.initialize``."""
    processes = {number: ended(told, str(told.get("state") or "finished")) for number, told in absent.items()}
    processes |= {number: reported(site, "waiting") for number, site in waiting.items()}
    message = (
        f"{name_processes(absent)} ended before jax.distributed.initialize(), and {name_processes(waiting)} "
        f"{'waits' if len(waiting) == 1 else 'wait'} in it."
    )
    raised = any(told.get("state") == "raised" for told in absent.values())
    return diverged("missing", message, None, processes, "raised" if raised else None)


def _process(told: State, end: Ended | None) -> ProcessReport:
    status = None if end is None or end.by_launcher else end.status
    default = "late" if status is None else "finished" if status == 0 else "died"
    one = ended(told, str(told.get("state") or default))
    if one.detail is None and status:
        one.detail = _status_words(status)
    if one.detail is None and end is not None and end.by_launcher:
        one.detail = ENDED
    return one


def _status_words(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _late_message(mode: str, states: States, statuses: Mapping[int, int], behind: list[int]) -> str:
    running = [number for number in states if number not in statuses]
    if mode == "off":
        return f"out of time: {name_processes(running)} still ran; with --mode off, nothing records where they are."
    counts = {number: _counts(states[number]) for number in running if states[number]}
    if len(counts) == len(states) and len({str(sorted(one.items())) for one in counts.values()}) == 1:
        total = sum(next(iter(counts.values())).values())
        if not total:
            return "out of time: no process has made a parallel call yet; look at what they are doing before the first."
        return f"out of time: all processes are at call {total} and agree; look at the network or at that call."
    if behind:
        return _behind_message(states, behind)
    made = ", ".join(f"process {number} after {count_of(sum(one.values()))}" for number, one in sorted(counts.items()))
    silent = [number for number in running if number not in counts]
    words = f"out of time: {name_processes(running)} still ran"
    words += f" ({made})" if made else ""
    return words + (f"; {name_processes(silent)} did not answer." if silent else ".")


def _interrupted_message(states: States) -> str:
    """Where the processes were: a run that hangs is often interrupted, and a call inside XLA leaves no traceback."""
    known = {number: state for number, state in states.items() if place(state)}
    words = {n: f"{_at(state)}, {count_of(sum(_counts(state).values()))} begun" for n, state in known.items()}
    if not words:
        return "the run was interrupted."
    where = "; ".join(f"{name_processes(numbers)} {_was(numbers)} {at}" for at, numbers in alike(words).items())
    return f"the run was interrupted: {where}."


def _was(numbers: Sequence[int]) -> str:
    return "was" if len(numbers) == 1 else "were"


def _behind(states: States) -> list[int]:
    """The processes with fewer calls than others of the same groups; none if groups differ or a process is silent."""
    if not all(states.values()):
        return []
    counts = {number: _counts(state) for number, state in states.items()}
    groups = {frozenset(one) for one in counts.values() if one}
    if len(groups) != 1:
        return []
    most = {key: max(one.get(key, 0) for one in counts.values()) for key in next(iter(groups))}
    found = [number for number, one in sorted(counts.items()) if any(one.get(key, 0) < most[key] for key in most)]
    return found if len(found) < len(counts) else []


def _behind_message(states: States, behind: list[int]) -> str:
    calls = {number: sum(_counts(state).values()) for number, state in states.items()}
    waits, alone = [number for number in sorted(states) if number not in behind], len(behind) == 1
    where = (f"after {count_of(calls[number])}, {_at(states[number])}" for number in behind)
    at = "; ".join(words if alone else f"process {n} {words}" for n, words in zip(behind, where, strict=True))
    verb, first = "waits" if len(waits) == 1 else "wait", states[waits[0]]
    call = call_words(_last_call(first)) + (f" (now at {now})" if (now := _now_elsewhere(first)) else "")
    return (
        f"out of time: {name_processes(behind)} {'is' if alone else 'are'} behind ({at}), and {name_processes(waits)} "
        f"{verb} in call {calls[waits[0]]}, {call}."
    )


def _waiting(one: ProcessReport, state: State) -> ProcessReport:
    """A process that waits for others in its last call, which it may have begun at another line than it is at now."""
    waits = reported(_last_call(state), "waiting")
    waits.index, waits.stack, waits.detail = one.index, one.stack, one.detail
    if now := _now_elsewhere(state):
        waits.detail = f"now at {now}"
    return waits


def _last_call(state: State) -> Place:
    """The last call of a process, with its own line; where the process is, if that is not known."""
    call = state.get("call")
    return call if call is not None and place(call) else state


def _now_elsewhere(state: State) -> str:
    """The line at which a process is, if it is not that of its last call: where it needs the result, say."""
    now = place(state)
    return now if now != place(_last_call(state)) else ""


def _counts(state: State) -> Mapping[str, int]:
    """The number of calls of a process by group; none if it has left no word."""
    return state.get("counts") or {}


def _at(state: State) -> str:
    return f"in {call_words(state)}" if place(state) else "at an unknown line"
