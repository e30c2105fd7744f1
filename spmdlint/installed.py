"""What results depend on in the installation: the linter's own files, this Python, and the installed packages."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from spmdlint._version import __version__
from spmdlint.files.signature import Status, status

_OWN = Path(__file__).parent
# The folders that a summary of a file depends on, besides its text.
LOWERING = ("files", "program")


def digest_of(parts: Iterable[object]) -> str:
    """One digest of some values that have a stable string form."""
    return hashlib.sha256("\n".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def tool(folders: Sequence[str] = ("",)) -> str:
    """A digest of the status of the linter's own files, which change during its development."""
    own = [f"{path}{status(path)}" for folder in folders for path in _own_files(str(_OWN / folder))]
    parser = find_spec("libcst")
    parts = status(parser.origin) if parser is not None and parser.origin is not None else None
    return digest_of((__version__, sys.version, sys.platform, parts, *own))


def packages(rules: Sequence[object]) -> list[tuple[str, Status | None]]:
    """The folders in which packages are installed, and the files of external rules, with their status."""
    folders = {path for path in sys.path[1:] if os.path.isdir(path)}  # noqa: PTH112
    others = {type(rule).__module__.partition(".")[0] for rule in rules} - {__package__}
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in others]
    files = {getattr(module, "__file__", None) for module in modules} - {None}
    return [(name, status(name)) for name in sorted(folders | {str(file) for file in files})]


def _own_files(folder: str) -> Iterator[str]:
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.is_dir():
            if entry.name not in ("__pycache__", "runtime_checks"):
                yield from _own_files(entry.path)
        elif entry.name.endswith((".py", ".toml", ".json")):
            yield entry.path
