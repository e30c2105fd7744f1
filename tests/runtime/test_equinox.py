"""Equinox and optax end in what is watched: silent where a step is legal, named by the user's line where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.jobs import rehearse

pytest.importorskip("equinox")
pytest.importorskip("optax")

# SWAP and UNEVEN say which fault process 1 has, if any.
TRAINING = """
import equinox as eqx
import optax

everywhere_equal = NamedSharding(mesh, P())

def replicated(tree):
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, everywhere_equal), rest)

model = replicated(eqx.nn.Linear(4, 1, key=jax.random.key(0)))
optimizer = optax.sgd(1e-2, momentum=0.9)
state = replicated(optimizer.init(eqx.filter(model, eqx.is_array)))

@eqx.filter_value_and_grad
def loss_of(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)

@eqx.filter_jit
def step(model, state, x, y):
    loss, grads = loss_of(model, x, y)
    updates, state = optimizer.update(grads, state, model)
    return eqx.apply_updates(model, updates), state, loss

@eqx.filter_jit
def evaluate(model, x, y):
    return jnp.mean(jnp.abs(jax.vmap(model)(x) - y))

data = np.random.default_rng(me)
for i in range(4):
    size = 8 if UNEVEN and me == 1 and i == 2 else 4
    x, y = everywhere(data.normal(size=(size, 4))), everywhere(data.normal(size=(size, 1)))
    if SWAP and me == 1 and i == 2:
        evaluate(model, x, y)  # swapped
    model, state, loss = step(model, state, x, y)  # step
    if not (SWAP and me == 1 and i == 2):
        value(evaluate(model, x, y))
print("ended with", value(loss))
"""


def training(fault: str | None = None) -> str:
    return "".join(f"{name} = {name == fault}\n" for name in ("SWAP", "UNEVEN")) + TRAINING


def test_a_training_step_is_silent_and_right(tmp_path: Path) -> None:
    run = rehearse(tmp_path, training(), devices=2)
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert run.remarks == [f"spmdlint: clean: {run.report['message']}"], run.output
    ends = [line.partition("ended with ")[2] for line in run.output.splitlines() if "ended with" in line]
    assert len(ends) == 2, run.output
    assert len(set(ends)) == 1, "the same loss on both"


def test_swapped_calls_are_named_by_the_users_lines(tmp_path: Path) -> None:
    run = rehearse(tmp_path, training("SWAP"))
    assert run.status == 3, run.output
    assert run.verdict == ("diverged", "sequence"), run.output
    assert [run.line(process) for process in (0, 1)] == [run.marked("step"), run.marked("swapped")]
    assert [run.report["processes"][n]["function"] for n in ("0", "1")] == ["step", "evaluate"]
    assert {one["filename"] for one in run.report["processes"].values()} == {str(tmp_path / "program.py")}


@pytest.mark.long
def test_a_batch_of_another_size_is_named_by_the_users_line(tmp_path: Path) -> None:
    run = rehearse(tmp_path, training("UNEVEN"))
    assert run.status == 3, run.output
    assert run.verdict == ("diverged", "arguments"), run.output
    assert [run.line(process) for process in (0, 1)] == [run.marked("step")] * 2
    assert "shape" in run.report["message"]
    assert "[8, 4]" in run.report["message"]
    assert "[16, 4]" in run.report["message"]
