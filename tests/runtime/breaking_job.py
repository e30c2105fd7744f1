"""One process of a job whose checks break: a correct program, and one fault in what watches it.

breaking_job.py PROCESS PORT MODE PLAN.json

PLAN is {} for the job as it is, {"list": FILE} to write down all places at which a fault can be put, or a fault: its
"process", "at" (a step that the guard runs, the installer of a layer, a function of JAX's that a layer uses, or a
request to the key-value store), "name", "what" (see ``broken``).
"""

import json
import re
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import distributed
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from spmdlint import runtime_checks
from spmdlint.runtime_checks.agreement import others
from spmdlint.runtime_checks.errors import Guard
from spmdlint.runtime_checks.intercept import layers, seam
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.transport import exchange
from spmdlint.runtime_checks.watching import watcher

NUMBER, PORT, MODE, PLAN = int(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
GARBAGE = {
    "empty": "",
    "text": "not json",
    "object": "{}",
    "list": "[]",
    "null": "null",
    "number": "1e400",
    "nan": '{"index": NaN, "number": NaN, "counts": NaN, "c": NaN}',
    "huge": '{"index": %s}' % ("9" * 5000),
    "types": '{"verdict":5,"state":[],"counts":5,"history":"x","number":"y","p":1,"c":"z","finals":7,"checked":"no"}',
    "deep": '{"a":' + "[" * 200_000 + "]" * 200_000 + "}",
    "long": '{"a":"' + "x" * (64 << 20) + '"}',
}
seen = set()


def broken(what, real, *args, **named):
    """What a broken call does."""
    if what == "raise":
        raise RuntimeError("broken\n\x1b[31mon purpose")
    if what == "recursion":
        raise RecursionError("broken on purpose")
    if what == "block":
        time.sleep(10_000)
    if what == "none":
        return None
    garbage = GARBAGE[what]
    result = real(*args, **named) if "dir_get" in getattr(real, "__name__", "") else garbage
    return [(key, garbage) for key, _ in result] if isinstance(result, list) else garbage


def at(place, name):
    """Whether the fault of this process is here."""
    seen.add((place, name))
    return PLAN.get("at") == place and PLAN.get("name") == name and PLAN.get("process") in (NUMBER, "all")


def break_steps():
    real = Guard.run

    def run(self, step, *args, **named):
        name = f"{step.__module__.removeprefix('spmdlint.runtime_checks.')}:{step.__qualname__}"
        if at("step", name):
            return real(self, lambda *_args, **_named: broken(PLAN["what"], step))
        return real(self, step, *args, **named)

    Guard.run = run


def break_layers():
    for all_layers in (layers.LAYERS, (layers.FAST_CALLS,)):
        for layer in all_layers:
            object.__setattr__(layer, "install", breaking_installer(layer.name, layer.install))
    real = seam.need

    def need(owner, name):
        if at("seam", f"{getattr(owner, '__name__', owner)}.{name}"):
            return broken(PLAN["what"], real)
        return real(owner, name)

    for user in [one for key, one in sys.modules.items() if key.startswith("spmdlint.runtime_checks.")]:
        if getattr(user, "need", None) is real:
            user.need = need


def breaking_installer(name, install):
    def installer(*args):
        if at("layer", name):
            broken(PLAN["what"], install)
        return install(*args)

    return installer


def break_journal():
    for name in ("expect", "event_at", "event_of", "drain"):
        setattr(Journal, name, breaking_method(name, getattr(Journal, name)))


def breaking_method(name, real):
    def method(self, *args):
        if at("journal", name):
            return broken(PLAN["what"], real)
        return real(self, *args)

    return method


def break_requests():
    client = type(distributed.global_state.client)
    for name in [name for name in dir(client) if "key_value" in name]:
        setattr(client, name, breaking_request(name, getattr(client, name)))


def breaking_request(name, real):
    def request(self, key, *args, **named):
        if str(key).startswith("spmdlint"):
            where = re.sub(r"\b[0-9a-f]{6,}\b", "*", key.partition("/")[2].partition("/")[2])
            if at("request", f"{name} {re.sub('[0-9]+', '#', where)}"):
                return broken(PLAN["what"], lambda *_: real(self, key, *args, **named))
        return real(self, key, *args, **named)

    request.__name__ = name
    return request


def program():
    me, count = jax.process_index(), jax.process_count()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    x = jax.make_array_from_process_local_data(rows, np.ones(2, np.float32))
    w = jax.device_put(np.float32(0), everywhere)
    step = jax.jit(lambda w, x: w + jnp.sum(x))
    for number in range(8):
        w = step(w, x)
        w.block_until_ready()
        runtime_checks.assert_equal(number, name="number")
        time.sleep(0.1)
    multihost_utils.sync_global_devices("middle")
    half = jax.jit(lambda v: jnp.mean(v))(x)
    jax.jit(lambda v: 2 * v)(x)  # nothing to exchange
    print("RESULT", me, count, float(w), float(half), runtime_checks.status().watching, flush=True)


if PLAN.get("what") == "block":  # what never comes is waited for as ever, but not as long
    others.ANSWERS_WITHIN, others.ASK_EVERY, others.SILENT = 0.5, 0.5, 2.0
    watcher.STOPS_WITHIN = exchange.STOPS_WITHIN = 1.0

break_steps()
break_layers()
break_journal()
jax.distributed.initialize(f"localhost:{PORT}", 2, NUMBER)
break_requests()
runtime_checks.enable(MODE, join_within=5)
program()
if "list" in PLAN:
    # From within the end of the process: after the steps of the checks there.
    end = distributed.State.shutdown

    def shutdown(self):
        end(self)
        Path(f"{PLAN['list']}.{NUMBER}").write_text(json.dumps(sorted(seen)))

    distributed.State.shutdown = shutdown
