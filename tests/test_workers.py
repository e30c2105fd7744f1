"""Several processes find what one finds."""

from __future__ import annotations

import pytest

from spmdlint.program import workers

FILES = {
    "losses.py": "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'batch')\n",
    "train.py": "import losses\n\nlosses.mean(1.0)\n",
    "wrong.py": "import jax\n\ndef f(:\n",
    "deep.py": "import jax\nx = " + "(" * 3000 + ")" * 3000 + "\n",
    "empty.py": "",
}


@pytest.fixture
def several(project):
    project.write({**FILES, "rank.py": project.hazard, "spmdlint.toml": ""})
    return project


def test_the_number_of_processes_changes_nothing(several):
    alone = several.check("--no-cache", "-j", "1")
    assert [code for _, _, code in alone.found] == ["SPMD901", "SPMD101", "SPMD301", "SPMD901"]
    for jobs in ("2", "3", "20"):
        assert several.check("--no-cache", "-j", jobs).json == alone.json


@pytest.mark.parametrize("serve", ["raise SystemExit(3)", "print('nothing of ours')", "import os; os.abort()"])
def test_what_a_worker_fails_to_do_is_done_all_the_same(several, monkeypatch, serve):
    alone = several.check("--no-cache", "-j", "1")
    monkeypatch.setattr(workers, "_SERVE", serve)
    assert several.check("--no-cache", "-j", "2").json == alone.json


def test_small_projects_and_single_cores_start_no_process(several, monkeypatch):
    monkeypatch.setattr(workers, "_hand_out", lambda *_: pytest.fail("a process was started"))
    assert several.check("--no-cache").status == 1
    monkeypatch.setattr(workers, "LEAST", 1)
    monkeypatch.setattr(workers, "cores", lambda: 1)
    assert several.check("--no-cache").status == 1


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_no_number_of_processes(project, jobs):
    outcome = project.run("check", "-j", jobs)
    assert outcome.status == 2
    assert "is not an integer of at least 1" in outcome.err
