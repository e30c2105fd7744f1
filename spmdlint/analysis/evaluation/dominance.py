"""Dominators, by the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001).

On the reversed graph the result is the post-dominators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def immediate_dominators(
    root: int, targets: Sequence[Sequence[int]], sources: Sequence[Sequence[int]], without: int | None = None
) -> dict[int, int]:
    """The immediate dominator of each block that is reachable from the root; the root's is the root itself.

    ``targets`` and ``sources`` are the successors and predecessors of each block. Blocks that are unreachable from the
    root, or reachable only through ``without``, are not in the result.
    """
    order = _reverse_postorder(root, targets, without)
    rank = {block: position for position, block in enumerate(order)}
    immediate = {root: root}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new: int | None = None
            for source in sources[block]:
                if source in immediate:
                    new = source if new is None else _meet(new, source, immediate, rank)
            if new is not None and immediate.get(block) != new:
                immediate[block] = new
                changed = True
    return immediate


def _meet(a: int, b: int, immediate: Mapping[int, int], rank: Mapping[int, int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = immediate[a]
        while rank[b] > rank[a]:
            b = immediate[b]
    return a


def _reverse_postorder(start: int, targets: Sequence[Sequence[int]], without: int | None) -> list[int]:
    seen = {start}
    out: list[int] = []
    stack: list[tuple[int, int]] = [(start, 0)]
    while stack:
        block, position = stack[-1]
        if position < len(targets[block]):
            stack[-1] = (block, position + 1)
            target = targets[block][position]
            if target not in seen and target != without:
                seen.add(target)
                stack.append((target, 0))
        else:
            stack.pop()
            out.append(block)
    return out[::-1]
