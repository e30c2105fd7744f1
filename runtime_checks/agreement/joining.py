"""Joining: either all processes of a job are checked, or none is.

Each process registers when it enables the checks. One record decides for all, and whoever writes it first decides:
process 0 as soon as all have registered or two differ, the next one if a launcher has seen it end, and any process
whose patience ends. A process that comes later reads the decision and follows it. So no process waits for one that runs
without the checks, and none is compared with one that began elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

from spmdlint.runtime_checks.records import UnknownRecordError, read_record
from spmdlint.runtime_checks.reporting.sentences import name_processes, sides
from spmdlint.runtime_checks.transport.bounded import BoundedLock
from spmdlint.runtime_checks.transport.exchange import Job
from spmdlint.runtime_checks.transport.store import Store

DECISION = "join/decision"
FIRST_PAUSE = 0.02  # seconds until a process looks for the decision again; doubled up to
LONGEST_PAUSE = 0.25  # or, in a large job, as long as
LOOKS_A_SECOND = 512  # of all processes together take
CLOSINGS_A_SECOND = 256  # of processes whose patience ends at the same time: each would read all registrations
AT_THE_END = 3.0  # seconds that a process whose program has ended leaves to those that have not registered


class Member(msgspec.Struct, frozen=True):
    """What a process says about its checks when it registers; an absent field is that of a release without it.

    ``token`` tells two processes of one number apart. ``off`` are the layers of interception that are off. ``past`` are
    programs over several processes that ran before the checks were on, and ``site`` is where they were enabled, with
    the lines through which that was called.
    """

    token: str = ""
    version: str = ""
    mode: str = ""
    policy: str = ""
    values: str = ""
    off: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    site: str = ""


class Decision(msgspec.Struct, frozen=True):
    """Whether the job is checked; if not, why, and what to do."""

    checked: bool
    reason: str = ""
    advice: str = ""


# What has to be equal everywhere: how it is told that it is not, what it is, and what to do.
_FIELDS: tuple[tuple[str, Callable[[Member], str], str], ...] = (
    ("the releases of spmdlint differ", lambda one: one.version or "unknown", "Install the same one everywhere."),
    ("the modes differ", lambda one: one.mode, "Give enable() the same mode on every process."),
    ("on_divergence differs", lambda one: one.policy, "Give enable() the same policy on every process."),
    ("SPMDLINT_VALUES differs", lambda one: one.values, "Give it the same value on every process."),
    (
        "not the same calls are seen",
        lambda one: f"without the layers {', '.join(one.off)}" if one.off else "all layers are on",
        "Use one release of JAX everywhere, and see status().layers.",
    ),
)
_ONE_PLACE = "Call enable() right after jax.distributed.initialize() on every process."


def decide(members: Mapping[int, Member | None], count: int, waited: float | None) -> Decision | None:
    """The decision over the processes that have registered, or None if it is too early.

    A member is None if its record cannot be read. ``waited`` is the patience, in seconds, that has come to an end; None
    if it has not.
    """
    unread = [process for process, one in members.items() if one is None]
    if unread:
        return Decision(
            False, f"the registration of {name_processes(unread)} cannot be read", "Install one release of spmdlint."
        )
    known = {process: one for process, one in members.items() if one is not None}
    equal = [(words, {n: field(one) for n, one in known.items()}, advice) for words, field, advice in _FIELDS]
    if any(one.past for one in known.values()):
        equal.append(("the processes were not enabled at the same place", _pasts(known), _ONE_PLACE))
    for words, told, advice in equal:
        if len(set(told.values())) > 1:
            return Decision(False, f"{words}: {sides(told)}", advice)
    if len(known) == count:
        return Decision(True)
    if waited is None:
        return None
    absent = [process for process in range(count) if process not in known]
    verb = "has" if len(absent) == 1 else "have"
    return Decision(
        False,
        f"{name_processes(absent)} {verb} not called enable() within {waited:.0f} s",
        f"{_ONE_PLACE} If that takes longer, set SPMDLINT_JOIN_WITHIN (seconds).",
    )


def _pasts(members: Mapping[int, Member]) -> dict[int, str]:
    """Where each process was enabled, and after which programs: those that not all have run, if there are any."""
    common = set.intersection(*(set(one.past) for one in members.values()))
    told: dict[int, str] = {}
    for process, one in members.items():
        own = [name for name in one.past if name not in common] or one.past
        ran = f"after {', '.join(own)} had run" if own else "before any parallel call"
        told[process] = f"at {one.site or 'an unknown line'}, {ran}"
    return told


class Joining:
    """One process on its way into the checks. Used by its watcher thread, and by a thread that waits in a call."""

    def __init__(self, job: Job, mine: Member, within: float) -> None:
        self._job = job
        self._store = job.store
        self._mine = mine
        self._began = time.monotonic()
        self._closes_at = self._began + within + job.me / CLOSINGS_A_SECOND
        self._pause = FIRST_PAUSE
        self._due = 0.0
        self._lock = BoundedLock()
        self.decision: Decision | None = None

    def register(self) -> bool:
        """Register this process; returns False if another one of its number has registered before."""
        key = f"join/member/{self._job.me}"
        if self._store.put(key, msgspec.to_builtins(self._mine)):
            return True
        try:
            there = self._store.get(key, Member)
        except UnknownRecordError:
            return True  # whoever decides finds it
        return there is not None and there.token == self._mine.token

    def look(self) -> Decision | None:
        """The decision, if there is one by now; makes it where it is this process's turn, and it can be made."""
        with self._lock:
            now = time.monotonic()
            if self.decision is None and now >= self._due:
                slowest = max(LONGEST_PAUSE, self._job.count / LOOKS_A_SECOND)
                self._pause = min(2 * self._pause, slowest)
                self._due = now + self._pause
                self.decision = self._store.get(DECISION, Decision) or self._decide(now)
            return self.decision

    def wait(self) -> Decision:
        """Wait for the decision; never longer than the patience of this process."""
        while (decision := self.look()) is None:
            time.sleep(self.rest())
        return decision

    def rest(self) -> float:
        """Seconds until :meth:`look` looks again."""
        return max(0.0, self._due - time.monotonic())

    def wait_at_the_end(self) -> Decision:
        """The same once the program has ended: those who come later must not be waited for."""
        self._closes_at = min(self._closes_at, time.monotonic() + AT_THE_END)
        return self.wait()

    def _decide(self, now: float) -> Decision | None:
        expired, job = now >= self._closes_at, self._job
        if not expired and any(job.gone(process) is None for process in range(job.me)):
            return None
        found = decide(self._members(), job.count, now - self._began if expired else None)
        if found is None or self._store.put(DECISION, msgspec.to_builtins(found)):
            return found
        return self._store.get(DECISION, Decision)  # that of another process, which was first

    def _members(self) -> dict[int, Member | None]:
        texts = self._store.texts("join/member")
        known = (name for name in texts if name.isdigit() and int(name) < self._job.count)
        return {int(name): _read(texts[name]) for name in known}


def close_door(store: Store, reason: str) -> None:
    """Decide against the checks, if nothing is decided yet: this process cannot take part."""
    store.put(DECISION, msgspec.to_builtins(Decision(False, reason, "See the output of that process.")))


def _read(text: str) -> Member | None:
    try:
        return read_record(text, Member, "join/member")
    except UnknownRecordError:
        return None
