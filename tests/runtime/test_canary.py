"""The canary tells which place has moved: none on the JAX of these tests, and each one that is made to."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.runtime.jobs import HANGS, ROOT

# JAX itself needs what the first two change: it changes for the checks alone.
GONE = """
from spmdlint.runtime_checks.intercept import seam
def need(owner, name, real=seam.need):
    if name == "compile_or_get_cached":
        raise seam.MissingSeamError(f"there is no {name}")
    return real(owner, name)
seam.need = need
"""
ANOTHER_CLASS = """
from spmdlint.runtime_checks.intercept import barriers
Client = type("Client", (), {"wait_at_barrier": print})
def need(owner, name, real=barriers.need):
    return Client if name == "DistributedRuntimeClient" else real(owner, name)
barriers.need = need
"""
BLIND = """
from spmdlint.runtime_checks.intercept import fastpath
fastpath._noting = lambda journal, program, real, layout: ((lambda dtype: layout), lambda other: None)
"""
MAIN = """
import sys
from tests.runtime.canary import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (GONE, "compiler is off: there is no compile_or_get_cached"),
        (ANOTHER_CLASS, "client-barriers: Client.wait_at_barrier is there, and JAX did not call it"),
        (BLIND, "the self-test: of 4 calls of a test program, 1 were seen"),
    ],
    ids=["gone", "not called", "blind"],
)
def test_what_has_moved_is_told(change: str, told: str) -> None:
    status, output = canary(change)
    assert (status, told in output) == (1, True), output


def test_nothing_has_moved_in_this_jax() -> None:
    status, output = canary("")
    assert (status, output.count("all layers see what they should")) == (0, 2), output


def canary(change: str) -> tuple[int, str]:
    words = [sys.executable, "-c", change + MAIN]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANGS, cwd=ROOT, check=False)
    return done.returncode, done.stdout + done.stderr
