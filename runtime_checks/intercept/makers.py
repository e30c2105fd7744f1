"""Arrays that are made of values on the host: ``make_array_from_callback`` and its kin, and arguments of ``pmap``.

Most place pieces on this process's devices by one function, and JAX believes what their sharding says.
"""

from __future__ import annotations

from typing import Any

from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import Patches, module, need, need_parameters


def install_makers(observer: Observer, patches: Patches) -> None:
    """Note what an array is made of that other processes are to hold the same of."""
    pxla = module("jax._src.interpreters.pxla")
    need_parameters(need(pxla, "batched_device_put"), "aval", "sharding", "xs", "devices")

    def after(_seen: None, array: Any, aval: Any, sharding: Any, xs: Any, devices: Any, *_args: Any, **_: Any) -> None:
        if not sharding.is_fully_addressable:
            observer.made(sharding, aval.shape, dict(zip(devices, xs, strict=False)), array)

    patches.around(pxla, "batched_device_put", after=after)

    def assembled(_seen: None, array: Any, shape: Any, sharding: Any, arrays: Any, *_args: Any, **_: Any) -> None:
        if not sharding.is_fully_addressable:
            pieces = {next(iter(one.devices())): one for one in arrays}
            observer.made(sharding, tuple(shape), pieces, array, placed=True)

    jax = module("jax")
    need_parameters(need(jax, "make_array_from_single_device_arrays"), "shape", "sharding", "arrays")
    patches.around(jax, "make_array_from_single_device_arrays", after=assembled)
