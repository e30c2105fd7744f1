"""Texts that a tokenizer pads to the longest one it is given: arrays as wide as a process's own texts.

Tokenizers of Hugging Face's `transformers` do so with ``padding=True`` and ``padding="longest"``; a call of any unknown
function with such an argument is taken to do the same.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, Frame, FunctionValue
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
