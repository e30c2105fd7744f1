"""What a program calls: ``enable``, ``disable``, ``status``, ``track``, ``assert_equal``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from spmdlint.runtime_checks.options import Options, choose

if TYPE_CHECKING:
    from spmdlint.runtime_checks.hook import Hook
    from spmdlint.runtime_checks.session import Session

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Status:
    """What the runtime checks do in this process.

    ``watching`` is whether calls are compared now; ``reason`` says why not. ``calls`` counts the parallel calls by
    the processes of their group, ``quiet`` those that hold no collective. ``others`` says, in background mode, how
    many calls of all groups the other processes had made when they were last heard of. ``layers`` says "on" for each
    layer of interception, or why it is off.
    """

    mode: str
    watching: bool
    reason: str | None = None
    process: int | None = None
    processes: int | None = None
    calls: dict[str, int] = field(default_factory=dict)
    others: dict[int, int] = field(default_factory=dict)
    quiet: int = 0
    layers: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class _Installed:
    """The process's hook, if any: interception is process-wide by nature. ``times`` counts how often it was enabled."""

    hook: Hook | None = None
    times: int = 0


def enable(mode: str | None = None, *, on_divergence: str | None = None) -> None:
    """Compare the parallel calls of all processes of this job from here on.

    Call it on every process, before or after ``jax.distributed.initialize``. ``mode`` is "lockstep" (each call is
    agreed on before it is dispatched), "background" (compared behind the calls) or "off"; ``on_divergence`` is "raise"
    (a :class:`DivergenceError` in every process), "exit" (report, and leave with status 3) or "report" (report, and go
    on unchecked). What is not given comes from the environment (``SPMDLINT_RUNTIME_CHECKS``,
    ``SPMDLINT_ON_DIVERGENCE``) or is "lockstep", and "raise" in lockstep or "report" in background mode. Under
    ``spmdlint run`` the launcher has decided, and this does nothing.

    Raises ``ValueError`` for a mode or policy that does not exist, and ``RuntimeError`` where the checks are on with
    other options already.
    """
    options: Options = choose(mode, on_divergence)
    installed = _Installed.hook
    if installed is not None:
        if installed.options != options and not installed.options.rehearsal:
            raise RuntimeError("The runtime checks are on with other options: call disable() first.")
        return
    if options.mode == "off":
        return
    from spmdlint.runtime_checks.hook import Hook

    _Installed.times += 1
    hook = Hook(options, _Installed.times)
    _Installed.hook = hook
    hook.start()


def disable() -> None:
    """Take the checks out of this process; call it on every process at the same place."""
    hook, _Installed.hook = _Installed.hook, None
    if hook is not None:
        hook.stop()


def assert_equal(value: Any, name: str, *, every: int = 1) -> None:
    """Check that a value is the same on every process; itself a parallel call, which all processes have to make.

    ``value`` is a number, a string, an array or a pytree of them. Of an array a digest of its bytes is compared; one
    that spans processes has to be replicated. ``every`` compares only each so many-th time that a name is asserted
    (the first among them), and does nothing in between: for replicated state in a training loop. Costs a copy of the
    array to the host, where it is not there, and a pass over its bytes; the guide has figures. Does nothing where the
    checks are off.

    Raises :class:`DivergenceError` (kind "value") as the policy says, ``TypeError`` for a value that has no text that
    is the same everywhere, and ``ValueError`` for an array of which each process holds another part, or ``every``
    below 1.
    """
    if every < 1:
        raise ValueError(f"assert_equal compares every so many-th time: every={every} is below 1.")
    session = _session()
    if session is not None and session.is_due(name, every):
        from spmdlint.runtime_checks.named import announce, value_words

        announce(session, "assert_equal", name=name, value=value_words(value))


def track(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Make a callable of your own a parallel call: one that every process has to make in the same order.

    For what communicates without JAX's own dispatch, such as an operation of mpi4jax or a client of your own. The
    shapes and dtypes of its array arguments have to agree as well. Called while tracing, it is not looked at. Costs
    nothing but a look-up where the checks are off.
    """
    from spmdlint.runtime_checks.named import tracked

    return tracked(fun, name or getattr(fun, "__qualname__", None) or type(fun).__qualname__, _session)


def _session() -> Session | None:
    hook = _Installed.hook
    return hook.session if hook is not None else None


def left_by(end: SystemExit) -> None:
    """For a runner of programs: the program has ended by ``sys.exit``."""
    if _Installed.hook is not None:
        _Installed.hook.left_by(end)


def status() -> Status:
    """What is watched, how many calls were compared, which layers are off and why."""
    hook = _Installed.hook
    if hook is None:
        return Status("off", watching=False, reason="enable() has not been called")
    session = hook.session
    if session is None:
        return Status(hook.options.mode, watching=False, reason=hook.why_idle)
    if session.background is not None:
        session.journal.drain()
    return Status(
        mode=hook.options.mode,
        others=session.background.leader.heard() if session.background is not None else {},
        watching=session.active,
        reason=None if session.active else "a divergence was reported, or the store was lost",
        process=session.me,
        processes=session.count,
        calls={",".join(map(str, group.processes)): group.count for group in session.ledger.groups()},
        quiet=sum(session.ledger.quiet.values()),
        layers=dict(session.layers),
        notes=list(session.notes),
    )
