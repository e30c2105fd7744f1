"""Faults that are run on two processes, and faults that were mended: the commands, the data and the pages agree."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = """import jax
from jax.experimental import multihost_utils


def finish(state):
    if jax.process_index() != 0:
        return state
    multihost_utils.sync_global_devices("finished")
    return state


def told(flag):
    if flag:
        multihost_utils.sync_global_devices("told")
"""
DRIVER = """from loading import importable, start, tell
importable("src")
import jax.numpy as jnp
from jax.experimental import multihost_utils
from thing import finish
start()
finish(None)
tell("a sum of", float(multihost_utils.process_allgather(jnp.float32(1)).sum()), 2.0)
"""


def module(path: Path):
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def shown():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield module(ROOT / "benchmarks" / "shown.py")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def historical(shown):
    return module(ROOT / "benchmarks" / "historical.py")


@pytest.fixture(scope="module")
def pages():
    return module(ROOT / "docs" / "shown.py")


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def commit(tmp_path: Path) -> str:
    """Of a project of ours, in a folder of sources."""
    repository = tmp_path / "sources" / "someone" / "thing"
    (repository / "src").mkdir(parents=True)
    (repository / "src" / "thing.py").write_text(PROJECT)
    git(repository, "init", "--quiet")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "one")
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def drivers(tmp_path: Path, commit: str) -> Path:
    folder = tmp_path / "drivers"
    folder.mkdir()
    (folder / "loading.py").write_text((ROOT / "benchmarks" / "shown" / "loading.py").read_text())
    (folder / "early.py").write_text(DRIVER)
    (folder / "faults.jsonl").write_text(
        json.dumps(
            {
                "name": "early",
                "heading": "thing: early",
                "what": "`finish`",
                "commit": commit,
                "devices": 1,
                "git": "https://example.org/someone/thing",
                "outcome": "error",
                "report": True,
                "confirmed": True,
            }
        )
        + "\n"
    )
    return folder


def run(shown, drivers: Path, *more: str) -> int:
    folder = drivers.parent
    return shown.main(
        [
            *("--drivers", str(drivers), "--sources", str(folder / "sources"), "--cache", str(folder / "cache")),
            *("--results", str(folder / "shown.jsonl"), "--python", sys.executable, "--limit", "100", *more),
        ]
    )


def test_a_fault_is_shown_with_and_without_the_checks(shown, drivers, capsys):
    assert run(shown, drivers, "--write") == 0, capsys.readouterr().out
    (result,) = map(json.loads, (drivers.parent / "shown.jsonl").read_text().splitlines())
    assert result["plain"]["outcome"] == "error"
    assert result["plain"]["statuses"][0] == 1
    assert re.match(r"AssertionError: .*finished", result["plain"]["said"][0])
    assert result["checked"]["status"] == 3
    report = result["checked"]["report"]
    assert "sync_global_devices  at src/thing.py:8\n" in report
    assert str(drivers.parent) not in report


def test_a_fault_that_does_not_show_is_told(shown, drivers, capsys):
    repository = drivers.parent / "sources" / "someone" / "thing"
    (repository / "src" / "thing.py").write_text("def finish(state):\n    return state\n")
    git(repository, "commit", "--quiet", "-am", "mended")
    faults = drivers / "faults.jsonl"
    fault = json.loads(faults.read_text()) | {"commit": git(repository, "rev-parse", "HEAD"), "report": False}
    faults.write_text(json.dumps(fault) + "\n")
    assert run(shown, drivers) == 1
    printed = capsys.readouterr().out
    assert "early: without the checks, nothing wrong, not error\n" in printed
    assert "spmdlint: clean: processes 0-1 made the same 1 parallel call." in printed
    assert not (drivers.parent / "shown.jsonl").exists()


def test_a_process_that_does_not_end_is_a_hang_and_is_ended(shown, drivers, tmp_path):
    (drivers / "stuck.py").write_text(
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('process', os.getpid(), flush=True)\n"
        "time.sleep(0 if os.environ['SHOWN_PROCESS'] == '0' else 1000)\n"
    )
    fault = shown.Fault("stuck", "", "", "", "", "hang", report=False, confirmed=True)
    ended = shown.alone(fault, drivers, Path(sys.executable), tmp_path, 4)
    assert (ended.outcome, ended.statuses) == ("hang", (0, None))
    process = ended.said[1].split()[-1]
    assert not Path("/proc", process).exists()


def test_a_project_that_cannot_be_had_is_told(shown, drivers, capsys):
    faults = drivers / "faults.jsonl"
    fault = json.loads(faults.read_text()) | {"git": str(drivers / "nothing"), "commit": "0" * 40}
    faults.write_text(json.dumps(fault) + "\n")
    assert run(shown, drivers) == 2
    assert "failed: early could not be fetched: " in capsys.readouterr().out


def test_each_fault_of_ours_has_a_driver_a_result_and_a_place_on_the_page(shown, pages):
    faults = shown.faults()
    assert [result["name"] for result in pages.records(pages.SHOWN)] == [fault.name for fault in faults]
    confirmed, _, others = pages.BUGS.read_text(encoding="utf-8").partition("\n## Read twice, judged differently\n")
    for fault in faults:
        assert (shown.DRIVERS / f"{fault.name}.py").is_file()
        place, elsewhere = (confirmed, others) if fault.confirmed else (others, confirmed)
        assert f"\n### {fault.heading}\n" in place
        assert f"\n### {fault.heading}\n" not in elsewhere
        assert re.fullmatch(r"[0-9a-f]{40}", fault.commit)
    for fault, result in zip(faults, pages.records(pages.SHOWN), strict=True):
        assert shown.problems(fault, result) == []
        assert result["confirmed"] == fault.confirmed


def test_the_pages_are_those_which_the_data_make(pages):
    for path, made, source in (
        (pages.BUGS, pages.shown(pages.records(pages.SHOWN)), pages.SHOWN),
        (pages.FIXES, pages.historical(pages.records(pages.HISTORICAL)), pages.HISTORICAL),
    ):
        assert path.read_text(encoding="utf-8") == pages.page(path, made, source.name), "run 'make docs-rules'"


def test_what_is_not_found_says_what_is_lost(pages):
    for fault in pages.records(pages.HISTORICAL):
        assert (pages.verdict(fault) == "found") == (not fault["lost"]), fault["what"]
        assert ("fix" in fault) != ("pull" in fault)
        assert len(fault["found"]) == len(fault["places"])


def test_mended_faults_are_looked_for_at_their_places(historical, tmp_path, commit, capsys):
    data = tmp_path / "historical.jsonl"
    places = [{"file": "src/thing.py", "first": line, "last": line} for line in (6, 8, 14)]
    fault = {"project": "thing", "git": "https://example.org/someone/thing", "before": commit, "fix": "0" * 40}
    data.write_text(json.dumps({**fault, "places": places, "found": []}) + "\n")
    words = ["--data", str(data), "--sources", str(tmp_path / "sources"), "--cache", str(tmp_path / "cache")]
    assert historical.main(words) == 1, "nothing stands in the file yet"
    assert historical.main([*words, "--write"]) == 0
    found = json.loads(data.read_text())["found"]
    assert found == [{"default": ["SPMD301"], "preview": []}] * 2 + [{"default": [], "preview": []}]
    assert f"thing@{commit[:8]}: src/thing.py:14: not found" in capsys.readouterr().out
    assert historical.main(words) == 0
