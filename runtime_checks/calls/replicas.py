"""Whether arrays that claim to be replicated are: digests that each device computes of its own copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from spmdlint.runtime_checks.calls.given import Given


def replicas_in(tree: Any, me: int, stacked: bool = False) -> Given:
    """The digests of what this process and others hold copies of, by the path of the array and the place in it.

    Of ``stacked`` arrays, each row is one copy.

    Each device reads its own memory once; of each array, eight bytes come to the host. Where the devices of this
    process hold different copies, the digest is that of no other process.
    """
    import jax

    by_device: dict[Any, list[tuple[str, Any]]] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        array, name = getattr(leaf, "_base_array", leaf), jax.tree_util.keystr(path) or "the array"
        for key, piece in _pieces(array, name, stacked):
            by_device.setdefault(next(iter(piece.devices())), []).append((key, piece))
    found: dict[str, list[str]] = {}
    with ThreadPoolExecutor(1) as thread:  # a mesh or a precision that the program has set is that of its thread
        made = thread.submit(lambda: [_digests()([piece for _, piece in held]) for held in by_device.values()]).result()
    for held, digests in zip(by_device.values(), made, strict=True):
        for (key, _), (high, low) in zip(held, jax.device_get(digests).tolist(), strict=True):
            found.setdefault(key, []).append(f"{high:08x}{low:08x}")
    return {key: _told(digests, me) for key, digests in found.items()}


def _told(digests: Sequence[str], me: int) -> str:
    distinct = list(dict.fromkeys(digests))
    return f"digest {distinct[0]}" if len(distinct) == 1 else f"{' and '.join(distinct)} on devices of process {me}"


def _pieces(array: Any, path: str, stacked: bool) -> Iterator[tuple[str, Any]]:
    """The parts of an array that devices of this process and of another one hold; all, with a row for each device."""
    import jax

    if not isinstance(array, jax.Array) or (array.is_fully_addressable and not stacked):
        return
    holders: dict[str, set[int]] = {}
    whole = stacked or array.is_fully_replicated
    for device, index in () if whole else array.sharding.devices_indices_map(array.shape).items():
        holders.setdefault(str(index), set()).add(device.process_index)
    for shard in array.addressable_shards:
        if whole or len(holders[str(shard.index)]) > 1:
            yield path if whole else f"{path} at {_place(shard.index)}", shard.data


def _place(index: Sequence[slice]) -> str:
    return f"[{', '.join(':' if one == slice(None) else f'{one.start or 0}:{one.stop}' for one in index)}]"


@cache
def _digests() -> Any:
    import jax
    import jax.numpy as jnp

    def digest(array: Any) -> Any:
        if array.dtype == bool or not array.size:
            array = array.astype(jnp.uint8)
        elif jnp.issubdtype(array.dtype, jnp.complexfloating):
            array = jnp.stack([array.real, array.imag])
        width = min(array.dtype.itemsize, 4)
        words = jax.lax.bitcast_convert_type(array, jnp.dtype(f"uint{8 * width}")).reshape(-1).astype(jnp.uint32)
        places = jax.lax.iota(jnp.uint32, words.size)
        mixed = (words ^ (places * jnp.uint32(0x9E3779B9))) * jnp.uint32(0x85EBCA6B)
        mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0xC2B2AE35)
        return jnp.stack([jnp.sum(mixed, dtype=jnp.uint32), jnp.sum(mixed ^ (mixed >> 13), dtype=jnp.uint32)])

    return jax.jit(lambda arrays: jnp.stack([digest(array) for array in arrays]))
