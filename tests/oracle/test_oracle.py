"""A short run of the oracle, in a process of its own: it needs eight devices, and loads thousands of small modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# One worker runs the campaign once for all tests.
pytestmark = pytest.mark.xdist_group("oracle")
CAMPAIGN = Path(__file__).parent / "campaign.py"


@pytest.fixture(scope="module")
def told():
    command = [sys.executable, str(CAMPAIGN), "--programs", "300", "--seed", "0", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def test_the_linter_agrees_with_jax(told):
    assert told["disagreements"] == []


def test_few_programs_have_no_verdict(told):
    assert told["programs"] == 300
    assert told["abstained"] <= 0.1 * told["programs"]
    assert told["faulty"] >= 0.3 * told["programs"]


def test_every_kind_of_fault_is_among_them(told):
    assert [fault for fault, (_, count) in told["recall"].items() if count == 0] == []
