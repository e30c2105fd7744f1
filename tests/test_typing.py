"""What a type checker says of programs that use the package: right ones pass, and slips are found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
from typing_extensions import assert_type

from spmdlint import __version__, runtime_checks
from spmdlint.runtime_checks import ChecksFailedError, DivergenceError, Status

assert_type(__version__, str)
assert_type(runtime_checks.enable(mode="background", on_divergence="report"), None)
assert_type(runtime_checks.disable(), None)
assert_type(runtime_checks.status(), Status)
runtime_checks.enable(modus="lockstep")  # error: call-arg
runtime_checks.assert_equal({"a": 1}, name="params", every=100)
runtime_checks.assert_equal({"a": 1}, name=3)  # error: arg-type


def send(value: int, to: str) -> float:
    return value / len(to)


tracked = runtime_checks.track(send, name="send")
assert_type(tracked(3, "b"), float)
tracked("3", "b")  # error: arg-type

try:
    pass
except DivergenceError as error:
    assert_type(error.report.message, str)
except ChecksFailedError:
    pass
"""


def test_the_public_names_are_typed(tmp_path):
    (tmp_path / "user.py").write_text(PROGRAM)
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = true\n[mypy-jax.*,jaxlib.*]\nfollow_imports = skip\nignore_missing_imports = true\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", "cache", "user.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    told = set(re.findall(r"^user\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE))
    rows = enumerate(PROGRAM.splitlines(), start=1)
    due = {(str(row), found[1]) for row, line in rows if (found := re.search(r"# error: ([\w-]+)$", line))}
    assert told == due, done.stdout + done.stderr
