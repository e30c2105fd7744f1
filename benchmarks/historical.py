"""Faults that public projects have mended, and whether the linter finds them in the commit before.

    python benchmarks/historical.py [PROJECT ...] [--sources FOLDER] [--write]

The faults stand in docs/field/historical.jsonl: ``before`` is the last commit with the fault, ``fix`` the commit that
mends it (or ``pull`` the pull request, where that commit cannot be had), and ``places`` the lines. The command fetches
the projects' Python files at ``before``, lints the whole project as it comes and with ``--preview``, and tells for each
place which rules report a line of it, or name one in the explanation of a finding. With ``--write``, it puts them into
the file; docs/historical-fixes.md is made from it.

Ends with 0 if what is found stands in the file, with 1 if not, and with 2 if a project could not be fetched or linted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import field

FIXES = field.DATA / "historical.jsonl"
CHECK = [sys.executable, "-m", "spmdlint", "check", ".", "--no-cache", "-j", "1", "--output-format", "json"]


def records(path: Path = FIXES) -> list[dict[str, Any]]:
    """The faults."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def reported(place: dict[str, Any], findings: Iterable[dict[str, Any]], folder: Path) -> list[str]:
    """The rules of which a finding, or a line of its explanation, is in a place; without removed names and the like."""
    lines = range(place["first"], place["last"] + 1)
    codes = set()
    for each in findings:
        if each["code"].startswith(field.FACTUAL):
            continue
        for name, line in (field.place_of(part, folder) for part in (each, *each.get("related", ()))):
            if name == place["file"] and line in lines:
                codes.add(each["code"])
    return sorted(codes)


def found(folder: Path, places: Sequence[dict[str, Any]], limit: float) -> list[dict[str, Any]]:
    """For each place, the rules that report it as they come, and those that need ``--preview``."""
    findings = field.printed([*CHECK, "--preview"], folder, limit)
    every = [reported(place, findings, folder) for place in places]
    if any(every):  # --preview only adds findings: without any, there are none without it
        findings = field.printed(CHECK, folder, limit)
    usual = [reported(place, findings, folder) for place in places]
    return [
        {"default": codes, "preview": [code for code in more if code not in codes]}
        for codes, more in zip(usual, every, strict=True)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch, lint, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help="only these")
    parser.add_argument("--data", type=Path, default=FIXES, help="the file with the faults")
    parser.add_argument("--sources", type=Path, help="a folder of git repositories that are looked at before GitHub")
    parser.add_argument("--cache", type=Path, default=field.default_cache(), help="where fetched projects are kept")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for one project")
    parser.add_argument("--write", action="store_true", help="put what is found into the file")
    options = parser.parse_args(arguments)
    faults = records(options.data)
    if unknown := set(options.projects) - {each["project"] for each in faults}:
        parser.error(f"no such project: {', '.join(sorted(unknown))}")
    failed = changed = False
    for fault in faults:
        if options.projects and fault["project"] not in options.projects:
            continue
        project = field.Project(fault["project"], git=fault["git"], commit=fault["before"])
        try:
            folder = field.fetched(project, options.cache.resolve(), options.sources)
            now = found(folder, fault["places"], options.limit)
        except field.FieldError as error:
            print(f"failed: {error}", flush=True)
            failed = True
            continue
        for place, codes in zip(fault["places"], now, strict=True):
            told = [*codes["default"], *(f"{code} (preview)" for code in codes["preview"])]
            name = f"{fault['project']}@{fault['before'][:8]}: {place['file']}:{place['first']}"
            print(f"{name}: {', '.join(told) or 'not found'}", flush=True)
        if now != fault["found"]:
            changed = True
            fault["found"] = now
    if options.write:
        options.data.write_text("".join(json.dumps(fault) + "\n" for fault in faults), encoding="utf-8")
    elif changed:
        print("what is found is not what stands in the file: run with --write")
    return 2 if failed else int(changed and not options.write)


if __name__ == "__main__":
    sys.exit(main())
