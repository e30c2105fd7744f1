"""Data that a library deals to the processes: by an index, by a description of a part, or by itself.

The libraries deal whole files, or leave a remainder, so that the parts differ in size unless they are told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Constant, External, Frame, Site, certain, text
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.windows import Windows, resolved
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s

_COUNTS = frozenset(names("process_counts"))
_DEPTH = 3


def shared_out(content: Origins, frame: Frame, number: int, call: s.Call) -> Reason | None:
    """Why the result of an unknown call is this process's part of something."""
    given = [each for argument in call.arguments for each in _parts(content, frame, argument.value, _DEPTH)]
    values = (each for value in given for each in content.ev.value(frame, value))
    if not any(isinstance(each, Applied) and each.name in _COUNTS for each in values):
        return None
    reasons = (content.why(frame, value) for value in given)
    found = next((reason for reason in reasons if reason is not None and reason.kind == "identity"), None)
    if found is None:
        return None
    return Reason(Site(frame.ref, number), "this is shared out by process index", "data", found)


def _parts(content: Origins, frame: Frame, value: int, depth: int) -> Iterator[int]:
    """A value, with the elements of a tuple or the arguments of an unknown object."""
    yield value
    operation = frame.code.operations[frame.code.root_of(value)]
    inner: tuple[int, ...] = ()
    if isinstance(operation, s.Display):
        inner = operation.elements
    elif isinstance(operation, s.Call) and _makes_options(content, frame, operation):
        inner = tuple(argument.value for argument in operation.arguments)
    for each in inner if depth else ():
        yield from _parts(content, frame, each, depth - 1)


def _makes_options(content: Origins, frame: Frame, call: s.Call) -> bool:
    """Whether a call makes an object of a class unknown to the linter, judging by the spelling of its name."""
    callee = frame.code.operations[call.function]
    name = callee.name if isinstance(callee, (s.Load, s.Attribute)) else ""
    known = any(
        isinstance(value, External) and content.ev.knowledge.get(value.name) is not None
        for value in content.ev.value(frame, call.function)
    )
    return name[:1].isupper() and not known


_ENDS = ("from_", "to")
_KIND = "ReadInstruction"
_BOUNDS = "[{}:{}]"


def of_split(content: Origins, frame: Frame, call: s.Call) -> Reason | None:
    """Why the part that a call asks for differs in size on some processes."""
    for argument in call.arguments:
        if argument.keyword == "split":
            ends = _ends(content, frame, resolved(content.ev, frame, argument.value))
            return Windows(content).differs(frame, *ends, cut=False) if ends is not None else None
    return None


def _ends(content: Origins, frame: Frame, number: int) -> tuple[int, int] | None:
    """The two bounds of a part, if both are given."""
    made = frame.code.operations[number]
    if isinstance(made, s.FString):
        return _written(content, frame, made)
    if isinstance(made, s.Binary) and made.operator == "+":
        return _ends(content, frame, resolved(content.ev, frame, made.right))
    if isinstance(made, s.Call):
        callee = frame.code.operations[made.function]
        if isinstance(callee, s.Attribute) and callee.name == "format":
            return _formatted(content, frame, made, callee)
        given = {argument.keyword: argument.value for argument in made.arguments}
        if isinstance(callee, s.Attribute) and callee.name == _KIND and given.keys() >= set(_ENDS):
            return given[_ENDS[0]], given[_ENDS[1]]
    return None


def _written(content: Origins, frame: Frame, written: s.FString) -> tuple[int, int] | None:
    """The values between ``[`` and ``:``, and between ``:`` and ``]``."""
    texts = [text(content.ev.value(frame, part)) for part in written.parts]
    for place, between in enumerate(texts[1:-1], 1):
        if between == ":" and place >= 2 and place + 2 < len(texts):
            before, behind = texts[place - 2], texts[place + 2]
            if before is not None and behind is not None and before.endswith("[") and behind.startswith("]"):
                return written.parts[place - 1], written.parts[place + 1]
    return None


def _formatted(content: Origins, frame: Frame, call: s.Call, method: s.Attribute) -> tuple[int, int] | None:
    """The values that ``"...[{}:{}]".format(...)`` puts between the brackets."""
    template = text(content.ev.value(frame, method.base))
    if template is None or not template.endswith(_BOUNDS) or any(argument.keyword for argument in call.arguments):
        return None
    values = [argument.value for argument in call.arguments]
    fits = len(values) == template.count("{}") and not any(argument.star for argument in call.arguments)
    return (values[-2], values[-1]) if fits else None


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
    found = content.why(frame, which) if which is not None else None
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
