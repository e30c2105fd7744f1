"""Which rules run: codes, prefixes of codes and kebab names, as ruff reads them.

The more specific selector wins: ``select = ["SPMD3"]`` with ``ignore = ["SPMD301"]`` leaves out one rule, and
``select = ["SPMD301"]`` with ``ignore = ["SPMD3"]`` runs one.

The code or the name of a rule that is part of another one now stands for all of that one; the beginning of such a code
does not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from spmdlint.errors import UsageError
from spmdlint.rule import Rule

ALL = "ALL"
RETIRED = frozenset(
    "SPMD108 map-needs-function SPMD111 mesh-rank SPMD113 untiled-scatter SPMD116 negative-dimension "
    "SPMD405 float-shape SPMD605 repeated-device SPMD606 uncalled-method "
    "SPMD515 unaveraged-statistics".split()
)
"""Rules of earlier releases: JAX says itself what they found, or nobody has seen it. Their names select nothing."""


def chosen(select: Iterable[str], ignore: Iterable[str], rules: Sequence[Rule]) -> frozenset[str]:
    """The codes of the rules that ``select`` names and ``ignore`` does not remove.

    A rule that always runs needs no selector, but can be ignored.
    """
    select, ignore = tuple(select), tuple(ignore)
    codes = {rule.code for rule in rules if rule.always}
    for level in sorted({specificity(text, rules) for text in (*select, *ignore)}):
        for text in select:
            if specificity(text, rules) == level:
                codes |= matches(text, rules)
        for text in ignore:
            if specificity(text, rules) == level:
                codes -= matches(text, rules)
    return frozenset(codes)


def matches(selector: str, rules: Sequence[Rule]) -> frozenset[str]:
    """The codes that a selector stands for; empty if it is not a selector."""
    if selector == ALL:
        return frozenset(rule.code for rule in rules)
    return frozenset(
        rule.code
        for rule in rules
        if selector in rule.selectors() or (rule.code.startswith(selector) and selector.startswith(_letters(rule.code)))
    )


def codes_by_selector(rules: Iterable[Rule]) -> dict[str, str]:
    """The codes of rules, by each word that stands for one rule."""
    return {word: rule.code for rule in rules for word in rule.selectors()}


def refuse_unknown(selectors: Iterable[str], rules: Sequence[Rule], where: str) -> None:
    """Raise unless every selector stands for a rule; ``where`` tells the user what to fix.

    Raises:
        UsageError: with the nearest valid selector.

    """
    for selector in selectors:
        if selector not in RETIRED and not matches(selector, rules):
            raise UsageError(
                f"{where} names the rule {selector!r}, which does not exist.{suggestion(selector, rules)} "
                "'spmdlint rule --all' lists the rules."
            )


def suggestion(selector: str, rules: Sequence[Rule]) -> str:
    """A sentence with the nearest code or name, with a space before it; empty if nothing is near."""
    near = nearest(selector, [rule.code for rule in rules]) if selector else None
    near = near or nearest(selector, [rule.name for rule in rules])
    return f" Did you mean {near!r}?" if near else ""


def nearest(word: str, candidates: Collection[str]) -> str | None:
    """The candidate that ``word`` most likely stands for."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    import difflib  # only needed after a mistake

    found = difflib.get_close_matches(word.lower(), list(by_lower), n=max(len(by_lower), 1))
    # If several are equally near, a wrong letter is likelier than one in a different position, and at the end likelier
    # than at the beginning, which is the family of a code. Of what is left, the first is as good as any.
    best = max(sorted(found), key=lambda near: _nearness(word.lower(), near), default=None)
    return by_lower[best] if best is not None else None


def _nearness(word: str, near: str) -> tuple[float, int, int]:
    from difflib import SequenceMatcher

    same = [mine == theirs for mine, theirs in zip(word, near, strict=False)]
    begun = same.index(False) if False in same else len(same)
    return SequenceMatcher(None, near, word).ratio(), sum(same), begun


def specificity(selector: str, rules: Sequence[Rule]) -> int:
    """How narrow a selector is; the narrower one wins."""
    if selector == ALL:
        return 0
    exact = selector in codes_by_selector(rules)
    return 1000 if exact else len(selector)


def _letters(code: str) -> str:
    found = re.match(r"[A-Z]+", code)
    return found.group() if found else code
