"""Write the pages that come from the code: the rules' pages, their table, and the keys of the configuration.

``python docs/generate.py`` writes them; a test holds what is checked in equal to what this makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spmdlint.config import DEFAULT_EXCLUDE, KEYS
from spmdlint.output.rules import index, page
from spmdlint.rule import load_rules

DOCS = Path(__file__).parent
BEGIN = "<!-- Generated from spmdlint/config.py by docs/generate.py. -->\n"
END = "<!-- End of what is generated. -->\n"


def pages() -> Mapping[Path, str]:
    """The text of every page that is generated, or has a generated part."""
    rules = [rule for rule in load_rules() if type(rule).__module__.startswith("spmdlint.rules.")]
    texts = {DOCS / "rules" / f"{rule.code}.md": page(rule) for rule in rules}
    texts[DOCS / "rules" / "README.md"] = index(rules)
    configuration = DOCS / "configuration.md"
    before, _, rest = configuration.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    texts[configuration] = f"{before}{BEGIN}{_keys()}{END}{after}"
    return texts


def _keys() -> str:
    parts = []
    for key in KEYS:
        parts.append(f"\n### `{key.name}`\n\n{key.meaning}\n\nIt is {key.expects}. Default: `{key.default}`.\n")
    excluded = ", ".join(f"`{pattern}`" for pattern in DEFAULT_EXCLUDE)
    return "".join(parts) + f"\n### What is excluded by default\n\n{excluded}\n\n"


def main() -> None:
    """Write the pages, and drop those of rules that are gone."""
    texts = pages()
    for path in (DOCS / "rules").glob("*.md"):
        if path not in texts:
            path.unlink()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
