"""Parallel calls of libraries that are known by more than a program: barriers, asserted values, saves of a checkpoint.

Barriers with different names run an identical program, and so does ``assert_equal`` of different values. All processes
make a save; what it holds copies of is compared before it is written.
"""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

from spmdlint.runtime_checks.calls.frames import entered
from spmdlint.runtime_checks.calls.named import announce, as_value
from spmdlint.runtime_checks.calls.replicas import replicas_in
from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import MissingSeamError, Patches, module, need

SOON = 45.0  # seconds: libraries that do not expect a time-out give minutes
SAVERS = (
    ("orbax.checkpoint", "Checkpointer", "save"),
    ("orbax.checkpoint", "AsyncCheckpointer", "save"),
    ("jax.experimental.array_serialization.serialization", "GlobalAsyncCheckpointManager", "serialize"),
)
_NAME = re.compile(r"^sync_global_devices name mismatch \('(.*)'\)$", re.S)


def install_device_barriers(observer: Observer, patches: Patches) -> None:
    """Intercept ``sync_global_devices``, even if it was imported by name: it calls ``assert_equal`` of its module."""
    utils = module("jax.experimental.multihost_utils")

    def before(in_tree: Any, fail_message: str = "") -> None:
        found = _NAME.match(str(fail_message))
        if found is not None:
            announce(observer.caller, "sync_global_devices", name=found[1])
            observer.thread.in_barrier = True
        else:
            _announce_value(observer, in_tree)

    def lastly(_: None) -> None:
        observer.thread.in_barrier = False

    patches.around(utils, "assert_equal", before, lastly=lastly, takes=("in_tree", "fail_message"))


def _announce_value(observer: Observer, tree: Any) -> None:
    """Agree on a value before JAX compares it, which raises without saying which process called from where."""
    import jax

    try:
        value = as_value(jax.tree_util.tree_map(_as_compared, tree))
    except (TypeError, ValueError):
        return  # global arrays, or what JAX refuses as well
    function = entered(sys._getframe()) or "assert_equal"
    name = f"the value given to {function}" if function != "assert_equal" else "multihost_utils.assert_equal"
    announce(observer.caller, function, name=name, value=value)


def _as_compared(leaf: Any) -> Any:
    """A leaf as JAX compares it: in the precision that is enabled, and without the sign of a zero."""
    import jax
    import numpy as np

    if not getattr(leaf, "is_fully_addressable", True):
        raise ValueError("a global array")
    held = np.asarray(leaf)
    if held.dtype.kind not in "biufc":
        raise TypeError(f"values of type {held.dtype}")
    held = held.astype(jax.dtypes.canonicalize_dtype(held.dtype))
    return held + held.dtype.type(0) if held.dtype.kind in "fc" else held


def install_client_barriers(observer: Observer, patches: Patches) -> None:
    """Intercept the barriers of the distributed client, as used by Orbax and others.

    Only those of the main thread: background savers have their own order. One that soon ends by itself counts once all
    have come: a program may catch that some have not, and go on, and then it has not made a call.
    """
    client = need(module("jaxlib._jax"), "DistributedRuntimeClient")

    def tell(limit: float | None, barrier_id: str, *args: Any, **named: Any) -> None:
        members = named.get("process_ids", args[1] if len(args) > 1 else None)  # None for all
        announce(
            observer.caller,
            "wait_at_barrier",
            name=str(barrier_id),
            processes=members if members is None else [int(one) for one in members],
            within=limit,
        )

    def before(_client: Any, barrier_id: str, *args: Any, **named: Any) -> float | None:
        if threading.current_thread() is not threading.main_thread():
            return None
        limit = named.get("timeout_in_ms", args[0] if args else None)
        seconds = None if limit is None else float(limit) / 1000
        if seconds is not None and seconds <= SOON:
            return seconds
        tell(seconds, barrier_id, *args, **named)
        return None

    def after(limit: float | None, _result: Any, _client: Any, *args: Any, **named: Any) -> None:
        if limit is not None:
            tell(limit, *args, **named)

    patches.around(client, "wait_at_barrier", before, after)


def install_checkpoints(observer: Observer, patches: Patches) -> None:
    """Compare replicas before each save by Orbax or by JAX's own serialization."""

    def before(_saver: Any, *args: Any, **named: Any) -> None:
        import jax

        tree = jax.tree_util.tree_map(_opened, {**{str(n): one for n, one in enumerate(args)}, **named})
        announce(observer.caller, "check_replicas", name="checkpoint", given=replicas_in(tree, observer.caller.me))

    found = 0
    for name, owner, method in SAVERS:
        try:
            saver = need(module(name), owner)
            need(saver, method)
        except MissingSeamError:
            continue
        patches.around(saver, method, before)
        found += 1
    if not found:
        raise MissingSeamError(f"there is none of {', '.join(name for name, _, _ in SAVERS)}")


def _opened(leaf: Any) -> Any:
    """What an object holds that tells Orbax what to save, and is no tree for JAX: its field with arrays, or fields."""
    import jax

    if not type(leaf).__module__.startswith("orbax.") or not hasattr(leaf, "__dict__"):
        return leaf
    fields = {name: jax.tree_util.tree_map(_opened, value) for name, value in vars(leaf).items()}
    held = {
        name: value
        for name, value in fields.items()
        if any(isinstance(one, jax.Array) for one in jax.tree_util.tree_leaves(value))
    }
    return next(iter(held.values())) if len(held) == 1 else held
