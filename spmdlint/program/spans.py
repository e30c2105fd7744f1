"""Where each syntax node stands, as offsets into the text, at half the cost of a parse.

LibCST's own position providers make an object per node and split every token into lines. An offset is one addition
per token, and rows are looked up for the few nodes that end up in a summary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import libcst as cst
from libcst._nodes.internal import CodegenState

Span = tuple[int, int]


class SpanRecorder(CodegenState):
    """Generates the code again, keeping nothing of it but the offset at which each node begins and ends."""

    __slots__ = ("comments", "offset", "open", "spans")

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.offset = 0
        self.open: list[int] = []
        self.spans: dict[cst.CSTNode, Span] = {}
        self.comments: list[tuple[int, str]] = []

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.offset += len(token)

    def add_token(self, value: str) -> None:
        self.offset += len(value)

    def pop_trailing_newline(self) -> None:
        """Nothing to take back: no tokens are kept."""

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.open.append(self.offset)
        if type(node) is cst.Comment:
            self.comments.append((self.offset, node.value))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.open.pop()
        # A syntactic span, without parentheses and trailing white space, was recorded already where there is one.
        self.spans.setdefault(node, (start, self.offset))

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = self.offset
        yield
        self.spans[node] = (
            self.spans[start_node][0] if start_node is not None else start,
            self.spans[end_node][1] if end_node is not None else self.offset,
        )


def record_spans(module: cst.Module) -> SpanRecorder:
    """The span of every node of a module and its comments with their offsets, in characters."""
    recorder = SpanRecorder(module)
    module._codegen(recorder)
    return recorder
