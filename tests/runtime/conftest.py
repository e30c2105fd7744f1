"""What the tests of jobs share."""

from __future__ import annotations

import pytest


@pytest.fixture
def whole_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forked processes end as Python does, by taking apart all that was imported: see tests/runtime/forkserver.py."""
    monkeypatch.setenv("WHOLE_ENDING", "1")
