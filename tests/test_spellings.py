"""Each spelling of a fault in ``fixtures/spellings`` is found, and no program that only looks like one is reported.

The linter runs once over all of them. What it judges wrongly today is listed in
``fixtures/spellings/expected_failures.toml`` and must be taken from there when it is judged rightly;
``python tests/spellings/tally.py --write`` does that, and shows a table by family.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "spellings"))

from groups import all_groups
from tally import Finding, Judged, expected, judge, lint, table, written

GROUPS = {group.name: group for group in all_groups()}
WRONG = expected()


@pytest.fixture(scope="module")
def judged() -> Judged:
    return lint()


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param(
            spelling,
            id=spelling.label,
            marks=[pytest.mark.xfail(strict=True, reason="missed" if spelling.bad else "false alarm")]
            if spelling.name in WRONG.get(group.name, ())
            else [],
        )
        for group in GROUPS.values()
        for spelling in group.spellings
    ],
)
def test_it_is_judged_rightly(spelling, judged):
    group = GROUPS[spelling.group]
    due = f"SPMD{group.hundred}"
    found = [finding for finding in judged.by_label.get(spelling.label, ()) if finding.code.startswith(due)]
    if spelling.bad:
        assert found, f"no finding of {due}.. in lines {spelling.first} to {spelling.last} of {group.name}"
    else:
        assert not found


def test_every_finding_is_in_a_spelling(judged):
    assert judged.elsewhere == ()


def test_what_is_expected_to_fail_exists():
    known = {group.name: {spelling.name for spelling in group.spellings} for group in GROUPS.values()}
    assert {name: those - known.get(name, set()) for name, those in WRONG.items()} == dict.fromkeys(WRONG, frozenset())


def test_there_are_enough_groups():
    families = [group.family for group in GROUPS.values()]
    assert len(families) >= 40
    assert families.count("count") >= 16
    assert all(families.count(family) >= 4 for family in ("names", "order", "shape", "value"))
    assert families.count("setup") >= 3  # of which four rules are left


def test_findings_count_for_the_spelling_whose_lines_they_are_in():
    group = GROUPS["count/metric_gathered_by_process_zero"]
    first, second = group.spellings[:2]
    assert (first.name, second.first) == ("bad_written_out", first.last + 1)
    right = [
        Finding(group.name, first.last, "SPMD303"),
        Finding(group.name, second.last, "SPMD401"),
        Finding(group.name, 1, "SPMD301"),
    ]
    result = judge([group], right)
    assert result.is_right(group, first)
    assert not result.is_right(group, second), "a finding of another hundred does not count"
    assert result.elsewhere == (right[2],)
    alarmed = next(spelling for spelling in group.spellings if not spelling.bad)
    assert not judge([group], [Finding(group.name, alarmed.last, "SPMD301")]).is_right(group, alarmed)
    assert result.is_right(group, alarmed)
    assert "bad_written_out" not in written(result)
    assert "bad_negated_truth_value" in written(result)
    assert next(line for line in table(result) if line.startswith("count")).split() == "count 1 0 1 12 0 6".split()
