"""Rules in files of the project itself, which its configuration names.

These files are the one thing that a run executes: they are part of the linter, by the user's will. They must lie in the
project, so that whoever may change what the linter runs may change the project anyway. A file is loaded from its bytes,
under a name made from them: a changed file is a different module, and no compiled version is written beside it.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

_PREFIX = "spmdlint_project_rules_"


def load(path: Path) -> ModuleType:
    """The module in a file, or the package that a folder is, even without an ``__init__.py``.

    Whatever the code raises is raised; nothing of what failed stays behind.
    """
    name = _PREFIX + _digest(path)
    if name in sys.modules:
        return sys.modules[name]
    made = ModuleType(name)
    sys.modules[name] = made
    if path.is_dir():
        made.__path__ = [str(path)]
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        if path.is_dir():
            for file in _modules(path):
                importlib.import_module(f"{name}.{file.stem}")
        else:
            made.__file__ = str(path)
            exec(compile(path.read_bytes(), path, "exec"), made.__dict__)  # noqa: S102  (a rule that the user named)
    except BaseException:
        for loaded in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
            del sys.modules[loaded]
        raise
    finally:
        sys.dont_write_bytecode = before
    return made


def digest_of_sources(rules: Sequence[object]) -> str:
    """A digest of the files that rules are made of: those of their modules' packages that have been imported."""
    packages = {type(rule).__module__.partition(".")[0] for rule in rules}
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in packages]
    files = sorted({file for module in modules if (file := getattr(module, "__file__", None)) is not None})
    found = hashlib.sha256()
    for file in files:
        found.update(_bytes(Path(file)))
    return found.hexdigest()


def _modules(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.py") if file.stem != "__init__")


def _digest(path: Path) -> str:
    found = hashlib.sha256(str(path).encode("utf-8", "surrogatepass"))
    for file in _files(path):
        found.update(f"\0{file}\0".encode("utf-8", "surrogatepass"))
        found.update(_bytes(file))
    return found.hexdigest()[:24]


def _files(path: Path) -> Iterable[Path] | Iterator[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else (path,)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
