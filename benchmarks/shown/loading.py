"""Code of a public project, loaded from its checkout, in a job of two processes.

Where the whole project is too much to install, single functions are loaded, at their own lines of their own file, so
that a report names them as in the project; or its modules, with stand-ins for what they import and the run leaves out.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

CHECKOUT = Path(os.environ.get("SHOWN_CHECKOUT", "."))
"""The project's files."""
SCRATCH = Path(os.environ.get("SHOWN_SCRATCH", "."))
"""An empty folder, the same for both processes: their common file system."""


def start() -> int:
    """Join the job, and tell which process this is."""
    if address := os.environ.get("SHOWN_ADDRESS"):
        jax.distributed.initialize(address, 2, int(os.environ["SHOWN_PROCESS"]))
    else:
        jax.distributed.initialize()  # spmdlint run
    return int(jax.process_index())


def part(path: str, names: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """The functions and classes of these names from a file, with the globals that are given.

    What a function inside another one takes from there has to be among the globals, too.
    """
    file = CHECKOUT / path
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    found = {each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    if missing := set(names) - set(found):
        raise SystemExit(f"{path} has no {', '.join(sorted(missing))}.")
    tree.body = [found[name] for name in names]
    given.setdefault("__name__", file.stem)
    exec(compile(tree, str(file), "exec", dont_inherit=True), given)
    return given


def tell(what: str, value: object, expected: object, right: bool | None = None) -> None:
    """Print a value, and whether it is as expected: the same, if nothing else is said."""
    word = "right" if (value == expected if right is None else right) else "wrong"
    print(f"{word}: {what} {value}, expected {expected}", flush=True)


class _AnyName(type):
    """A class whose attributes, items and results are the class itself."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, item: object) -> Any:
        return cls

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else cls

    def __or__(cls, other: object) -> Any:
        return cls

    def __ror__(cls, other: object) -> Any:
        return cls


class StandIn(metaclass=_AnyName):
    """What stands in for any name of a module that is not at hand. As a decorator it changes nothing."""


class _Module(ModuleType):
    __path__: list[str] = []  # noqa: RUF012 - a package without files

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if any(name == absent or name.startswith(f"{absent}.") for absent in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def importable(folder: str = "", absent: Sequence[str] = ()) -> None:
    """Make the checkout's modules importable, with stand-ins for the modules of these names."""
    sys.path.insert(0, str(CHECKOUT / folder))
    sys.meta_path.insert(0, _Absent(absent))
