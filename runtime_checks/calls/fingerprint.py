"""The parts of a parallel call that must agree, and those that explain a difference.

The device assignment, the lowered module, the function's identity and the configuration decide. Shapes, specs and
static arguments explain: two processes may pass a global array in different ways and still run one program.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from spmdlint.runtime_checks.records import Argument, ProgramRecord

# The configuration that changes the lowered program.
CONFIGURATION = (
    "jax_default_dtype_bits",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_enable_x64",
    "jax_threefry_partitionable",
    "jax_use_shardy_partitioner",
)
MAX_TEXT = 120
_KEY = re.compile(r"\['([^']*)'\]")
MAX_ARGUMENTS = 2000


@dataclass(frozen=True, slots=True)
class Program:
    """The identity of an executable or a named operation: the part of a fingerprint that is the same at every call.

    ``devices`` are ids in the order of the assignment, ``processes`` their owners. ``module`` is the digest of the
    canonical lowered module, None if it was never seen (loaded, or compiled before the checks were on): an unknown
    module agrees with anything. A function that is not ``identified`` agrees with anything too. ``name`` and ``value``
    belong to barriers and asserted values; ``order`` is the order of the keys in the arguments' dictionaries, None if
    the call was not seen. ``communicates`` is whether it surely communicates between processes; an ``undecided``
    program may or may not, so that nothing can be proven from its calls. ``digest`` is a short name for the decisive
    fields, equal on all processes that agree.
    """

    function: str
    processes: tuple[int, ...]
    devices: tuple[int, ...] = ()
    defined_at: str | None = None
    module: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    value: str | None = None
    order: str | None = None
    communicates: bool = True
    undecided: bool = False
    identified: bool = True
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        text = json.dumps(self.decisive(), sort_keys=True)
        object.__setattr__(self, "digest", hashlib.blake2b(text.encode(), digest_size=8).hexdigest())

    def decisive(self) -> ProgramRecord:
        return {
            "environment": dict(self.environment) or None,
            "function": self.function if self.identified else None,
            "defined_at": self.defined_at,
            "name": self.name,
            "value": self.value,
            "devices": list(self.devices) or None,
            "module": self.module,
            "order": self.order,
        }


def configuration() -> dict[str, str]:
    """The configuration that changes programs, as it is now in this thread."""
    import jax

    return {name: str(getattr(jax.config, name)) for name in CONFIGURATION if hasattr(jax.config, name)}


def key_order(names: Sequence[str] | None) -> str | None:
    """The order of the keys in the dictionaries among some arguments, whatever the keys are.

    JAX sorts the keys of a ``dict`` and keeps the insertion order of an ``OrderedDict``. Two processes that insert them
    in a different order pass the same names, shapes and program, but the wrong array for each name.
    """
    if names is None:
        return None
    levels: dict[str, dict[str, None]] = {}
    for name in names:
        for key in _KEY.finditer(name):
            levels.setdefault(name[: key.start()], {})[key[1]] = None
    places = [[sorted(keys).index(key) for key in keys] for keys in levels.values()]
    unsorted = [(level, order) for level, order in enumerate(places) if order != sorted(order)]
    return hashlib.blake2b(json.dumps(unsorted).encode(), digest_size=8).hexdigest() if unsorted else "sorted"


def describe_arguments(values: Sequence[Any], names: Sequence[str] | None) -> list[Argument]:
    """Path, shape, dtype, spec and shard shape of each argument; never its contents."""
    known = names or ()  # of the last ones
    paths = [*[""] * (len(values) - len(known)), *known[max(0, len(known) - len(values)) :]]
    return [
        {"path": path or f"argument {position}", **_describe(value)}
        for position, (path, value) in enumerate(zip(paths[:MAX_ARGUMENTS], values, strict=False))
    ]


def _describe(value: Any) -> Argument:
    shape, kind = getattr(value, "shape", None), type(value).__name__
    if shape is None:
        return {"shape": [], "dtype": kind, "spec": None, "shard": None}
    sharding = getattr(value, "sharding", None)
    shard: list[int] | None = None
    if sharding is not None:
        with suppress(TypeError, ValueError, AttributeError):
            shard = [int(n) for n in sharding.shard_shape(tuple(shape))]
    return {
        "shape": [int(n) for n in shape],
        "dtype": str(getattr(value, "dtype", kind)),
        "spec": _spec(sharding),
        "shard": shard,
    }


def _spec(sharding: Any) -> str | None:
    if sharding is None:
        return None
    mesh, spec = getattr(sharding, "mesh", None), getattr(sharding, "spec", None)
    if mesh is not None and spec is not None:
        axes = ", ".join(f"{name}: {size}" for name, size in dict(mesh.shape).items())
        return f"{spec} over ({axes})"
    return type(sharding).__name__


def describe_static(value: Any) -> str:
    """A static argument as text that is the same on every process: never the repr of an unknown object."""
    import enum

    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)[:MAX_TEXT]
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple | list):
        inner = ", ".join(describe_static(item) for item in value[:16])
        return f"({inner})"[:MAX_TEXT]
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name[:MAX_TEXT]
    return f"a {type(value).__qualname__}"
