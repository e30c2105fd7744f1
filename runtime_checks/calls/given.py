"""Values that JAX believes to be one: what a call is given from the host, and what replicated arrays are made of.

Each gets a tag, equal on two processes if the value is: numbers as they are, arrays by a digest of up to
:data:`SAMPLE` of their values, as JAX uses them (in the precision that is enabled). Arrays that span processes are
never read. One that a maker filled from the host, or that a call without a collective made from such values, keeps the
tag of what it was made of as long as it lives. Whatever has no tag agrees with anything.
"""

from __future__ import annotations

import hashlib
import linecache
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.calls.provenance import UNKNOWN, Provenance
from spmdlint.runtime_checks.calls.recent import Recent
from spmdlint.runtime_checks.options import Compared
from spmdlint.runtime_checks.records import Argument, GivenRecord

Given = Mapping[str, str]
"""Tags by what has them: the number of an argument, counted from the last (0 is the last), or the name of a leaf."""

WHOLE, SAMPLE = 1024, 256  # values up to which all of an array count, and of a larger one, how many
REMEMBERED = 1024  # values that can be told, each of up to WHOLE numbers
FREE = "local"  # the tag of what may differ
UNREAD = ""  # that of an array that is not looked at in this call: it agrees with anything
SOURCE, USUAL, UNUSUAL = "source", "usual", "unusual"  # of a broadcast, if that is process 0, and no other one
PART = "|"  # in the tag of parts of an array: between which ones they are, and what they are
SHOWN = 16
_IGNORES = re.compile(r"#\s*spmdlint:\s*ignore\s*\[[^\]]*\bSPMD5")  # the rules about values


class Values:
    """The tags of the values of this process, and the values behind them, for reports.

    ``compared`` is what of a large array counts, in one of ``every`` calls; ``but`` are functions whose arguments may
    differ.
    """

    def __init__(self, compared: Compared = "sample", but: Collection[str] = (), every: int = 1) -> None:
        self._compared = compared
        self._but = frozenset(but)
        self._every = every
        self._passed: Counter[str] = Counter()
        self._arrays = Provenance()
        self._known: Recent[str, Any] = Recent(REMEMBERED)
        self._makers: Recent[str, str] = Recent(REMEMBERED)

    def given(
        self, function: str, site: Site | None, values: Sequence[Any], used: Collection[int] | None = None
    ) -> dict[str, str]:
        """The tags of the arguments of a call, of those that it uses."""
        if (
            self._compared == "off"
            or function in self._but
            or (site is not None and _ignored(site.filename, site.line))
        ):
            return {}
        found: dict[str, str] = {}
        last = len(values) - 1
        for number, value in enumerate(values):
            tag = self.tag(value, f"{function} {last - number}") if used is None or number in used else None
            if tag is not None:
                found[str(last - number)] = tag
        return found

    def tag(self, value: Any, place: str = "") -> str | None:
        """The tag of a value from the host, or of an array made of such values; None for any other.

        ``place`` is the function and argument it is passed to: of the large arrays there, not all need be read.
        """
        if isinstance(value, int | float | complex):
            return _number(value)
        value = getattr(value, "_base_array", value)  # of an array of random keys
        held = self._arrays.tag_of(value)
        if held != UNKNOWN:
            return None if held == FREE else held
        return self._digest(value, place) if on_the_host(value) else None

    def is_from_host(self, value: Any) -> bool:
        """Whether JAX places the value anew at each call."""
        value = getattr(value, "_base_array", value)
        return isinstance(value, int | float | complex) or (
            on_the_host(value) and self._arrays.tag_of(value) == UNKNOWN
        )

    def _digest(self, array: Any, place: str) -> str | None:
        import jax
        import numpy as np

        held = np.asarray(array)
        if held.size > WHOLE and self._compared == "small":
            return None
        if held.size > WHOLE and place and self._every > 1:
            self._passed[place] += 1
            if self._passed[place] % self._every != 1:
                return UNREAD
        if held.size > WHOLE and self._compared == "sample":
            held = held.reshape(-1)[_sampled(held.size)] if held.flags.c_contiguous else held.flat[_sampled(held.size)]
        if held.dtype.itemsize == 8 and not _x64():
            held = held.astype(jax.dtypes.canonicalize_dtype(held.dtype))
        if held.dtype.kind in "fc":
            held = held + held.dtype.type(0)  # no sum has -0.0, such as that by which one process sends its value
        data = held.tobytes()
        words = f"{held.dtype}{list(np.shape(array))}"
        tag = hashlib.blake2b(data + words.encode(), digest_size=10).hexdigest()
        self._known[tag] = (words, held.dtype, data[: WHOLE * held.dtype.itemsize])
        return tag

    def made(self, array: Any, pieces: Sequence[Any], where: str, some: str = "") -> None:
        """A maker has made an array of the parts that this process holds, which others hold the same of.

        ``some`` names the parts where not all processes hold these.
        """
        tags = [self._part(piece) for piece in pieces] if self._compared != "off" else [None]
        if None in tags:
            return
        tag = tags[0] or ""
        if len(tags) > 1:
            tag = hashlib.blake2b(repr(tags).encode(), digest_size=10).hexdigest()
            told = ", ".join(self.words(one or "").partition(" digest ")[0] for one in tags)
            self._known[tag] = f"{told[:200]} digest {tag}"
        tag = f"{some}{PART}{tag}" if some else tag
        if self._arrays.keep(array, tag):
            self._makers[tag] = where

    def _part(self, piece: Any) -> str | None:
        """The tag of a part, also of one that the program has placed, if it can be read at once."""
        tag = self.tag(piece)
        if tag is not None or self._arrays.tag_of(piece) == FREE or not hasattr(piece, "is_ready"):
            return tag
        on_cpu = piece.is_fully_addressable and all(device.platform == "cpu" for device in piece.devices())
        return self._digest(piece, "") if on_cpu and not piece.is_deleted() and piece.is_ready() else None

    def derived(self, digest: str, given: Given, outputs: Sequence[Any], where: str) -> None:
        """The outputs of a call without a collective are made of what it was given."""
        if any(tag == UNREAD or PART in tag for tag in given.values()):
            return
        told = ", ".join(self.words(tag).partition(" digest ")[0] for tag in list(given.values())[:2])[:200]
        for number, output in enumerate(outputs if given else ()):
            text = f"{digest}{sorted(given.items())}{number}"
            tag = hashlib.blake2b(text.encode(), digest_size=10).hexdigest()
            if self._arrays.keep(output, tag):
                self._known[tag] = f"{where} of {told} digest {tag}"

    def free(self, value: Any) -> Any:
        """A value that may differ between the processes, as an array that is known by its identity."""
        import jax
        import numpy as np

        if isinstance(value, np.generic):
            value = np.asarray(value)
        elif isinstance(value, int | float | complex):
            value = jax.numpy.asarray(value)
        self._arrays.keep(value, FREE)
        return value

    def words(self, tag: str) -> str:
        """A value as text, equal on two processes exactly if its tag is."""
        tag = tag.rpartition(PART)[2]
        known = self._known.get(tag, tag)
        if isinstance(known, str):
            return known
        import numpy as np

        form, dtype, data = known
        numbers = [str(number) for number in np.frombuffer(data, dtype)] if dtype.kind in "biufc" else []
        shown = f" [{', '.join(numbers)}]" if 0 < len(numbers) <= SHOWN else ""
        return numbers[0] if form.endswith("[]") and numbers else f"{form}{shown} digest {tag}"

    def told(self, given: Given) -> dict[str, GivenRecord]:
        return {
            key: {"tag": tag, "words": self.words(tag), "maker": self._makers.get(tag)}
            for key, tag in given.items()
            if tag != UNREAD
        }


def _number(value: complex) -> str:
    """A number as JAX uses it; ``repr`` of a subclass, such as NumPy's, may be another one."""
    import numpy as np

    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, int):
        return repr(int(value))
    if not isinstance(value, float):
        return repr(complex(value))
    exact = _x64() or not abs(value) < np.finfo(np.float32).max
    return repr(float(value)) if exact else str(np.float32(value))


def given_digest(given: Given) -> int:
    return int.from_bytes(hashlib.blake2b(repr(given).encode(), digest_size=8).digest(), "big")


def conflict(one: Given, other: Given) -> str | None:
    """The first of what two processes are both given that is not the same: of arguments, the first one."""
    keys = [
        key
        for key, tag in one.items()
        if (there := other.get(key, UNREAD)) != tag
        and UNREAD not in (tag, there)
        and tag.rpartition(PART)[0] == there.rpartition(PART)[0]  # different parts of an array tell nothing
    ]
    return min(keys, key=lambda key: (-int(key) if key.isdigit() else 0, key), default=None)


def told_with(arguments: Sequence[Argument], given: Mapping[str, GivenRecord]) -> list[Argument]:
    told = [argument.copy() for argument in arguments]
    for key, one in given.items():
        if key.isdigit() and int(key) < len(told):
            told[-1 - int(key)].update({"value": one.get("words"), "origin": one.get("maker")})
    return told


def on_the_host(value: Any) -> bool:
    """Whether a value is one of NumPy, or an array that JAX has placed nowhere on purpose and can be read at once."""
    import numpy as np

    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biufc" or value.dtype.kind == "V"
    if not hasattr(value, "is_fully_addressable"):
        return hasattr(value, "weak_type") and hasattr(value, "__array__")  # one of NumPy in the wrapping of JAX 0.8
    if getattr(value, "committed", True) or not value.is_fully_addressable or value.is_deleted():
        return False
    # It may be a random key, which is small, and read wherever it is.
    key = str(value.dtype) == "uint32" and value.shape[-1:] in ((2,), (4,)) and bool(value.size <= WHOLE)
    return key or all(device.platform == "cpu" for device in value.devices())


def _x64() -> bool:
    import jax

    return bool(jax.config.jax_enable_x64)


@lru_cache
def _sampled(size: int) -> Any:
    """Places in an array, spread over it, and of no common stride."""
    import numpy as np

    step = size // SAMPLE
    return np.arange(SAMPLE, dtype=np.int64) * step + np.arange(SAMPLE, dtype=np.int64) * 40503 % step


@lru_cache(4096)
def _ignored(filename: str, line: int) -> bool:
    """Whether a comment of the linter silences values that differ on this line."""
    above = linecache.getline(filename, line - 1).lstrip()
    return any(_IGNORES.search(text) for text in (linecache.getline(filename, line), above if above[:1] == "#" else ""))
