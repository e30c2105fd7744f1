"""How quick the page of a large job is in a browser: ``python benchmarks/page.py``.

Makes recordings of 64 processes with 5,000 calls each, three of which make another call in the middle, writes their
page, opens it in Chromium (``pip install --group browser``), and scrolls through all of it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.agreement.offline import load
from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.page.jobs import page, recorded_job
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.recording.writing import Recording

EVALUATE = (5, 17, 18)  # the processes that differ
FRAMES = """async () => {
  const box = document.querySelector('.grid'), found = [];
  box.scrollTop = 0;
  let last = await new Promise(requestAnimationFrame);
  while (box.scrollTop + box.clientHeight < box.scrollHeight - 1) {
    box.scrollTop += 400;
    const now = await new Promise(requestAnimationFrame);
    found.push(now - last);
    last = now;
  }
  return found.sort((a, b) => a - b);
}"""


def record(folder: Path, processes: int, calls: int) -> None:
    """Make the recordings of a job that trains, saves after every tenth step, and evaluates on a few processes."""
    everyone = tuple(range(processes))
    names = ("train_step", "save_checkpoint", "evaluate")
    programs = {name: Program(function=name, processes=everyone, module=name) for name in names}
    for number in everyone:
        journal = Journal(Ledger(), Recording(folder / f"{number}.ledger"))
        events = {
            name: journal.event_of(programs[name], Site("/home/me/train.py", line, "main"))
            for name, line in zip(names, (57, 63, 71), strict=True)
        }
        for made in range(calls):
            if made == calls * 3 // 5 and number in EVALUATE:
                journal.note(events["evaluate"])
            journal.note(events["save_checkpoint" if made % 10 == 9 else "train_step"])
        journal.drain()


def measure(path: Path) -> dict[str, Any]:
    """The time to the first paint, and from frame to frame while scrolling."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1700, "height": 1000})
        shown.goto(path.as_uri())
        shown.wait_for_timeout(500)
        paint = shown.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        frames = shown.evaluate(FRAMES)
        elements = shown.locator("*").count()
        browser.close()
    return {"paint": paint, "frames": frames, "elements": elements}


def main() -> None:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--calls", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(folder, options.processes, options.calls)
        recorded = load(folder)
        began = time.perf_counter()
        text = page(recorded_job(folder, recorded))
        made = time.perf_counter() - began
        path = folder / "page.html"
        path.write_text(text, encoding="utf-8")
        found = measure(path)
    frames = found["frames"]
    sys.stdout.write(
        f"{len(text) >> 10} KiB made in {made:.1f} s; first paint after {found['paint']:.0f} ms; {len(frames)} frames: "
        f"median {frames[len(frames) // 2]:.0f} ms, 95 % {frames[len(frames) * 95 // 100]:.0f} ms, longest "
        f"{frames[-1]:.0f} ms; {found['elements']} elements\n"
    )


if __name__ == "__main__":
    main()
