"""A rule that takes an hour for some programs, to see that what is no longer wanted is ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

HANGING = """
import os, time
from pathlib import Path
from spmdlint.rule import Rule


class Hanging(Rule):
    code = "ACME101"
    name = "hanging-rule"

    def check(self, program):
        functions = [f for module in program.project.modules.values() for f in module.summary.functions]
        if any(function.qualname == "hang" for function in functions):
            Path(os.environ["HANGING"]).write_text(str(os.getpid()))
            time.sleep(3600)
        return iter(())
"""
"""The text of a package of rules: it hangs if a function is called ``hang``, and notes its process in $HANGING."""


def wait_for_hanging(noted: Path) -> int:
    """Wait until the rule hangs; its process."""
    while not noted.exists() or not noted.read_text():
        time.sleep(0.05)
    process = int(noted.read_text())
    noted.unlink()
    os.kill(process, 0)
    return process


def wait_for_death(*processes: int) -> None:
    """Wait until these processes are gone."""
    while any(map(_is_alive, processes)):
        time.sleep(0.05)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
