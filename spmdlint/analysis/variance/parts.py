"""Data that a library deals to the processes: by an index, by a description of a part, or by itself.

The libraries deal whole files, or leave a remainder, so that the parts differ in size unless they are told otherwise.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Constant, External, Frame, Site, certain
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s

_WHICH = ("identity", "group")


def of_part(
    length: Origins, content: Origins, frame: Frame, number: int, call: s.Call, known: Known | None
) -> Reason | None:
    """Why the part that a call of a library function returns or describes differs in size between processes."""
    if known is None or not (known.own or known.part or known.part_of):
        return None
    if _is_evened(length.ev, frame, call, known) or _is_endless(length.ev, frame, call, known):
        return None
    short = known.name.rpartition(".")[2]
    if known.own:
        text = f"{short}() gives this process's part; the remainder is not distributed, so the parts differ in size"
        return Reason(Site(frame.ref, number), text, "data")
    which = passed(call, known.part, known.positional) if known.part is not None else None
    found = content.of(frame, which) if which is not None else None
    if found is not None and found.kind in _WHICH:
        text = f"{short}() selects a part by this, and the parts differ in size"
        return Reason(Site(frame.ref, number), text, "data", found)
    given = [value for each in known.part_of if (value := passed(call, each, known.positional)) is not None]
    return length.any_of(frame, given)


def holds_part(content: Origins, frame: Frame, number: int, call: s.Call, known: Known | None) -> Reason | None:
    """Why a call of a library function returns or describes this process's part of some data, of whatever size."""
    if known is None or not (known.own or known.part or known.part_of):
        return None
    short = known.name.rpartition(".")[2]
    if known.own:
        return Reason(Site(frame.ref, number), f"{short}() gives this process's part", "data")
    given = [known.part] if known.part is not None else known.part_of
    selecting = [value for each in given if (value := passed(call, each, known.positional)) is not None]
    found = content.any_of(frame, selecting)
    if found is None or found.kind not in (*_WHICH, "data"):
        return None
    return Reason(Site(frame.ref, number), f"{short}() selects this process's part", "data", found)


def deals(ev: Evaluator, value: object) -> bool:
    """Whether a value is a library's list of all parts of some data, which differ in size."""
    known = ev.knowledge.get(value.name) if isinstance(value, Applied) else None
    if not isinstance(value, Applied) or known is None or not known.parts:
        return False
    frame = ev.free_frame(value.site.ref)
    call = frame.code.operations[value.site.number]
    return isinstance(call, s.Call) and not _is_evened(ev, frame, call, known)


def _is_evened(ev: Evaluator, frame: Frame, call: s.Call, known: Known) -> bool:
    """Whether the call says that all parts shall have the same size, or may say so."""
    given = passed(call, known.evened_by, known.positional) if known.evened_by is not None else None
    value = certain(ev.value(frame, given)) if given is not None else None
    if known.uneven:
        return not isinstance(value, External) or value.name.rpartition(".")[2] not in known.uneven
    return given is not None and value != Constant(False)


def _is_endless(ev: Evaluator, frame: Frame, call: s.Call, known: Known) -> bool:
    """Whether the data is repeated without end, as it is by default."""
    sampler = passed(call, known.sampler, known.positional) if known.sampler is not None else None
    made = certain(ev.value(frame, sampler)) if sampler is not None else None
    selects = ev.knowledge.get(made.name) if isinstance(made, Applied) else None
    if isinstance(made, Applied) and selects is not None and selects.rounds is not None:
        times = ev.argument(made, selects.rounds)
        return times is None or certain(times) == Constant(None)
    if known.rounds is None:
        return False
    given = passed(call, known.rounds, known.positional)
    return given is None or certain(ev.value(frame, given)) == Constant(None)
