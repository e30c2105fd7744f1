"""One process of a right job whose checks are harmed: see harm.py, which draws the plan.

harm_job.py PROCESS PORT MODE PLAN.json
"""

import json
import random
import sys
import time
from contextlib import suppress

import jax
from chaos_job import make
from jax._src import compiler, distributed, pjit
from jax._src.interpreters import pxla

from spmdlint import runtime_checks
from spmdlint.runtime_checks.errors import Guard
from spmdlint.runtime_checks.intercept import layers, seam

NUMBER, PORT, MODE, PLAN = int(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
HARM, STEPS = PLAN["harm"], PLAN["steps"][NUMBER]
MINE = HARM["process"] == NUMBER
JOIN_WITHIN = 4.0
# What layers replace, and another tool may put back.
REPLACED = [
    (pxla.ExecuteReplicated, "__call__"),
    (pxla, "MeshExecutableFastpathData"),
    (pxla, "shard_args"),
    (compiler, "compile_or_get_cached"),
    (pjit, "_pjit_call_impl_python"),
    (pjit, "_infer_params"),
]
ORIGINALS = [(owner, name, getattr(owner, name)) for owner, name in REPLACED]


class BrokenError(RuntimeError):
    pass


def fail(*_args, **_named):
    raise BrokenError("broken on purpose")


def begin(mode=MODE, **options):
    runtime_checks.enable(mode, join_within=JOIN_WITHIN, **options)


def start():
    """Switch the checks on, as far as this process does."""
    kind = HARM["kind"] if MINE else None
    if kind == "absent" or (kind == "late" and HARM["after"] > 0):
        return
    if kind == "late":
        time.sleep(HARM["pause"])
    if kind == "layer":
        chosen = (*layers.LAYERS, layers.FAST_CALLS)
        object.__setattr__(chosen[HARM["number"] % len(chosen)], "install", fail)
    if kind == "seam":
        break_seam(HARM["number"] % 24)
    if kind == "mode":
        begin({"background": "lockstep", "lockstep": "background"}[MODE])
    elif kind == "policy":
        begin(on_divergence="exit")
    else:
        begin()


def break_seam(number):
    """The so-manieth attribute of JAX that is looked up is not there."""
    real, left = seam.need, [number]

    def need(owner, name):
        left[0] -= 1
        return fail() if left[0] == -1 else real(owner, name)

    for user in [one for key, one in sys.modules.items() if key.startswith("spmdlint.runtime_checks.")]:
        if getattr(user, "need", None) is real:
            user.need = need


def befall():
    """What befalls this process before one of its calls, or after the last."""
    kind = HARM["kind"]
    if kind == "late" and HARM["after"] > 0:
        time.sleep(HARM["pause"])
        begin()
    if kind == "record":
        spoil_records(random.Random(PLAN["seed"]))
    if kind == "silent":
        owner, name, original = ORIGINALS[HARM["number"] % len(ORIGINALS)]
        setattr(owner, name, original)


def spoil_records(rng):
    """Records of the checks in the store are overwritten or gone, or have neighbours."""
    client = distributed.global_state.client
    found = sorted(key for key, _ in client.key_value_dir_get("spmdlint"))
    chosen = found if HARM["how"] == "all" else rng.sample(found, min(1, len(found)))
    for key in chosen:
        with suppress(Exception):
            if HARM["how"] == "delete":
                client.key_value_delete(key)
            elif HARM["how"] == "beside":
                client.key_value_set(f"{key.rpartition('/')[0]}/{rng.choice(['99', 'x', '-1'])}", HARM["what"])
            else:
                client.key_value_set(key, HARM["what"], allow_overwrite=True)


def break_end():
    """The so-manieth step of the checks from now on fails; there are few, so mostly one of the first."""
    real, left = Guard.run, [HARM["number"] % 8]

    def run(self, step, *args, **named):
        left[0] -= 1
        return real(self, fail if left[0] == -1 else step, *args, **named)

    Guard.run = run


jax.distributed.initialize(f"localhost:{PORT}", len(PLAN["steps"]), NUMBER)
start()
jax.devices()  # a process that makes no call, too: the others wait for its part of the topology
results = []
for at, one in enumerate(STEPS):
    if MINE and at == HARM["after"]:
        befall()
    results.append(make(one))
    time.sleep(0.1)
if MINE and HARM["after"] == len(STEPS):
    befall()
print("RESULT", json.dumps(results), flush=True)
if MINE and HARM["kind"] == "end":
    break_end()
