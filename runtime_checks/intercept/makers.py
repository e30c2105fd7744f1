"""Arrays that are made of values on the host: ``make_array_from_callback`` and its kin, and arguments of ``pmap``.

Most place pieces on this process's devices by one function, and JAX believes what their sharding says.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from spmdlint.runtime_checks.intercept.observer import Observer, where_called
from spmdlint.runtime_checks.intercept.seam import Patches, module


def install_makers(observer: Observer, patches: Patches) -> None:
    """Note what an array is made of that other processes are to hold the same of."""
    pxla, jax = module("jax._src.interpreters.pxla"), module("jax")

    def placed(_seen: None, array: Any, aval: Any, sharding: Any, xs: Any, devices: Any, *_args: Any, **_: Any) -> None:
        if not sharding.is_fully_addressable:
            _note(observer, array, sharding, aval.shape, dict(zip(devices, xs, strict=False)))

    def assembled(_seen: None, array: Any, shape: Any, sharding: Any, arrays: Any, *_args: Any, **_: Any) -> None:
        # What is there already is compared in lockstep only, where a value that one process cannot tell costs nothing.
        if not sharding.is_fully_addressable and observer.background is None:
            _note(observer, array, sharding, tuple(shape), {next(iter(one.devices())): one for one in arrays})

    patches.around(pxla, "batched_device_put", after=placed, takes=("aval", "sharding", "xs", "devices"))
    maker = "make_array_from_single_device_arrays"
    patches.around(jax, maker, after=assembled, takes=("shape", "sharding", "arrays"))


def _note(observer: Observer, array: Any, sharding: Any, shape: tuple[int, ...], pieces: Mapping[Any, Any]) -> None:
    """A maker has made an array over several processes of pieces, by this process's devices."""
    if not pieces or observer.thread.placing:
        return
    devices, some = _shared(sharding, shape, observer.caller.me)
    if some and observer.background is not None:
        return  # for the same reason
    copies = [pieces[device] for device in devices if device in pieces]
    if copies and len(copies) == len(devices):
        observer.own.values.made(array, copies, where_called(sys._getframe(1), "_maker"), some)


@lru_cache(256)
def _shared(sharding: Any, shape: tuple[int, ...], me: int) -> tuple[tuple[Any, ...], str]:
    """One device of this process for each part of an array, in their order; none if no other process holds just these.

    The second is a name of the parts, where not all processes hold the same ones.
    """
    parts: dict[int, dict[str, Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        parts.setdefault(device.process_index, {}).setdefault(str(index), device)
    own = parts.get(me, {})
    alike = sum(other.keys() == own.keys() for other in parts.values())
    if alike < 2 or not own:
        return (), ""
    places = sorted(own)
    some = "" if alike == len(parts) else hashlib.blake2b(repr(places).encode(), digest_size=6).hexdigest()
    return tuple(own[place] for place in places), some
