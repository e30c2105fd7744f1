"""The public functions: ``enable``, ``disable``, ``status``, ``track``, and those about values."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from spmdlint.runtime_checks.options import MODE_VARIABLE, Mode, Options, Policy, choose, overruled, switched_off
from spmdlint.runtime_checks.records import HealthNumbers
from spmdlint.runtime_checks.reporting.printing import write_error

if TYPE_CHECKING:
    from spmdlint.runtime_checks.hook import Hook
    from spmdlint.runtime_checks.session import Session

P = ParamSpec("P")
R = TypeVar("R")
UNDECIDED = "not all processes have enabled the checks yet"
T = TypeVar("T")


@dataclass(slots=True)
class Status:
    """The state of the runtime checks in this process.

    ``watching`` is whether calls are recorded and compared; ``reason`` says why not. ``joined`` is whether all
    processes are known to do so: until then, calls wait in lockstep, and are compared later in background mode.
    ``calls`` counts the parallel calls by the processes of their group, ``quiet`` those without a collective.
    ``layers`` is "on" for each layer of interception, or why it is off. ``health`` has what a monitor
    can watch: the result of the self-test and its age, the age of the watcher thread's last look, the number of
    requests to the key-value store that failed, and in background mode the calls that are not numbered yet and the age
    of the last publication. Ages are in seconds.
    """

    mode: str
    watching: bool
    reason: str | None = None
    joined: bool = False
    process: int | None = None
    processes: int | None = None
    calls: dict[str, int] = field(default_factory=dict)
    quiet: int = 0
    layers: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    health: HealthNumbers = field(default_factory=lambda: HealthNumbers())

    def as_json(self) -> str:
        """The status as one line of JSON, for a log or a monitor."""
        return json.dumps(asdict(self))


class _Installed:
    """The process's hook, if any: interception is process-wide. ``times`` counts how often it was enabled.

    ``decided`` are the options that a program runner has taken from the environment, in a job, and ``told`` is whether
    it was said that the program's own have no effect.
    """

    hook: Hook | None = None
    times: int = 0
    decided: Options | None = None
    told: bool = False


def enable(mode: Mode | None = None, *, on_divergence: Policy | None = None, join_within: float | None = None) -> None:
    """Compare the parallel calls of all processes of this job from now on.

    Call it on every process, before or after ``jax.distributed.initialize``. ``mode`` is "lockstep" (each call is
    compared before it is dispatched), "background" (compared afterwards) or "off"; ``on_divergence`` is "raise" (a
    :class:`DivergenceError` in every process), "exit" (report, and exit with status 3) or "report" (report, and
    continue unchecked). Defaults come from the environment (``SPMDLINT_RUNTIME_CHECKS``, ``SPMDLINT_ON_DIVERGENCE``);
    otherwise the mode is "lockstep", and the policy "raise" in lockstep or "report" in background mode. Under
    ``spmdlint run`` the launcher has decided, and this does nothing; so it is under
    ``python -m spmdlint.runtime_checks``, where the environment has decided, and wherever ``SPMDLINT_RUNTIME_CHECKS``
    is "off". If something else was asked for there, one line says so.

    Either all processes are checked, or none is. If one has not called this within ``join_within`` seconds
    (``SPMDLINT_JOIN_WITHIN``, otherwise 20), or with other options, all go on unchecked, and say so. Background mode
    never waits for that; in lockstep, the first parallel call does.

    Raises ``ValueError`` for an unknown mode or policy, and ``RuntimeError`` if the checks are already on with
    different options.
    """
    options: Options = choose(mode, on_divergence, join_within=join_within)
    installed = _Installed.hook
    if switched_off():
        if options.mode != "off" and not options.rehearsal:
            _tell_once(f"the runtime checks are off, because {MODE_VARIABLE} is off: enable() has no effect.")
        return
    decided = _Installed.decided
    if decided is not None:
        other = overruled(decided, mode=mode, on_divergence=on_divergence, join_within=join_within)
        if other:
            _tell_once(
                "enable() does not change what the environment says under python -m spmdlint.runtime_checks: "
                f"{'; '.join(other)}."
            )
        options = decided
    if installed is not None:
        if installed.options != options and not installed.options.rehearsal:
            raise RuntimeError("The runtime checks are already on with different options: call disable() first.")
        return
    if options.mode == "off":
        return
    from spmdlint.runtime_checks.hook import Hook

    _Installed.times += 1
    hook = Hook(options, _Installed.times)
    _Installed.hook = hook
    hook.guard.run(hook.start)


def disable() -> None:
    """Remove the checks from this process; call it on every process at the same place.

    In background mode, what was called until then is compared first, so this waits for the others: at most 10 s.

    Raises :class:`DivergenceError` if that proves a divergence and the policy is "raise"; the checks then stay on.
    """
    hook = _Installed.hook
    if hook is not None:
        hook.stop()
        _Installed.hook = None


def assert_equal(value: Any, name: str, *, every: int = 1) -> None:
    """Check that a value is the same on every process; itself a parallel call, which all processes have to make.

    ``value`` is a number, a string, an array or a pytree of them. Arrays are compared by a digest of their bytes; an
    array that spans processes has to be replicated. With ``every=N``, only every N-th call for a name compares
    (starting with the first), and the others do nothing: for replicated state in a training loop. Costs a copy of the
    array to the host, if it is not there, and a pass over its bytes; the guide has figures. Does nothing if the checks
    are off; with one process, where nothing is compared, values are still refused that cannot be.

    Raises :class:`DivergenceError` (kind "value") according to the policy, ``TypeError`` for a value without a text
    that is the same everywhere, and ``ValueError`` for an array of which each process holds a different part, or for
    ``every`` below 1.
    """
    if every < 1:
        raise ValueError(f"assert_equal: every must be at least 1, not {every}.")
    hook = _Installed.hook
    if hook is None:
        return
    from spmdlint.runtime_checks.calls.named import announce, as_value, leaves_of

    if hook.session is None:
        leaves_of(value)  # where there is nobody to compare with, too, it refuses what cannot be compared
    elif hook.session.is_due(name, every):
        announce(hook.session, "assert_equal", name=name, value=as_value(value))


def check_replicas(tree: Any, *, name: str = "replicas", every: int = 1, stacked: bool = False) -> None:
    """Check that arrays over several processes hold the same wherever they claim to; itself a parallel call.

    Of the arrays of a pytree, whatever devices of several processes hold a copy of is compared by digests that the
    devices compute; nothing else is, and no array is copied to the host. With ``every=N``, only every N-th call for a
    name compares, starting with the first. ``stacked`` arrays have a row for each device, shaped (devices, ...), as
    ``flax.jax_utils.replicate`` makes them for ``pmap``: then all rows of an array have to be the same.

    Raises :class:`DivergenceError` (kind "value") according to the policy, and ``ValueError`` for ``every`` below 1.
    """
    if every < 1:
        raise ValueError(f"check_replicas: every must be at least 1, not {every}.")
    session = _session()
    if session is None or not session.is_due(f"check_replicas {name}", every):
        return
    from spmdlint.runtime_checks.calls.named import announce
    from spmdlint.runtime_checks.calls.replicas import replicas_in

    announce(session, "check_replicas", name=name, given=replicas_in(tree, session.me, stacked))


def local(value: T) -> T:
    """Declare that a value, or the arrays and numbers of a pytree, may differ between the processes; returns it.

    It is then not compared where it is passed to a call over several processes, or made an array of. A number comes
    back as an array of JAX that has the number's type for JAX; arrays come back as they are.
    """
    session = _session()
    if session is None:
        return value
    import jax

    freed: T = jax.tree_util.tree_map(session.own.values.free, value)
    return freed


def track(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Treat your own callable as a parallel call: one that every process has to make in the same order.

    For callables that communicate without JAX's dispatch, such as an operation of mpi4jax or your own client. The
    shapes and dtypes of the array arguments have to agree as well. Calls during tracing are ignored. Costs only a
    look-up if the checks are off.
    """
    code = getattr(fun, "__code__", None)
    place = f"{PurePath(code.co_filename).name}:{code.co_firstlineno}" if code is not None else None
    called = name or getattr(fun, "__qualname__", None) or type(fun).__qualname__

    @functools.wraps(fun)
    def tracked(*args: P.args, **kwargs: P.kwargs) -> R:
        session = _session()
        if session is not None:
            from spmdlint.runtime_checks.calls.named import announce_own

            session.guard.run(announce_own, session, called, place, (args, kwargs))
        return fun(*args, **kwargs)

    return tracked


def _session() -> Session | None:
    hook = _Installed.hook
    return hook.session if hook is not None else None


def decide() -> None:
    """For a program runner, before the program: the options are those of the environment, whatever it asks for.

    Raises ``ValueError`` if the environment has a mode or policy that is none.
    """
    options = choose(None, None)
    if not options.rehearsal:
        _Installed.decided = options


def _tell_once(words: str) -> None:
    if not _Installed.told:
        _Installed.told = True
        write_error(f"spmdlint: {words}\n")


def left_by(end: SystemExit) -> None:
    """For a program runner: the program has ended by ``sys.exit``."""
    if _Installed.hook is not None:
        from spmdlint.runtime_checks.calls.frames import exit_site

        _Installed.hook.left(end.code, exit_site(end.__traceback__))


def status() -> Status:
    """What is watched, how many calls were compared, and which layers are off and why."""
    hook = _Installed.hook
    if hook is None:
        reason = "disable() was called" if _Installed.times > 0 else "enable() has not been called"
        return Status("off", watching=False, reason=f"{MODE_VARIABLE} is off" if switched_off() else reason)
    session = hook.session
    if session is None:
        return Status(hook.options.mode, watching=False, reason=hook.why_idle)
    told = session.guard.run(_told, hook, session)
    return told or Status(hook.options.mode, watching=False, reason=session.checks.why_inactive)


def _told(hook: Hook, session: Session) -> Status:
    session.own.journal.drain()
    checks, joins = session.checks, session.checks.joining is not None
    return Status(
        mode=hook.options.mode,
        watching=checks.active,
        joined=checks.active and not joins,
        reason=checks.why_inactive if not checks.active else UNDECIDED if joins else None,
        process=session.me,
        processes=session.count,
        calls={",".join(map(str, group.processes)): group.count for group in session.own.ledger.groups()},
        quiet=sum(session.own.ledger.quiet.values()),
        layers=dict(session.own.layers),
        notes=list(checks.notes),
        health=session.health.numbers(),
    )
