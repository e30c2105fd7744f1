"""Shares by process index of data that each process has shuffled with its own seed: the shares overlap."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.variance.evened import SHARDERS
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_SUBSCRIPT = (s.Subscript,)

_STRIDES = frozenset(("islice",))


class ShuffledShare(Struct, frozen=True):
    """One process's share of a list that each process shuffled in its own way."""

    site: Site
    shuffle: Reason


class Shares:
    """Checks every share. ``content`` says what varies, ``shuffles`` what is in an order of this process's own."""

    def __init__(self, evaluator: Evaluator, content: Origins, shuffles: Origins) -> None:
        self.ev = evaluator
        self.content = content
        self.shuffles = shuffles

    def found(self) -> Iterator[ShuffledShare]:
        """Shares by process index of data that was shuffled with a seed of the process's own."""
        for frame in (self.ev.free_frame(ref) for ref in self.ev.project.functions()):
            live = self.ev.live_blocks(frame)
            for block, number, operation in frame.code.each(_SUBSCRIPT):
                if block in live and isinstance(frame.code.operations[operation.index], s.Slice):
                    yield from self._share(frame, number, operation.index, operation.base)
            for number, method in frame.code.calls_named(SHARDERS).items():
                base = frame.code.operations[method.function]
                if frame.code.function.block_of[number] in live and isinstance(base, s.Attribute):
                    yield from self._share(frame, number, number, base.base)
            for number, call in frame.code.calls_named(_STRIDES).items():
                if frame.code.function.block_of[number] in live and self._strides(frame, call):
                    yield from self._share(frame, number, call.arguments[1].value, call.arguments[0].value, "identity")

    def _strides(self, frame: Frame, call: s.Call) -> bool:
        """Whether a call is ``islice(files, start, stop, step)``, which takes every step-th element."""
        callees = self.ev.value(frame, call.function)
        named = any(isinstance(callee, External) and callee.name == "itertools.islice" for callee in callees)
        return named and len(call.arguments) == 4 and not any(a.keyword or a.star for a in call.arguments)

    def _share(self, frame: Frame, number: int, cut: int, base: int, kind: str = "data") -> Iterator[ShuffledShare]:
        share = self.content.of(frame, cut)
        if share is None or share.kind != kind:
            return
        shuffle = self.shuffles.of(frame, base)
        if shuffle is not None:
            yield ShuffledShare(Site(frame.ref, number), shuffle)
