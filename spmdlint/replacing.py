"""Edits for a change of a syntax tree: the fewest characters that turn one text into the other."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TypeAlias

import libcst as cst

from spmdlint.diagnostics import Edit, Location
from spmdlint.program.positions import line_starts

Replacement: TypeAlias = "cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]"
_TOKENS = re.compile(r"\w+|\s+|.", re.DOTALL)
MAX_TOKENS = 2_000
"""The most tokens in which unchanged parts are looked for; a larger change is one edit."""


class ReplacementError(ValueError):
    """A replacement that cannot take the place of the node; the text is a sentence."""


def replacing(module: cst.Module, node: cst.CSTNode, new: Replacement) -> tuple[Edit, ...]:
    """The edits that put something else in the place of a node; everything around it keeps its formatting.

    Raises:
        ReplacementError: the node is not in the module, or the new one does not fit in its place.

    """
    swap = _Swap(node, new)
    try:
        changed = module.visit(swap)
        text = changed.code if isinstance(changed, cst.Module) else ""
    except Exception as error:  # LibCST raises whatever the validation of a node raises
        raise ReplacementError(f"The replacement does not fit in the place of the node: {error}.") from error
    if not swap.done:
        raise ReplacementError("The node to replace is not a node of the file.")
    return tuple(edits_between(module.code, text))


def edits_between(old: str, new: str) -> Iterator[Edit]:
    """The edits that turn one text into another."""
    start = _alike(old, new)
    while start and old[start - 1 : start].isalnum():  # not within a word
        start -= 1
    end = _alike(old[start:][::-1], new[start:][::-1])
    while end and old[len(old) - end].isalnum():
        end -= 1
    before, after = (_TOKENS.findall(text[start : len(text) - end]) for text in (old, new))
    starts = line_starts(old)
    if max(len(before), len(after)) > MAX_TOKENS:
        before, after = ["".join(before)], ["".join(after)]
    offsets = [start]
    for token in before:
        offsets.append(offsets[-1] + len(token))
    for tag, first, last, begin, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            ends = _location(offsets[first], starts), _location(offsets[last], starts)
            yield Edit(*ends, "".join(after[begin:stop]))


class _Swap(cst.CSTTransformer):
    """Replaces one node."""

    def __init__(self, node: cst.CSTNode, new: Replacement) -> None:
        super().__init__()
        self.node = node
        self.new = new
        self.done = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node is not self.node and not self.done

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Replacement:  # type: ignore[override]
        if original_node is not self.node:
            return updated_node
        self.done = True
        return self.new


def _alike(one: str, other: str) -> int:
    """How many characters at the start of two texts are the same."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:
        return shorter
    low, high = 0, shorter
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _location(offset: int, starts: list[int]) -> Location:
    row = bisect_right(starts, offset)
    return Location(row, offset - starts[row - 1] + 1)
