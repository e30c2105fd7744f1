"""Saves of a checkpoint that all processes make: what it holds copies of is compared before it is written."""

from __future__ import annotations

from typing import Any

from spmdlint.runtime_checks.calls.named import announce
from spmdlint.runtime_checks.calls.replicas import replicas_in
from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import MissingSeamError, Patches, module, need

SAVERS = (
    ("orbax.checkpoint", "Checkpointer", "save"),
    ("orbax.checkpoint", "AsyncCheckpointer", "save"),
    ("jax.experimental.array_serialization.serialization", "GlobalAsyncCheckpointManager", "serialize"),
)


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
