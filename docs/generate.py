"""Write the pages that are generated from the code: rules, their table, configuration keys, typing rules.

``python docs/generate.py`` writes them; a test checks that the committed files are up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from spmdlint.analysis.evaluation.values import Site
from spmdlint.analysis.meshtypes.primitives import computed, derivative, moved, reduced
from spmdlint.analysis.meshtypes.states import Held, Leaf, State
from spmdlint.config import DEFAULT_EXCLUDE
from spmdlint.keys import KEYS
from spmdlint.knowledge.described import FACETS, KINDS, SOURCES
from spmdlint.knowledge.described import KEYS as FUNCTION_KEYS
from spmdlint.knowledge.load import expected
from spmdlint.knowledge.typing import Typed, typing_table
from spmdlint.output.rules import index, page
from spmdlint.program.link import FunctionRef
from spmdlint.rule import Rule, load_rules

DOCS = Path(__file__).parent
BEGIN = "<!-- Generated from spmdlint/keys.py by docs/generate.py. -->\n"
KNOWLEDGE = "<!-- Generated from spmdlint/knowledge/described.py by docs/generate.py. -->\n"
TYPING = "<!-- Generated from spmdlint/analysis/meshtypes and knowledge/typing.toml by docs/generate.py. -->\n"
END = "<!-- End of what is generated. -->\n"

SITE = Site(FunctionRef(Path("page.py"), 0), 0)
STATES: tuple[State, ...] = ("invariant", "replicated", "partial", "varying", "unknown")


def pages() -> Mapping[Path, str]:
    """The text of every page that is generated, at least in part."""
    rules = [rule for rule in load_rules() if type(rule).__module__.startswith("spmdlint.rules.")]
    texts = {DOCS / "rules" / f"{rule.code}.md": page(rule) for rule in rules}
    texts |= {path: text for rule in rules for path, text in _merged(rule)}
    texts[DOCS / "rules" / "README.md"] = index(rules)
    texts |= dict([_with_parts("configuration.md", {BEGIN: _keys(), KNOWLEDGE: _knowledge()})])
    texts |= dict([_with_parts("mesh-types.md", {TYPING: _typing()})])
    return texts


def _merged(rule: Rule) -> Iterator[tuple[Path, str]]:
    """The pages of earlier rules that are part of a rule now: other sites have links to them."""
    for each in rule.merged:
        code = each.split()[0]
        if code.isupper():  # and not only a name
            link = f"[{rule.code} {rule.name}]({rule.code}.md)"
            yield DOCS / "rules" / f"{code}.md", f"# {each}\n\nThis is part of {link} now.\n"


def _with_parts(name: str, parts: Mapping[str, str]) -> tuple[Path, str]:
    """A page with its generated parts replaced; each begins with a comment."""
    path = DOCS / name
    text = path.read_text(encoding="utf-8")
    for begin, part in parts.items():
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(END)
        text = f"{before}{begin}{part}{END}{after}"
    return path, text


def _keys() -> str:
    parts = []
    for key in KEYS:
        parts.append(f"\n### `{key.name}`\n\n{key.meaning}\n\nAccepts {key.expects}. Default: `{key.default}`.\n")
    excluded = ", ".join(f"`{pattern}`" for pattern in DEFAULT_EXCLUDE)
    return "".join(parts) + f"\n### Excluded by default\n\n{excluded}\n\n"


def _knowledge() -> str:
    """The kinds, the sources and the keys of a function's table."""
    kinds = _table(["`kind`", "the function"], [[f"`{name}`", words] for name, words in KINDS.items()])
    sources = _table(["`source`", "the result depends on"], [[f"`{name}`", words] for name, words in SOURCES.items()])
    facets = _table(["`agree`", "must be the same"], [[f"`{name}`", words] for name, words in FACETS.items()])
    rows = [[f"`{name}`", expected(name), words] for name, words in FUNCTION_KEYS.items()]
    return "\n".join(("", kinds, sources, facets, _table(["key", "value", "meaning"], rows), ""))


def _typing() -> str:
    """The typing rules, asked of the code for every state."""
    return "".join(("\n", _computing(), "\n", _communicating(), "\n", _deriving(), "\n", _functions(), "\n"))


def _leaf(state: State) -> Leaf:
    return Leaf("invariant", (("x", Held(state)),))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
    return "\n".join(lines) + "\n"


def _computing() -> str:
    """The result type of each class of functions."""
    cases: list[tuple[str, tuple[State, ...]]] = [(state, (state,)) for state in STATES]
    cases += [("partial, invariant", ("partial", "invariant")), ("partial, partial", ("partial", "partial"))]
    rows = []
    for typed in get_args(Typed):
        if typed in ("key", "draw", "update"):
            continue
        whole = typed in ("sum", "mean")
        results = [computed(typed, [_leaf(s) for s in states], SITE, whole=whole).state("x") for _, states in cases]
        rows.append([f"`{typed}`", *results])
    return _table(["operand", *(name for name, _ in cases)], rows)


def _communicating() -> str:
    """The result type of each collective."""
    kinds: list[tuple[str, Callable[[Leaf], Leaf]]] = [
        ("psum, pmean, pmax, pmin", lambda leaf: reduced(leaf, ["x"], "psum", SITE)[0]),
        ("all_gather", lambda leaf: moved(leaf, ["x"], "gather", SITE)),
        ("ppermute", lambda leaf: moved(leaf, ["x"], "permute", SITE)),
        ("all_to_all, psum_scatter", lambda leaf: moved(leaf, ["x"], "exchange", SITE)),
        ("pcast to varying", lambda leaf: moved(leaf, ["x"], "cast", SITE)),
    ]
    heads = ["over `x`, operand", *STATES]
    return _table(heads, [[n, *(apply(_leaf(s)).state("x") for s in STATES)] for n, apply in kinds])


def _deriving() -> str:
    """The type of the derivative of a loss with respect to a value."""
    rows = []
    for by in ("invariant", "replicated", "varying"):
        for loss in ("invariant", "varying"):
            found = [
                derivative(_leaf(by), _leaf(loss), SITE, checked=checked, by_hand=by_hand)
                for checked, by_hand in ((True, False), (False, False), (False, True))
            ]
            summed = [" (already summed)" if leaf.marked("transposed", "x") else "" for leaf in found]
            rows.append([loss, by, *(leaf.state("x") + note for leaf, note in zip(found, summed, strict=True))])
    heads = ["loss", "with respect to", "`shard_map`, checked", "`shard_map`, unchecked", "`pmap`"]
    return _table(heads, rows)


def _functions() -> str:
    """The functions of each class."""
    table = typing_table()
    rows = []
    for typed in get_args(Typed):
        names = [f"`{name}`" for name, of in table.exact.items() if of == typed]
        names += [f"everything else in `{start.removesuffix('.')}`" for start, of in table.below if of == typed]
        rows.append([f"`{typed}`", ", ".join(names)])
    return _table(["class", "functions"], rows)


def main() -> None:
    """Write the pages, and delete those of rules that no longer exist."""
    texts = pages()
    for path in (DOCS / "rules").glob("*.md"):
        if path not in texts:
            path.unlink()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
