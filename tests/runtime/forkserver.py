"""The server of :mod:`tests.runtime.forked`: a process that has imported JAX and started no backend, and forks others.

``spmdlint run``, the parts that it starts, and programs begin in it as in a new Python, less the seconds that the
import of JAX takes each of them: a program that imports it gets what is imported already, configured by the environment
of that moment. The server is run by ``python -c``, so that its frames are of no file, as those of ``python -c`` are.

A request is a connection with a line of JSON and the file descriptors of the input, the output, the error output and of
a pipe for the status. For each, a keeper is forked, which forks the process, waits for it, and tells the status and
which of its descendants it left behind. The server ends when nobody holds the other end of its lifeline.

What programs compile is run once or twice, so that optimising it costs more than it gains: it is left out, but in cold
starts, and by a flag that only some versions of XLA have (one that XLA does not know ends the process).

Python takes JAX apart at the end of a process, which costs as much as what a small program does. Here that is left out
unless the environment has ``WHOLE_ENDING``: what runs at the exit has run, as have the threads.
"""

import _posixsubprocess
import _thread
import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.machinery
import io
import json
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import types
import weakref
from pathlib import Path

import spmdlint.cli
from spmdlint.knowledge.load import built_in
from spmdlint.rule import load_rules
from spmdlint.runtime_checks.launch import runner
from spmdlint.runtime_checks.launch.starting import command_of

LISTENER, LIFELINE, ADDRESS, KIND = sys.argv[1:]
JOBS = (
    *("jax.experimental.mesh_utils", "jax.experimental.multihost_utils", "jaxlib._jax"),
    *(f"spmdlint.runtime_checks.launch.{part}" for part in ("findings", "launcher", "service")),
    "spmdlint.runtime_checks.hook",
    *("jaxlib.mlir.dialects.builtin", "jaxlib.mlir.dialects.mhlo"),  # imported by the first compilation
)
LINTERS = (
    *(f"spmdlint.cli.{part}" for part in ("fixing", "server", "writing")),
    *("spmdlint.fixes.making", "spmdlint.output.concise", "spmdlint.output.full", "spmdlint.server.serving"),
)
# No more than what is needed: a process that is forked costs by the size of the one that it is forked from.
for name in (
    # A launcher has the program linted, after a divergence or a failure.
    *("spmdlint.cli.check", "spmdlint.cli.run", "spmdlint.rules", "spmdlint.rule"),
    *("spmdlint.analysis.load", "spmdlint.analysis.sampling", "spmdlint.program.lower", "spmdlint.output.json"),
    *(JOBS if KIND == "jobs" else LINTERS),
):
    importlib.import_module(name)
load_rules()
built_in()

SOON = 2.0  # seconds for what a process leaves to end
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
HIDDEN = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "jax"}
FINALIZERS = frozenset(weakref.finalize._registry)
PART = command_of("")[2].partition("from ")[0]  # what precedes the name of the module in the commands of the launcher
STAND_IN = (sys.executable, "-I", "-S", str(Path("tests", "runtime", "standin.py").absolute()))


def quick_compilation():
    """The environment with which compiling takes half as long."""
    library = max(Path(sys.modules["jaxlib"].__file__).parent.glob("*.so"), key=lambda path: path.stat().st_size)
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        known = content.find(b"xla_cpu_use_fusion_emitters") >= 0
    flags = {"XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false"} if known else {}
    return {"JAX_DISABLE_MOST_OPTIMIZATIONS": "true", **flags}


QUICK = quick_compilation() if HIDDEN else {}


class Imported:
    """Finds ``jax`` and what needs it: they are imported already, but a program that does not ask does not see them."""

    def find_spec(self, name, path=None, target=None):
        if name != "jax":
            return None
        return importlib.machinery.ModuleSpec(name, Imported(), origin=HIDDEN[name].__file__, is_package=True)

    def create_module(self, spec):
        return HIDDEN[spec.name]

    def exec_module(self, module):
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Imported)]
        sys.modules.update(HIDDEN)
        for name, holder in HIDDEN["jax"].config._value_holders.items():
            text = os.environ.get(name.upper())
            if text is not None:
                HIDDEN["jax"].config.update(name, as_value(holder.value, text))


def as_value(before, text):
    if isinstance(before, bool):
        return text.lower() in ("y", "yes", "t", "true", "on", "1")
    return int(text) if isinstance(before, int) else text


def begin(environment):
    """Make a forked process like a new one."""
    for key in set(weakref.finalize._registry) - FINALIZERS:
        del weakref.finalize._registry[key]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update({**QUICK, **environment})
    # Of the variables that Python reads when it starts, these.
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    at_once = bool(environment.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = sys.__stdout__ = stream(1, "strict", at_once)
    sys.stderr = sys.__stderr__ = stream(2, "backslashreplace", at_once)
    if HIDDEN and not any(isinstance(finder, Imported) for finder in sys.meta_path):
        sys.meta_path.insert(0, Imported())
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # Python's own generator does that after a fork
    gc.enable()


def stream(number, errors, at_once):
    raw = io.FileIO(number, "w", closefd=False)
    buffer = raw if at_once else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, "utf-8", errors, write_through=at_once, line_buffering=number == 2)


def python(words):
    """What Python does with its arguments."""
    if words[0] == "-c" and words[1].startswith(PART):
        module = words[1].removeprefix(PART).removeprefix("from ").partition(" ")[0]
        sys.argv = ["-c", *words[2:]]
        sys.exit(importlib.import_module(module).main(sys.argv[1:]))
    if words[:2] == ["-m", "pytest"]:
        sys.argv = ["pytest", *words[2:]]
        sys.path.insert(0, str(Path.cwd()))
        sys.exit(importlib.import_module("pytest").console_main())
    if words[:2] == ["-m", "spmdlint"]:
        sys.argv = ["spmdlint", *words[2:]]
        sys.exit(spmdlint.cli.main())
    if words[:2] == ["-m", "spmdlint.runtime_checks"]:
        sys.argv = ["spmdlint.runtime_checks", *words[2:]]
        sys.exit(runner.main(words[2:]))
    sys.argv = list(words)
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    script = sys.modules["__main__"] = types.ModuleType("__main__")
    script.__dict__.update(__file__=words[0], __builtins__=__builtins__, __spec__=None, __cached__=None)
    exec(compile(Path(words[0]).read_bytes(), words[0], "exec", dont_inherit=True), script.__dict__)


def is_part(words):
    return words[0] == "-c" and words[1].startswith(PART)


def run(words):
    """Run to the end of the process, with its status, as Python does."""
    status = 0
    try:
        python(words)
    except SystemExit as end:
        status = end.code
        if status is not None and not isinstance(status, int):
            sys.stderr.write(f"{status}\n")
            status = 1
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        error.__traceback__ = trace
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.last_exc = error
        try:
            sys.excepthook(type(error), error, trace)
        except BaseException:
            sys.stderr.write("Error in sys.excepthook:\n")
            traceback.print_exc()
        status = 1
        if isinstance(error, KeyboardInterrupt):  # Python ends itself by the signal, when all else is done
            status = int(signal.SIGINT)
            ctypes.CDLL(None).on_exit(ctypes.CDLL(None)["raise"], None)
            ctypes.pythonapi.Py_Exit(status)
    if "jax" not in sys.modules or "WHOLE_ENDING" not in os.environ:
        leave(status or 0)
    ctypes.pythonapi.Py_Exit((status or 0) & 0xFF)


def leave(status):
    """End without taking apart all that was imported, which costs as much as the rest of a small program."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for each in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            each.flush()
    os._exit(status & 0xFF)


def start(files, environment, words, folder, new_session):
    """Fork a process, on a stack of its own: the caller's frames are none of its own. Returns its number."""
    forked = []
    done = _thread.allocate_lock()
    done.acquire()

    def fork():
        pid = os.fork()
        if pid == 0:
            become(files, environment, words, folder, new_session)
        forked.append(pid)
        done.release()
        never = _thread.allocate_lock()
        while never.acquire():  # a process that ends with its parent ends with the thread that has forked it
            continue

    _thread.start_new_thread(fork, ())
    done.acquire()
    return forked[0]


def become(files, environment, words, folder, new_session=True):
    """Be the process of these words from now on, with these files as input, output and error output."""
    try:
        if new_session:
            os.setsid()
        for number, each in enumerate([os.dup(each) for each in files]):
            os.dup2(each, number)
        os.closerange(3, 4096)
        if folder is not None:
            os.chdir(folder)
        begin(environment)
        run(words)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(99)


def fork_exec(*given):
    """Instead of that of subprocess: what the launcher starts is forked as well."""
    words, environment = [os.fsdecode(word) for word in given[0]], given[5]
    if words[0] == sys.executable and words[1:3] == ["-m", "spmdlint"]:
        stand_in = [os.fsencode(word) for word in (*STAND_IN, ADDRESS, *words[1:])]
        return execute(stand_in, [os.fsencode(sys.executable)], *given[2:])
    if words[0] != sys.executable or not is_part(words[1:]):
        return execute(*given)
    told = dict(entry.split(b"=", 1) for entry in environment) if environment is not None else os.environb
    files = [given[place] if given[place] != -1 else number for number, place in enumerate((6, 9, 11))]
    return start(files, {os.fsdecode(k): os.fsdecode(v) for k, v in told.items()}, words[1:], given[4], given[15])


execute = _posixsubprocess.fork_exec


def keep(told, given, status):
    """Fork the process, and wait for it and what it leaves."""
    os.setsid()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    pid = os.fork()
    if pid == 0:
        try:
            ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)
            os.close(status)
            subprocess._fork_exec = fork_exec  # from Python 3.11 on
            subprocess._posixsubprocess = types.SimpleNamespace(fork_exec=fork_exec)
            become(given, told["environment"], told["words"], told["folder"])
        finally:
            os._exit(99)
    for each in given:
        os.close(each)
    os.write(status, f"{pid}\n".encode())
    left = os.waitpid(pid, 0)[1]
    os.write(status, f"{os.waitstatus_to_exitcode(left)}\n".encode())
    limit = time.monotonic() + SOON
    orphans = []
    while time.monotonic() < limit:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
        except ChildProcessError:
            break
    else:
        orphans = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for each in orphans:
            os.kill(int(each), signal.SIGKILL)
    os.write(status, f"{' '.join(orphans)}\n".encode())
    os._exit(0)


def serve(listener, lifeline):
    for name in HIDDEN:
        del sys.modules[name]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    gc.collect()
    gc.freeze()
    while lifeline not in select.select([listener, lifeline], [], [])[0]:
        request = listener.accept()[0]
        line, files, _, _ = socket.recv_fds(request, 1 << 20, 4)
        request.close()
        pid = os.fork() if line else None
        if pid == 0:
            try:
                keep(json.loads(line), files[:3], files[3])
            finally:
                os._exit(99)
        for each in files:
            os.close(each)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break


serve(socket.socket(fileno=int(LISTENER)), int(LIFELINE))
