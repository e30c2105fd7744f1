"""Shares recognised by name: what programs call the index and the number of shares, where no data flow shows it."""

from __future__ import annotations

import re

from spmdlint.analysis.evaluation.code import Code
from spmdlint.program import summary as s

# Owners of shares among processes; the workers of a loader read the list of a single process.
_SHARERS = frozenset("shard host process rank replica".split())
_PLURALS = {"shards": "shard", "hosts": "host", "processes": "process", "ranks": "rank", "replicas": "replica"}
_PLACES = frozenset("index idx id rank number".split())
_COUNTS = frozenset("num count total size number".split())


def names_a_share(code: Code, place: s.Load | s.Attribute, count: s.Load | s.Attribute) -> bool:
    """Whether two names stand for an index and a count of processes, as ``shard_index`` and ``num_shards`` do."""
    of_place, of_count = _words(code, place), _words(code, count)
    sharers = of_place & _SHARERS
    if not sharers or of_place.isdisjoint(_PLACES) or of_count.isdisjoint(_COUNTS):
        return False
    return not sharers.isdisjoint(of_count) or "world" in of_count


def _words(code: Code, operation: s.Load | s.Attribute) -> set[str]:
    """The words of a name, in the singular, with those of the object whose field it is."""
    names = [operation.name]
    if isinstance(operation, s.Attribute):
        base = code.operations[operation.base]
        names += [base.name] if isinstance(base, (s.Load, s.Attribute)) else []
    words = {word for name in names for word in re.split(r"_|(?<=[a-z])(?=[A-Z])", name)}
    return {_PLURALS.get(word.lower(), word.lower()) for word in words}
