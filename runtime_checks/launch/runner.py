"""Running one program in this process, with the checks switched on as soon as it imports jax."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, get_args

from spmdlint.runtime_checks.api import decide, enable, left_by
from spmdlint.runtime_checks.calls.frames import Site, raising_site, site_data
from spmdlint.runtime_checks.launch.cluster import answer_in, die_with_launcher, join_cluster
from spmdlint.runtime_checks.options import MODE_VARIABLE, Mode, choose, launched_process
from spmdlint.runtime_checks.owners import hide_frames, without_runner
from spmdlint.runtime_checks.records import State
from spmdlint.runtime_checks.reporting.printing import plain
from spmdlint.runtime_checks.transport.runfolder import RunFolder

USAGE = """usage: python -m spmdlint.runtime_checks (script.py | -m module) [args...]
It has no other options: the environment variable SPMDLINT_RUNTIME_CHECKS is the mode (lockstep, background or off), and
further settings are environment variables as well, which the guide lists. What follows the script is its own."""
REFUSED_STATUS = 2  # as of ``spmdlint run``: nothing was run


def main(arguments: Sequence[str]) -> int:
    """Run a script or a module as Python would; its exit and exceptions become those of this process."""
    words = list(arguments)
    if words and words[0] in ("-h", "--help"):
        sys.stdout.write(USAGE + "\n")
        return 0
    if not words or (words[0] == "-m" and len(words) < 2):
        sys.stderr.write(USAGE + "\n")
        return REFUSED_STATUS
    try:
        decide()
    except ValueError as error:  # here, instead of a traceback from the middle of the program's imports
        sys.stderr.write(f"spmdlint: {error}\n")
        return REFUSED_STATUS
    if words[0] != "-m" and not Path(words[0]).is_file():
        sys.stderr.write(f"spmdlint: {_no_script(words)}\n")
        return REFUSED_STATUS
    die_with_launcher()
    folder, process = choose(None, None).run_folder, launched_process()
    if folder is not None and process is not None:
        answer_in(folder, process)
    sys.excepthook = _uncaught
    when_imported("jax", _begin)
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            _put_first(Path.cwd())
            _run_module(words[1])
        else:
            run_script(words)
    except SystemExit as end:
        left_by(end)
        raise
    return 0


def _no_script(words: Sequence[str]) -> str:
    """The answer to a first word that is no script: an option is not taken for the name of one."""
    if not words[0].startswith("-"):
        return f"There is no script {Path(words[0]).absolute()}: give a Python file, or -m and a module."
    option, _, value = words[0].partition("=")
    if option != "--mode":
        return f"There is no option {option}: settings are environment variables, and Python's options stand before -m."
    mode = value or (words[1] if len(words) > 1 and words[1] in get_args(Mode) else "lockstep|background|off")
    return f"There is no option --mode: set the environment variable {MODE_VARIABLE}={mode} instead."


def _begin() -> None:
    join_cluster()
    enable()


def _run_module(name: str) -> None:
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except ImportError as error:
        if raising_site(error.__traceback__) is None:  # not from a module, but from the search for one
            raise SystemExit(
                f"spmdlint: {error.msg}. -m takes a module that Python can import from this folder."
            ) from None
        raise


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an exception from the program's first line on, and leave it for the launcher.

    This is for the time before the program imports jax: from then on, the checks do it.
    """
    error.__traceback__ = without_runner(trace)
    hide_frames(error)
    shown = error.__traceback__
    sys.__excepthook__(kind, error, shown)
    folder, process = choose(None, None).run_folder, launched_process()
    if sys.excepthook is _uncaught and folder is not None and process is not None:
        site, words = raising_site(shown), str(error)
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            site, words = Site(error.filename, error.lineno, "<module>"), error.msg
        detail = f"{kind.__name__}: {plain(words, 300)}"
        RunFolder(folder).states.put(process, {**State(state="raised", detail=detail), **site_data(site)})


def run_script(words: list[str]) -> None:
    """Run a script as ``__main__``; unlike with runpy, its globals outlive it, for exit handlers and threads."""
    path = Path(words[0]).absolute()
    sys.argv = words
    _put_first(path.resolve().parent)
    main_module = types.ModuleType("__main__")
    main_module.__dict__.update(__file__=str(path), __builtins__=__builtins__, __spec__=None)
    sys.modules["__main__"] = main_module
    code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    exec(code, main_module.__dict__)  # noqa: S102 - running the user's script is what this is for


def _put_first(folder: Path) -> None:
    """Let the program import from a folder, as Python does unless ``PYTHONSAFEPATH`` is set."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, str(folder))


def when_imported(name: str, then: Any) -> None:
    """Call ``then`` right after a module is imported for the first time, or at once if it already is.

    Programs set environment variables before they import jax, so nothing here may import it first.
    """
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(name, then))


class _Finder:
    """Finds one module like the other finders, and adds a call to the end of its execution."""

    def __init__(self, name: str, then: Any) -> None:
        self._name = name
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name or path is not None or target is not None:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)  # some libraries only ask whether jax is installed: it is imported later
        if spec is None or spec.loader is None:
            return None
        execute, then = spec.loader.exec_module, self._then

        def and_then(module: types.ModuleType) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            execute(module)
            then()

        setattr(spec.loader, "exec_module", and_then)  # noqa: B010 - mypy knows it as a method
        return spec
