"""Pytrees of functions, which a map over the leaves of a tree makes: ``jax.tree.map(make_gather, specs)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    DictionaryValue,
    Frame,
    FunctionValue,
    Values,
    certain,
    one,
)

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

_MAPPERS = frozenset(("jax.tree.map", "jax.tree.map_with_path", "jax.tree_util.tree_map_with_path"))
_CALLABLE = ("jit", "map")


def tree_of_functions(ev: Evaluator, name: str, arguments: Arguments, frame: Frame) -> Values | None:
    """A pytree whose leaves are functions, all the same or one per leaf of another tree; None if they are arrays.

    It is a dictionary with unknown keys, because the tree may have any structure.
    """
    function = certain(arguments.positional[0]) if name in _MAPPERS and arguments.positional else None
    if not isinstance(function, FunctionValue):
        return None
    inner = ev.entered_frame(function, Arguments(), frame.depth + 1, arrays=True)
    leaf = ev.returned(inner) if inner is not None else None
    return one(DictionaryValue((), open=True, each=leaf)) if leaf is not None and _is_callable(ev, leaf) else None


def leaf_function(ev: Evaluator, tree: Values) -> Values | None:
    """The function that every leaf of such a tree is."""
    value = certain(tree)
    leaf = value.each if isinstance(value, DictionaryValue) and value.open and not value.items else None
    return leaf if leaf is not None and _is_callable(ev, leaf) else None


def _is_callable(ev: Evaluator, values: Values) -> bool:
    value = certain(values)
    known = ev.knowledge.get(value.name) if isinstance(value, Applied) else None
    return isinstance(value, FunctionValue) or (known is not None and known.kind in _CALLABLE)
