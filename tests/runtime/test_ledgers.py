"""Recordings read after the job: the first difference."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from spmdlint.cli import main
from spmdlint.runtime_checks.agreement.offline import load
from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.recording import writing
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.recording.reading import read, read_lines
from spmdlint.runtime_checks.recording.writing import CALLS, KEPT, Recording, folder_of, forget_old, jobs_in
from spmdlint.runtime_checks.session import Session
from spmdlint.runtime_checks.transport.store import Store
from tests.runtime.fakes import FakeClient, program
from tests.runtime.jobs import rehearse

STEP, SAVE = program("step", (0, 1)), program("save", (0, 1))


class Process:
    """One that records."""

    def __init__(self, folder: Path, number: int) -> None:
        self.recording = Recording(folder / f"{number}.ledger")
        self.journal = Journal(Ledger(), self.recording)

    def make(self, called: Program, line: int, times: int = 1) -> None:
        event = self.journal.event_of(called, Site("/home/me/train.py", line, "main"))
        for _ in range(times):
            self.journal.note(event)
        self.journal.drain()


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Process, Process]:
    return Process(tmp_path, 0), Process(tmp_path, 1)


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["ledger", *argv])
    said = capsys.readouterr()
    return status, said.out, said.err


def diff(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    status, out, _ = told(capsys, "diff", str(folder), "--output-format", "json")
    return status, json.loads(out)


def test_the_first_difference_is_named(tmp_path, pair, capsys):
    for process in pair:
        process.make(STEP, 3, 10)
    pair[0].make(SAVE, 7)
    pair[1].make(STEP, 3)
    for process in pair:
        process.make(SAVE, 9, 5)
    status, out, _ = told(capsys, "diff", str(tmp_path))
    assert status == 3
    assert "call 11 of processes 0-1 differs: process 0 calls save at train.py:7; process 1 calls step" in out
    status, data = diff(tmp_path, capsys)
    assert (status, data["report"]["index"], data["report"]["kind"]) == (3, 11, "sequence")


def test_processes_that_agree_and_end_apart(tmp_path, pair, capsys):
    pair[0].make(STEP, 3, 10)
    pair[1].make(STEP, 3, 12)
    status, out, _ = told(capsys, "diff", str(tmp_path))
    assert status == 2, "process 0 may have been killed before its next call"
    assert "end at different calls: process 0 after call 10; process 1 after call 12." in out
    assert "agree as far" not in out
    assert "neither that processes 0-1 differ nor that they agree" in out
    assert diff(tmp_path, capsys)[1]["differs"] is None


@pytest.mark.parametrize("state", ["finished", "raised"])
def test_a_program_that_ended_without_a_call_of_the_others_has_missed_it(tmp_path, pair, capsys, state):
    pair[0].make(STEP, 3, 12)
    pair[1].make(STEP, 3, 10)
    pair[1].journal.write({"end": {"state": state, "filename": "/home/me/train.py", "line": 9}})
    status, data = diff(tmp_path, capsys)
    assert (status, data["differs"], data["report"]["kind"], data["report"]["index"]) == (3, True, "missing", 11)
    assert f"process 1 {state}" in data["report"]["message"]
    assert (data["report"]["processes"]["1"]["state"], data["report"]["processes"]["1"]["line"]) == (state, 9)


def test_a_call_that_lockstep_may_have_held_back_is_not_called_made(tmp_path, pair, capsys):
    pair[0].make(STEP, 3, 11)
    pair[1].make(STEP, 3, 10)
    pair[1].journal.write({"end": {"state": "finished"}})
    status, out, _ = told(capsys, "diff", str(tmp_path))
    assert status == 3
    assert "process 0 came to call 11, step at train.py:3." in out


@pytest.mark.parametrize("end", ["17", '["state"]', '{"state": 5, "callers": 7}', '{"state": "happy"}'])
def test_an_end_that_is_none_is_not_taken_for_one(tmp_path, pair, capsys, end):
    pair[0].make(STEP, 3, 12)
    pair[1].make(STEP, 3, 10)
    with (tmp_path / "1.events").open("a") as file:
        file.write(f'{{"end": {end}}}\n')
    assert diff(tmp_path, capsys)[0] == 2


def test_one_call_from_two_lines_is_not_called_the_same(tmp_path, pair, capsys):
    """The arguments may come from different calls, which no recording tells."""
    for number, process in enumerate(pair):
        process.make(STEP, 3)
        process.make(STEP, 6 + 2 * number)
        process.make(STEP, 3)
    status, out, _ = told(capsys, "diff", str(tmp_path))
    assert status == 2
    assert "Call 2 of processes 0-1 is made from different lines: process 0: train.py:6; process 1: train.py:8." in out
    assert "agree as far" not in out
    assert diff(tmp_path, capsys)[1]["differs"] is None


def test_calls_whose_arguments_are_not_recorded_are_not_called_the_same(tmp_path, pair, capsys):
    for number, process in enumerate(pair):
        process.make(program("step", (0, 1), module=f"of {number} rows"), 3)
    status, data = diff(tmp_path, capsys)
    assert (status, data["differs"]) == (2, None)
    assert "Call 1 of processes 0-1 is not the same everywhere" in " ".join(data["notes"])


def test_processes_that_agree(tmp_path, pair, capsys):
    for process in pair:
        process.make(STEP, 3, 10)
        process.journal.write({"end": {"state": "finished"}})
    status, out, _ = told(capsys, "diff", str(tmp_path))
    assert status == 0
    assert "The last calls of processes 0-1 agree as far as they are recorded." in out
    assert diff(tmp_path, capsys)[1]["differs"] is False


def test_a_ring_that_went_round_is_aligned_by_number(tmp_path, pair, capsys):
    """Process 0 has lost its first calls, process 1 has not: both are at the same numbers all the same."""
    pair[0].make(STEP, 3, 1000)
    pair[0].make(STEP, 4, CALLS - 10)
    pair[1].make(STEP, 3, 1200)
    status, data = diff(tmp_path, capsys)
    assert (status, data["differs"], data["earlier"]) == (2, None, [])
    assert any("before number 991 are no longer recorded by all" in note for note in data["notes"])
    assert any("process 1 after call 1200" in note for note in data["notes"])


def test_a_difference_that_is_lost_is_noticed_by_what_comes_after(tmp_path, pair, capsys):
    pair[0].make(STEP, 3)
    pair[1].make(SAVE, 3)
    for process in pair:
        process.make(STEP, 3, CALLS + 50)
    status, data = diff(tmp_path, capsys)
    assert (status, data["report"]) == (3, None)
    (earlier,) = data["earlier"]
    assert "process 0 and process 1 made different calls before number" in earlier


def test_records_that_share_no_call_are_not_compared(tmp_path, pair, capsys):
    pair[0].make(STEP, 3, CALLS + 5000)
    pair[1].make(STEP, 3, 100)
    status, data = diff(tmp_path, capsys)
    assert status == 2
    assert any("No call of processes 0-1 is recorded by all of them" in note for note in data["notes"])


def test_a_process_without_a_record_is_named(tmp_path, capsys):
    Process(tmp_path, 0).make(STEP, 3)
    status, data = diff(tmp_path, capsys)
    assert (status, data["notes"]) == (2, ["There is no recording of process 1."])
    assert told(capsys, "diff", str(tmp_path))[0] == 2


def test_a_restart_keeps_the_evidence_of_the_crash(tmp_path, capsys):
    first, second = (folder_of(tmp_path, name) for name in ("20260101_095959_900000", "20260101_100000_000000"))
    for number, called in enumerate((STEP, SAVE)):
        Process(first, number).make(called, 3 + number)
    assert diff(tmp_path, capsys)[0] == 3
    for number in range(2):
        Process(second, number).make(STEP, 3, 4)
    status, data = diff(tmp_path, capsys)
    assert (status, data["report"], data["earlier_jobs"]) == (0, None, [str(first)])
    assert f"Earlier jobs are recorded in {first}." in told(capsys, "diff", str(tmp_path))[1]
    status, out, _ = told(capsys, "diff", str(first))
    assert status == 3
    assert "process 0 calls step at train.py:3; process 1 calls save at train.py:4" in out


def test_a_process_that_was_restarted_within_its_job_leaves_its_first_recording(tmp_path, capsys):
    """What it does then is not compared."""
    Process(tmp_path, 0).make(STEP, 3, 2)
    with pytest.raises(FileExistsError):
        Process(tmp_path, 0)
    assert len(read(tmp_path / "0.ledger")) == 2


def test_only_the_last_jobs_are_kept(tmp_path):
    """And what others call a job stays: it is neither deleted, nor taken for the last job."""
    others = [tmp_path / name for name in ("job-4711", "job-10", "job-mine")]
    for other in others:
        other.mkdir()
    for number in range(KEPT + 3):
        Process(folder_of(tmp_path, f"20260101_10000{number}_000000"), 0).make(STEP, 3)
        forget_old(tmp_path)
    assert [path.name[:20] for path in jobs_in(tmp_path)] == [f"job-20260101_10000{n}_" for n in range(KEPT + 2, 1, -1)]
    assert load(tmp_path).folder == jobs_in(tmp_path)[0]
    assert all(other.is_dir() for other in others)


@pytest.mark.parametrize("shared", [True, False])
def test_all_processes_of_a_job_record_in_one_folder(shared, tmp_path, capsys):
    """Also if they come seconds apart, on hosts whose disks are gathered afterwards."""
    clients = [FakeClient()] * 2
    disks = [tmp_path / ("one" if shared else f"host{number}") for number in range(2)]
    for number, called in enumerate((STEP, SAVE)):
        session = Session(Store(clients[number], "job"), number, 2, Options(ledger=disks[number]))
        journal = session.own.journal
        journal.note(journal.event_of(called, Site("/home/me/train.py", 3 + number, "main")))
        time.sleep(1.1)
    for disk in disks:
        shutil.copytree(disk, tmp_path / "all", dirs_exist_ok=True)
    assert len(jobs_in(tmp_path / "all")) == 1
    status, data = diff(tmp_path / "all", capsys)
    assert (status, data["processes"], data["report"]["kind"]) == (3, [0, 1], "sequence")


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_each_run_has_its_own_recordings(mode, tmp_path, capsys):
    program = "x = everywhere([1, 1])\nfor _ in range({}):\n    print(jax.jit(lambda v: v.sum())(x))"
    for times in (1, 2):
        run = rehearse(tmp_path, program.format(times), options=("--mode", mode, "--ledger", str(tmp_path / "books")))
        assert run.status == 0, run.output
    last, before = jobs_in(tmp_path / "books")
    assert [len(read(folder / "1.ledger")) for folder in (last, before)] == [2, 1]
    assert diff(tmp_path / "books", capsys)[1]["earlier_jobs"] == [str(before)]


def test_a_word_that_it_does_not_know_is_answered_with_what_it_does(tmp_path, capsys):
    status, _, said = told(capsys, "show", str(tmp_path))
    assert status == 2
    assert "does not take 'show'" in said
    assert "diff (report the first call at which the processes differ)" in said


def test_a_recording_is_for_its_user_alone(tmp_path):
    Process(tmp_path, 0).make(STEP, 3)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "0.ledger": 0o600,
        "0.events": 0o600,
    }


def test_programs_of_thousands_of_devices_are_recorded_whole(tmp_path, capsys, monkeypatch):
    """As long lists, they would not fit: a tenth of the calls, and a tenth of the limits."""
    limit(monkeypatch, writing.FULL_BYTES // 20, writing.MAX_EVENTS_BYTES // 20)
    everyone, devices = tuple(range(1000)), [*range(4000, 8000), *range(4000)]
    for number in range(2):
        process = Process(tmp_path, number)
        for called in range(90):
            one = Program(f"f{called}", everyone, devices=tuple(devices), module=str(called + (number * (called > 88))))
            process.recording.write_program(one.digest, one.decisive())
            process.make(one, called)
    status, data = diff(tmp_path, capsys)
    assert (status, data["report"]["kind"], data["report"]["index"]) == (3, "program", 90)
    assert not [note for note in data["notes"] if "full" in note]
    assert all(record["devices"] == devices for record in read_lines(tmp_path / "0.ledger").programs.values())


def limit(monkeypatch: pytest.MonkeyPatch, full: int, most: int) -> None:
    for name, size in (("FULL_BYTES", full), ("MAX_EVENTS_BYTES", most)):
        monkeypatch.setattr(writing, name, size)


def test_what_does_not_fit_into_a_recording_is_told(tmp_path, monkeypatch, capfd):
    limit(monkeypatch, 30_000, 40_000)
    for number in range(2):
        process = Process(tmp_path, number)
        for called in range(300):
            one = program(f"f{called}", (0, 1))
            process.recording.write_program(one.digest, {**one.decisive(), "arguments": [{"path": "x" * 100}]})
            process.make(one, called)
    assert capfd.readouterr().err.count("is full: no more calls are recorded") == 2
    status, data = diff(tmp_path, capfd)
    assert (status, data["report"]) == (0, None)
    for number in range(2):
        (note,) = [note for note in data["notes"] if f"recording of process {number} was full" in note]
        for what in ("the records of some programs", "all later calls"):
            assert what in note
    assert (tmp_path / "0.events").stat().st_size < 41_000
    assert len(read(tmp_path / "0.ledger")) > 50, "what was recorded before can be read"
    assert 0 < len(read_lines(tmp_path / "0.ledger").programs) < 300


@pytest.mark.parametrize(
    "devices", [[], [5], list(range(3)), [*range(50, 90), *range(50)], list(range(0, 4000, 2)), None]
)
def test_lists_of_devices_come_back_as_they_were(tmp_path, devices):
    Process(tmp_path, 0).recording.write_program("d", {"function": "step", "devices": devices})
    assert read_lines(tmp_path / "0.ledger").programs == {"d": {"function": "step", "devices": devices}}
    assert (tmp_path / "0.events").stat().st_size < 100 + len(json.dumps(devices)) + 60


@pytest.mark.parametrize("argv", [("diff",), ("diff", "--output-format", "json"), ("html",)])
def test_folders_without_records(tmp_path, capsys, argv):
    status, out, err = told(capsys, *argv, str(tmp_path))
    assert (status, out) == (2, "")
    assert "no recordings of calls" in err
    assert told(capsys, *argv, str(tmp_path / "nowhere"))[0] == 2


@pytest.mark.parametrize("what", ["diff", "html"])
@pytest.mark.parametrize("written", ['{"a": 1}', "[1]", "17", "null"])
def test_what_is_not_a_name_or_a_line_is_unknown(tmp_path, pair, capsys, what, written):
    """Recordings are gathered from hosts on which anything may have written to them."""
    pair[0].make(STEP, 3)
    pair[1].make(SAVE, 7)
    path = tmp_path / "1.events"
    text = (
        path.read_text().replace('"/home/me/train.py"', written).replace('"function": "save"', f'"function": {written}')
    )
    path.write_text(text.replace('"line": 7', f'"line": {written}'))
    status, out, err = told(capsys, what, str(tmp_path))
    assert status == (2 if what == "diff" else 0), "what is unknown proves nothing"
    assert "step" in out
    damaged = re.search(r"The recording of process 1 is damaged: \d lines? of 1.events cannot be read.\n", out + err)
    assert (damaged is None) == (written == "null"), "which is how a line or a name that is not known is written"


def test_an_event_without_a_digest_is_none(tmp_path, pair, capsys):
    for process in pair:
        process.make(STEP, 3)
        process.make(SAVE, 7)
    path = tmp_path / "1.events"
    path.write_text(path.read_text().replace(f'"digest": "{SAVE.digest}"', '"digest": "none"'))
    status, out, err = told(capsys, "diff", str(tmp_path))
    assert (status, err) == (2, "")
    assert "The recording of process 1 is damaged: 1 line of 1.events cannot be read." in out


NOISE = bytes(range(1, 256)) * 4000


@pytest.mark.parametrize(
    ("name", "contents", "fault"),
    [
        ("0.events", b"", "0.events is empty"),
        ("0.events", None, "0.events is missing"),
        ("0.events", NOISE[:3000], "12 lines of 0.events cannot be read"),
        ("1.ledger", b"", "1.ledger is empty"),
        ("1.ledger", None, "1.ledger is missing"),
        ("1.ledger", NOISE[:3000], "1.ledger is cut short, or no recording (3000 bytes)"),
        ("1.ledger", NOISE, "1.ledger is no recording"),
    ],
)
def test_a_recording_that_is_damaged_is_not_told_as_absent(tmp_path, pair, capsys, name, contents, fault):
    for process in pair:
        process.make(STEP, 3, 3)
    path, other = tmp_path / name, 1 - int(name[0])
    path.unlink()
    if contents is not None:
        path.write_bytes(contents)
    told_fault = f"The recording of process {name[0]} is damaged: {fault}."
    status, out, _ = told(capsys, "diff", str(tmp_path))
    assert (status, out.splitlines()[0]) == (2, told_fault)
    assert "There is no recording" not in out
    assert f"  Process {other}, oldest first:" in out
    assert "call 3 of processes 0-1: step" in out
    status, data = diff(tmp_path, capsys)
    assert (status, data["differs"], data["processes"], data["notes"]) == (2, None, [other], [told_fault])
    status, out, err = told(capsys, "html", str(tmp_path))
    assert (status, err) == (0, f"spmdlint: {told_fault}\n")
    assert told_fault in out


@pytest.mark.parametrize("argv", [("diff",), ("diff", "--output-format", "json"), ("html",)])
def test_a_folder_with_damaged_recordings_only(tmp_path, pair, capsys, argv):
    for number, process in enumerate(pair):
        process.make(STEP, 3)
        (tmp_path / f"{number}.events").write_text("")
    status, out, err = told(capsys, *argv, str(tmp_path))
    assert (status, out) == (2, "")
    assert err.startswith(f"spmdlint: There are no calls that can be read in {tmp_path}.")
    assert all(f"The recording of process {n} is damaged: {n}.events is empty." in err for n in (0, 1))


def test_a_damaged_line_proves_no_missing_call(tmp_path, pair, capsys):
    """The calls on that line are lost: that the program ended after fewer of them is not known."""
    for process in pair:
        process.make(STEP, 3, 3)
        process.make(SAVE, 7)
        process.journal.write({"end": {"state": "finished", "filename": "/home/me/train.py", "line": 9}})
    path = tmp_path / "1.events"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join("#" + line if f'"digest": "{SAVE.digest}"' in line else line for line in lines))
    status, data = diff(tmp_path, capsys)
    assert (status, data["differs"]) == (2, None)
    assert "The recording of process 1 is damaged: 1 line of 1.events cannot be read." in data["notes"]


def test_the_last_line_may_be_half_written(tmp_path, pair, capsys):
    """As it is when the process was killed."""
    for process in pair:
        process.make(STEP, 3, 3)
    with (tmp_path / "1.events").open("a") as file:
        file.write('{"event": 2, "in')
    status, data = diff(tmp_path, capsys)
    assert (status, data["differs"], data["notes"]) == (0, False, [])


def test_a_recording_of_lockstep_tells_what_the_run_told(tmp_path, capsys):
    run = rehearse(
        tmp_path,
        """
        from spmdlint import runtime_checks
        runtime_checks.assert_equal(1, "first")
        if me == 0:
            runtime_checks.assert_equal(1, "second")
        time.sleep(4)
        """,
        options=("--ledger", str(tmp_path / "calls")),
        environment={"SPMDLINT_LATE_AFTER": "1"},
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    late = [line for line in run.output.splitlines() if "spmdlint: late: process 1" in line and "it is at" in line]
    assert late, run.output
    assert all(line.endswith(", after 1 call") for line in late)
    status, data = diff(tmp_path / "calls", capsys)
    assert status == 3
    assert data["report"]["message"] == run.report["message"].replace("waits in", "came to")


def test_the_argument_that_differs_is_marked_and_no_other(tmp_path, capsys):
    """The first call of a program is recorded with its arguments, which at a later call are outputs of another one."""
    run = rehearse(
        tmp_path,
        """
        from functools import partial
        replicated = NamedSharding(mesh, P())
        params = {name: jax.device_put(np.ones(8, np.float32), replicated) for name in "bw"}
        @jax.jit
        def step(params, x):
            return jax.tree.map(lambda each: each + x.mean(), params)
        @partial(jax.jit, static_argnames=("a", "k"))
        def scaled(params, x, a, k):
            return (params["w"] * x.mean()).sum() * k
        for n in range(6):
            params = step(params, everywhere([n]))
            scaled(params, everywhere([n]), a=7, k=2 if n == 4 and me == 1 else 1).block_until_ready()
        """,
        options=("--ledger", str(tmp_path / "ledger")),
    )
    assert (run.status, run.verdict) == (3, ("diverged", "arguments")), run.output
    status, out, _ = told(capsys, "diff", str(tmp_path / "ledger"))
    assert status == 3
    for text in (run.output, out):
        assert "differs in the static argument k: process 0: 1; process 1: 2." in text
        marked = [line for line in text.splitlines() if line.startswith("  > ")]
        assert marked == ["  > static k = 1", "  > static k = 2"]
        assert text.index("  > static k = 1") < text.index("    static a = 7")
    assert "from output" in run.output, "lockstep knows it"
    assert "from output" not in out, out
