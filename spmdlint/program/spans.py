"""The positions of LibCST nodes as offsets into the text, at half the cost of a parse.

LibCST's own position providers make an object per node and split every token into lines. Here an offset takes one
addition per token, and rows are looked up for the few nodes that end up in a summary.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst
from libcst._nodes.internal import CodegenState

from spmdlint.program.layout import Span

_COMMENT = cst.Comment


class SpanRecorder(CodegenState):
    """Generates the code again, keeping only the offset at which each node begins and ends."""

    __slots__ = ("comments", "offset", "open", "spans")

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.offset = 0
        self.open: list[int] = []
        # By identity: nodes hash by identity anyway, but their `__hash__` is Python code that takes a tenth of this
        # pass.
        self.spans: dict[int, Span] = {}
        self.comments: list[tuple[int, str]] = []

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.offset += len(token)

    def add_token(self, value: str) -> None:
        self.offset += len(value)

    def pop_trailing_newline(self) -> None:
        """Nothing to undo: no tokens are kept."""

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.open.append(self.offset)
        if type(node) is _COMMENT:
            self.comments.append((self.offset, node.value))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.open.pop()
        # If a node has a syntactic span, without parentheses and trailing white space, it was recorded before.
        self.spans.setdefault(id(node), (start, self.offset))

    def record_syntactic_position(  # type: ignore[override]  # all that callers do with it is `with`
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Syntactic:
        return _Syntactic(self, node, start_node, end_node)


class _Syntactic:
    """Records the span of a node without its surroundings: a class, because a generator takes twice as long."""

    __slots__ = ("end_node", "node", "recorder", "start", "start_node")

    def __init__(
        self, recorder: SpanRecorder, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.recorder = recorder
        self.node = node
        self.start_node = start_node
        self.end_node = end_node
        self.start = 0

    def __enter__(self) -> None:
        self.start = self.recorder.offset

    def __exit__(self, *_: object) -> None:
        spans = self.recorder.spans
        spans[id(self.node)] = (
            spans[id(self.start_node)][0] if self.start_node is not None else self.start,
            spans[id(self.end_node)][1] if self.end_node is not None else self.recorder.offset,
        )


def record_spans(module: cst.Module) -> SpanRecorder:
    """The span of every node of a module, and its comments with their offsets, in characters."""
    recorder = SpanRecorder(module)
    module._codegen(recorder)
    return recorder


def span_of(node: cst.CSTNode, spans: Mapping[int, Span]) -> Span:
    """The span of a node, as a summary has it: without the parentheses around it.

    Raises:
        ValueError: the node is not in the tree.

    """
    if id(node) not in spans:
        raise ValueError(f"The {type(node).__name__} is not a node of the file: ask only about nodes that are visited.")
    if isinstance(node, (cst.Tuple, cst.GeneratorExp)) and node.lpar:
        return spans[id(node.lpar[-1])][1], spans[id(node.rpar[0])][0]
    return spans[id(node)]
