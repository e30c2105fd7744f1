"""A JAX that lacks a seam costs one layer and one warning."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

from spmdlint.runtime_checks.calls.provenance import UNKNOWN, Provenance, conflicts, tag
from spmdlint.runtime_checks.errors import Guard
from spmdlint.runtime_checks.intercept.context import static_arguments
from spmdlint.runtime_checks.intercept.observer import Observer
from spmdlint.runtime_checks.intercept.seam import MissingSeamError, Patches, need_parameters

SEAMS = {
    "dispatch": "del pxla.ExecuteReplicated.__call__",
    "every-call": "del pxla.MeshExecutableFastpathData",
    "compiler": "del compiler.compile_or_get_cached",
    "lowerings": "pxla.MeshComputation = None",
    "jit-calls": "del pjit._pjit_call_impl_python",
    "static-arguments": "pjit._infer_params = lambda somehow, different: None",
    "device-barriers": "del multihost_utils.assert_equal",
    "client-barriers": "jaxlib._jax.DistributedRuntimeClient = None",
}


def test_each_missing_seam_switches_off_its_layer_alone() -> None:
    """In one process without devices: what is said of a JAX that lacks them."""
    program = """
    import jaxlib._jax
    from jax.experimental import multihost_utils
    from jax._src import compiler, pjit
    from jax._src.interpreters import pxla
    from spmdlint.runtime_checks.intercept.layers import Interception
    from spmdlint.runtime_checks.intercept.observer import Observer
    import importlib
    from types import SimpleNamespace
    from spmdlint.runtime_checks.errors import Guard

    def none():
        return Observer(SimpleNamespace(guard=Guard(print)), None, None)

    whole = Interception(none())
    assert set(whole.state.values()) == {"on"}, whole.state
    whole.remove()
    for name, break_it in SEAMS.items():
        holders = [pxla, compiler, pjit, multihost_utils, jaxlib._jax, pxla.ExecuteReplicated]
        before = [dict(vars(one)) for one in holders]
        exec(break_it)
        state = Interception(none())
        off = [layer for layer, words in state.state.items() if words != "on"]
        assert off == [name], (name, state.state)
        assert "off: " in state.state[name] and "; " in state.state[name]
        state.remove()
        for one, held in zip(holders, before):
            for key, value in held.items():
                if vars(one).get(key) is not value:
                    setattr(one, key, value)
    print("all seams tried")
    """
    source = f"SEAMS = {SEAMS!r}\n" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=150)
    assert done.stdout.strip() == "all seams tried", done.stderr


def test_patches_are_undone_but_not_over_anothers() -> None:
    owner = SimpleNamespace(a=lambda: 1, b=lambda: 2, d=4)
    patches = Patches(Guard(print))
    patches.replace(owner, "a", lambda original: lambda: original() + 10)
    patches.replace(owner, "b", lambda original: lambda: original() + 10)
    assert (owner.a(), owner.b()) == (11, 12)
    owner.b = 99
    patches.undo()
    assert (owner.a(), owner.b) == (1, 99)
    with pytest.raises(MissingSeamError, match="can be called"):
        patches.replace(owner, "d", lambda original: original)
    with pytest.raises(MissingSeamError, match="no SimpleNamespace"):
        patches.replace(owner, "c", lambda original: original)


def test_parameters_are_checked_by_name() -> None:
    def function(first: int, second: int) -> None: ...

    need_parameters(function, "first")
    with pytest.raises(MissingSeamError, match="third"):
        need_parameters(function, "first", "third")


def test_static_arguments_are_told_without_addresses() -> None:
    import inspect

    def step(config: object, x: object, mode: str = "train") -> None: ...

    info = SimpleNamespace(static_argnums=(0,), static_argnames=("mode",), fun_signature=inspect.signature(step))
    told = static_arguments(info, (object(), 1), {"mode": "test"})
    assert told == {"config": "a object", "mode": "'test'"}


def test_what_a_compiler_waits_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """On GPUs the processes share what the autotuner measures, so that one which compiles alone does not get on."""
    import jax

    told: list[str | None] = []
    caller, own = SimpleNamespace(guard=Guard(print), me=0), SimpleNamespace(compiles=told.append)
    observer = Observer(caller, own, None)  # type: ignore[arg-type]
    module = jax.jit(lambda x: x + 1).lower(1.0).compiler_ir()
    assert module is not None

    def told_for(platform: str) -> str:
        devices = [SimpleNamespace(id=number, process_index=number, platform=platform) for number in range(2)]
        observer.compiling(observer.read(module.operation, devices))
        return told[-1] or ""

    assert "wait for each other" not in told_for("cpu")
    assert "wait for each other, unless XLA_FLAGS has --xla_gpu_shard_autotuning=false" in told_for("gpu")
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_shard_autotuning=false")
    assert "wait for each other" not in told_for("gpu")


class Held:
    """Something that can be referenced weakly, as arrays can."""


def test_origins_follow_arrays_and_die_with_them() -> None:
    provenance = Provenance()
    first, second = Held(), Held()
    provenance.mark([first, second], "group/3", "step (train.py:3)")
    assert provenance.tag_of(first) == tag("group/3:0")
    assert provenance.describe(provenance.tag_of(second)) == "output 1 of step (train.py:3)"
    assert provenance.tags_of([Held(), second]) == UNKNOWN + tag("group/3:1")
    assert provenance.tags_of([Held(), 3]) == ""
    del first, second
    assert len(provenance) == 0


def test_origins_are_compared_from_the_end() -> None:
    a, b = tag("a"), tag("b")
    assert conflicts(a + b, b) == []
    assert conflicts(a, b) == [0]
    assert conflicts(UNKNOWN + b, a + UNKNOWN) == []
