"""Parallel calls that are not executables: barriers, asserted values, and the user's own callables."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.fingerprint import Program, describe_arguments
from spmdlint.runtime_checks.calls.frames import user_site
from spmdlint.runtime_checks.calls.given import Given
from spmdlint.runtime_checks.calls.provenance import Provenance
from spmdlint.runtime_checks.errors import Guard


class Caller(Protocol):
    """What agrees on the calls of this process with the others of its job."""

    me: int
    count: int
    guard: Guard
    provenance: Provenance

    def call(self, call: Call, within: float | None = None) -> str:
        """Agree on a call before it is made."""


SHOWN = 80
_PLAIN = (bool, int, float, complex, str, bytes)
_EMPTY = (type(None), list, tuple, dict)  # shown as they are: "0 leaves" would look like a number
FEW = 16  # values of an array that are shown
LARGE = 1 << 20  # bytes
BLOCK = 512  # words


def announce(
    caller: Caller,
    function: str,
    *,
    name: str | None = None,
    value: Value | None = None,
    processes: Sequence[int] | None = None,
    within: float | None = None,
    given: Given | None = None,
) -> None:
    """Agree on a named operation of these processes (all by default) before it runs.

    ``within`` bounds the wait in seconds for an operation with its own time-out. ``given`` has to be equal as far as
    two processes both have it.
    """
    members = tuple(sorted(processes)) if processes is not None else tuple(range(caller.count))
    if caller.me not in members or len(members) < 2:
        return
    program = Program(function=function, processes=members, name=name, value=value.words if value else None)
    call = Call(program, user_site(sys._getframe(1)), given=given or {})
    if value is not None:
        call.values, call.names, call.words = value.held, value.paths, value.texts
    caller.call(call, within=within)


def announce_own(caller: Caller, name: str, place: str | None, given: object) -> None:
    """Agree on a call of the user's own callable: its name and place, and shapes and dtypes of its array arguments."""
    import jax
    from jax._src import core

    if not getattr(core, "trace_state_clean", lambda: True)():
        return
    arrays = [leaf for leaf in jax.tree_util.tree_leaves(given) if hasattr(leaf, "shape")]
    shapes = json.dumps([[one["shape"], one["dtype"]] for one in describe_arguments(arrays, None)])
    program = Program(
        function=name,
        defined_at=place,
        processes=tuple(range(caller.count)),
        module=hashlib.blake2b(shapes.encode(), digest_size=10).hexdigest(),
    )
    tags = caller.provenance.tags_of(arrays)
    caller.call(Call(program, user_site(sys._getframe(1)), values=arrays, tags=tags))


@dataclass(frozen=True, slots=True)
class Value:
    """A value as text that is equal on two processes exactly if the value is; and its leaves, if it has several.

    Of each leaf, ``paths`` say where it is, ``held`` has it, and ``texts`` are as ``words`` is for the whole.
    """

    words: str
    paths: Sequence[str] = ()
    held: Sequence[Any] = ()
    texts: Sequence[str] = ()


def as_value(value: Any) -> Value:
    """A value for comparison.

    Raises ``TypeError`` for a value without such a text, and ``ValueError`` for an array of which each process holds
    a different part.
    """
    import jax

    found, tree = leaves_of(value)
    words = [_leaf_words(leaf) for _, leaf in found]
    if len(words) == 1 and jax.tree_util.treedef_is_leaf(tree):
        return Value(words[0])
    if type(value) in _EMPTY and not value:
        return Value(repr(value))
    digest = hashlib.blake2b(json.dumps([str(tree), words]).encode(), digest_size=10).hexdigest()
    told = f"{len(words)} {'leaf' if len(words) == 1 else 'leaves'}, digest {digest}"
    return Value(told, [jax.tree_util.keystr(path) for path, _ in found], [leaf for _, leaf in found], words)


def leaves_of(value: Any) -> tuple[Sequence[tuple[Any, Any]], Any]:
    """The leaves of a value with their paths, and the tree; raises ``TypeError`` for what cannot be compared."""
    import jax

    found, tree = jax.tree_util.tree_flatten_with_path(value)
    for path, leaf in found:
        what = _without_a_text(leaf)
        if what:
            at = jax.tree_util.keystr(path)
            raise TypeError(
                f"{what}{f', at {at},' if at else ''} cannot be compared between processes: pass numbers, strings, "
                "arrays, or a pytree of them."
            )
    return found, tree


def _without_a_text(leaf: Any) -> str:
    """What a leaf is, if it has no text that is the same everywhere; "" if it has one."""
    if isinstance(leaf, _PLAIN):
        return ""
    if isinstance(leaf, type):
        return f"The type {leaf.__qualname__}"
    leaf = getattr(leaf, "_base_array", leaf)  # of an array of random keys
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        return f"An object of type {type(leaf).__qualname__}"
    if getattr(dtype, "hasobject", False) or getattr(dtype, "kind", "") == "T":  # its bytes are addresses
        return f"An array of dtype {dtype}"
    return ""


def _leaf_words(leaf: Any) -> str:
    if isinstance(leaf, _PLAIN):
        words = repr(leaf)
        if len(words) <= SHOWN:
            return words
        return f"{words[:SHOWN]}... digest {hashlib.blake2b(words.encode(), digest_size=10).hexdigest()}"
    held = on_host(leaf)
    values = _values(held) if 0 < held.size <= FEW else ""
    shown = f" {values}" if values and len(values) <= SHOWN else ""
    return f"{held.dtype}{list(held.shape)}{shown} digest {digest_of(held)}"


def on_host(array: Any) -> Any:
    """An array, or this process's copy of a replicated one, as a NumPy array whose bytes follow one another.

    Raises ``ValueError`` for an array of which each process holds a different part.
    """
    import numpy as np

    array = getattr(array, "_base_array", array)
    if not getattr(array, "is_fully_addressable", True):
        if not array.is_fully_replicated:
            raise ValueError(
                "An array of which each process holds a different part cannot be compared between processes: pass a "
                "replicated array, or its sum or norm."
            )
        array = array.addressable_data(0)
    held = np.asarray(array)
    return held if held.flags.c_contiguous else np.ascontiguousarray(held)  # which would give a scalar a dimension


def _values(held: Any) -> str:
    if held.dtype.kind in "SU":
        return repr(held.tolist())  # NumPy's own strings take no indices
    if held.ndim == 0:
        return str(held[()])
    return f"[{', '.join(_values(row) for row in held)}]"


def digest_of(held: Any) -> str:
    """A digest of an array's bytes; for a large array, of the sums of its blocks, at the speed of memory."""
    import numpy as np

    data = held.reshape(-1).view(np.uint8)
    if len(data) > LARGE:
        words = data[: len(data) // (8 * BLOCK) * (8 * BLOCK)].view(np.uint64).reshape(-1, BLOCK)
        rest = data[words.size * 8 :].tobytes()
        sums = words.sum(axis=1).tobytes() + np.bitwise_xor.reduce(words, axis=1).tobytes()
        return hashlib.blake2b(sums + rest, digest_size=10).hexdigest()
    return hashlib.blake2b(data.tobytes(), digest_size=10).hexdigest()
