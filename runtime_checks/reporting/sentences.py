"""The first sentence of a report: what differs, and at which lines of the user's code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import TypeVar

from spmdlint.runtime_checks.records import Place, State
from spmdlint.runtime_checks.reporting.printing import plain

MAX_DETAIL = 100
# How the program of a process has ended the checks in all: ends that are no divergence.
OVER = {"disabled": "called disable()", "interrupted": "was interrupted"}
# The beginnings of the details of a program that ended in this way, and of a process that did so without a word.
LEFT = "exited by sys.exit"
WITHOUT_EXIT = "ended without Python's exit"

T = TypeVar("T")
Places = Mapping[int, Place]


def name_processes(numbers: Iterable[int]) -> str:
    """Returns "process 3" or "processes 0-30, 32-63"."""
    ordered = sorted(set(numbers))
    if not ordered:
        return "no process"
    runs = groupby(enumerate(ordered), lambda placed: placed[1] - placed[0])
    spans = [[number for _, number in run] for _, run in runs]
    words = ", ".join(f"{one[0]}" if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in spans)
    return f"process {words}" if len(ordered) == 1 else f"processes {words}"


def capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def alike(words: Mapping[int, T]) -> dict[T, list[int]]:
    """The processes of which the same is told."""
    told: dict[T, list[int]] = {}
    for number, same in sorted(words.items(), key=lambda item: item[0]):
        told.setdefault(same, []).append(number)
    return told


def sides(told: Mapping[int, T], say: Callable[[T], str] = str) -> str:
    """Returns "process 0: a; processes 1-3: b", with equal ones combined."""
    words = {number: say(one) for number, one in told.items()}
    return "; ".join(f"{name_processes(numbers)}: {same}" for same, numbers in alike(words).items())


def count_of(number: int, what: str = "call") -> str:
    """Returns "1 call" or "3 calls", or of other things."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """Returns "a, b and 3 more"."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def calls(records: Places) -> str:
    """Returns "process 0 calls f at train.py:3; processes 1-3 call g at train.py:4"."""
    through = told_apart(records)
    names = [str(record.get("function")) for record in records.values()]
    unclear = len(set(names)) < len({(record.get("function"), record.get("defined_at")) for record in records.values()})
    told = []
    made = {number: call_words(record, through.get(number), unclear) for number, record in records.items()}
    for words, numbers in alike(made).items():
        told.append(f"{name_processes(numbers)} {'calls' if len(numbers) == 1 else 'call'} {words}")
    return "; ".join(told)


def unsaid(status: int) -> str:
    """The detail of a process that ended without a word, of which a launcher has seen the status."""
    return f"killed by signal {-status}" if status < 0 else f"{WITHOUT_EXIT}, as by os._exit({status})"


def is_without_exit(detail: object) -> bool:
    """Whether a detail is that of a process which ended by itself, but not by Python's exit."""
    return str(detail or "").startswith(WITHOUT_EXIT)


def is_abort(detail: object) -> bool:
    """Whether a detail is that of a process which was aborted, as backends do where data does not fit."""
    return re.match(r"killed by (SIGABRT|signal 6)\b", str(detail or "")) is not None


def how_it_ended(detail: object) -> str:
    """The verb of a process that ended without a word, from its detail."""
    return f"was {detail}" if str(detail).startswith("killed") else str(detail)


def ended_word(state: State) -> str:
    """How a process ended, in a word: "exited" if by ``sys.exit`` or ``os._exit``."""
    word, detail = str(state.get("state")), str(state.get("detail") or "")
    left = (word == "finished" and detail.startswith(LEFT)) or is_without_exit(detail)
    return "exited" if left else word


def ended_field(state: State) -> str:
    """What decides on the advice about a process that ended early."""
    return "left" if is_without_exit(state.get("detail")) else str(state.get("state"))


def place(record: Place, through: str | None = None) -> str:
    """The line of a call, without its folder, or ""; and the line that led there, if that is the one to look at."""
    filename, line = record.get("filename"), record.get("line")
    if not filename or not line:
        return ""
    return f"{PurePath(str(filename)).name}:{line}" + (f", called from {PurePath(through).name}" if through else "")


def callers_of(record: Place) -> list[str] | None:
    """The lines that led to a call, without their folders, which may not be the same on all hosts; None if unknown."""
    return [PurePath(str(line)).name for line in record.get("callers") or ()] or None


def told_apart(records: Places) -> dict[int, str]:
    """Of calls that come from one line of a helper, the nearest line of each that led there and is not the same."""
    places = {place(record) for record in records.values()}
    callers = {number: tuple(record.get("callers") or ()) for number, record in records.items()}
    if len(places) != 1 or len(set(callers.values())) == 1 or not all(callers.values()):
        return {}
    depth = next((n for n, lines in enumerate(zip(*callers.values(), strict=False)) if len(set(lines)) > 1), None)
    return {} if depth is None else {number: lines[depth] for number, lines in callers.items()}


def through_helper(record: Place) -> str | None:
    """The line that led to a call on its own, where that is in another file: of a program, not its helpers."""
    filename = str(record.get("filename") or "")
    other = next((line for line in record.get("callers") or () if line.rpartition(":")[0] != filename), None)
    return other if filename else None


def differs(index: int, group: Iterable[int], words: str, records: Places) -> str:
    """The sentence on a call that differs; ``words`` say in what, with the functions if these differ."""
    through = told_apart(records)
    named = f"call {index} of {name_processes(group)}"
    if words.startswith(":"):
        return f"{named} differs{words}."
    made = {call_words(record, through.get(number)) for number, record in records.items()}
    places = {number: place(record, through.get(number)) for number, record in records.items()}
    functions = {str(record.get("function")) for record in records.values() if record.get("function")}
    if len(made) == 1:
        where = next(iter(made))
    else:
        lines = sides(places) if all(places.values()) else ""
        where = "; ".join(word for word in (next(iter(functions), ""), lines) if word)
    return f"{named}{f' ({where})' if where else ''} differs{words}."


def missing(short: Mapping[int, State], made: int, group: Iterable[int], others: str) -> str:
    """The sentence on processes that ended early; ``others`` says which processes wait for them, and where."""
    first = short[min(short)]
    state, detail = first.get("state"), str(first.get("detail") or "").split("\n")[0]
    at = place(first, through_helper(first))
    if state == "raised":
        detail = shortened(detail)
        verb = f"raised an exception{f' at {at}' if at else ''}{f' ({detail})' if detail else ''}"
    elif is_without_exit(detail):
        verb = f"{detail},"
    elif state == "died":
        verb = how_it_ended(detail) if detail.startswith("killed") else "died"
    elif detail.startswith(LEFT) and at:
        verb = detail.replace(LEFT, f"{LEFT} at {at}", 1)
    else:
        verb = "finished"
    count = count_of(made, "parallel call")
    return f"{name_processes(short)} {verb} after {count} of {name_processes(group)}, and {others}."


def shortened(detail: str) -> str:
    """A message of the program for a sentence: not too long, and without what a terminal would act on."""
    return plain(detail, MAX_DETAIL + len("..."))


def racing_threads(threads: Mapping[int, Sequence[str]]) -> str:
    """The remark on processes in which several threads make parallel calls."""
    told = alike({number: ", ".join(names) for number, names in threads.items()})
    words = "; ".join(f"in {name_processes(numbers)}, {names}" for names, numbers in told.items())
    return f"Several threads make parallel calls, whose order is determined only if each waits for the other: {words}."


def last_agreed(function: str, index: int | None) -> list[str]:
    """The remark on the last call that was given the same values, as far as they are known; none if there is none."""
    return [f"Up to call {index} of {function}, what was compared was the same."] if index is not None else []


def undecided(function: str) -> str:
    """The remark on a program of which nothing can be proven."""
    return (
        f"It is not known whether {function} communicates between processes, so its calls are not compared: its "
        "collectives, or what its kernels do between devices, cannot be read."
    )


def call_words(record: Place, through: str | None = None, unclear: bool = False) -> str:
    """Returns "f at train.py:3"; ``through`` is the caller to name, ``unclear`` if another function has the name."""
    words = str(record.get("function") or "a call")
    if unclear and record.get("defined_at"):
        words += f" (defined at {record['defined_at']})"
    at = place(record, through)
    return f"{words} at {at}" if at else words
