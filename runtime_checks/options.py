"""The options of the checks: from arguments of ``enable``, the environment, or the launcher; and for which jobs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Literal, get_args

Mode = Literal["lockstep", "background", "off"]
Policy = Literal["raise", "exit", "report"]
Compared = Literal["sample", "all", "small", "off"]  # of arrays from the host

MODE_VARIABLE = "SPMDLINT_RUNTIME_CHECKS"
POLICY_VARIABLE = "SPMDLINT_ON_DIVERGENCE"
LATE_VARIABLE = "SPMDLINT_LATE_AFTER"
RUN_FOLDER_VARIABLE = "SPMDLINT_RUN_FOLDER"
PROCESS_VARIABLE = "SPMDLINT_PROCESS"
LEDGER_VARIABLE = "SPMDLINT_LEDGER"
SIGNAL_VARIABLE = "SPMDLINT_REPORT_SIGNAL"
LOCKSTEP_UP_TO = 16  # processes: each reads from every other one at each call
JOIN_VARIABLE = "SPMDLINT_JOIN_WITHIN"
JOIN_WITHIN = 20.0  # seconds; Gloo gives a process that dispatches a first call 30 s to find the others
END_VARIABLE = "SPMDLINT_END_WITHIN"
END_WITHIN = 60.0  # seconds
JOIN_WITHIN_REHEARSAL = 60.0  # processes of one machine start on few cores

OLDEST_JAX = "0.6.1"  # the lower bound of the extra "runtime", as a test asserts: a clone may have no metadata to read

DIVERGED_STATUS = 3
INTERRUPTED_STATUS = 130
VALUES_VARIABLE = "SPMDLINT_VALUES"
LOCAL_VARIABLE = "SPMDLINT_LOCAL_VALUES"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a session.

    ``late_after`` is in seconds. ``run_folder`` is where a launcher and its processes leave word for each other; None
    outside a launcher. ``ledger`` is a folder for a record of the last calls. ``join_within`` is how long, in seconds,
    a process waits for all others to enable the checks; if one does not, all go on unchecked. ``report_signal`` asks a
    process for a report in background mode, "off" is none. ``values`` is what is compared of arrays from the host,
    but for the functions ``local_values``, and of large arrays only in one of ``values_every`` calls; ``checkpoints``
    is whether the replicas in what is saved are compared before.
    """

    mode: Mode = "lockstep"
    on_divergence: Policy = "raise"
    late_after: float = 10.0
    run_folder: Path | None = None
    ledger: Path | None = None
    report_signal: str = "USR2"
    join_within: float = JOIN_WITHIN
    values: Compared = "sample"
    values_every: int = 1
    checkpoints: bool = False
    local_values: tuple[str, ...] = ()

    @property
    def rehearsal(self) -> bool:
        """Whether a launcher on this machine started the process: then the checks fail closed."""
        return self.run_folder is not None


def choose(
    mode: str | None,
    on_divergence: str | None,
    environment: Mapping[str, str] | None = None,
    join_within: float | None = None,
) -> Options:
    """Combine the options of the caller and of the environment; the caller wins.

    Raises ``ValueError`` with the accepted words for a mode or policy that does not exist; of the environment's mode
    also where the caller names one, as whoever set it believes that it counts.
    """
    given = os.environ if environment is None else environment
    folder, ledger = given.get(RUN_FOLDER_VARIABLE), given.get(LEDGER_VARIABLE)
    chosen_mode = mode or _mode_of(given) or "lockstep"
    compared, compared_every, checkpoints = _values(given)
    usual = "exit" if folder else "report" if chosen_mode == "background" else "raise"
    policy = on_divergence or given.get(POLICY_VARIABLE) or usual
    if _mode_of(given) not in ("", *get_args(Mode)):
        raise ValueError(f"{MODE_VARIABLE} is {given[MODE_VARIABLE]!r}: use one of {', '.join(get_args(Mode))}.")
    if chosen_mode not in get_args(Mode):
        raise ValueError(f"The mode is {chosen_mode!r}: use one of {', '.join(get_args(Mode))}.")
    if policy not in get_args(Policy):
        name = "on_divergence" if on_divergence else POLICY_VARIABLE
        raise ValueError(f"{name} is {policy!r}: use one of {', '.join(get_args(Policy))}.")
    asked: object = join_within
    if asked is None:
        asked = _number(given, JOIN_VARIABLE, JOIN_WITHIN_REHEARSAL if folder else JOIN_WITHIN)
    if not isinstance(asked, Real) or not 0 < float(asked) < float("inf"):
        said = (
            f"{JOIN_VARIABLE} is {given.get(JOIN_VARIABLE)!r}" if join_within is None else f"join_within is {asked!r}"
        )
        raise ValueError(f"{said}: give a number of seconds above 0.")
    return Options(
        mode=chosen_mode,  # type: ignore[arg-type]
        on_divergence=policy,  # type: ignore[arg-type]
        late_after=_number(given, LATE_VARIABLE, 60.0 if chosen_mode == "background" and not folder else 10.0),
        run_folder=Path(folder) if folder else None,
        ledger=Path(ledger) if ledger else None,
        report_signal=given.get(SIGNAL_VARIABLE) or "USR2",
        join_within=float(asked),
        values=compared,
        values_every=compared_every,
        checkpoints=checkpoints,
        local_values=tuple(filter(None, given.get(LOCAL_VARIABLE, "").replace(",", " ").split())),
    )


def too_many(mode: str, processes: int, instead: str) -> str | None:
    """The sentence on a job that is too large for lockstep, with what to use instead; None if it is not."""
    if mode != "lockstep" or processes <= LOCKSTEP_UP_TO:
        return None
    return f"Lockstep compares up to {LOCKSTEP_UP_TO} processes, and this job has {processes}: use {instead}."


def unsupported(version: str | None) -> str | None:
    """The sentence on a JAX that is too old; None if it is not, or if its version is not known."""
    numbers = _numbers(version or "")
    if len(numbers) < 2 or numbers >= _numbers(OLDEST_JAX):
        return None
    return f"JAX {version} is not supported; {OLDEST_JAX} or newer is needed."


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def switched_off() -> bool:
    """Whether the environment says that there are no checks, whatever the program asks for."""
    return _mode_of(os.environ) == "off"


def end_within() -> float:
    """Seconds for the other processes of a rehearsal to end, once one has failed without a verdict.

    Raises:
        ValueError: the environment says something else than a number.

    """
    return _number(os.environ, END_VARIABLE, END_WITHIN)


def overruled(decided: Options, **asked: object) -> list[str]:
    """What a program asks for that is not what has been decided, each with the variable that decides it."""
    variables = {"mode": MODE_VARIABLE, "on_divergence": POLICY_VARIABLE, "join_within": JOIN_VARIABLE}
    there = {name: getattr(decided, name) for name in asked}
    other = [name for name, wanted in asked.items() if wanted not in (None, there[name])]
    return [f"{name} is {there[name]}, not {asked[name]} ({variables[name]})" for name in other]


def launched_process() -> int | None:
    """The number that a launcher gave this process, known before it joins its job."""
    text = os.environ.get(PROCESS_VARIABLE, "")
    return int(text) if text.isdigit() else None


def _mode_of(given: Mapping[str, str]) -> str:
    """The mode that the environment names, in any case: OFF is a usual way to write it there."""
    return given.get(MODE_VARIABLE, "").lower()


def _values(given: Mapping[str, str]) -> tuple[Compared, int, bool]:
    """What is compared of arrays from the host, of large ones in one of how many calls, and whether checkpoints are."""
    text = given.get(VALUES_VARIABLE) or "sample"
    said = re.fullmatch(rf"({'|'.join(get_args(Compared))})(?::([1-9]\d*))?(,checkpoints)?", text)
    if said is None:
        accepted = f"{', '.join(get_args(Compared))}, or all:100, and ,checkpoints after it"
        raise ValueError(f"{VALUES_VARIABLE} is {text!r}: use one of {accepted}.")
    return said[1], int(said[2] or 1), said[3] is not None  # type: ignore[return-value]


def _number(given: Mapping[str, str], name: str, default: float) -> float:
    text = given.get(name)
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError(f"{name} is {text!r}: give a number of at least 0, or unset it.")
    return number
