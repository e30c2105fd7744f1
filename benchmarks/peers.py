"""Other linters and a type checker, to be measured beside ours: in an environment of their own, with pinned versions.

Each runs in one process without a cache of its own. pylint gets checks that follow values and control flow, as ours
do; the others what they check by default.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REQUIREMENTS = ("ruff==0.17.5", "fixit==2.2.1", "pylint==4.1.4", "mypy==2.4.1", "jaxlint==0.1.0a1")
_PYLINT_CHECKS = (
    "used-before-assignment",
    "possibly-used-before-assignment",
    "undefined-loop-variable",
    "inconsistent-return-statements",
)


def install(into: Path) -> Path:
    """Make the environment where it is missing, and give the folder of its programs."""
    programs = into / "bin"
    if not (programs / "ruff").exists():
        subprocess.run([sys.executable, "-m", "venv", str(into)], check=True)
        subprocess.run([str(programs / "python"), "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return programs


def commands(programs: Path) -> dict[str, list[str]]:
    """What to run in the folder of the packages, by the name of the program."""
    return {
        "ruff": [str(programs / "ruff"), "check", "--isolated", "--no-cache", "--exit-zero", "--quiet", "."],
        "Fixit": [str(programs / "fixit"), "--quiet", "lint", "."],
        "pylint": [
            *(str(programs / "pylint"), "--disable=all", f"--enable={','.join(_PYLINT_CHECKS)}"),
            *("--recursive=y", "--exit-zero", "--score=n", "."),
        ],
        "mypy": [
            *(str(programs / "mypy"), "--no-incremental", "--cache-dir=/dev/null", "--ignore-missing-imports"),
            *("--namespace-packages", "--explicit-package-bases", "--no-error-summary", "."),
        ],
        "jaxlint": [str(programs / "jaxlint"), "check", "--no-doc", "--jobs", "1", "--format", "json", "."],
    }
