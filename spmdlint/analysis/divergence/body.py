"""Which processes leave early: those that make a call, or those that do not.

In ``if first: sync(); return`` it is the former, and in ``if first: return`` before ``sync()`` the latter. The graph of
both is the same, so the order of the source decides.
"""

from __future__ import annotations

from msgspec import Struct

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.program import summary as s

_IDLE = (s.Const, s.Load, s.Attribute, s.Compare, s.Return, s.Matches)


class Inside(Struct, frozen=True):
    """A call is in the body of a branch; ``leaves``: whoever makes it leaves the function or loop, and others go on."""

    leaves: bool


class _Arm(Struct, frozen=True):
    """What only one arm of a branch runs: its first block, all its blocks, and where their operations begin.

    ``idle``: it does no more than return a constant or a name. ``breaks``: it may leave a loop by `break`, which is no
    operation, as a `return` is.
    """

    first: int
    blocks: frozenset[int]
    starts: tuple[int, ...]
    idle: bool
    breaks: bool


def inside(flow: Flow, test: int, call: int) -> Inside | None:
    """How the body of a branch that decides about a call contains it.

    None if it does not, because the call comes after the branch, or if the others leave a loop in which it is made.
    """
    function = flow.function
    for number, block in enumerate(function.blocks):
        if block.test != test:
            continue
        arms = [_arm(flow, number, edge.target) for edge in block.edges if edge.kind in ("true", "false")]
        mine = [arm for arm in arms if function.block_of[call] in arm.blocks]
        others = [arm for arm in arms if function.block_of[call] not in arm.blocks]
        if len(mine) == len(others) == 1:
            left = [header for header in flow.loops if flow.leaves(number, header)]
            if any(mine[0].first in flow.loop_body(header) for header in left):
                return None
            found = _of_arms(function.spans[call][0], mine[0], others[0])
            return Inside(leaves=True) if found is not None and left else found
    return None


def _of_arms(call: int, mine: _Arm, other: _Arm) -> Inside | None:
    if not other.starts:
        return None if other.breaks else Inside(leaves=False)
    if call > min(other.starts):
        return None
    return Inside(leaves=not other.idle and max(mine.starts) < min(other.starts))


def _arm(flow: Flow, branch: int, target: int) -> _Arm:
    blocks = frozenset(n for n in range(len(flow.function.blocks)) if flow.leads(branch, target, n))
    found = [flow.function.blocks[n] for n in blocks]
    operations = [o for block in found for o in block.operations]
    return _Arm(
        target,
        blocks,
        starts=tuple(flow.function.spans[o][0] for o in operations),
        idle=all(isinstance(flow.function.operations[o], _IDLE) for o in operations),
        breaks=any(edge.kind == "break" for block in found for edge in block.edges),
    )
