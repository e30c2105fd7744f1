"""The layers of interception, and the loss without each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from spmdlint.runtime_checks.intercept import barriers, context, execution
from spmdlint.runtime_checks.intercept.fastpath import install_fast_calls
from spmdlint.runtime_checks.intercept.makers import install_makers
from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import MissingSeamError, Patches, hide_frames


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its name in reports, the loss without it, and its installer."""

    name: str
    lost: str
    install: Callable[[Observer, Patches], None]
    wanted: Callable[[], bool] = lambda: True


LAYERS = (
    Layer("dispatch", "calls are not seen at all", execution.install_dispatch),
    Layer("every-call", "only the first call of each signature is seen", execution.install_every_call),
    Layer("compiler", "lowered programs are not compared", context.install_compiler),
    Layer("lowerings", "programs compiled before enable() are compared by name only", context.install_lowerings),
    Layer("jit-calls", "functions are named after their executable", context.install_jit_calls),
    Layer(
        "static-arguments",
        "static arguments are not shown, and pmapped functions not named",
        context.install_static_arguments,
    ),
    Layer(
        "pmap", "only the first call of each pmapped function is seen", execution.install_pmap, execution.has_own_path
    ),
    Layer("makers", "what replicated arrays are made of is not compared", install_makers),
    Layer("device-barriers", "the names of sync_global_devices are not compared", barriers.install_device_barriers),
    Layer("client-barriers", "barriers of the distributed client are not seen", barriers.install_client_barriers),
)
FAST_CALLS = Layer("every-call", "only the first call of each signature is seen", install_fast_calls)
CHECKPOINTS = Layer("checkpoints", "replicas are not compared before checkpoints", barriers.install_checkpoints)


class Interception:
    """The layers that this JAX has seams for, installed; ``state`` is "on" for each, or why it is off.

    ``patches_of`` makes the patches of a layer by its name.
    """

    def __init__(
        self, observer: Observer, layers: Sequence[Layer] = LAYERS, patches_of: Callable[[str], Patches] | None = None
    ) -> None:
        self.observer = observer
        self._patches_of = patches_of or (lambda _layer: Patches(observer.guard))
        self.state: dict[str, str] = {}
        self._patches: list[Patches] = []
        with suppress(Exception):
            hide_frames()
        for layer in layers:
            if layer.wanted():
                self._add(layer)

    def _add(self, layer: Layer) -> None:
        """Install one layer, or note why that is impossible."""
        patches = self._patches_of(layer.name)
        try:
            layer.install(self.observer, patches)
        except Exception as error:  # a seam that is there may still be another one than it was
            patches.undo()
            why = str(error) if isinstance(error, MissingSeamError) else f"{type(error).__name__}: {str(error)[:200]}"
            self.state[layer.name] = f"off: {why}; {layer.lost}"
            return
        self.state[layer.name] = "on"
        self._patches.append(patches)

    def put_back(self) -> list[str]:
        """What the layers replace and others have put back since."""
        return [name for patches in list(self._patches) for name in patches.put_back()]

    def remove(self) -> None:
        """Remove all layers; calls made meanwhile, or through what others have wrapped around a layer, keep working."""
        self.observer.closed = True
        for patches in reversed(self._patches):
            patches.undo()
        if self._patches:
            with suppress(Exception):
                execution.clear_fast_paths()  # executables that were kept off JAX's fast path return to it
        self._patches.clear()


def layers_of(mode: str, checkpoints: bool = False) -> tuple[Layer, ...]:
    """The layers of a mode: lockstep takes every call off the fast path, background looks inside it."""
    layers = (*LAYERS, CHECKPOINTS) if checkpoints else LAYERS
    if mode != "background":
        return layers
    return tuple(FAST_CALLS if layer.name == FAST_CALLS.name else layer for layer in layers)
