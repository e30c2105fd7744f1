"""What the linter finds in the spellings of ``fixtures/spellings``: a table by family, and what is expected to fail.

``python tests/spellings/tally.py`` prints the table and every spelling that is wrong. With ``--write`` it rewrites
``fixtures/spellings/expected_failures.toml``, which ``tests/test_spellings.py`` reads.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from groups import FOLDER, Group, Spelling, all_groups

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXPECTED = FOLDER / "expected_failures.toml"
_HEAD = """\
# The spellings that the linter judges wrongly today, by family and group: bad ones that it does not report, and right
# ones that it does. tests/test_spellings.py fails when one of them is judged rightly, until its name is removed here:
# python tests/spellings/tally.py --write
"""


@dataclass(frozen=True)
class Finding:
    """One finding, by its group, its line and its code."""

    group: str
    row: int
    code: str


@dataclass(frozen=True)
class Judged:
    """The findings of one run, by spelling; ``elsewhere`` are those in no spelling of their group."""

    groups: tuple[Group, ...]
    by_label: Mapping[str, tuple[Finding, ...]]
    elsewhere: tuple[Finding, ...]

    def is_right(self, group: Group, spelling: Spelling) -> bool:
        """Whether a bad spelling has a finding of the group's hundred, or a right one has none."""
        due = f"SPMD{group.hundred}"
        found = any(finding.code.startswith(due) for finding in self.by_label.get(spelling.label, ()))
        return found == spelling.bad

    def wrong(self, group: Group) -> list[Spelling]:
        """The spellings of a group that are judged wrongly."""
        return [spelling for spelling in group.spellings if not self.is_right(group, spelling)]


def lint() -> Judged:
    """Lint a copy of all groups in one run of the command line, with the default rules."""
    groups = all_groups()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "project"
        shutil.copytree(FOLDER, root, ignore=shutil.ignore_patterns("*.toml", "__pycache__"))
        (root / "spmdlint.toml").write_text("")
        done = subprocess.run(
            [sys.executable, "-m", "spmdlint", "check", "--no-cache", "--output-format", "json"],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 1) or "failed" in done.stderr:
            raise RuntimeError(f"spmdlint check ended with {done.returncode}: {done.stderr}")
        findings = [
            Finding(
                Path(each["filename"]).resolve().relative_to(root).with_suffix("").as_posix(),
                each["location"]["row"],
                each["code"],
            )
            for each in json.loads(done.stdout)
        ]
    return judge(groups, findings)


def judge(groups: Iterable[Group], findings: Iterable[Finding]) -> Judged:
    """Assign findings to the spellings in whose lines they are."""
    known = {group.name: group for group in groups}
    by_label: dict[str, list[Finding]] = {}
    elsewhere = []
    for finding in findings:
        spelling = known[finding.group].spelling_at(finding.row)
        if spelling is None:
            elsewhere.append(finding)
        else:
            by_label.setdefault(spelling.label, []).append(finding)
    return Judged(tuple(known.values()), {label: tuple(those) for label, those in by_label.items()}, tuple(elsewhere))


def expected() -> dict[str, frozenset[str]]:
    """The names that are expected to be judged wrongly, by group."""
    if not EXPECTED.exists():
        return {}
    tables = tomllib.loads(EXPECTED.read_text())
    return {
        f"{family}/{group}": frozenset([*listed.get("missed", ()), *listed.get("false_alarms", ())])
        for family, groups in tables.items()
        for group, listed in groups.items()
    }


def written(judged: Judged) -> str:
    """The text of the file of what is expected to fail."""
    lines = [_HEAD]
    for group in judged.groups:
        wrong = judged.wrong(group)
        if not wrong:
            continue
        lines.append(f"[{group.name.replace('/', '.')}]")
        for key, bad in (("missed", True), ("false_alarms", False)):
            names = [spelling.name for spelling in wrong if spelling.bad == bad]
            if names:
                lines += [f"{key} = [", *(f'    "{name}",' for name in names), "]"]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def table(judged: Judged) -> Iterator[str]:
    """The summary by family."""
    yield f"{'family':8} {'groups':>6} {'consistent':>10} {'found':>6} {'due':>5} {'false alarms':>12} {'right':>6}"
    families = sorted({group.family for group in judged.groups})
    for family in [*families, "all"]:
        groups = [group for group in judged.groups if family in (group.family, "all")]
        bad = [(group, each) for group in groups for each in group.spellings if each.bad]
        good = [(group, each) for group in groups for each in group.spellings if not each.bad]
        found = sum(judged.is_right(*pair) for pair in bad)
        alarms = sum(not judged.is_right(*pair) for pair in good)
        consistent = sum(not judged.wrong(group) for group in groups)
        yield f"{family:8} {len(groups):6} {consistent:10} {found:6} {len(bad):5} {alarms:12} {len(good):6}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the file of what is expected to fail")
    asked = parser.parse_args()
    judged = lint()
    print("\n".join(table(judged)))
    for group in judged.groups:
        for spelling in judged.wrong(group):
            print(f"{'missed' if spelling.bad else 'false alarm'}: {spelling.label}")
    for finding in judged.elsewhere:
        print(f"in no spelling: {finding.code} at {finding.group}:{finding.row}")
    if asked.write:
        EXPECTED.write_text(written(judged))
        print(f"{EXPECTED} is written.")


if __name__ == "__main__":
    main()
