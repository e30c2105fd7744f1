"""The collectives of a compiled module, read from its HLO text: jaxlib has no other view of their groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from spmdlint.runtime_checks.calls.communication import (
    Assignment,
    AxisPart,
    Collective,
    Communication,
    Groups,
    along_axes,
    combined,
    cut,
    iota,
)

_COLLECTIVE = re.compile(
    r"= .*?\b(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute"
    r"|collective-broadcast|send|recv)(?:-start)?\("
)
_REDUCTIONS = ("all-reduce", "all-gather", "reduce-scatter")
_REPLICAS = re.compile(r"\AHloModule [^\n]*\breplica_count=(\d+)")
_LISTED = re.compile(r"(?:replica_groups|source_target_pairs)=\{((?:\{[\d,]*\},?)*)\}")
_ONE_LISTED = re.compile(r"\{([\d,]*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(
    r"replica_groups=@?mesh\[([^\]]*)\]"
    r"(?:, ?device_ids=\((?:\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]*))\))? ?\{([^}]*)\}"
)
_AXIS_SIZE = re.compile(r"['\"]([^'\"]+)['\"] ?= ?(\d+)")
_AXIS = re.compile(r"['\"]([^'\"]+)['\"](?::\((\d+)\)(\d+))?")
_CHANNEL = re.compile(r"\bchannel_id=(\d+)")
_TO_HOST = re.compile(r"\bis_host_transfer=true")
_PAIRS_OF_SEND = re.compile(r"_xla_send_recv_source_target_pairs=\"?\{((?:\{\d+,\d+\},?)*)\}")
KERNELS = ("tpu_custom_call", "mosaic_gpu")  # the module does not show what a kernel does between devices


def compiled_communicates(text: str, process_of: Sequence[int]) -> Communication:
    """Whether a compiled module (HLO text) has a collective between processes.

    ``process_of[i]`` is the process of the i-th device of the assignment.
    """
    replicas = _REPLICAS.match(text)
    assignment = Assignment(process_of, int(replicas[1]) if replicas is not None else 1)
    found = combined(_answers(text, assignment))
    if found is Communication.NO and any(kernel in text for kernel in KERNELS):
        return Communication.UNKNOWN
    return found


def _answers(text: str, assignment: Assignment) -> Iterator[Communication]:
    for found in _COLLECTIVE.finditer(text):
        end = text.find("\n", found.start())
        line = text[found.start() : end if end >= 0 else len(text)]
        if found[1] in ("send", "recv"):
            if not _TO_HOST.search(line):
                yield assignment.spanned(_sending(line))
            continue
        channel = _CHANNEL.search(line)
        by_axes = "replica_groups=mesh[" in line or "replica_groups=@mesh[" in line
        yield assignment.spanned(
            Collective(
                _groups(line),
                channel=channel is not None and channel[1] != "0",
                flat=by_axes or (found[1] in _REDUCTIONS and "use_global_device_ids=true" in line),
                both=found[1] in _REDUCTIONS,
            )
        )


def _groups(line: str) -> Groups | None:
    listed, counted, meshed = (one.search(line) for one in (_LISTED, _IOTA, _MESH))
    if listed is not None:
        return _listed(listed[1])
    if counted is not None:
        return cut(iota(_ints(counted[3]), _ints(counted[4])), int(counted[1]), int(counted[2]))
    if meshed is not None:
        sizes = {name: int(size) for name, size in _AXIS_SIZE.findall(meshed[1])}
        parts = [AxisPart(name, int(before or 1), int(size or 0)) for name, before, size in _AXIS.findall(meshed[5])]
        return along_axes(sizes, parts, iota(_ints(meshed[2]), _ints(meshed[3])) if meshed[2] else _ints(meshed[4]))
    return None


def _sending(line: str) -> Collective:
    pairs = _PAIRS_OF_SEND.search(line)
    return Collective(None if pairs is None else _listed(pairs[1]), channel=True, flat=True)


def _listed(text: str) -> list[list[int]]:
    return [_ints(found[1]) for found in _ONE_LISTED.finditer(text)]


def _ints(text: str | None) -> list[int]:
    return [int(word) for word in (text or "").split(",") if word]
