"""The skeleton of a rule of one's own."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from spmdlint.errors import UsageError
from spmdlint.rule import Rule, is_built_in

FOLDER = "spmdlint_rules"
"""The folder for rules in a project whose configuration names none."""
_LETTERS = "OWN"

_TEXT = '''\
"""{title}"""

from __future__ import annotations

import libcst as cst

from spmdlint.visitor_rule import Invalid, VisitorRule


class {kind}(VisitorRule):
    """Calls of `jax.debug.print` are left in code.

    Say here why that matters, and what to do instead. This text is the page that `spmdlint rule {code}` shows.
    """

    code = "{code}"
    name = "{name}"
    severity = "warning"

    VALID = ("import jax\\n\\njax.debug.callback(print, 1)\\n",)
    INVALID = (
        Invalid(
            "import jax\\n\\njax.debug.print('x')\\n",
            row=3,
            replacement="import jax\\n\\nprint('x')\\n",
        ),
    )

    def visit_Call(self, node: cst.Call) -> None:
        if self.facts(node).callees.includes("jax.debug.print") == "yes":
            self.report(
                node,
                "jax.debug.print is left in the code.",
                help="Use print, or remove the call.",
                replacement=node.with_changes(func=cst.Name("print")),
            )
'''


def write_skeleton(name: str, root: Path, places: Sequence[Path], rules: Collection[Rule]) -> Path:
    """Write a rule that runs into the first folder among ``places``, made if need be, or a new one; returns the file.

    Raises:
        UsageError: the name is none, or is taken, or the file exists or cannot be written.

    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(f"{name!r} is not a name for a rule: write words with hyphens, such as flush-on-main.")
    if any(name in rule.selectors() for rule in rules):
        raise UsageError(f"There is already a rule {name}; choose a different name.")
    folder = next((place for place in places if _is_folder(place)), root / FOLDER)
    path = folder / f"{name.replace('-', '_')}.py"
    words = name.split("-")
    text = _TEXT.format(
        title=f"{' '.join(words).capitalize()}.",
        kind="".join(word.capitalize() for word in words),
        code=_next_code(rules),
        name=name,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already; choose a different name, or remove the file.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def _is_folder(place: Path) -> bool:
    """Whether a place is a folder, or will be one: a file of rules has a suffix."""
    return place.is_dir() or (place.suffix != ".py" and not place.exists())


def _next_code(rules: Collection[Rule]) -> str:
    """A free code, with the letters of the rules that there are."""
    own = sorted(rule.code for rule in rules if not is_built_in(rule))
    letters = own[-1].rstrip("0123456789") if own else _LETTERS
    numbers = [int(code.removeprefix(letters)) for code in own if code.rstrip("0123456789") == letters]
    return f"{letters}{max(numbers, default=100) + 1:03d}"
