"""Keys of the leaves of registered pytree nodes that do not tell JAX what their children are called.

JAX numbers the children of such a node. A node that keeps its keys as static data, as most containers do, has one text
for each child there. Two processes that insert the keys in a different order pass the same names and run one program,
with the wrong array for each key.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

MAX_LEAVES = 20_000

Keys = tuple[tuple[int, str], ...]
"""The keys on the way to a leaf, each with the number of its node; empty if no node has any."""


def keys_of(tree: Any) -> list[Keys] | None:
    """The keys of each leaf of a `PyTreeDef`, in the order of the leaves; None if the tree is unknown or too large."""
    if tree is None or tree.num_leaves > MAX_LEAVES:
        return None
    return list(_walked(tree, (), itertools.count()))


def shown_with(names: Sequence[str] | None, keys: Sequence[Keys] | None) -> Sequence[str] | None:
    """The names of the leaves, for readers: "tree[0] (gamma)"."""
    if names is None or keys is None or len(names) != len(keys):
        return names
    return [_shown(name, each) for name, each in zip(names, keys, strict=True)]


def _shown(name: str, keys: Keys) -> str:
    key = keys[-1][1] if keys else ""
    return name if key in name else f"{name} ({key})"


def _walked(tree: Any, above: Keys, numbers: Iterator[int]) -> Iterator[Keys]:
    node, children = tree.node_data(), tree.children()
    if node is None:
        if tree.num_leaves == 1:  # neither a leaf nor None has data
            yield above
        return
    kind, data = node
    registered = isinstance(kind, type) and not issubclass(kind, dict | list | tuple)
    keys = _texts(data, len(children)) if registered and len(children) > 1 else None
    number = next(numbers) if keys is not None else 0
    for place, child in enumerate(children):
        yield from _walked(child, above if keys is None else (*above, (number, keys[place])), numbers)


def _texts(data: Any, count: int) -> Sequence[str] | None:
    """The list among a node's static data that has one text for each child."""
    parts = [data, *data] if isinstance(data, tuple | list) else [data]
    for part in parts:
        if isinstance(part, tuple | list) and len(part) == count and all(isinstance(each, str) for each in part):
            return part if len(set(part)) == count else None
    return None
