"""Texts that a tokenizer pads to the longest of those that it is given: arrays as wide as a process's own texts.

Tokenizers of Hugging Face's `transformers` do so with ``padding=True`` and ``padding="longest"``; whoever is called, an
argument of that name with one of these values says it.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, Frame, FunctionValue
from spmdlint.program import summary as s

LONGEST = "longest"
"""The kind of the reason for the shape of such arrays."""
ENCODED = frozenset("input_ids attention_mask token_type_ids special_tokens_mask decoder_input_ids labels".split())
"""The arrays that tokenizers give, by the names of their fields."""
_TEXTS = frozenset(("text", "texts", "batch_text_or_text_pairs", "encoded_inputs", "features", "images"))
_TO_LONGEST = ("longest", True)


def padded_to_longest(ev: Evaluator, frame: Frame, call: s.Call) -> list[int]:
    """The texts, where a call of what is not known pads them to the longest one; nothing otherwise."""
    told = next((argument.value for argument in call.arguments if argument.keyword == "padding"), None)
    if told is None or any(isinstance(callee, FunctionValue) for callee in ev.value(frame, call.function)):
        return []
    given = ev.value(frame, told)
    if not given or not all(isinstance(v, Constant) and v.value in _TO_LONGEST for v in given):
        return []
    return [a.value for a in call.arguments if a.keyword in _TEXTS or (a.keyword is None and not a.star)][:1]
