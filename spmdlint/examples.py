"""Runs the examples in rules of one's own: each is a small project, linted with its rule alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic
from spmdlint.engine import check
from spmdlint.fixes.apply import apply
from spmdlint.rule import Rule
from spmdlint.visitor_rule import EXAMPLE, Invalid, Valid, VisitorRule


def failures(rule: VisitorRule, files: Sequence[Path]) -> Iterator[str]:
    """What is wrong with the examples of a rule, each once, with the examples before it; rules are from ``files``."""
    for name, examples in (("VALID", rule.VALID), ("INVALID", rule.INVALID)):
        if isinstance(examples, str):
            yield f"{name} is one text; write a tuple of examples."
            return
    if not rule.INVALID:
        yield "INVALID is empty, so nothing shows that the rule finds anything; add an example."
    said: dict[str, list[str]] = {}
    for number, example in enumerate(rule.VALID):
        valid = example if isinstance(example, Valid) else Valid(example)
        for sentence in _of_valid(valid, rule, files):
            said.setdefault(sentence, []).append(f"VALID[{number}]")
    for number, wrong in enumerate(rule.INVALID):
        invalid = wrong if isinstance(wrong, Invalid) else Invalid(wrong)
        for sentence in _of_invalid(invalid, rule, files):
            said.setdefault(sentence, []).append(f"INVALID[{number}]")
    # A rule that raises says the same of each example.
    yield from (f"{', '.join(dict.fromkeys(names))}: {sentence}" for sentence, names in said.items())


def _of_valid(example: Valid, rule: Rule, files: Sequence[Path]) -> Iterator[str]:
    found, unfit = _findings(example.code, example.files, rule, files)
    yield from unfit
    for finding in found:
        yield f"The rule finds something in row {finding.place.start.row}: {finding.message}"


def _of_invalid(example: Invalid, rule: Rule, files: Sequence[Path]) -> Iterator[str]:
    found, unfit = _findings(example.code, example.files, rule, files)
    yield from unfit
    if not found:
        if not unfit:
            yield "The rule finds nothing."
        return
    first = found[0]
    if example.row is not None and first.place.start.row != example.row:
        yield f"The finding is in row {first.place.start.row}, not in row {example.row}."
    if example.message is not None and example.message not in first.message:
        yield f"The finding says {first.message!r}, without {example.message!r}."
    if example.replacement is not None:
        made = apply(example.code, [each.fix for each in found if each.fix is not None]).text
        if made != example.replacement:
            yield f"The replacement makes\n\n{_indented(made)}\nand not\n\n{_indented(example.replacement)}"


def _findings(
    code: str, others: Mapping[str, str], rule: Rule, files: Sequence[Path]
) -> tuple[list[Diagnostic], list[str]]:
    """The findings in the code of an example, and why it could not be linted."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made).resolve()
        for name, text in {**others, EXAMPLE: code}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        # SPMD901 finds what cannot be parsed.
        config = Config(root, select=(rule.code, "SPMD901"), preview=True, rules=tuple(files))
        checked = check(config, [root / EXAMPLE], jobs=1)
        unfit = [f"It cannot be linted: {each.message}" for each in checked.diagnostics if each.code != rule.code]
        unfit += [crash.sentence().replace(str(root), "the example") for crash in checked.crashes]
        return [finding for finding in checked.diagnostics if finding.code == rule.code], [*unfit, *checked.notes]


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
