"""Parts of a data set that TensorFlow Datasets is asked for by their bounds: ``split=f"train[{start}:{end}]"``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Constant, Frame, constant
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.windows import Windows, resolved
from spmdlint.program import summary as s

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


def _written(content: Origins, frame: Frame, text: s.FString) -> tuple[int, int] | None:
    """The values between ``[`` and ``:``, and between ``:`` and ``]``."""
    texts = [_text(constant(content.ev.value(frame, part))) for part in text.parts]
    for place, between in enumerate(texts[1:-1], 1):
        if between == ":" and place >= 2 and place + 2 < len(texts):
            before, behind = texts[place - 2], texts[place + 2]
            if before is not None and behind is not None and before.endswith("[") and behind.startswith("]"):
                return text.parts[place - 1], text.parts[place + 1]
    return None


def _formatted(content: Origins, frame: Frame, call: s.Call, method: s.Attribute) -> tuple[int, int] | None:
    """The values that ``"...[{}:{}]".format(...)`` puts between the brackets."""
    template = _text(constant(content.ev.value(frame, method.base)))
    if template is None or not template.endswith(_BOUNDS) or any(argument.keyword for argument in call.arguments):
        return None
    values = [argument.value for argument in call.arguments]
    fits = len(values) == template.count("{}") and not any(argument.star for argument in call.arguments)
    return (values[-2], values[-1]) if fits else None


def _text(known: Constant | None) -> str | None:
    return known.value if known is not None and isinstance(known.value, str) else None
