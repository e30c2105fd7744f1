"""A JAX that nobody has run the checks on: which of the places they hook into have moved, in one process.

    python tests/runtime/canary.py

For each mode, installs every layer and runs small programs that should pass through all of them. A place that is not
there any more switches its layer off, with the reason; one that is there and was never called has moved as well. The
exit status is 1 if any has. What passes says that the layers see calls, not that they understand them: for that, run
the tests in tests/runtime.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.errors import Guard
from spmdlint.runtime_checks.intercept.layers import Interception, layers_of
from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import Patches
from spmdlint.runtime_checks.launch.service import held_port
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.watching.health import self_test

MODES = ("lockstep", "background")
# Since JAX 0.8 the old path of pmap is there beside the new one, which is used.
UNUSED = ("xla_pmap_impl_lazy", "_PmapFastpathData")


class Counting(Patches):
    """Patches that count how often what they replace is called."""

    calls: dict[str, int]

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        place = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
        self.calls.setdefault(place, 0)

        def counted(original: Any) -> Any:
            replacement = make(original)

            def watched(*args: Any, **named: Any) -> Any:
                self.calls[place] += 1
                return replacement(*args, **named)

            return watched

        super().replace(owner, name, counted)


def programs() -> None:
    """What passes through every place, on the devices of this process."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import multihost_utils

    step = jax.jit(lambda x, times: jnp.sum(x) * times, static_argnums=1)
    for _ in range(3):
        step(np.ones(3), 2)
    mapped = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
    for _ in range(3):
        mapped(np.ones(jax.local_device_count()))
    jax.jit(jnp.max).lower(np.ones(3)).compile()(np.ones(3))
    multihost_utils.assert_equal(np.ones(3), "the ones differ")
    devices = jax.local_devices()
    rows = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), "x"), jax.sharding.PartitionSpec("x"))
    jax.make_array_from_single_device_arrays(
        (len(devices),), rows, [jax.device_put(np.ones(1), device) for device in devices]
    )
    distributed: Any = sys.modules["jax._src.distributed"]
    distributed.global_state.client.wait_at_barrier("canary", 10_000)


def moved(mode: str) -> list[str]:
    """What has moved for one mode, in sentences."""
    failures: list[Exception] = []
    guard = Guard(failures.append)
    journal = Journal(Ledger())
    caller: Any = SimpleNamespace(guard=guard, me=0, count=1)
    own: Any = SimpleNamespace(journal=journal)
    observer = Observer(caller, own, None)
    calls: dict[str, dict[str, int]] = {}
    interception = Interception(observer, layers_of(mode), lambda name: counting(guard, calls.setdefault(name, {})))
    try:
        programs()
        wrong = self_test(observer)
    finally:
        interception.remove()
    found = [f"{name} is {words}" for name, words in interception.state.items() if words != "on"]
    for name, places in calls.items():
        if interception.state.get(name) == "on":
            never = [place for place, many in places.items() if not many and not is_unused(place)]
            found += [f"{name}: {place} is there, and JAX did not call it" for place in never]
    found += [f"a step of the checks failed: {type(error).__name__}: {error}" for error in failures]
    if wrong is not None:
        found.append(f"the self-test: {wrong}")
    return found


def is_unused(place: str) -> bool:
    """Whether JAX is not expected to call it in this release."""
    import jax

    return place.endswith(UNUSED) and jax.__version_info__ >= (0, 8)


def counting(guard: Guard, calls: dict[str, int]) -> Patches:
    """Patches of one layer."""
    patches = Counting(guard)
    patches.calls = calls
    return patches


def main() -> int:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    with held_port() as port:
        jax.distributed.initialize(f"127.0.0.1:{port}", 1, 0)
        found = {mode: moved(mode) for mode in MODES}
    for mode, sentences in found.items():
        print(f"JAX {jax.__version__}, {mode}: {'all layers see what they should' if not sentences else ''}")
        for sentence in sentences:
            print(f"  {sentence}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
