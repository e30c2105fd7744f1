"""What tells the processes of a report apart where their calls look the same: equal ones are shown together."""

from __future__ import annotations

from collections.abc import Mapping

from spmdlint.runtime_checks.agreement.verdict import Sides, environment_words, executable_words, value_words
from spmdlint.runtime_checks.reporting.report import ProcessReport, tell_definitions


def tell_apart(processes: Mapping[int, ProcessReport], records: Sides, field: str) -> None:
    """Add what differs to the processes of a report that make a call, unless their arguments already show it."""
    if field == "function":
        tell_definitions(processes, records)
        return
    words = _words(records, field)
    seen: dict[str, set[str]] = {}
    for number, told in words.items():
        one = processes[number]
        seen.setdefault(repr((one.arguments, one.static)), set()).add(told)
    if all(len(told) == 1 for told in seen.values()):
        return
    for number, told in words.items():
        processes[number].detail = told


def _words(records: Sides, field: str) -> dict[int, str]:
    """The side of each process that is known, in words that are equal on two processes exactly if the field is."""
    if field == "value":
        return value_words(records)
    if field == "environment":
        return environment_words(records)
    if field == "name":
        return {number: f"name = {name!r}" for number, record in records.items() if (name := record.get("name"))}
    if field == "devices":
        return {number: f"devices = {found}" for number, record in records.items() if (found := record.get("devices"))}
    if field == "executable":
        return {number: f"executable = {executable_words(record)}" for number, record in records.items()}
    if field == "module":
        modules = {number: module for number, record in records.items() if (module := record.get("module"))}
        return {number: f"lowered program {module[:8]}" for number, module in modules.items()}
    return {}
