"""The length of texts: those that a process found for itself, and those that a tokenizer pads to the longest."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, External, Frame, FunctionValue, Site
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

LONGEST = "longest"
"""The kind of the reason for the shape of such arrays."""
ENCODED = frozenset("input_ids attention_mask token_type_ids special_tokens_mask decoder_input_ids labels".split())
"""The arrays that tokenizers return, by the names of their fields."""
_TEXTS = frozenset(("text", "texts", "batch_text_or_text_pairs", "encoded_inputs", "features", "images"))
_TO_LONGEST = ("longest", True)


def padded_to_longest(ev: Evaluator, frame: Frame, call: s.Call) -> list[int]:
    """The texts that a call of an unknown function pads to the longest one; empty if it does not pad."""
    told = next((argument.value for argument in call.arguments if argument.keyword == "padding"), None)
    if told is None or any(isinstance(callee, FunctionValue) for callee in ev.value(frame, call.function)):
        return []
    given = ev.value(frame, told)
    if not given or not all(isinstance(v, Constant) and v.value in _TO_LONGEST for v in given):
        return []
    return [a.value for a in call.arguments if a.keyword in _TEXTS or (a.keyword is None and not a.star)][:1]


_OWN = ("files", "host", "data")
"""Kinds of text whose length differs between processes; numbers, times and random names have fixed lengths."""
_DEPTH = 3
_PADDING = frozenset(("ljust", "rjust", "center", "zfill"))
WHOLE_FILES = frozenset(("read_bytes", "read_text"))


def of_letters(content: Origins, frame: Frame, number: int, operation: s.Collected) -> Reason | None:
    """Why ``[ord(c) for c in name]`` differs in length: it is as long as the name."""
    loop = frame.code.operations[operation.loops[0]] if len(operation.loops) == 1 else None
    if not isinstance(loop, s.Next) or not _is_letter(content, frame, operation.element, _DEPTH):
        return None
    return _of_text(content, frame, number, loop.iterable)


def of_mapped(content: Origins, frame: Frame, number: int, arguments: list[int]) -> Reason | None:
    """Why ``map(ord, name)`` differs in length."""
    if len(arguments) != 2 or External("builtins.ord") not in content.ev.value(frame, arguments[0]):
        return None
    return _of_text(content, frame, number, arguments[1])


def of_encoded(content: Origins, frame: Frame, number: int, method: s.Attribute) -> Reason | None:
    """Why ``name.encode()`` differs in length."""
    return _of_text(content, frame, number, method.base) if method.name == "encode" else None


def _of_text(content: Origins, frame: Frame, number: int, text: int) -> Reason | None:
    found = content.why(frame, text) if not _is_padded(frame, text, _DEPTH) else None
    if found is None or found.kind not in _OWN:
        return None
    return content.step(frame, number, "there is one for each letter of the text", found)


def _is_padded(frame: Frame, text: int, depth: int) -> bool:
    """Whether a text is padded to a size: ``name.ljust(64)``, ``name.ljust(64)[:64]``."""
    made = frame.code.operations[frame.code.root_of(text)]
    if isinstance(made, s.Subscript) and depth:
        return _is_padded(frame, made.base, depth - 1)
    method = frame.code.operations[made.function] if isinstance(made, s.Call) else None
    return isinstance(method, s.Attribute) and method.name in _PADDING


def _is_letter(content: Origins, frame: Frame, number: int, depth: int) -> bool:
    """Whether a number is the code of a letter, or computed from one: ``ord(c) - 32``."""
    operation = frame.code.operations[number]
    if isinstance(operation, s.Binary) and depth:
        return any(_is_letter(content, frame, side, depth - 1) for side in (operation.left, operation.right))
    return isinstance(operation, s.Call) and External("builtins.ord") in content.ev.value(frame, operation.function)


def of_whole_file(frame: Frame, number: int, method: s.Attribute) -> Reason | None:
    """Why ``path.read_bytes()`` differs in length: it is all of the file that the process finds."""
    if method.name not in WHOLE_FILES:
        return None
    return Reason(Site(frame.ref, number), f".{method.name}() may find a different file on each process", "files")
