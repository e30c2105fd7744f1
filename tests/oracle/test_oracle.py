"""A short run of the oracle, in a process of its own: it needs eight devices, and loads thousands of small modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CAMPAIGN = Path(__file__).parent / "campaign.py"


@pytest.mark.long
def test_the_linter_agrees_with_jax():
    command = [sys.executable, str(CAMPAIGN), "--programs", "300", "--seed", "0", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode in (0, 1), done.stderr
    told = json.loads(done.stdout)
    assert told["disagreements"] == []

    # Few programs have no verdict, and every kind of fault is among them.
    assert told["programs"] == 300
    assert told["abstained"] <= 0.1 * told["programs"]
    assert told["faulty"] >= 0.3 * told["programs"]
    assert [fault for fault, (_, count) in told["recall"].items() if count == 0] == []
