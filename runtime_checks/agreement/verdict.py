"""From records to a verdict: pure functions, no store, no JAX."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as made_by

from spmdlint.runtime_checks.calls.given import conflict
from spmdlint.runtime_checks.records import Argument, Kind, Place, ProgramRecord, Side, WaitRecord
from spmdlint.runtime_checks.reporting.sentences import callers_of, calls, first_of, name_processes, place, sides

Sides = Mapping[int, Side]

_DIGEST = re.compile(r",? digest [0-9a-f]{20}\Z")


@dataclass(frozen=True, slots=True)
class Difference:
    """The kind of a difference, its field, the words that follow "the call differs", and the side of each process.

    The sides are equal on two processes exactly if the field is; those are left out of which nothing is known.
    """

    kind: Kind
    field: str
    words: str
    told: Mapping[int, str] = made_by(default_factory=dict)


def known_side(program: ProgramRecord, told: Side | None = None, place: Place | None = None) -> Side:
    """All that is known of one side: what it told of its call only explains, and the record of its program decides."""
    return {**Side(), **(place or Place()), **(told or Side()), **program}


def compare(records: Sides) -> Difference | None:
    """The difference between the records of processes at one position, the most informative first.

    A record has the decisive fields of a fingerprint and, if known, ``arguments`` and ``static``. A field that is None
    on a process is unknown there and agrees with anything.
    """
    fields = ("environment", "function", "defined_at", "name", "value", "devices", "module", "order")
    if not (any(_differs(records, name) for name in fields) or _given(records)):
        return None
    if _differs(records, "environment"):
        uneven = _uneven({number: record.get("environment") or {} for number, record in records.items()})
        words = ", ".join(f"{name} ({sides(values)})" for name, values in uneven.items())
        own = {n: ", ".join(f"{name} = {values[n]}" for name, values in uneven.items()) for n in records}
        return Difference("setup", "environment", f" in the configuration: {words}", own)
    two_calls = Difference("sequence", "function", f": {calls(records)}", _told(records, "defined_at", "defined at {}"))
    elsewhere = _unequal(place(one) or None for one in records.values())  # from different lines of the program,
    elsewhere = elsewhere or _unequal(map(callers_of, records.values()))  # be it through one line of a helper
    if _differs(records, "function") or _differs(records, "defined_at"):
        return two_calls
    if elsewhere and all(record.get("function") == "<lambda>" for record in records.values()):
        return two_calls  # there may be two on one line
    if _differs(records, "name"):
        names = sides(records, lambda r: repr(r.get("name")))
        if elsewhere:  # two barriers, each with its own name
            return replace(two_calls, words=f"{two_calls.words} (with the names: {names})")
        return Difference("arguments", "name", f" in its name: {names}", _told(records, "name", "name = {!r}"))
    if _differs(records, "value"):
        return two_calls if elsewhere else _value_difference(records)  # two assertions, each of its own value
    if _differs(records, "order"):
        return Difference("arguments", "argument", f" in the order of the keys of its arguments: {_keys(records)}")
    for name, values in _uneven({n: known for n, record in records.items() if (known := record.get("static"))}).items():
        return Difference("arguments", "static", f" in the static argument {name}: {sides(values)}")
    found = _argument_difference(records)
    if found is not None:
        return found
    if _differs(records, "devices"):
        if len({frozenset(devices) for record in records.values() if (devices := record.get("devices"))}) > 1:
            on = sides(records, lambda r: f"on the devices {r.get('devices')}")
            return replace(two_calls, words=f"{two_calls.words} ({on})")
        order = f" in the order of its devices: {sides(records, lambda r: str(r.get('devices')))}"
        return Difference("arguments", "devices", order, _told(records, "devices", "devices = {}"))
    return _program_difference(records)


def _program_difference(records: Sides) -> Difference:
    if not _differs(records, "module"):
        path, values = _given_leaf(records, str(_given(records)))
        return Difference("value", "given", f" in the value of {path}: {sides(_without_digests(values))}")
    agree = ", though its arguments agree" if _same_arguments(records) else ""
    own = _told(records, "module", "lowered program {:.8}")
    return Difference("program", "module", f" in its lowered program{agree}", own)


def _differs(records: Sides, name: str) -> bool:
    return _unequal(record.get(name) for record in records.values())


def _unequal(values: Iterable[object]) -> bool:
    """Whether some of the values that are known are not the same."""
    known = [value for value in values if value is not None]
    return any(value != known[0] for value in known[1:])


def _told(records: Sides, name: str, words: str) -> dict[int, str]:
    """The side of each process of which a field is known."""
    return {number: words.format(value) for number, record in records.items() if (value := record.get(name))}


def _same_arguments(records: Sides) -> bool:
    """Whether the arguments look alike on all processes that know them, whichever call they come from."""
    known = [given for record in records.values() if (given := record.get("arguments")) is not None]
    forms = [[{**each, "origin": None} for each in given] for given in known]
    return all(form == forms[0] for form in forms)


def _keys(records: Sides) -> str:
    """The first argument that differs on some process: its path, and which output of which call it is."""
    given = [record.get("arguments") or () for record in records.values()]
    for position, column in enumerate(zip(*given, strict=False)):
        if len({str(argument.get("path")) for argument in column}) > 1:
            return f"argument {position} differs: {sides(dict(zip(records, column, strict=True)), _named)}"
    return "it differs on some process"


def _named(argument: Argument) -> str:
    origin = argument.get("origin")
    return f"{argument.get('path')}, {origin}" if origin else str(argument.get("path"))


def _uneven(told: Mapping[int, Mapping[str, str]]) -> dict[str, dict[int, str | None]]:
    """What is not the same on all processes, by its name, with what each of them has."""
    names = sorted({name for one in told.values() for name in one})
    values = {name: {number: one.get(name) for number, one in told.items()} for name in names}
    return {name: each for name, each in values.items() if len(set(each.values())) > 1}


def _given(records: Sides) -> str | None:
    """The first of what the call is given as one value that is not the same, by its key."""
    told = [given for record in records.values() if (given := record.get("given"))]
    return next((key for one, other in itertools.combinations(told, 2) if (key := conflict(one, other))), None)


def _given_leaf(records: Sides, key: str) -> tuple[str, Mapping[int, str]]:
    """An argument that is given another value, and its text on each process; by its number where no name is known."""
    words: dict[int, str] = {}
    path = ""
    for number, record in records.items():
        tag, known = (record.get("given") or {}).get(key), record.get("arguments") or []
        if tag is None:
            continue
        words[number] = tag
        if key.isdigit() and int(key) < len(known):
            place = len(known) - 1 - int(key)
            words[number] = known[place].get("value") or tag
            path = path or str(known[place].get("path"))
    return path or (f"the argument {int(key) + 1} from the last" if key.isdigit() else key), words


def _value_difference(records: Sides) -> Difference:
    """The first leaf that differs, if the value has leaves of the same names everywhere; otherwise the value."""
    name = next((name for record in records.values() if (name := record.get("name"))), "a value")
    whole = _without_digests({n: value for n, record in records.items() if (value := record.get("value")) is not None})
    own = {n: f"{records[n].get('name') or 'value'} = {told}" for n, told in whole.items()}
    leaves = {
        number: {str(leaf.get("path")): str(leaf.get("value")) for leaf in record.get("arguments") or ()}
        for number, record in records.items()
    }
    if not all(leaves.values()):  # a value without leaves on one side
        return Difference("value", "value", f" in {name}: {sides(whole)}", own)
    paths = list(dict.fromkeys(path for known in leaves.values() for path in known))
    having = {path: tuple(n for n in sorted(leaves) if path in leaves[n]) for path in paths}
    lacking = "; ".join(
        f"only {name_processes(who)} {'has' if len(who) == 1 else 'have'} "
        f"{first_of([path for path in paths if having[path] == who], 1)}"
        for who in sorted(set(having.values()))
        if len(who) < len(leaves)
    )
    if lacking:
        return Difference("value", "value", f" in {name}: {lacking} ({sides(whole)})", own)
    each = ((path, {number: known[path] for number, known in leaves.items()}) for path in paths)
    path, words = next(((path, words) for path, words in each if _unequal(words.values())), ("", whole))
    at = f", at {path}" if path else ""  # otherwise the containers differ
    return Difference("value", "value", f" in {name}{at}: {sides(_without_digests(words))}", own)


def _without_digests(words: Mapping[int, str]) -> Mapping[int, str]:
    """The texts of values, with their digests only where nothing else tells them apart."""
    plain = {number: _DIGEST.sub("", told) for number, told in words.items()}
    return plain if len(set(plain.values())) == len(set(words.values())) else words


def _argument_difference(records: Sides) -> Difference | None:
    known = {number: given for number, record in records.items() if (given := record.get("arguments")) is not None}
    if len(known) < 2:
        return None
    lengths = {number: len(arguments) for number, arguments in known.items()}
    if _unequal(lengths.values()):
        return Difference("arguments", "argument", f" in the number of its arguments: {sides(lengths)}")
    for column in zip(*known.values(), strict=True):
        for name in ("shape", "dtype", "spec"):
            values = {number: argument.get(name) for number, argument in zip(known, column, strict=True)}
            if _unequal(values.values()):
                path = column[0].get("path")
                return Difference("arguments", "argument", f" in the {name} of {path}: {sides(values)}")
    return None


def deadlocked(me: int, waits: Mapping[int, WaitRecord]) -> list[int]:
    """The processes of a wait-for cycle through ``me``, or [].

    ``waits`` holds the records that processes published when they began to wait: of the others, those count for which
    one thread makes all their calls. A wait for a process that is stuck, and has not made that call, cannot have ended
    since it was written: so no outdated record can prove a cycle.
    """
    counts: dict[int, Mapping[str, int]] = {me: waits[me]["counts"]}

    def awaits(number: int, others: Iterable[int]) -> bool:
        """Whether a process waits for one of these others."""
        wait = waits[number]
        group, index, members = wait.get("group", ""), wait.get("index") or 0, wait.get("processes") or []
        return any(other != number and other in members and counts[other].get(group, 0) < index for other in others)

    grew = True
    while grew:
        found = [n for n, wait in waits.items() if n not in counts and wait.get("single") and awaits(n, counts)]
        counts |= {number: waits[number].get("counts") or {} for number in found}
        grew = bool(found)
    return sorted(counts) if awaits(me, counts) else []
