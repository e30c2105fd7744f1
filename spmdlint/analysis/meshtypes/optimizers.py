"""Non-linear optimizers: applied to each device's share and averaged, they differ from applied to the average."""

from __future__ import annotations

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Applied, Member, Site, Value, certain
from spmdlint.analysis.meshtypes.states import Leaf, Mark, Row, Type
from spmdlint.knowledge.typing import Optimizers

_DEPTH = 4


def updated_by(table: Optimizers, method: Value | None, updates: Leaf, site: Site) -> Type:
    """The result of an optimizer's ``update``: updates, and a state, which is not what is applied."""
    if not isinstance(method, Member) or not _is_optimizer(method.base):
        return updates
    state = replace(updates, marks=frozenset(mark for mark in updates.marks if mark.fact == "gradient"))
    if _bends(table, method.base, _DEPTH):
        shares = {mark.axis for mark in updates.marks if mark.fact == "gradient"}
        updates = replace(updates, marks=updates.marks | {Mark("bent", axis, site) for axis in shares})
    return Row((updates, state))


def straightened(result: Leaf) -> Leaf:
    """The parameters after a step: code that averages them averages models on purpose."""
    return replace(result, marks=frozenset(mark for mark in result.marks if mark.fact != "bent"))


def _is_optimizer(value: Value) -> bool:
    return isinstance(value, Applied) and value.name.startswith("optax.")


def _bends(table: Optimizers, optimizer: Value | None, depth: int) -> bool:
    """Whether an optimizer certainly does more than scale and sum."""
    if not isinstance(optimizer, Applied) or depth == 0:
        return False
    if optimizer.name in table.bending:
        return True
    parts = optimizer.arguments.positional if optimizer.name in table.made_of else ()
    return any(_bends(table, certain(part), depth - 1) for part in parts)
