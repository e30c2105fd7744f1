"""Arrays that are made of values on the host: ``make_array_from_callback`` and its kin, and arguments of ``pmap``.

All of them place pieces on this process's devices by one function, and JAX believes what their sharding says.
"""

from __future__ import annotations

from typing import Any

from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import Patches, module, need, need_parameters


def install_makers(observer: Observer, patches: Patches) -> None:
    """Note what an array that is to be the same on all processes is made of."""
    pxla = module("jax._src.interpreters.pxla")
    need_parameters(need(pxla, "batched_device_put"), "aval", "sharding", "xs")

    def after(_seen: None, array: Any, _aval: Any, sharding: Any, xs: Any, *_args: Any, **_named: Any) -> None:
        observer.made(sharding, xs, array)

    patches.around(pxla, "batched_device_put", after=after)
