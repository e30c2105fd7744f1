"""Write the tables of the faults that were run and of the faults that were mended, from the data in docs/field.

``python docs/shown.py`` writes them into bugs-found.md and historical-fixes.md; a test checks that the pages are up to
date. ``shown.jsonl`` comes from benchmarks/shown.py, and ``historical.jsonl`` from benchmarks/historical.py; in the
latter, ``lost`` and ``family`` are written by hand: what the linter does not see in a fault that it does not find.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
SHOWN, HISTORICAL = DOCS / "field" / "shown.jsonl", DOCS / "field" / "historical.jsonl"
BUGS, FIXES = DOCS / "bugs-found.md", DOCS / "historical-fixes.md"
END = "<!-- End of what is generated. -->\n"
OTHERS = """\
The runs of what was [judged differently](#read-twice-judged-differently) show what the smallest part of the project
does under the conditions that the second column names. The project may never have these conditions.
"""
ENDINGS = {"hang": "still running", "error": "an error", "wrong numbers": "wrong numbers", "nothing wrong": "nothing"}


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def page(path: Path, generated: str, source: str) -> str:
    """A page with its generated part replaced."""
    begin = f"<!-- Generated from docs/field/{source} by docs/shown.py. -->\n"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(END)
    assert found, f"{path.name} has no line {begin}"
    assert ended, f"{path.name} has no line {END}"
    return f"{before}{begin}\n{generated}\n{END}{after}"


def shown(results: Iterable[dict[str, Any]]) -> str:
    """A table of the faults that were run, one of what a blind reading judged differently, and each report."""
    results = list(results)
    faults = [each for each in results if each["confirmed"]]
    others = [each for each in results if not each["confirmed"]]
    reports = "".join(_report(each) for each in (*faults, *others))
    return f"{_runs('fault', faults)}\n{OTHERS}\n{_runs('claim', others)}\n{reports}".rstrip("\n") + "\n"


def _runs(first: str, results: Iterable[dict[str, Any]]) -> str:
    rows = [[_link(each), each["what"], _alone(each["plain"]), _checked(each["checked"])] for each in results]
    return _table([first, "what is run", "alone", "under `spmdlint run`"], rows)


def _link(result: dict[str, Any]) -> str:
    return f"[{result['heading'].split(':')[0]}](#{result['name']})"


def _alone(plain: dict[str, Any]) -> str:
    if plain["outcome"] == "hang":
        who = "both hang" if not any(isinstance(each, int) for each in plain["statuses"]) else "one process hangs"
        return f"{who}: ended after {plain['seconds']} s"
    if plain["outcome"] == "error":
        failed = [str(number) for number, status in enumerate(plain["statuses"]) if status]
        who = f"process {failed[0]}" if len(failed) == 1 else "both"
        return f"{who} failed after {plain['seconds']} s"
    return f"{plain['outcome']} after {plain['seconds']} s"


def _checked(checked: dict[str, Any]) -> str:
    first = {3: "diverged", 0: "clean"}.get(checked["status"], "failed")
    return f"{first} after {checked['seconds']} s"


def _report(result: dict[str, Any]) -> str:
    plain, checked = result["plain"], result["checked"]
    said = [f"[{number}] {line}" for number, line in enumerate(plain["said"]) if line]
    alone = "\n".join(said) if said else "(neither process prints anything more)"
    again = f" in the {_ordinal(checked['runs'])} run" if checked["runs"] > 1 else ""
    return (
        f"### {result['name']}\n\n"
        f"Alone, {_ended(plain)}:\n\n```text\n{alone}\n```\n\n"
        f"Under `spmdlint run`{again}, status {checked['status']}:\n\n```text\n{checked['report']}\n```\n\n"
    )


def _ended(plain: dict[str, Any]) -> str:
    if plain["outcome"] == "hang":
        return f"not all processes ended; after {plain['seconds']} s, the last lines are"
    statuses = " and ".join(map(str, plain["statuses"]))
    return f"the processes ended with {statuses}; {ENDINGS[plain['outcome']]} after {plain['seconds']} s"


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


def historical(faults: Iterable[dict[str, Any]]) -> str:
    """The counts and the table of the mended faults."""
    faults = list(faults)
    rows = [[each["project"], _fix(each), each["effect"], each["what"], _found(each), each["lost"]] for each in faults]
    words = ("found", "found in part", "found with `--preview`", "not found")
    counts = {word: sum(verdict(each) == word for each in faults) for word in words}
    total = [[*(str(counts[word]) for word in words), str(len(faults))]]
    families = Counter(each["family"] for each in faults if each["family"])
    lost = _table(["what is lost", "faults"], [[name, str(count)] for name, count in families.most_common()])
    table = _table(["project", "mended by", "effect", "what was wrong", "found", "what is lost"], rows)
    return f"{_table([*words, 'all'], total)}\n{lost}\n{table}"


def verdict(fault: dict[str, Any]) -> str:
    """Whether a fault is found at all its places, and in which setting."""
    usual = [bool(place["default"]) for place in fault["found"]]
    if all(usual):
        return "found"
    if any(usual):
        return "found in part"
    return "found with `--preview`" if any(place["preview"] for place in fault["found"]) else "not found"


def _found(fault: dict[str, Any]) -> str:
    codes = sorted({code for place in fault["found"] for code in (*place["default"], *place["preview"])})
    links = ", ".join(f"[{code}](rules/{code}.md)" for code in codes)
    word = verdict(fault)
    if word == "not found":
        return "no"
    return {"found": links, "found in part": f"{links}, in part"}.get(word, f"{links} with `--preview`")


def _fix(fault: dict[str, Any]) -> str:
    if "fix" in fault:
        return f"[{fault['fix'][:10]}]({fault['git']}/commit/{fault['fix']})"
    return f"[#{fault['pull'].rpartition('/')[2]}]({fault['pull']})"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines: Iterator[list[str]] = iter([columns, ["---"] * len(columns), *map(list, rows)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> None:
    """Write both pages."""
    BUGS.write_text(page(BUGS, shown(records(SHOWN)), SHOWN.name), encoding="utf-8")
    FIXES.write_text(page(FIXES, historical(records(HISTORICAL)), HISTORICAL.name), encoding="utf-8")


if __name__ == "__main__":
    main()
