"""Runs spellings on request, as one of several simulated processes, or on its own with JAX as it is.

A process of its own: ``one_process.py INDEX COUNT`` is one of several, ``one_process.py alone`` has eight devices. What
it is asked comes pickled from standard input, and the answers go to standard output.

As one of several, ``jax.process_index`` and the like say so, and the parallel calls (``multihost_utils``, ``pmap``,
Orbax) ask the parent, which has the others' arguments. So does everything else that differs between hosts: clocks,
random numbers, host names, the order of listings. Hashes of strings differ because Python seeds them.
"""

from __future__ import annotations

import concurrent.futures
import datetime
import functools
import hashlib
import importlib.util
import inspect
import json
import logging
import multiprocessing.pool
import os
import pathlib
import pickle
import platform
import random
import socket
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spmdlint.runtime_checks.launch.service import held_port

SIZES = (10, 9, 11)
"""How many rows and files there are, by the number of the try: only nine can be divided between three processes."""


class Stopped(BaseException):
    """Ends a spelling whose processes have diverged or failed."""


class Request(NamedTuple):
    """What to run: a function of a file, in a folder; ``turn`` is the number of the try."""

    path: str
    name: str
    folder: str
    turn: int


class Parent:
    """The other end of the pipe."""

    def __init__(self) -> None:
        self._sink = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # what programs print is not an answer
        self._lock = threading.RLock()
        self.stopping = False

    def listen(self) -> Any:
        return pickle.load(sys.stdin.buffer)

    def tell(self, *message: object) -> None:
        pickle.dump(message, self._sink)
        self._sink.flush()

    def ask(self, *message: object) -> Any:
        """Ask, and wait for the answer.

        Raises:
            Stopped: the parent has stopped the spelling.

        """
        with self._lock:
            if self.stopping:
                raise Stopped
            self.tell(*message)
            answer = self.listen()
            if answer == "stop":
                self.stopping = True
                raise Stopped
            return answer


def arguments(function: Callable[..., Any], turn: int, me: int | None) -> list[Any]:
    """Arguments by the names of the parameters that have no default. ``me`` is None if JAX is as it is."""
    needed = [each.name for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    if not needed:
        return []  # what follows starts JAX's backend
    import jax
    import numpy as np

    size = SIZES[turn % len(SIZES)]
    devices = jax.local_device_count()
    table: dict[str, Any] = {
        "rows": np.arange(size * 4, dtype=np.float32).reshape(size, 4),
        "files": [f"part-{number:02}.npy" for number in range(size)],
        "few": [f"part-{number:02}.npy" for number in range((2, 4, 1)[turn % 3])],
        "parts": size,
        "sentences": [list(range(1, length + 1)) for length in range(1, 13)],
        "steps": 8,
        "step": 2,
        "seed": 0,
        "state": {"w": np.ones((4, 4), np.float32)},
        "folder": "data",
        "path": "statistics.npy",
        "own_file": "own.txt",
        "params": np.ones((devices, 4), np.float32),
        "batch": np.random.default_rng(0).normal(size=(devices, 3, 4)).astype(np.float32),
        "own_batch": np.full((devices, 3, 4), (0.5, 0.53, 1.0)[me or 0], np.float32),
        "x": np.arange(1, 33, dtype=np.float32).reshape(8, 4),
        "ones": np.ones((8, 4), np.float32),
        "inputs": np.arange(64, dtype=np.float32).reshape(8, 8),
        "kernel": np.arange(32, dtype=np.float32).reshape(8, 4),
        "w": np.full(4, 3.0, np.float32),
        "key": jax.random.PRNGKey(0) if me is None else None,
    }
    return [table[name] for name in needed]


def load(path: str) -> types.ModuleType:
    """Import a file anew, under a name of its own."""
    name = f"spelling_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def plain(result: Any) -> Any:
    """A result that can be pickled and compared."""
    import jax
    import numpy as np

    def leaf(value: Any) -> Any:
        if isinstance(value, jax.Array):
            is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
            return np.asarray(jax.random.key_data(value) if is_key else value)
        return value if isinstance(value, bool | int | float | str | bytes | np.ndarray | np.generic) else str(value)

    return jax.tree.map(leaf, list(result) if isinstance(result, Iterator) else result)


def run(request: Request, me: int | None) -> tuple[object, ...]:
    """Run one spelling: how it ended, and with what."""
    os.chdir(request.folder)
    try:
        function = getattr(load(request.path), request.name)
        return "ended", plain(function(*arguments(function, request.turn, me)))
    except Stopped:
        return ("stopped",)
    except SystemExit as error:
        return ("ended", None) if error.code in (None, 0) else ("raised", f"SystemExit: {error.code}")
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"


# Simulated processes


def prepare(folder: str, me: int, turn: int) -> None:
    """The files that this host finds in its working directory."""
    root = Path(folder)
    (root / "data").mkdir(parents=True, exist_ok=True)
    for number in range(SIZES[turn % len(SIZES)]):
        (root / "data" / f"part-{number:02}.npy").touch()
    if me != 1:
        (root / "own.txt").write_text("text")
        (root / f"own-{me}.json").write_text(json.dumps([1.0, 2.0]))
    if me == (1, 0)[turn % 2]:
        (root / "stop").touch()


class Simulation:
    """JAX and Python's modules as one of several processes sees them."""

    def __init__(self, parent: Parent, me: int, count: int) -> None:
        self.parent, self.me, self.count = parent, me, count
        self.now = 0.0

    def start(self, request: Request) -> None:
        """Make everything that chance or time decides what it is at the start of a try."""
        self.now = 1_700_000_000.0 + 3 * self.me
        self.parent.stopping = False
        seed = 1000 * request.turn + self.me
        import numpy as np

        random.seed(seed)
        np.random.seed(seed)
        os.environ.update(SLURM_PROCID=str(self.me), SLURM_NTASKS=str(self.count), HOSTNAME=f"worker-{self.me}")

    def install(self) -> None:
        self._clocks()
        self._listings()
        self._completion()
        self._jax()
        self._orbax()
        for owner, name, value in (
            (socket, "gethostname", f"worker-{self.me}"),
            (platform, "node", f"worker-{self.me}"),
            (os, "getpid", 1000 + self.me),
        ):
            setattr(owner, name, lambda value=value: value)

    def call(self, name: str, given: Any, more: object = "") -> list[Any]:
        """Make a parallel call; gives what each process passed to it."""
        import jax
        import numpy as np

        if not trace_state_clean():
            name += " while tracing"
        if threading.current_thread() is not threading.main_thread():
            name += " in a thread"
        given = jax.tree.map(np.asarray, given)
        kinds = [f"{leaf.dtype}{leaf.shape}" for leaf in jax.tree.leaves(given)]
        return self.parent.ask("call", (name, str(jax.tree.structure(given)), tuple(kinds), more), given)

    def _clocks(self) -> None:
        def clock() -> float:
            self.now += 0.001 * (1 + self.me)
            return self.now

        def sleep(seconds: float) -> None:
            if threading.current_thread() is threading.main_thread():
                self.now += seconds * (1 + 0.37 * self.me)
                self.parent.ask("sleep")

        for name in ("time", "monotonic", "perf_counter"):
            setattr(time, name, clock)
        time.time_ns = lambda: int(clock() * 1e9)
        time.sleep = sleep

        class Clock(datetime.datetime):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                return cls.fromtimestamp(clock(), tz)

        datetime.datetime = Clock  # type: ignore[misc]

    def _listings(self) -> None:
        def shuffled(found: Any) -> list[Any]:
            found = sorted(found, key=lambda entry: getattr(entry, "name", entry))
            random.Random(self.me + 1).shuffle(found)
            return found

        class Entries:
            def __init__(self, found: list[Any]) -> None:
                self._left = iter(found)

            def __iter__(self) -> Iterator[Any]:
                return self._left

            def __next__(self) -> Any:
                return next(self._left)

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                self.close()

            def close(self) -> None:
                pass

        listdir, scandir = os.listdir, os.scandir
        os.listdir = lambda *args: shuffled(listdir(*args))

        def scan(*args: Any) -> Any:
            with scandir(*args) as found:
                return Entries(shuffled(found))

        os.scandir = scan
        # Versions of Python differ in how these list a folder.
        for name in ("iterdir", "glob", "rglob"):
            original = getattr(pathlib.Path, name)
            setattr(pathlib.Path, name, lambda *args, original=original: iter(shuffled(original(*args))))

    def _completion(self) -> None:
        as_completed = concurrent.futures.as_completed

        def completed(*args: Any, **kwargs: Any) -> Iterator[Any]:
            done = sorted(as_completed(*args, **kwargs), key=lambda future: str(future.result()))
            random.Random(self.me + 1).shuffle(done)
            return iter(done)

        concurrent.futures.as_completed = completed
        unordered = multiprocessing.pool.Pool.imap_unordered

        def imap_unordered(*args: Any, **kwargs: Any) -> Iterator[Any]:
            done = sorted(unordered(*args, **kwargs), key=str)
            random.Random(self.me + 1).shuffle(done)
            return iter(done)

        multiprocessing.pool.Pool.imap_unordered = imap_unordered  # type: ignore[method-assign]

    def _jax(self) -> None:
        import jax
        import numpy as np
        from jax.experimental import multihost_utils

        local = jax.devices()[2 * self.me : 2 * self.me + 2]
        jax.process_index = lambda *_: self.me
        jax.process_count = lambda *_: self.count
        jax.local_devices = lambda *_, **__: local
        jax.local_device_count = lambda *_: len(local)
        jax.pmap = self._pmap

        def allgather(given: Any, tiled: bool = False) -> Any:
            together = np.concatenate if tiled else np.stack
            return jax.tree.map(lambda *leaves: together(leaves), *self.call("process_allgather", given))

        multihost_utils.process_allgather = allgather
        multihost_utils.sync_global_devices = lambda name: self.call("sync_global_devices", None, name) and None
        multihost_utils.broadcast_one_to_all = lambda given: self.call("broadcast_one_to_all", given)[0]

    def _pmap(
        self,
        function: Callable[..., Any],
        axis_name: str | None = None,
        *,
        in_axes: Any = 0,
        static_broadcasted_argnums: int | tuple[int, ...] = (),
        **_: Any,
    ) -> Callable[..., Any]:
        import jax
        import numpy as np

        static = static_broadcasted_argnums
        static = (static,) if isinstance(static, int) else static

        def mapped(*args: Any) -> Any:
            def bound(*dynamic: Any) -> Any:
                left = iter(dynamic)
                return function(*[args[n] if n in static else next(left) for n in range(len(args))])

            given = [arg for n, arg in enumerate(args) if n not in static]
            axes = [axis for n, axis in enumerate(in_axes) if n not in static] if in_axes != 0 else [0] * len(given)
            run_over_all = jax.vmap(bound, in_axes=tuple(axes), axis_name=axis_name)
            traced = jax.make_jaxpr(run_over_all)(*given)
            constants = b"".join(np.asarray(each).tobytes() for each in traced.consts)
            program = hashlib.sha256(str(traced).encode() + constants).hexdigest()
            name = f"pmap of {getattr(function, '__name__', 'a function')}"
            everyone = self.call(name, given, (program, tuple(str(args[n]) for n in static)))
            whole = [
                own if axis is None else jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
                for own, axis, *parts in zip(given, axes, *everyone, strict=True)
            ]
            first = self.me * jax.local_device_count()
            results = run_over_all(*whole)
            return jax.tree.map(lambda leaf: leaf[first : first + jax.local_device_count()], results)

        return mapped

    def _orbax(self) -> None:
        """Enough of Orbax for the calls that meet the other processes."""
        simulation = self

        class Meets:
            def __init__(self, *_: Any, **__: Any) -> None:
                self._meet("make")

            def _meet(self, what: str) -> None:
                simulation.call(f"{what} {type(self).__name__}", None)

            def save(self, *_: Any, **__: Any) -> None:
                self._meet("save")

            def restore(self, *_: Any, **__: Any) -> Any:
                self._meet("restore")
                return {}

            def wait_until_finished(self) -> None:
                self._meet("wait for")

            def close(self) -> None:
                self._meet("close")

            def latest_step(self) -> int:
                return 1

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                self.close()

        checkpoint: Any = types.ModuleType("orbax.checkpoint")
        for name in ("CheckpointManager", "StandardCheckpointer", "PyTreeCheckpointer"):
            setattr(checkpoint, name, type(name, (Meets,), {}))
        checkpoint.CheckpointManagerOptions = lambda **_: None
        checkpoint.args = types.SimpleNamespace(StandardSave=lambda state: state, StandardRestore=lambda state: state)
        package: Any = types.ModuleType("orbax")
        package.checkpoint = checkpoint
        sys.modules.update({"orbax": package, "orbax.checkpoint": checkpoint})


def trace_state_clean() -> bool:
    """Whether JAX is not tracing."""
    from jax._src import core

    return bool(core.trace_state_clean())


def one_of_several(me: int, count: int) -> None:
    """Serve as one simulated process until the parent leaves."""
    parent = Parent()
    simulation = Simulation(parent, me, count)
    simulation.install()
    parent.tell("ready")
    while (request := parent.listen()) != "leave":
        simulation.start(request)
        parent.tell(*run(request, me))


# On its own


def in_a_fork(request: Request) -> tuple[object, ...]:
    """Run one spelling in a fork of this process, in which JAX has not been used, as the only process of a job."""
    import jax

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        initialize = jax.distributed.initialize
        try:
            with held_port() as port:
                address = f"127.0.0.1:{port}"
                jax.distributed.initialize = functools.partial(initialize, address, num_processes=1, process_id=0)
                os.write(writer, pickle.dumps(run(request, None))[:60_000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as source:
        answer = source.read()
    os.waitpid(child, 0)
    return pickle.loads(answer) if answer else ("raised", "the process died")


def alone(each_in_a_fork: bool) -> None:
    """Serve with JAX as it is until the parent leaves."""
    import jax  # noqa: F401  (before the first fork)

    parent = Parent()
    parent.tell("ready")
    while (request := parent.listen()) != "leave":
        parent.tell(*(in_a_fork(request) if each_in_a_fork else run(request, None)))


def main() -> None:
    logging.disable(logging.CRITICAL)
    if sys.argv[1] in ("alone", "fresh"):
        alone(sys.argv[1] == "fresh")
    else:
        one_of_several(int(sys.argv[1]), int(sys.argv[2]))


if __name__ == "__main__":
    main()
