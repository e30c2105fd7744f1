"""The page to look at: its data by the command line, and what a person sees of it in a real browser."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from spmdlint.cli import main
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.calls.ledger import group_key
from spmdlint.runtime_checks.page.alignment import align
from spmdlint.runtime_checks.recording.reading import Row
from spmdlint.runtime_checks.recording.writing import folder_of
from tests.runtime.fakes import program
from tests.runtime.jobs import DIVERGENT, rehearse
from tests.runtime.test_ledgers import Process

EVIL = "</script><img src=x onerror=\"document.title='hit'\"><!--<script>&quot;\u202e"
ALL = (0, 1)
STEP, SAVE = program("step", ALL), program("save", ALL)


class Parsed(HTMLParser):
    """The elements of a page, and its embedded data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.embedded = ""
        self.policy = ""
        self._inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        told = dict(attrs)
        self.attributes.update(told)
        self._inside = told.get("id") == "data"
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policy = told["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.embedded += data

    @property
    def data(self) -> Any:
        return json.loads(self.embedded)


def written(folder: Path, path: Path) -> Parsed:
    assert main(["ledger", "html", str(folder), "-o", str(path)]) == 0
    return Parsed(path.read_text(encoding="utf-8"))


def called(data: Any, row: int, lane: int) -> str | None:
    """The function that a lane calls in a row, as the page reads it."""
    calls = data["calls"]
    group, index = calls["rows"]["group"][row], calls["rows"]["index"][row]
    first, last = calls["lanes"][lane]["spans"].get(str(group), (1, 0))
    if not first <= index <= last:
        return None
    other = calls["lanes"][lane]["other"]
    exceptions = dict(zip(other[::2], other[1::2], strict=True))
    return calls["calls"][exceptions.get(row, calls["rows"]["call"][row])][1]


@pytest.fixture
def divergent(tmp_path: Path) -> Path:
    """Recordings of two processes that differ in call 4 of 5."""
    folder = tmp_path / "ledger"
    for number in ALL:
        process = Process(folder, number)
        process.make(STEP, 3, 3)
        process.make(SAVE if number else STEP, 7 if number else 3)
        process.make(STEP, 3)
    return folder


def test_calls_are_aligned_by_number_and_the_first_that_differs_is_marked(divergent, tmp_path, capsys):
    data = written(divergent, tmp_path / "page.html").data
    assert "the calls of processes 0-1; open it in a browser" in capsys.readouterr().err
    assert (data["verdict"], data["kind"]) == ("diverged", "sequence")
    assert data["calls"]["mark"] == 3
    assert data["calls"]["rows"]["index"] == [1, 2, 3, 4, 5]
    assert [called(data, row, 0) for row in range(5)] == ["step"] * 5
    assert [called(data, row, 1) for row in range(5)] == ["step", "step", "step", "save", "step"]
    assert [side["named"] for side in data["sides"]] == ["Process 0", "Process 1"]
    assert [side["line"] for side in data["sides"]] == [3, 7]


def test_without_a_file_the_page_is_printed(divergent, capsys):
    assert main(["ledger", "html", str(divergent)]) == 0
    assert Parsed(capsys.readouterr().out).data["verdict"] == "diverged"


def test_a_folder_without_recordings(tmp_path, capsys):
    assert main(["ledger", "html", str(tmp_path)]) == 2
    assert "no recordings of calls" in capsys.readouterr().err


def test_a_process_that_is_behind_is_marked(tmp_path):
    for number in ALL:
        Process(tmp_path, number).make(STEP, 3, 5 - 2 * number)
    data = written(tmp_path, tmp_path / "page.html").data
    assert data["verdict"] == "late"
    assert "process 1 made only 3 calls of processes 0-1" in data["message"]
    assert data["calls"]["mark"] == 3
    assert [called(data, row, 1) for row in range(5)] == ["step"] * 3 + [None] * 2


def test_one_call_from_two_lines_has_no_badge_of_agreement(tmp_path):
    for number in ALL:
        Process(tmp_path, number).make(STEP, 3 + number)
    data = written(tmp_path, tmp_path / "page.html").data
    assert data["verdict"] == "unchecked"
    assert "process 0: train.py:3; process 1: train.py:4" in data["message"]


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_recordings_of_either_mode_tell_the_shapes_that_differ(tmp_path, capsys, mode):
    """Both sides call one function with different shapes."""
    ledgers = tmp_path / "ledgers"
    run = rehearse(
        tmp_path,
        """
        from jax.experimental import multihost_utils
        multihost_utils.process_allgather(np.ones(3))
        multihost_utils.process_allgather(np.ones(4 + jax.process_index()))
        """,
        options=("--mode", mode, "--ledger", str(ledgers)),
    )
    assert run.status == 3, run.output
    assert main(["ledger", "diff", str(ledgers), "--output-format", "json"]) == 3
    told = json.loads(capsys.readouterr().out)["report"]
    assert (told["kind"], told["index"]) == ("arguments", 2)
    assert "in the shape of x: process 0: [2, 4]; process 1: [2, 5]" in told["message"]


VALUES = """
from spmdlint import runtime_checks
value(jax.jit(jnp.sum)(everywhere([1])))
runtime_checks.assert_equal(VALUE, "asserted")
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
@pytest.mark.parametrize("value", ["5 + me * 2", "{'scale': me % 2, 'rest': [1, np.arange(40.0)]}"])
def test_processes_with_different_values_are_different_sides(tmp_path, capsys, mode, value):
    (tmp_path / "spmdlint.toml").touch()
    page, ledger = tmp_path / "page.html", tmp_path / "ledger"
    options = ("--mode", mode, "--html", str(page), "--ledger", str(ledger))
    run = rehearse(tmp_path, VALUES.replace("VALUE", value), options=options)
    assert run.verdict == ("diverged", "value"), run.output
    assert main(["ledger", "diff", str(ledger)]) == 3
    for text in (run.output, capsys.readouterr().out):
        assert "Process 0: calling, call 2" in text
        assert "Process 1: calling, call 2" in text
    for data in (Parsed(page.read_text(encoding="utf-8")).data, written(ledger, tmp_path / "after.html").data):
        assert [side["processes"] for side in data["sides"]] == [[0], [1]]
        assert data["calls"]["mark"] == 1
    if "scale" not in value:
        details = [run.report["processes"][number]["detail"] for number in ("0", "1")]
        assert details == ["asserted = 5", "asserted = 7"]


def test_without_a_difference_between_them_processes_are_one_side(tmp_path):
    program = "multihost_utils.sync_global_devices('checkpoint ' + ('a' if me == 1 else 'b'))"
    run = rehearse(tmp_path, "from jax.experimental import multihost_utils\n" + program, processes=3)
    assert run.verdict == ("diverged", "arguments"), run.output
    assert "Processes 0, 2: calling" in run.output
    assert "Process 1: calling" in run.output
    assert run.report["processes"]["1"]["detail"] == "name = 'checkpoint a'"


def test_the_recording_of_a_process_that_finished_early_proves_it(tmp_path, capsys):
    ledgers = tmp_path / "ledgers"
    run = rehearse(tmp_path, DIVERGENT / "one_batch_less.py", options=("--ledger", str(ledgers)))
    assert (run.status, run.report["kind"]) == (3, "missing"), run.output
    assert main(["ledger", "diff", str(ledgers)]) == 3
    assert "process 1 finished after 3 parallel calls" in capsys.readouterr().out
    assert written(ledgers, tmp_path / "page.html").data["verdict"] == "diverged"


def test_the_page_loads_nothing_and_runs_only_its_own_script(divergent, tmp_path):
    parsed = written(divergent, tmp_path / "page.html")
    assert parsed.policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in parsed.policy
    assert not {"src", "href", "onclick", "onload"} & set(parsed.attributes)


def evil_ledger(folder: Path, text: str) -> Path:
    """Recordings in which every text that a program can choose is the given one."""
    for number in ALL:
        process = Process(folder, number)
        called = program(text, ALL, name=text, defined_at=f"{text}:1")
        mine = program(text, ALL, name=f"{text}{number}")
        for each in (called, mine):
            argument = {"path": text, "shape": [number], "dtype": text, "spec": text}
            record = {**each.decisive(), "arguments": [argument], "static": {text: text}}
            process.recording.write_program(each.digest, record)
            event = process.journal.event_of(each, Site(f"/home/{text}.py", 3, text))
            process.journal.note(event)
        process.journal.drain()
    return folder


def test_texts_of_the_program_stay_texts(tmp_path):
    harmless = written(evil_ledger(tmp_path / "a", "harmless"), tmp_path / "a.html")
    evil = written(evil_ledger(tmp_path / "b", EVIL), tmp_path / "b.html")
    assert evil.elements == harmless.elements
    assert evil.data["verdict"] == "diverged"
    shown = EVIL.replace("\u202e", "\ufffd")  # what reverses the text after it is not shown
    assert shown in evil.data["calls"]["calls"][0][1]
    assert shown in evil.data["message"]


def row(members: tuple[int, ...], index: int, others: dict[str, int] | None = None) -> Row:
    return Row(group_key(members), members, index, "0", "d", "f", "a.py", 1, others or {})


def test_rows_of_several_sets_are_in_an_order_that_every_process_agrees_with():
    everyone, left, right = (0, 1, 2), (0, 1), (1, 2)
    recorded = {
        0: [row(left, 1), row(everyone, 1, {group_key(left): 1}), row(left, 2, {group_key(everyone): 1})],
        1: [
            row(left, 1),
            row(right, 1, {group_key(left): 1}),
            row(everyone, 1, {group_key(left): 1, group_key(right): 1}),
            row(left, 2, {group_key(right): 1, group_key(everyone): 1}),
        ],
        2: [row(right, 1), row(everyone, 1, {group_key(right): 1})],
    }
    aligned = align(recorded)
    assert sorted(aligned.rows) == sorted({key for lane in aligned.lanes.values() for key in lane.calls})
    for lane in aligned.lanes.values():
        places = [aligned.rows.index(key) for key in lane.calls]
        assert places == sorted(places)


def test_processes_that_wait_for_each_other_have_rows_too():
    one, other = (0, 1), (0, 1, 2)
    recorded = {
        0: [row(one, 1), row(other, 1, {group_key(one): 1})],
        1: [row(other, 1), row(one, 1, {group_key(other): 1})],
    }
    assert len(align(recorded).rows) == 2


def test_a_rehearsal_writes_its_page(tmp_path):
    (tmp_path / "spmdlint.toml").touch()
    page = tmp_path / "page.html"
    run = rehearse(tmp_path, DIVERGENT / "one_batch_less.py", options=("--html", str(page)))
    assert run.status == 3, run.output
    assert f"{page} shows the calls of all processes" in run.output
    data = Parsed(page.read_text(encoding="utf-8")).data
    assert data["message"] == run.report["message"]
    assert data["states"] == {"0": "waiting", "1": "finished"}
    assert data["calls"]["mark"] == 3
    assert [called(data, row, 0) for row in range(4)] == ["train_step"] * 4
    assert [called(data, row, 1) for row in range(4)] == ["train_step"] * 3 + [None]
    place = f"{tmp_path / 'one_batch_less.py'}:{run.line(0)}"
    assert [(found["code"], found["place"]) for found in data["findings"]] == [("SPMD303", place)]
    assert [step["place"].rpartition(":")[0] for step in data["findings"][0]["related"]] != []
    assert "train_step(weight" in dict(map(tuple, data["excerpts"][place]))[run.line(0)]
    assert not list(tmp_path.rglob("*.ledger"))


def test_a_page_that_cannot_be_written_is_told_before_the_run(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit(7)\n")
    missing = tmp_path / "missing" / "page.html"
    assert main(["run", "-n", "1", "--html", str(missing), "--", str(script)]) == 2
    assert f"{missing} cannot be written" in capsys.readouterr().err


def test_recordings_of_an_earlier_job_are_not_taken_for_the_rehearsal(tmp_path):
    """The program ends before its first call: what lies in the folder is not its own."""
    ledgers = tmp_path / "ledgers"
    Process(folder_of(ledgers, "20260101_100000_000000"), 0).make(STEP, 3, 2)
    page = tmp_path / "page.html"
    script = tmp_path / "program.py"
    script.write_text("print('nothing')\n")
    assert main(["run", "-n", "1", "--html", str(page), "--ledger", str(ledgers), "--", str(script)]) == 0
    assert Parsed(page.read_text(encoding="utf-8")).data["calls"]["lanes"] == []


def test_only_the_program_s_own_lines_are_quoted(tmp_path, monkeypatch):
    """A recording comes from elsewhere, and the page may be passed on."""
    inside, outside = tmp_path / "job" / "train.py", tmp_path / "secret.py"
    inside.parent.mkdir()
    for path in (inside, outside):
        path.write_text("a = 1\nb = 2\nc = 3\n")
    (inside.parent / "link.py").symlink_to(outside)
    ledger = tmp_path / "ledger"
    process = Process(ledger, 0)
    for path in (inside, outside, inside.parent / "link.py", inside.parent / ".." / "secret.py"):
        process.journal.note(process.journal.event_of(STEP, Site(str(path), 2, "main")))
    process.journal.drain()
    monkeypatch.chdir(inside.parent)
    ended = (ledger / "0.ledger").stat().st_mtime
    os.utime(inside, (ended - 60, ended - 60))
    assert written(ledger, tmp_path / "page.html").data["excerpts"] == {
        f"{inside}:2": [[1, "a = 1"], [2, "b = 2"], [3, "c = 3"]]
    }
    os.utime(inside, (ended + 60, ended + 60))  # no longer what ran
    assert written(ledger, tmp_path / "page.html").data["excerpts"] == {}


def test_a_table_that_is_too_large_is_cut_around_the_difference(divergent, tmp_path, monkeypatch):
    folder = tmp_path / "long"
    for number in ALL:
        process = Process(folder, number)
        process.make(STEP, 3, 400)
        process.make(SAVE if number else STEP, 7)
        process.make(STEP, 3, 400)
    monkeypatch.setattr("spmdlint.runtime_checks.page.document.MAX_CELLS", 200)
    data = written(folder, tmp_path / "page.html").data
    assert data["calls"]["rows"]["index"][data["calls"]["mark"]] == 401
    assert len(data["calls"]["rows"]["index"]) == 100
    assert sum(data["omitted"]) == 701


PATIENCE = 240_000  # milliseconds: the machine may be busy
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in BROWSERS if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install --group browser")
    if CHROMIUM is None:
        pytest.skip("needs a Chromium on the PATH")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def shown(chromium: Any) -> Iterator[Any]:
    """Opens a page; afterwards nothing must have been loaded, and no error reported."""
    context = chromium.new_context(viewport={"width": 1300, "height": 900})
    context.set_default_timeout(PATIENCE)
    requests: list[str] = []
    errors: list[str] = []

    def show(path: Path) -> Any:
        opened = context.new_page()
        opened.on("request", lambda request: requests.append(request.url))
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.on("console", lambda message: errors.append(message.text))
        opened.goto(path.as_uri())
        opened.locator(".row.chosen").wait_for()
        return opened

    yield show
    context.close()
    assert all(url.startswith("file://") and url.endswith(".html") for url in requests), requests
    assert errors == []


@pytest.mark.browser
def test_the_browser_shows_both_sides(divergent, tmp_path, shown):
    written(divergent, tmp_path / "page.html")
    page = shown(tmp_path / "page.html")
    assert page.title() == "spmdlint: diverged (sequence)"
    assert page.locator(".row.first .what").inner_text().split() == ["4", "step", "≠", "save", "train.py:3"]
    assert page.locator(".row.first .cell b").all_inner_texts() == ["A", "B"]
    assert page.locator(".row.first .cell bdi").all_inner_texts() == ["step train.py:3", "save train.py:7"]
    assert page.locator(".chosen-call h3").inner_text() == "Call 4 of processes 0-1"
    assert "Process 1: save at /home/me/train.py:7" in page.locator(".chosen-call").inner_text()
    assert page.locator(".card .badge").all_inner_texts()[:2] == ["calling, call 4", "calling, call 4"]


@pytest.mark.browser
def test_the_browser_runs_no_text_of_the_program(tmp_path, shown):
    written(evil_ledger(tmp_path / "ledger", EVIL), tmp_path / "page.html")
    page = shown(tmp_path / "page.html")
    page.locator(".grid").press("End")
    assert page.title() == "spmdlint: diverged (arguments)"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert EVIL[:30] in page.locator(".chosen-call").inner_text()


@pytest.mark.browser
def test_the_keyboard_reaches_every_call(divergent, tmp_path, shown):
    written(divergent, tmp_path / "page.html")
    page = shown(tmp_path / "page.html")
    title, grid = page.locator(".chosen-call h3"), page.locator(".grid")

    def press(*keys: str) -> str:
        for key in keys:
            page.keyboard.press(key)
        return str(title.inner_text()).split()[1]

    assert press("d") == "4", "no need to reach the table first"
    assert press("Home") == "1"
    assert press("ArrowDown", "j") == "3"
    assert press("ArrowUp") == "2"
    assert press("End") == "5"
    assert press("d") == "4"
    assert press("ArrowRight", "ArrowRight") == "4"
    assert page.locator(".names .now").inner_text() == "process 1"
    assert press("Home", "n") == "4"
    assert press("Home", "/") == "1"
    page.keyboard.type("train.py:7")
    assert press("Enter") == "4"
    assert grid.get_attribute("aria-activedescendant") == page.locator(".row.chosen").get_attribute("id")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 64 processes that made 5,000 calls, of which some differ."""
    folder = tmp_path_factory.mktemp("large")
    everyone = tuple(range(64))
    step, save = program("step", everyone), program("save", everyone)
    for number in everyone:
        process = Process(folder, number)
        process.make(step, 3, 3000)
        process.make(save if number in (5, 17, 18) else step, 7)
        process.make(step, 3, 1999)
    path = folder / "page.html"
    written(folder, path)
    return path


@pytest.mark.browser
def test_only_the_rows_in_sight_are_in_the_page(shown, large):
    """64 processes with 5,000 calls each: how much is drawn depends on the window alone."""
    page = shown(large)
    assert "5,000 calls of 64 processes" in page.locator("main").inner_text()
    assert page.locator(".row.first .cell").all_inner_texts() == ["B"] * 3
    seen = set()
    for place in (0, 30_000, 60_000, 200_000):
        page.evaluate("place => { document.querySelector('.grid').scrollTop = place; }", place)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        rows = page.locator(".row")
        assert rows.count() < 100
        assert page.locator(".rows *").count() < 3000
        seen.update(page.evaluate("() => [...document.querySelectorAll('.row .index')].map((e) => e.textContent)"))
    assert {"1", "1260", "2510", "5000"} <= seen


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 800, 1900])
def test_the_page_is_as_wide_as_the_window(shown, large, divergent, tmp_path, width):
    written(divergent, tmp_path / "page.html")
    for path in (large, tmp_path / "page.html"):
        page = shown(path)
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".row.first").is_visible()


@pytest.mark.browser
def test_light_and_dark(divergent, tmp_path, shown):
    written(divergent, tmp_path / "page.html")
    page = shown(tmp_path / "page.html")
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]


@pytest.mark.browser
def test_paper_shows_the_calls_around_the_difference(shown, large):
    page = shown(large)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".row").count() == 30
    assert page.locator(".row.first").count() == 1
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".row").count() > 30
