"""Optimizers that bend gradients: what one makes of a device's share, averaged, is not what it makes of the average."""

from __future__ import annotations

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Applied, Member, Site, Value, certain
from spmdlint.analysis.meshtypes.states import Leaf, Mark, Row, Type
from spmdlint.knowledge.typing import Optimizers

_DEPTH = 4


def updated_by(table: Optimizers, method: Value | None, updates: Leaf, site: Site) -> Type:
    """What the ``update`` of an optimizer gives: updates, and a state, which is not what is applied."""
    if not isinstance(method, Member) or not _is_optimizer(method.base):
        return updates
    state = replace(updates, marks=frozenset(mark for mark in updates.marks if mark.fact == "gradient"))
    if _bends(table, method.base, _DEPTH):
        shares = {mark.axis for mark in updates.marks if mark.fact == "gradient"}
        updates = replace(updates, marks=updates.marks | {Mark("bent", axis, site) for axis in shares})
    return Row((updates, state))


def straightened(result: Leaf) -> Leaf:
    """Parameters after a step: who averages those averages models, and means to."""
    return replace(result, marks=frozenset(mark for mark in result.marks if mark.fact != "bent"))


def _is_optimizer(value: Value) -> bool:
    return isinstance(value, Applied) and value.name.startswith("optax.")


def _bends(table: Optimizers, optimizer: Value | None, depth: int) -> bool:
    """Is it surely one that does more than to scale and to sum."""
    if not isinstance(optimizer, Applied) or depth == 0:
        return False
    if optimizer.name in table.bending:
        return True
    parts = optimizer.arguments.positional if optimizer.name in table.made_of else ()
    return any(_bends(table, certain(part), depth - 1) for part in parts)
